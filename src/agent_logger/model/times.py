"""Times as people write them: `2026-11-01`, `7d`, `last week`, `monday`, `3 hours ago`.

What a person writes is a span, such as a day or a month. `since` takes its beginning and `until` its end, so a date is
included in both. Times have no zone unless one was written: they are those of the reader's clock, and only the reader
knows its daylight saving.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import NamedTuple

EXAMPLES = "2026-11-01, today, monday, 7d, 'last week', 'this month' or '3 hours ago'"


class TimeRange(NamedTuple):
    """A span of time. A moment is one whose end is its start."""

    start: datetime
    end: datetime  # the first moment after it


def read_span(text: str, now: datetime) -> TimeRange | None:
    """Return the span that the text means; `now` is the reader's clock, with its zone. None: it means no time."""
    words = " ".join(text.lower().split())
    try:
        spans = (read(words, now) for read in (_named, _weekday, _ago, _calendar, _iso_time))
        return next((span for span in spans if span), None)
    except (ValueError, OverflowError):  # a day that no calendar has
        return None


def since_time(text: str, now: datetime) -> datetime | None:
    """Return the first moment of what the text means, with a zone. None: it means no time."""
    span = read_span(text, now)
    return _with_zone(span.start) if span else None


def until_time(text: str, now: datetime) -> datetime | None:
    """Return the first moment after what the text means, with a zone. None: it means no time."""
    span = read_span(text, now)
    return _with_zone(span.end) if span else None


def _with_zone(time: datetime) -> datetime | None:
    with suppress(ValueError, OverflowError):  # the first and the last day of all
        return time.astimezone()
    return None


# ---------------------------------------------------------------- days, weeks, months, years


def _days(first: date, count: int) -> TimeRange:
    start = datetime.combine(first, datetime.min.time())
    return TimeRange(start, start + timedelta(days=count))


def _week(day: date) -> TimeRange:
    return _days(day - timedelta(days=day.weekday()), 7)


def _month(day: date) -> TimeRange:
    first = day.replace(day=1)
    return _days(first, (_next_month(first) - first).days)


def _next_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)


def _year(day: date) -> TimeRange:
    first = day.replace(month=1, day=1)
    return _days(first, (first.replace(year=first.year + 1) - first).days)


_SPANS: dict[str, Callable[[date], TimeRange]] = {"week": _week, "month": _month, "year": _year}


def _named(words: str, now: datetime) -> TimeRange | None:
    today = now.date()
    if words == "now":
        return TimeRange(now, now)
    if words in ("today", "yesterday"):
        return _days(today - timedelta(days=words == "yesterday"), 1)
    which, _, unit = words.partition(" ")
    if unit not in _SPANS or which not in ("this", "last"):
        return None
    this = _SPANS[unit](today)
    return this if which == "this" else _SPANS[unit](this.start.date() - timedelta(days=1))


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(rf"(last )?({'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _WEEKDAYS)})")


def _weekday(words: str, now: datetime) -> TimeRange | None:
    """The most recent day of this name, which may be today; `last monday` is never today."""
    if not (named := _WEEKDAY.fullmatch(words)):
        return None
    number = next(number for number, name in enumerate(_WEEKDAYS) if name.startswith(named[2]))
    back = (now.weekday() - number) % 7
    return _days(now.date() - timedelta(days=back or (7 if named[1] else 0)), 1)


# ---------------------------------------------------------------- so long ago

_AGO = re.compile(
    r"(?:(?:last|past) )?(\d{1,5}|an?) ?(min|minute|h|hr|hour|d|day|w|wk|week|m|mo|month|y|yr|year)s?(?: ago)?"
)
_MINUTES = {"min": 1, "minute": 1, "h": 60, "hr": 60, "hour": 60}
_UNIT_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


def _ago(words: str, now: datetime) -> TimeRange | None:
    if not (ago := _AGO.fullmatch(words)):
        return None
    number, unit = int(ago[1]) if ago[1].isdigit() else 1, ago[2]
    if unit in _MINUTES:
        moment = now - timedelta(minutes=number * _MINUTES[unit])
        return TimeRange(moment, moment)
    return _days(now.date() - timedelta(days=number * _UNIT_DAYS[unit[0]]), 1)


# ---------------------------------------------------------------- dates

_MONTH = re.compile(r"\d{4}-\d{2}")
_WEEK = re.compile(r"\d{4}-w\d{2}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}")


def _calendar(words: str, _now: datetime) -> TimeRange | None:
    if _MONTH.fullmatch(words):
        return _month(date.fromisoformat(f"{words}-01"))
    if _WEEK.fullmatch(words):
        return _week(date.fromisoformat(words.upper()))
    return _days(date.fromisoformat(words), 1) if _DAY.fullmatch(words) else None


def _iso_time(words: str, _now: datetime) -> TimeRange:
    moment = datetime.fromisoformat(words.upper())
    return TimeRange(moment, moment)
