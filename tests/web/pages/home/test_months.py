"""The month to date: what it cost, against the same days of the month before, and what it will cost at this rate."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.catalog.ledger.totals import Total
from agent_logger.model.session import Cost, Usage
from agent_logger.web.pages.home.months import MonthToDate, projected, same_days_before


def cost(usd: float) -> Total:
    return Total(usage=Usage(), cost=Cost(nano_usd=int(usd * 1e9)), reported_cost_usd=None, responses=1, partial=0)


@pytest.mark.parametrize(
    ("today", "first", "last"),
    [
        ("2026-11-17", "2026-10-01", "2026-10-17"),
        ("2026-03-31", "2026-02-01", "2026-02-28"),
        ("2024-03-30", "2024-02-01", "2024-02-29"),
        ("2026-01-01", "2025-12-01", "2025-12-01"),
    ],
)
def test_a_month_is_compared_with_the_same_days_of_the_month_before(today: str, first: str, last: str) -> None:
    days = same_days_before(date.fromisoformat(today))
    assert days == (date.fromisoformat(first), date.fromisoformat(last))


def test_days_outside_both_spans_do_not_count() -> None:
    by_day = {date(2026, 9, 30): cost(64), date(2026, 10, 1): cost(1), date(2026, 10, 17): cost(3)}
    by_day |= {date(2026, 10, 18): cost(32), date(2026, 11, 1): cost(5), date(2026, 11, 17): cost(1)}
    month = MonthToDate.of(by_day, datetime(2026, 11, 17, 12, tzinfo=UTC))
    assert (month.total.cost.usd, month.total_before.cost.usd) == (6, 4)
    assert month.change == 0.5


def test_without_a_cost_in_the_month_before_there_is_no_change() -> None:
    month = MonthToDate.of({date(2026, 11, 2): cost(5)}, datetime(2026, 11, 17, tzinfo=UTC))
    assert month.change is None


def test_the_projection_continues_at_the_rate_so_far() -> None:
    assert projected(10, datetime(2026, 11, 16, tzinfo=UTC)) == pytest.approx(20)
    assert projected(10, datetime(2026, 11, 1, 23, tzinfo=UTC)) is None, "a few hours say nothing"
    assert projected(None, datetime(2026, 11, 16, tzinfo=UTC)) is None, "unknown, not 0"


@given(st.datetimes(timezones=st.just(UTC)), st.floats(0.01, 1e6))
def test_a_projection_is_at_least_the_cost_so_far(now: datetime, usd: float) -> None:
    whole = projected(usd, now)
    assert whole is None or whole >= usd * (1 - 1e-9)


def test_the_end_of_a_month_is_its_last_day() -> None:
    for day in (date(2024, 2, 3), date(2026, 2, 28), date(2026, 12, 31)):
        month = MonthToDate.of({}, datetime.combine(day, datetime.min.time(), UTC))
        assert (month.end + timedelta(days=1)).day == 1
