"""How fast a year of work goes through the ledger, and what a response takes in memory.

    python benches/ledger.py [RESPONSES]

In processor time, without that of making the responses up. `plain` is a loop over ten million numbers, to compare
machines.
"""

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.totals import totals
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Usage

START = datetime(2026, 1, 1, tzinfo=UTC)


def responses(count: int, *, ids: bool) -> Iterator[ModelResponse]:
    rng = random.Random(1)
    for number in range(count):
        usage = Usage(
            input_tokens=rng.randint(1, 50),
            output_tokens=rng.randint(5, 3000),
            cache_read_tokens=rng.randint(0, 120_000),
            cache_write_tokens=rng.randint(0, 9000),
        )
        yield ModelResponse(
            family="anthropic",
            message_id=f"msg_01{rng.getrandbits(88):022x}" if ids else None,
            request_id=None,
            model="claude-sonnet-4-5-20250929",
            usage=usage,
            tier="standard",
            at=START + timedelta(milliseconds=700 * number + rng.randint(0, 500)),
            session=f"session {number // 200}",
            project=f"/project{number % 40}",
            agent="claude-code",
            thread=MAIN,
            final=True,
            reported_cost_usd=None,
        )


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def plain() -> None:
    total = 0
    for number in range(10_000_000):
        total += number


def exhaust(rows: Iterator[ModelResponse]) -> None:
    for _ in rows:
        pass


def measure(count: int, *, ids: bool) -> None:
    made = seconds(lambda: exhaust(responses(count, ids=ids)))
    gc.collect()
    before, ledger = memory_bytes(), Ledger()
    added = seconds(lambda: ledger.add(responses(count, ids=ids))) - made
    gc.collect()
    each = (memory_bytes() - before) / count
    forked = (replace(it, session=f"fork of {it.session}") for it in responses(count // 10, ids=ids))
    again = seconds(lambda: ledger.add(forked)) - made / 10
    summed = seconds(lambda: totals(ledger.rows(), "day", UTC))
    kind = "with ids" if ids else "without"
    print(f"{kind:10} add {added:.1f} s, a tenth as a fork {again:.1f} s, by day {summed:.1f} s, {each:.0f} bytes each")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{count:,} responses; plain {seconds(plain):.2f} s")
    measure(count, ids=True)
    measure(count, ids=False)
