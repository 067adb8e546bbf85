"""What `tools/mutate.py` puts into its copy of the checkout: the other end of its probes, and a plugin of pytest.

While tests are traced, each function of the modules in question calls `ran` first, in pytest's process as in all that
tests start. `ran` appends a line to `tracing/calls` with the number of the test that is running: pytest's process
writes it to `tracing/current`, and all others have that file mapped.
"""

import json
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRACING = Path(__file__).resolve().parent / "tracing"


def _current_test() -> "memoryview[int]":
    with (TRACING / "current").open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 4)).cast("I")


def _probe() -> Callable[[str], None]:
    current = _current_test()
    calls = os.open(TRACING / "calls", os.O_WRONLY | os.O_APPEND)
    reported: dict[str, int] = {}

    def ran(function: str) -> None:
        if reported.get(function) != current[0]:
            reported[function] = current[0]
            os.write(calls, f"{current[0]}\t{function}\n".encode())

    return ran


if (TRACING / "current").exists():
    ran = _probe()


class Trace:
    """Number the tests, and write what each took and how it ended to `tracing/tests`."""

    def __init__(self) -> None:
        self.current = _current_test()
        self.tests: list[dict[str, Any]] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tests.append({"test": nodeid, "seconds": 0.0, "outcome": "passed"})
        self.current[0] = len(self.tests)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.tests[-1]["seconds"] += report.duration
        if report.outcome != "passed":
            self.tests[-1]["outcome"] = report.outcome

    def pytest_sessionfinish(self) -> None:
        (TRACING / "tests").write_text(json.dumps(self.tests))


class Selection:
    """Run only the tests of a list, in its order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: number for number, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )


def pytest_configure(config: Any) -> None:
    if (TRACING / "current").exists():
        config.pluginmanager.register(Trace())
    elif (TRACING / "selection").exists():
        selection = Selection((TRACING / "selection").read_text().split("\n"))
        config.pluginmanager.register(selection)
