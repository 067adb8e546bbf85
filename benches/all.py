"""All benchmarks that have budgets, one after the other, and a table of all their figures in the end.

    ./dev bench all              print the figures; exit code 1 when a budget is exceeded, or a benchmark fails
    ./dev bench all --write      and keep them in docs/performance.md

`small_day` takes 20 minutes and is left out. A benchmark that takes too long is interrupted, as Ctrl-C does it, so that
it removes its files; then the next one begins. The machine should have nothing else to do meanwhile.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from _figures import FIGURES_VARIABLE, PAGE, Figure, arguments_parser, row

FOLDER = Path(__file__).parent
LONG = {"small_day"}
MOST_SECONDS = 420.0  # of one benchmark
END_SECONDS = 30.0  # until an interrupted one is killed


@dataclass
class Run:
    bench: str
    seconds: float
    figures: list[Figure]
    failure: str = ""


def benches() -> list[str]:
    """The benchmarks that have a table in docs/performance.md, by name."""
    return sorted(set(re.findall(r"<!-- figures of (\w+) -->", PAGE.read_text("utf-8"))) - LONG)


def measure(bench: str, *, write: bool) -> Run:
    began = time.monotonic()
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        command = [sys.executable, str(FOLDER / f"{bench}.py"), *(["--write"] if write else [])]
        process = subprocess.Popen(command, env={**os.environ, FIGURES_VARIABLE: file.name}, start_new_session=True)
        failure = wait(process)
        figures = [Figure(**fields) for fields in json.loads(file.read() or "[]")]
    if not figures and not failure:
        failure = f"ended with exit code {process.returncode} and no figures"
    return Run(bench, time.monotonic() - began, figures, failure)


def wait(process: "subprocess.Popen[bytes]") -> str:
    """Wait for a benchmark, and end what is left of it. Returns what went wrong."""
    failure = ""
    try:
        process.wait(MOST_SECONDS)
    except subprocess.TimeoutExpired:
        failure = f"interrupted after {MOST_SECONDS:.0f} s"
    finally:
        if process.poll() is None:  # also if we are interrupted
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return failure


def show(runs: list[Run]) -> bool:
    """Print the table. Returns whether all is well."""
    width = max((len(figure.name) for run in runs for figure in run.figures), default=0)
    for run in runs:
        print(f"\n{run.bench}, {run.seconds:.0f} s{f': {run.failure}' if run.failure else ''}")
        for figure in run.figures:
            print(f"  {row(figure, width)}")
    missed = [f"{run.bench}: {figure.name}" for run in runs for figure in run.figures if not figure.is_within_budget]
    failed = [f"{run.bench}: {run.failure}" for run in runs if run.failure]
    print(f"\n{sum(run.seconds for run in runs):.0f} s in all; {', '.join(sorted(LONG))} was left out")
    print("\n  ".join(["OVER BUDGET", *missed]) if missed else "within all budgets")
    if failed:
        print("\n  ".join(["FAILED", *failed]))
    return not missed and not failed


def main() -> int:
    arguments = arguments_parser(__doc__).parse_args()
    runs = []
    for bench in benches():
        print(f"\n== {bench}", flush=True)
        runs.append(measure(bench, write=arguments.write))
    return 0 if show(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
