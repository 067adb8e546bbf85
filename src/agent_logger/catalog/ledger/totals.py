"""Sums over the ledger. Every command and page that shows a number takes it from here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from agent_logger.catalog.ledger.ledger import (
    Ledger,
    LedgerRow,
    have_unique_ids,
    nano_usd_of,
    reported_usd_of,
)
from agent_logger.catalog.ledger.rows import tokens_of
from agent_logger.model.prices import NO_USAGE, Tokens, nano_usd, price_date
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import SYNTHETIC, Cost, Usage

By = Literal["day", "week", "month", "session", "model", "project", "agent", "tool"]

QUARTER = 900  # seconds; no zone changes its offset within one


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    usage: Usage
    cost: Cost  # of the responses that have a price; `unpriced` counts the others
    reported_cost_usd: float | None  # what clients reported, where they did
    responses: int
    partial: int  # of these, incomplete ones: they count as far as they were reported
    unknown_usage: int = 0  # of these, those that reported no usage: they are in no sum of tokens

    @property
    def unpriced(self) -> int:
        return self.cost.unpriced


class Sum:
    """A total while it grows."""

    def __init__(self) -> None:
        self._input = self._output = self._read = self._write = self._hour = 0
        self._nano: int | None = None
        self._reported: float | None = None
        self._reason: str | None = None
        self._responses = self._partial = self._unpriced = self._unknown = 0

    def add(self, row: LedgerRow) -> None:
        reported, is_response = row.reported_cost_usd, row.is_response
        self.count(row.tokens, row.nano_usd, reported, row.partial, is_response=is_response)

    def count(
        self,
        tokens: Tokens | None,
        nano_usd: int | str,
        reported_usd: float | None,
        partial: bool,
        *,
        is_response: bool = True,
    ) -> None:
        self._responses += is_response
        self._partial += partial
        if tokens:
            given, output, read, write, hour = tokens
            self._input += given
            self._output += output
            self._read += read
            self._write += write
            self._hour += hour
        else:
            self._unknown += 1
        if isinstance(nano_usd, str):
            self._unpriced += 1
            self._reason = min(self._reason or nano_usd, nano_usd)
        else:
            self._nano = (self._nano or 0) + nano_usd
        if reported_usd is not None:
            self._reported = (self._reported or 0.0) + reported_usd

    def add_sums(self, sums: Sequence[Any]) -> None:
        """Add sums that were made elsewhere: responses, partial ones, five kinds of tokens, cost, unpriced ones and the
        reason, what was reported, those without a usage. `None` is nothing."""
        count, partial, given, output, read, write, hour, nano, unpriced, reason, reported, unknown = sums
        self._responses += count
        self._partial += partial or 0
        self._input += given or 0
        self._output += output or 0
        self._read += read or 0
        self._write += write or 0
        self._hour += hour or 0
        self._unpriced += unpriced
        self._unknown += unknown
        if nano is not None:
            self._nano = (self._nano or 0) + nano
        if reason is not None:
            self._reason = min(self._reason or reason, reason)
        if reported is not None:
            self._reported = (self._reported or 0.0) + reported

    def total(self) -> Total:
        usage = Usage(
            input_tokens=self._input,
            output_tokens=self._output,
            cache_read_tokens=self._read,
            cache_write_tokens=self._write,
            cache_write_1h_tokens=self._hour,
        )
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


def total_of(responses: Iterable[ModelResponse], totals: Sequence[ReportedTotal] = ()) -> Total:
    """Return the total of a ledger of these. Its rows are not made, nor is the ledger where it would change nothing."""
    billed = [response for response in responses if response.model != SYNTHETIC]
    if not totals and have_unique_ids(billed):
        return _sum_responses(billed)
    grown, ledger = Sum(), Ledger()
    ledger.add(billed)
    ledger.add_totals(totals)
    for entry in ledger.entries():
        reported, is_response = reported_usd_of(entry), entry.copies > 0
        grown.count(entry.tokens, nano_usd_of(entry), reported, not entry.final, is_response=is_response)
    return grown.total()


def _sum_responses(responses: Iterable[ModelResponse]) -> Total:
    """Sum up responses that are all different."""
    grown = Sum()
    for response in responses:
        tokens = tokens_of(response.usage)
        nano = nano_usd(tokens, response.model, response.at, response.tier) if tokens else NO_USAGE
        grown.count(tokens, nano, response.reported_cost_usd, not response.final)
    return grown.total()


def totals(rows: Iterable[LedgerRow], by: By, zone: tzinfo | None = None) -> dict[str | None, Total]:
    """Return totals by anything but the tool, which rows do not have: by day (`2026-11-15`), ISO week (`2026-W46`),
    month, session, model, project or agent; in the order of `in_order`. Days are those of `zone`, or of this
    machine."""
    key = KEYS[by](zone)
    sums: dict[str | None, Sum] = {}
    for row in rows:
        at = key(row)
        group = sums.get(at)
        if group is None:
            group = sums[at] = Sum()
        group.add(row)
    return in_order({at: group.total() for at, group in sums.items()}, by)


def in_order(sums: Mapping[str | None, Total], by: By) -> dict[str | None, Total]:
    """Sort days, weeks and months by time; anything else from the most expensive, of equal ones the one with more
    tokens, then by name. What belongs to none is last, under `None`."""

    def place(key: str | None) -> tuple[object, ...]:
        total = sums[key]
        size = () if by in FORMS else (-(total.cost.nano_usd or 0), -sum(total.usage.counts[:4]))
        return key is None, *size, key or ""

    return {key: sums[key] for key in sorted(sums, key=place)}


# ---------------------------------------------------------------- keys

Key = Callable[[LedgerRow], str | None]


FORMS: Mapping[By, str] = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}


def time_key(by: By, seconds: int, zone: tzinfo | None) -> str:
    """Return the day, week or month of a moment."""
    return datetime.fromtimestamp(seconds, UTC).astimezone(zone).strftime(FORMS[by])


def _by_time(form: str) -> Callable[[tzinfo | None], Key]:
    def key_in(zone: tzinfo | None) -> Key:
        days: dict[int, str] = {}  # by quarter of an hour: zones are slow to compute

        def key(row: LedgerRow) -> str | None:
            if row.at is None:
                return None
            quarter = int(row.at.timestamp()) // QUARTER
            if quarter not in days:
                days[quarter] = row.at.astimezone(zone).strftime(form)
            return days[quarter]

        return key

    return key_in


def _by_text(key: Key) -> Callable[[tzinfo | None], Key]:
    return lambda _zone: key


KEYS: Mapping[By, Callable[[tzinfo | None], Key]] = {
    "day": _by_time(FORMS["day"]),
    "week": _by_time(FORMS["week"]),
    "month": _by_time(FORMS["month"]),
    "session": _by_text(lambda row: row.session),
    "model": _by_text(lambda row: row.model),
    "project": _by_text(lambda row: row.project),
    "agent": _by_text(lambda row: row.agent),
}
