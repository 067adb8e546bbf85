"""The rows of the ledger while it is made, and how two copies of a response are merged."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from agent_logger.model.prices import Tokens
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Usage, Witness

WITNESSES: tuple[Witness, ...] = ("wire", "transcript", "sdk", "run", "hook")
BIT = {witness: 1 << number for number, witness in enumerate(WITNESSES)}
WITNESS_SETS = tuple(
    frozenset(witness for number, witness in enumerate(WITNESSES) if bits >> number & 1)
    for bits in range(1 << len(WITNESSES))
)

EPOCH, DAY_SECONDS = datetime(1970, 1, 1, tzinfo=UTC), 86_400
LATEST = 253_000_000_000_000_000  # microseconds, in 9987; near the year 9999 zones cannot be computed
NEVER = -1
MOST_TOKENS = 1 << 60  # more is damage
NO_TOKENS = (0, 0, 0, 0, 0)
NOT_REPORTED = -1.0
NO_PLACES: Mapping[str, int] = {}


class RowKind(NamedTuple):
    family: str
    model: str | None
    tier: str | None


class LedgerPlace(NamedTuple):
    session: str
    project: str | None
    agent: str
    thread: str


class LedgerEntry(msgspec.Struct, gc=False):
    """What is known of a response, from all copies of it."""

    message_id: str | None
    kind: RowKind
    place: LedgerPlace
    tokens: Tokens | None
    at: int  # microseconds since 1970
    final: bool
    reported: float  # dollars
    witnesses: int  # bits
    copies: int = 1
    joined: int = 0  # how its copies were recognised: the weakest way
    last_at: int = NEVER  # as the copy with the latest time says


def merge(
    one: LedgerEntry, two: LedgerEntry, joined: int, places: Mapping[str, int] = NO_PLACES
) -> LedgerEntry:
    """Merge two copies of a response: the counts of the more final one, the place of the first one. Their content alone
    decides which is which, so the order does not matter. `places`: the order of sessions in their families."""
    best = one if _finality(one) >= _finality(two) else two
    first = one if _earliness(one, places) <= _earliness(two, places) else two
    return LedgerEntry(
        min(filter(None, (one.message_id, two.message_id)), default=None),
        best.kind,
        first.place,
        best.tokens,
        first.at,
        best.final,
        max(one.reported, two.reported),
        one.witnesses | two.witnesses,
        one.copies + two.copies,
        max(one.joined, two.joined, joined),
        max(one.at, one.last_at, two.at, two.last_at),
    )


def _finality(entry: LedgerEntry) -> tuple[bool, bool, int, Tokens, str, str, str]:
    """Return a key that sorts the last copy of a response highest: it has most output; of equal ones the one that says
    more."""
    tokens, kind = entry.tokens or NO_TOKENS, entry.kind
    return (
        entry.final,
        entry.tokens is not None,
        tokens[1],
        tokens,
        kind.model or "",
        kind.tier or "",
        kind.family,
    )


def _earliness(
    entry: LedgerEntry, places: Mapping[str, int]
) -> tuple[bool, int, bool, int, str, str, str, str]:
    """Return a key that sorts the original first. A side thread may replay what the main one said, with its time. Names
    are the last resort."""
    session, project, agent, thread = entry.place
    family = places.get(session, 0)
    return entry.at == NEVER, entry.at, thread != MAIN, family, session, thread, project or "", agent


def time_of(micros: int) -> datetime | None:
    return None if micros == NEVER else datetime.fromtimestamp(micros / 1e6, UTC)


def micros_of(at: datetime | None) -> int:
    if at is None:
        return NEVER
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH
    micros = (since.days * DAY_SECONDS + since.seconds) * 1_000_000 + since.microseconds
    return micros if 0 <= micros < LATEST else NEVER


def tokens_of(usage: Usage | None) -> Tokens | None:
    if usage is None:
        return None
    given, output, read, write, hour = tokens = usage.counts
    if 0 <= given | output | read | write | hour < MOST_TOKENS:  # as nearly all are
        return tokens
    return tokens if -MOST_TOKENS < min(tokens) <= max(tokens) < MOST_TOKENS else None


class Rows:
    """Responses, each as all copies of it say so far. Kinds and places are stored once, because most rows share theirs
    with others."""

    def __init__(self) -> None:
        self.all: list[LedgerEntry] = []
        self._kinds: dict[tuple[str | None, ...], RowKind] = {}
        self._places: dict[tuple[str | None, ...], LedgerPlace] = {}

    @property
    def places(self) -> Iterable[LedgerPlace]:
        """Return the places of all copies ever added, also where another copy is the first."""
        return self._places.values()

    def place(self, place: tuple[str, str | None, str, str]) -> LedgerPlace:
        return self._places.get(place) or self._places.setdefault(place, LedgerPlace(*place))

    def entry(self, row: ModelResponse) -> LedgerEntry:
        kind = (row.family, row.model, row.tier)
        place = (row.session, row.project, row.agent, row.thread)
        return LedgerEntry(
            row.message_id,
            self._kinds.get(kind) or self._kinds.setdefault(kind, RowKind(*kind)),
            self._places.get(place) or self._places.setdefault(place, LedgerPlace(*place)),
            tokens_of(row.usage),
            micros_of(row.at),
            row.final,
            NOT_REPORTED if row.reported_cost_usd is None else row.reported_cost_usd,
            BIT[row.witness],
        )

    def append(self, entry: LedgerEntry) -> int:
        """Add a row. Returns its number."""
        self.all.append(entry)
        return len(self.all) - 1
