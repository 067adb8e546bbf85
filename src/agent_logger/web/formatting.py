"""Formats for people: money, tokens, times; and the function through which all text of the page passes."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup

from agent_logger.model.plurals import noun as noun
from agent_logger.model.plurals import pluralize as pluralize
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Cost
from agent_logger.views.figures import between as between
from agent_logger.views.figures import bytes_text, dollars, seconds_text, short
from agent_logger.views.printable import printable

# Characters. Most values that a template writes are shorter, and there are thousands of them.
SHORTEST_KEY = 12
DATE_SUFFIX = re.compile(r"-20\d{6}$")
UNKNOWN, NONE = "unknown", "–"


def visible(value: Any) -> Any:
    """Prepare a value that a template writes and that is not markup: hide keys, and make invisible characters
    visible."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return plain(value)
    return "" if value is None else value


def plain(text: str) -> str:
    return printable(hidden(text) if len(text) >= SHORTEST_KEY else text, lines=True)


# ---------------------------------------------------------------- numbers


def money(cost: Cost | float | None) -> str:
    usd = cost.usd if isinstance(cost, Cost) else cost
    if usd is None:
        return UNKNOWN if not isinstance(cost, Cost) or cost.reason else NONE
    # The + means that some responses have no price.
    return dollars(usd) + ("+" if isinstance(cost, Cost) and cost.unpriced else "")


def axis_money(usd: float, step: float) -> str:
    """A value on an axis, with as many digits as the steps between its values need."""
    digits = next((digits for digits in (0, 2, 3, 4, 5) if abs(round(step, digits) - step) < step / 100), 6)
    return f"${usd:,.{digits}f}" if usd else "$0"


def change(share: float) -> str:
    """A change as text: `up 12%`, `down 3%`, `unchanged`."""
    percent = round(100 * share)
    return f"{'up' if percent > 0 else 'down'} {abs(percent):,}%" if percent else "unchanged"


def count(number: float | None) -> str:
    return NONE if number is None else short(number)


def size(number: float | None) -> str:
    return NONE if number is None else bytes_text(number)


def share(part: float, whole: float) -> str:
    if not whole:
        return NONE
    return "<1%" if 0 < part / whole < 0.005 else f"{100 * part / whole:.0f}%"


# ---------------------------------------------------------------- times


def duration(seconds: float | None) -> str:
    return NONE if seconds is None else seconds_text(seconds)


def short_time(at: datetime | None, now: datetime | None = None) -> str:
    """A time, as exact as needed: `14:03`, `yesterday 14:03`, `Nov 9 14:03`, `2025-11-09`."""
    if at is None:
        return NONE
    at, today = at.astimezone(), (now or datetime.now(UTC)).astimezone().date()
    if at.date() == today:
        return f"{at:%H:%M}"
    if at.date() == today - timedelta(days=1):
        return f"yesterday {at:%H:%M}"
    if at.year == today.year:
        return f"{at:%b} {at.day} {at:%H:%M}"
    return f"{at:%Y-%m-%d}"


def clock_time(at: datetime | None) -> str:
    """A time to the second, for things that happen within one minute: `14:03:21`, `Nov 9 14:03:21`."""
    if at is None:
        return NONE
    at, today = at.astimezone(), datetime.now().astimezone().date()
    day = "" if at.date() == today else f"{at:%b} {at.day} " if at.year == today.year else f"{at:%Y-%m-%d} "
    return f"{day}{at:%H:%M:%S}"


def exact_time(at: datetime | None) -> str:
    return at.astimezone().isoformat(sep=" ", timespec="seconds") if at else ""


def model(name: str | None) -> str:
    """The name without its date, which says little to a reader and makes most names twice as long."""
    return DATE_SUFFIX.sub("", name or "")


def folder_names(paths: Sequence[str]) -> dict[str, str]:
    """The last part of each path; the last two where others end in the same."""
    last = Counter(map(folder, paths))
    return {path: folder(path) if last[folder(path)] == 1 else "/".join(path.split("/")[-2:]) for path in paths}


def folder(path: str | None) -> str:
    """The last part of a project's path."""
    return (path or "").rstrip("/").rpartition("/")[2] or path or NONE
