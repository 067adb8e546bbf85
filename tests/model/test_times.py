"""Times as people write them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model.times import TimeRange, read_span, since_time, until_time

NOW = datetime.fromisoformat("2026-11-15T12:30").astimezone()  # a Sunday


def day(month: int, number: int, year: int = 2026) -> datetime:
    return datetime.fromisoformat(f"{year}-{month:02}-{number:02}")


HALF_PAST = datetime.fromisoformat("2026-11-10T12:30")
SPANS = [
    ("today", day(11, 15), day(11, 16)),
    ("Yesterday", day(11, 14), day(11, 15)),
    ("2 days ago", day(11, 13), day(11, 14)),
    ("7d", day(11, 8), day(11, 9)),
    ("last 7 days", day(11, 8), day(11, 9)),
    ("2w", day(11, 1), day(11, 2)),
    ("1 week", day(11, 8), day(11, 9)),
    ("a week ago", day(11, 8), day(11, 9)),
    ("3m", day(8, 17), day(8, 18)),
    ("1y", day(11, 15, 2025), day(11, 16, 2025)),
    ("this week", day(11, 9), day(11, 16)),
    ("last week", day(11, 2), day(11, 9)),
    ("this month", day(11, 1), day(12, 1)),
    ("last  month", day(10, 1), day(11, 1)),
    ("this year", day(1, 1), day(1, 1, 2027)),
    ("last year", day(1, 1, 2025), day(1, 1)),
    ("monday", day(11, 9), day(11, 10)),
    ("Mon", day(11, 9), day(11, 10)),
    ("sunday", day(11, 15), day(11, 16)),
    ("last sunday", day(11, 8), day(11, 9)),
    ("2026-11-10", day(11, 10), day(11, 11)),
    ("20261110", day(11, 10), day(11, 11)),
    ("2026-12", day(12, 1), day(1, 1, 2027)),
    ("2026-W46", day(11, 9), day(11, 16)),
    ("2026-11-10 12:30", HALF_PAST, HALF_PAST),
    ("2026-11-01T10:00:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC), datetime(2026, 11, 1, 8, tzinfo=UTC)),
    ("2026-11-01t10:00z", datetime(2026, 11, 1, 10, tzinfo=UTC), datetime(2026, 11, 1, 10, tzinfo=UTC)),
]


@pytest.mark.parametrize(("text", "start", "end"), SPANS)
def test_a_time_is_a_span_with_a_start_and_an_end(text: str, start: datetime, end: datetime) -> None:
    assert read_span(text, NOW) == TimeRange(start, end)


@pytest.mark.parametrize("text", ["soon", "", "7", "2026-02-30", "last", "next week", "99999y", "0 moons ago", "mond"])
def test_other_words_are_no_time(text: str) -> None:
    assert read_span(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "minutes"), [("3 hours ago", 180), ("3h", 180), ("an hour ago", 60), ("90min", 90), ("now", 0)]
)
def test_minutes_and_hours_are_moments(text: str, minutes: int) -> None:
    moment = NOW - timedelta(minutes=minutes)
    assert since_time(text, NOW) == until_time(text, NOW) == moment


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_day_begins_at_midnight_on_both_sides_of_a_clock_change() -> None:
    assert since_time("2026-10-20", NOW) == datetime(2026, 10, 19, 22, tzinfo=UTC)
    assert since_time("26d", NOW) == datetime(2026, 10, 19, 22, tzinfo=UTC)
    assert until_time("2026-10-25", NOW) == datetime(2026, 10, 25, 23, tzinfo=UTC)
    clock_was_changed = datetime.fromisoformat("2026-10-25T03:30").astimezone()
    assert since_time("2 hours ago", clock_was_changed) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


@given(st.dates())
def test_a_date_is_included_by_both_ends(date: object) -> None:
    first, after = since_time(str(date), NOW), until_time(str(date), NOW)
    assert first is None or after is None or timedelta(hours=22) < after - first <= timedelta(hours=26)


@given(st.text())
def test_any_text_is_a_time_or_none(text: str) -> None:
    span = read_span(text, NOW)
    assert span is None or span.start <= span.end
