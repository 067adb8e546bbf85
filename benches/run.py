"""What `run` adds to the time of its child, beside `subprocess.run` of the same; and what the proxy adds to that.

    ./dev bench run

The child prints the output of a recorded session. All are run in turn: directly, with `record_requests=False`, and
through the proxy, which stays for the next run. The first run of each kind stands apart: it imports, makes the home,
and starts the proxy. Exit code 1 when a median of the differences is over its budget.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _figures import Figures, arguments_parser

BUDGET_MS = 50.0
FIRST_PROXY_MS, PROXY_MS = 400.0, 30.0
ROUNDS = 60
OUTPUT = Path(__file__).parents[1] / "tests/data/claude-cli/2.1.325/tools_stream/stream.stdout"


def timed(work: object) -> tuple[float, float]:
    """Wall and processor time in ms."""
    begun, worked = time.perf_counter(), time.process_time()
    assert callable(work)
    work()
    return 1000 * (time.perf_counter() - begun), 1000 * (time.process_time() - worked)


def main() -> int:
    write = arguments_parser(__doc__).parse_args().write
    with tempfile.TemporaryDirectory(prefix="agent-logger-bench-") as name:
        os.environ["AGENT_LOGGER_HOME"] = f"{name}/home"
        agent = Path(name) / "claude"
        session = "85da3532"  # of the recording; every run has one of its own
        assert session in OUTPUT.read_text()
        agent.write_text(f'#!/bin/sh\nsed "s/{session}/$(printf %08x $$)/g" {OUTPUT}\n')
        agent.chmod(0o700)

        def recorded(*, requests: bool) -> None:
            from agent_logger import run

            folder = f"{name}/s"
            assert run("Fix the timer", executable=str(agent), sessions_dir=folder, record_requests=requests).success

        def direct() -> None:
            subprocess.run([str(agent), "-p", "Fix the timer"], capture_output=True, check=True)

        ways = {
            "subprocess.run": direct,
            "without the proxy": lambda: recorded(requests=False),
            "through the proxy": lambda: recorded(requests=True),
        }
        first = {title: timed(work)[0] for title, work in ways.items()}
        times: dict[str, list[tuple[float, float]]] = {title: [] for title in ways}
        for _ in range(ROUNDS):
            for title, work in ways.items():
                times[title].append(timed(work))
        print(f"{'':>17}   first   later (median of {ROUNDS})")
        for title, pairs in times.items():
            wall, spent = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"{title:>17} {first[title]:7.1f} {wall:7.2f} ms, {spent:6.2f} ms of processor time")
        plain, alone, proxied = ([wall for wall, _ in pairs] for pairs in times.values())
        added, by_proxy = _median_difference(alone, plain), _median_difference(proxied, alone)
        first_by_proxy = first["through the proxy"] - statistics.median(alone)
    figures = Figures("run")
    figures.add("`run` without the proxy adds to its child", added, "ms", at_most=BUDGET_MS)
    figures.add("the proxy adds to that", by_proxy, "ms", at_most=PROXY_MS)
    figures.add("the proxy adds to the first run", first_by_proxy, "ms", at_most=FIRST_PROXY_MS)
    return figures.finish(write=write)


def _median_difference(ones: list[float], others: list[float]) -> float:
    return statistics.median(one - other for one, other in zip(ones, others, strict=True))


if __name__ == "__main__":
    sys.exit(main())
