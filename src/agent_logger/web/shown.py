"""How things are written for a person: money, tokens, times. And the door that all text of the page goes through."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from markupsafe import Markup

from agent_logger.export.printable import printable
from agent_logger.redact import Redactor, hidden
from agent_logger.session import Cost

SHORTEST_KEY = 12  # characters; most of what a template writes is shorter, and there are thousands of them
UNKNOWN = "unknown"


def shown(value: Any) -> Any:
    """For every value that a template writes and that is not markup: keys are hidden, and what cannot be seen is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return plain(value)
    return "" if value is None else value


def plain(text: str) -> str:
    return printable(hidden(text) if len(text) >= SHORTEST_KEY else text, lines=True)


def hidden_bytes(data: bytes) -> bytes:
    """The same for JSON, which stays JSON."""
    return _redactor().redact(data, "").data


@cache
def _redactor() -> Redactor:
    return Redactor(bytes(32))  # the HMACs are thrown away, so any key will do


# ---------------------------------------------------------------- numbers


def money(cost: Cost | float | None) -> str:
    usd = cost.usd if isinstance(cost, Cost) else cost
    if usd is None:
        return UNKNOWN if not isinstance(cost, Cost) or cost.reason else "–"
    more = "+" if isinstance(cost, Cost) and cost.unpriced else ""  # some of it has no price
    if usd and abs(usd) < 0.01:
        return f"${usd:.4f}{more}"
    return f"${usd:,.2f}{more}"


def count(number: float | None) -> str:
    """Short: 950, 12.3k, 4.5M."""
    if number is None:
        return "–"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= limit:
            return f"{number / (1e3 if unit == 'k' else limit):.1f}{unit}"
    return f"{number:,.0f}"


def size(number: float | None) -> str:
    if number is None:
        return "–"
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if number >= limit:
            return f"{number / limit:.1f} {unit}"
    return f"{number:.0f} B"


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}%" if whole else "–"


# ---------------------------------------------------------------- times


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest} s" if rest and minutes < 10 else f"{minutes} m"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} m" if minutes else f"{hours} h"


def between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds; clocks are set back, so never less than none."""
    return max(0.0, (end - start).total_seconds()) if start and end else None


def when(at: datetime | None, now: datetime | None = None) -> str:
    """As near as one needs it: `14:03`, `yesterday 14:03`, `Nov 9 14:03`, `2025-11-09`."""
    if at is None:
        return "–"
    at, today = at.astimezone(), (now or datetime.now(UTC)).astimezone().date()
    if at.date() == today:
        return f"{at:%H:%M}"
    if at.date() == today - timedelta(days=1):
        return f"yesterday {at:%H:%M}"
    if at.year == today.year:
        return f"{at:%b} {at.day} {at:%H:%M}"
    return f"{at:%Y-%m-%d}"


def exactly(at: datetime | None) -> str:
    return at.astimezone().isoformat(sep=" ", timespec="seconds") if at else ""


def folder(path: str | None) -> str:
    """The last part of a project's path."""
    return (path or "").rstrip("/").rpartition("/")[2] or path or "–"
