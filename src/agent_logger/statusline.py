"""The line for an agent's status bar: the model, the cost of the session, of today and of the block, the context used.

The agent waits for this line, and calls for it after every message. So it comes from the catalog as it is, after a
short wait for a process of its own that brings the catalog up to date. That process goes on if it takes longer, and the
next line has what it found. What takes long to import is avoided.
"""

import os
import select
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_logger import config, platform
from agent_logger.agents.claude_code.status_line import SessionStatus, read_status
from agent_logger.views.printable import printable

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.ledger.totals import Total

NOTHING = "agent-logger: no usage yet"
BEGIN_SECONDS = 1.0  # to wait for the first byte of input
SILENCE_SECONDS = 0.2  # of silence that end the input, even if stdin stays open
MOST_BYTES = 1 << 20  # of input
REFRESH_SECONDS = 0.15  # to wait for new usage
REST_SECONDS = 1.0  # between two refreshes
LONGEST_NAME = 40  # characters of a model's name


def print_line() -> None:
    """Print the line, whatever happens: an error or an empty line would blank the agent's status bar."""
    line = NOTHING
    with suppress(Exception):
        line = status_line(read_status(_read_input()), config.home()) or NOTHING
    os.write(1, f"{line}\n".encode("utf-8", "backslashreplace"))


def _read_input() -> bytes:
    data, patience = b"", BEGIN_SECONDS
    while len(data) < MOST_BYTES and select.select([0], [], [], patience)[0] and (piece := os.read(0, 1 << 16)):
        data, patience = data + piece, SILENCE_SECONDS
    return data


def status_line(status: SessionStatus, home: Path) -> str:
    """The text `Opus 4.5 | $0.50 session | $12.30 today | $3.20 block, 2 h 10 m left | 42% context`."""
    model = printable(" ".join((status.model or "").split()))[:LONGEST_NAME]
    cost = "" if status.cost_usd is None else f"${status.cost_usd:,.2f} session"
    context = "" if status.context_percent is None else f"{status.context_percent:.0f}% context"
    usage: list[str] = []
    with suppress(Exception):  # without a catalog, the line has what the agent says
        usage = _usage_texts(home, status.limit_percent)
    return " | ".join(filter(None, (model, cost, *usage, context)))


def _usage_texts(home: Path, limit_percent: float | None) -> list[str]:
    from agent_logger.catalog.catalog import Catalog

    if not _refresh_briefly(home) or not (home / "catalog.db").exists():
        return []
    with Catalog(home, fresh_seconds=float("inf")) as catalog:
        return [_today_text(catalog), _block_text(catalog, datetime.now(UTC), limit_percent)]


def _today_text(catalog: "Catalog") -> str:
    from agent_logger.catalog.summary import Filter

    return f"{_cost_text(catalog.total(Filter(since=datetime.now().astimezone().date())))} today"


def _block_text(catalog: "Catalog", now: datetime, limit_percent: float | None) -> str:
    block = catalog.active_block(now)
    if block is None:
        return ""
    limit = "" if limit_percent is None else f" ({limit_percent:.0f}% of the limit)"
    hours, minutes = divmod(int((block.end - now).total_seconds()) // 60, 60)
    return f"{_cost_text(block.total)} block{limit}, {f'{hours} h ' if hours else ''}{minutes} m left"


def _cost_text(total: "Total") -> str:
    """The cost in dollars and cents; what has no price is a question mark, not 0."""
    is_unknown = total.cost.usd is None and total.unpriced
    return "?" if is_unknown else f"${total.cost.usd or 0:,.2f}{'+?' if total.unpriced else ''}"


# ---------------------------------------------------------------- keeping up


def _refresh_briefly(home: Path) -> bool:
    """Refresh the catalog in a process of its own, unless that was just done, and wait a moment for it. Returns whether
    that was ever done: before, sums would be too low."""
    stamp = home / "statusline.lock"
    size, modified = (stamp.stat().st_size, stamp.stat().st_mtime) if stamp.exists() else (0, 0.0)
    if size and time.time() - modified < REST_SECONDS:
        return True
    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        _refresh_detached(home, stamp)
    os.close(theirs)
    os.waitpid(child, 0)  # it ends at once, and leaves the work to a child of its own
    select.select([ours], [], [], REFRESH_SECONDS)
    os.close(ours)
    return size > 0 or (stamp.exists() and stamp.stat().st_size > 0)


def _refresh_detached(home: Path, stamp: Path) -> None:
    """Refresh, and end the process. The pipe is closed with it, which tells the parent."""
    try:
        from agent_logger.catalog.catalog import Catalog

        _detach()
        platform.make_folder(home)
        lock = platform.open_or_create(stamp)
        with suppress(platform.NoLocksError):
            if not platform.lock(lock):
                os._exit(0)  # another process is doing it
        with Catalog(home) as catalog:
            catalog.refresh()
        platform.replace_file(stamp, b"\n")  # its time is that of the last refresh
    finally:
        os._exit(0)


def _detach() -> None:
    """Leave the agent's group of processes and its pipes."""
    if os.fork():
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
