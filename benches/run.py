"""What `run` adds to the time of its child, beside `subprocess.run` of the same.

    python benches/run.py [--check]

The child prints the output of a recorded session. Both are run in turn; the first `run` of a process, which imports and
makes the home, stands apart. `--check` fails when the median of the differences is over the budget of 50 ms.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUDGET_MS = 50.0
ROUNDS = 60
OUTPUT = Path(__file__).parents[1] / "tests/data/claude-cli/2.1.325/tools_stream/stream.stdout"


def timed(work: object) -> tuple[float, float]:
    """Wall and processor time in ms."""
    begun, worked = time.perf_counter(), time.process_time()
    assert callable(work)
    work()
    return 1000 * (time.perf_counter() - begun), 1000 * (time.process_time() - worked)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="agent-logger-bench-") as name:
        os.environ["AGENT_LOGGER_HOME"] = f"{name}/home"
        agent = Path(name) / "claude"
        session = "85da3532"  # of the recording; every run has one of its own
        assert session in OUTPUT.read_text()
        agent.write_text(f'#!/bin/sh\nsed "s/{session}/$(printf %08x $$)/g" {OUTPUT}\n')
        agent.chmod(0o700)

        def recorded() -> None:
            from agent_logger import run

            assert run("Fix the timer", executable=str(agent), sessions_dir=f"{name}/s").success

        def direct() -> None:
            subprocess.run([str(agent), "-p", "Fix the timer"], capture_output=True, check=True)

        first, _ = timed(recorded)
        ours, plain = [], []
        for _ in range(ROUNDS):
            plain.append(timed(direct))
            ours.append(timed(recorded))
        added = statistics.median(it[0] - was[0] for it, was in zip(ours, plain, strict=True))
        print(f"the first run {first:.1f} ms; {ROUNDS} more, median of each:")
        for title, times in (("subprocess.run", plain), ("agent_logger.run", ours)):
            wall, spent = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{title:>17} {wall:7.2f} ms, {spent:6.2f} ms of processor time")
        print(f"{'added':>17} {added:7.2f} ms")
    if added > BUDGET_MS and "--check" in sys.argv:
        sys.exit(f"run adds more than {BUDGET_MS} ms")


if __name__ == "__main__":
    main()
