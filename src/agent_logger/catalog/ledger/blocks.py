"""Blocks of five hours, in which subscriptions limit usage. The first response begins a block at its full hour, in UTC;
the first one after its end begins the next.

These are not dataclasses, which take long to create: an agent waits for its status line.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from agent_logger.catalog.ledger.totals import DatabaseSums, Sum, Total

BLOCK = timedelta(hours=5)


class BurnRate(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a block is used, from its first response to its last, and where that leads until its end."""

    tokens_per_minute: float
    usd_per_hour: float
    projected_tokens: int
    projected_usd: float


class UsageBlock(msgspec.Struct, frozen=True, kw_only=True):
    start: datetime
    first: datetime  # response
    last: datetime  # response
    models: tuple[str, ...]
    total: Total

    @property
    def end(self) -> datetime:
        return self.start + BLOCK

    def is_active(self, now: datetime) -> bool:
        return now < self.end

    def burn_rate(self, now: datetime) -> BurnRate | None:
        """Return the rate of an active block; None if it is over, or has a single response."""
        hours = (self.last - self.first) / timedelta(hours=1)
        if not hours or not self.is_active(now):
            return None
        tokens, usd, left = sum(self.total.usage.counts[:4]), self.total.cost.usd or 0.0, self.end - now
        hours_left = left / timedelta(hours=1)
        return BurnRate(
            tokens_per_minute=tokens / hours / 60,
            usd_per_hour=usd / hours,
            projected_tokens=round(tokens + tokens / hours * hours_left),
            projected_usd=usd + usd / hours * hours_left,
        )


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """Responses of one model that are in the same block, whichever that is: within an hour, or at the full hour."""

    first: datetime
    last: datetime
    model: str | None
    sums: Sequence[Any]  # as `Sum.add_sums` takes them


def blocks(slices: Iterable[Slice]) -> list[UsageBlock]:
    """Return the blocks of these responses, which are in the order of time."""
    grown: list[_Growing] = []
    for part in slices:
        if not grown or part.first > grown[-1].start + BLOCK:
            grown.append(_Growing(part))
        grown[-1].add(part)
    return [block.done() for block in grown]


class _Growing:
    def __init__(self, part: Slice) -> None:
        self.start = part.first.replace(minute=0, second=0, microsecond=0)
        self._first, self._last = part.first, part.last
        self._models: dict[str, None] = {}
        self._sum = Sum()

    def add(self, part: Slice) -> None:
        self._first, self._last = min(self._first, part.first), max(self._last, part.last)
        if part.model:
            self._models[part.model] = None
        self._sum.add_sums(DatabaseSums(*part.sums))

    def done(self) -> UsageBlock:
        return UsageBlock(
            start=self.start,
            first=self._first,
            last=self._last,
            models=tuple(self._models),
            total=self._sum.total(),
        )
