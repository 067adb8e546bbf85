"""Sums over the ledger. Every command and page that shows a total over sessions takes it from here."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache, partial
from typing import Literal, NamedTuple

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.model.prices import price_date
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import Cost, Usage

By = Literal["day", "week", "month", "session", "model", "project", "agent", "machine", "person", "tool"]

ATTRIBUTES: Mapping[By, str] = {"machine": "home", "person": "home"}  # of a row, where it is not the name itself
QUARTER = 900  # seconds; no zone changes its offset within one
DAY = 86_400  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    usage: Usage
    cost: Cost  # the cost of the responses that have a price; `unpriced` counts the others
    reported_cost_usd: float | None  # the cost that clients reported, if any did
    responses: int
    partial: int  # incomplete responses, which count as far as they were reported
    unknown_usage: int = 0  # responses without a usage, which are in no sum of tokens

    @property
    def unpriced(self) -> int:
        return self.cost.unpriced

    @property
    def knows_tokens(self) -> bool:
        """Whether the sum of tokens says anything: it is no 0 that only unknown numbers add up to."""
        return not self.unknown_usage or self.usage != Usage()


class DatabaseSums(NamedTuple):
    """Sums over rows of the ledger that the database has made. `None`: no row has a value."""

    responses: int
    partial: int | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cache_write_1h_tokens: int | None
    nano_usd: int | None
    unpriced: int
    reason: str | None
    reported_cost_usd: float | None
    unknown_usage: int


class Sum:
    """A total while it grows."""

    def __init__(self) -> None:
        self._input = self._output = self._read = self._write = self._hour = 0
        self._nano: int | None = None
        self._reported: float | None = None
        self._reason: str | None = None
        self._responses = self._partial = self._unpriced = self._unknown = 0

    def add(self, row: LedgerRow) -> None:
        self._responses += row.copies > 0
        self._partial += not row.final
        if usage := row.usage:
            self._input += usage.input_tokens
            self._output += usage.output_tokens
            self._read += usage.cache_read_tokens
            self._write += usage.cache_write_tokens
            self._hour += usage.cache_write_1h_tokens
        else:
            self._unknown += 1
        if isinstance(row.nano_usd, str):
            self._unpriced += 1
            self._reason = min(self._reason or row.nano_usd, row.nano_usd)
        else:
            self._nano = (self._nano or 0) + row.nano_usd
        if row.reported_cost_usd is not None:
            self._reported = (self._reported or 0.0) + row.reported_cost_usd

    def add_sums(self, sums: DatabaseSums) -> None:
        self._responses += sums.responses
        self._partial += sums.partial or 0
        self._input += sums.input_tokens or 0
        self._output += sums.output_tokens or 0
        self._read += sums.cache_read_tokens or 0
        self._write += sums.cache_write_tokens or 0
        self._hour += sums.cache_write_1h_tokens or 0
        self._unpriced += sums.unpriced
        self._unknown += sums.unknown_usage
        if sums.nano_usd is not None:
            self._nano = (self._nano or 0) + sums.nano_usd
        if sums.reason is not None:
            self._reason = min(self._reason or sums.reason, sums.reason)
        if sums.reported_cost_usd is not None:
            self._reported = (self._reported or 0.0) + sums.reported_cost_usd

    def add_total(self, total: Total) -> None:
        cost = total.cost
        self.add_sums(
            DatabaseSums(
                total.responses,
                total.partial,
                *total.usage.counts,
                cost.nano_usd,
                cost.unpriced,
                cost.reason,
                total.reported_cost_usd,
                total.unknown_usage,
            )
        )

    def total(self) -> Total:
        usage = Usage.from_counts(self._input, self._output, self._read, self._write, self._hour)
        cost = Cost(
            nano_usd=self._nano,
            price_date=None if self._nano is None else price_date(),
            reason=self._reason,
            unpriced=self._unpriced,
        )
        return Total(
            usage=usage,
            cost=cost,
            reported_cost_usd=self._reported,
            responses=self._responses,
            partial=self._partial,
            unknown_usage=self._unknown,
        )


def total(rows: Iterable[LedgerRow]) -> Total:
    grown = Sum()
    for row in rows:
        grown.add(row)
    return grown.total()


def sum_of(totals: Iterable[Total]) -> Total:
    grown = Sum()
    for part in totals:
        grown.add_total(part)
    return grown.total()


def total_of(responses: Iterable[ModelResponse], totals: Sequence[ReportedTotal] = ()) -> Total:
    """Return the total of a ledger of these."""
    ledger = Ledger()
    ledger.add(responses)
    ledger.add_totals(totals)
    return total(ledger.rows())


def totals(rows: Iterable[LedgerRow], by: By, zone: tzinfo | None = None) -> dict[str | None, Total]:
    """Return totals by anything but the tool, which rows do not have: by day (`2026-11-15`), ISO week (`2026-W46`),
    month, session, model, project, agent, or machine or person, which are keys of homes; in the order of `in_order`.
    Days are those of `zone`, or of this machine."""
    key_of_quarter = cache(partial(time_key, by, zone=zone))  # zones are slow to compute
    sums: dict[str | None, Sum] = defaultdict(Sum)
    for row in rows:
        if by not in FORMS:
            sums[getattr(row, ATTRIBUTES.get(by, by))].add(row)
        else:
            sums[key_of_quarter(int(row.at.timestamp()) // QUARTER * QUARTER) if row.at else None].add(row)
    return in_order({key: group.total() for key, group in sums.items()}, by)


def in_order(sums: Mapping[str | None, Total], by: By) -> dict[str | None, Total]:
    """Sort days, weeks and months by time; anything else from the most expensive, of equal ones the one with more
    tokens, then by name. What belongs to none is last, under `None`."""

    def place(key: str | None) -> tuple[object, ...]:
        total = sums[key]
        size = () if by in FORMS else (-(total.cost.nano_usd or 0), -sum(total.usage.counts[:4]))
        return key is None, *size, key or ""

    return {key: sums[key] for key in sorted(sums, key=place)}


FORMS: Mapping[By, str] = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}


def time_key(by: By, seconds: int, zone: tzinfo | None) -> str:
    """Return the day, week or month of a moment."""
    return datetime.fromtimestamp(seconds, UTC).astimezone(zone).strftime(FORMS[by])


def offsets(zone: tzinfo | None, first: int, last: int) -> list[tuple[int, int]]:
    """Return the seconds that a zone is ahead of UTC between two moments, each with the moment that it begins at; the
    first begins before them. A zone that changes its clocks does so for longer than a day."""
    days = range(first // DAY * DAY, last + DAY, DAY)
    changes: list[tuple[int, int]] = []
    for day in days:
        ahead = _ahead(zone, day)
        if not changes:
            changes.append((day, ahead))
        elif ahead != changes[-1][1]:
            quarters = range(day - DAY + QUARTER, day + 1, QUARTER)
            changes.append((next(at for at in quarters if _ahead(zone, at) == ahead), ahead))
    return changes


def _ahead(zone: tzinfo | None, seconds: int) -> int:
    offset = datetime.fromtimestamp(seconds, UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())
