"""The month to date: its cost so far, against the same days of the month before, and at this rate by its end."""

from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from agent_logger.catalog.ledger.totals import Total, sum_of

LEAST_DAYS = 1.0  # of a month, before a rate says anything


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthToDate:
    first: date
    today: date
    total: Total
    total_before: Total  # of the same days of the month before
    projected_usd: float | None  # none: nothing is priced, or the month has just begun
    unpriced_models: Sequence[str] = ()

    @classmethod
    def of(cls, by_day: Mapping[date, Total], now: datetime, unpriced_models: Sequence[str] = ()) -> "MonthToDate":
        today = now.date()
        first = today.replace(day=1)
        total = _sum(by_day, first, today)
        return cls(
            first=first,
            today=today,
            total=total,
            total_before=_sum(by_day, *same_days_before(today)),
            projected_usd=projected(total.cost.usd, now),
            unpriced_models=unpriced_models,
        )

    @property
    def first_before(self) -> date:
        return same_days_before(self.today)[0]

    @property
    def last_before(self) -> date:
        return same_days_before(self.today)[1]

    @property
    def end(self) -> date:
        return self.first.replace(day=monthrange(self.first.year, self.first.month)[1])

    @property
    def change(self) -> float | None:
        """The change as a share of the cost before; none if there was no cost."""
        cost, before = self.total.cost.usd, self.total_before.cost.usd
        return None if not before else (cost or 0) / before - 1


def same_days_before(today: date) -> tuple[date, date]:
    """The first day of the month before, and the same day as today there, or its last."""
    last = today.replace(day=1) - timedelta(days=1)
    return last.replace(day=1), last.replace(day=min(today.day, last.day))


def projected(cost_usd: float | None, now: datetime) -> float | None:
    """The cost of the whole month, if it goes on at the rate of the time that has passed."""
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    days = (now - first) / timedelta(days=1)
    if cost_usd is None or days < LEAST_DAYS:
        return None
    return cost_usd / days * monthrange(now.year, now.month)[1]


def _sum(by_day: Mapping[date, Total], first: date, last: date) -> Total:
    return sum_of(total for day, total in by_day.items() if first <= day <= last)
