"""How long an agent waits for `SessionLogger.log`: messages of 100 KB, and small ones, in an exchange that grows.

    ./dev bench logger

Each call is timed by the wall clock, syncs of the upkeep thread and all, and in processor time, which a busy machine
changes less. Exit code 1 when the p99 of the former is over its budget.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _figures import Figures, arguments_parser

BUDGET_MS = 1.0
SESSION = "1f320356-a178-418e-a692-69ce6e1e657c"
TEXT = Path(argparse.__file__).read_text()  # code, as agents read and write it


def assistant(number: int, size: int) -> dict[str, Any]:
    block = {"type": "text", "text": (TEXT * (size // len(TEXT) + 1))[number % 997 :][:size]}
    usage = {"input_tokens": 3, "output_tokens": 1}
    inner = {"id": f"msg_{number}", "role": "assistant", "content": [block], "usage": usage}
    return {"type": "assistant", "session_id": SESSION, "message": inner}


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(share * (len(times) - 1))]


def measure(folder: Path, size: int, count: int) -> tuple[list[float], list[float]]:
    from agent_logger import SessionLogger

    times, spent = [], []
    with SessionLogger(folder, strict=True) as logger:
        logger.log_user_input("go")
        logger.log({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m", "tools": []})
        for number in range(count):
            message = assistant(number, size)
            begun, worked = time.perf_counter(), time.thread_time()
            logger.log(message)
            times.append(1000 * (time.perf_counter() - begun))
            spent.append(1000 * (time.thread_time() - worked))
            time.sleep(0.002)  # an agent is never faster
    return times, spent


def main() -> int:
    write = arguments_parser(__doc__).parse_args().write
    figures = Figures("logger")
    with tempfile.TemporaryDirectory(prefix="agent-logger-bench-") as name:
        os.environ["AGENT_LOGGER_HOME"] = f"{name}/home"
        print(f"{'message':>10} {'p50':>8} {'p99':>8} {'max':>8} {'cpu p50':>8} {'cpu p99':>8}  ms")
        for size, count in ((1_000, 2000), (10_000, 2000), (100_000, 1000)):
            times, spent = measure(Path(name) / str(size), size, count)
            p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
            figures.add(f"`SessionLogger.log()` of {size // 1000} KB, p99", p99, "ms", at_most=BUDGET_MS)
            print(f"{size:>8,} B {p50:8.3f} {p99:8.3f} {max(times):8.3f}", end="")
            print(f" {percentile(spent, 0.5):8.3f} {percentile(spent, 0.99):8.3f}")
    return figures.finish(write=write)


if __name__ == "__main__":
    sys.exit(main())
