"""Where the ledger keeps its rows: packed, 67 bytes each and the id. As objects they would take five times as much.

An `Entry` is one row taken out, and what two copies of a response make together is said here.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from struct import Struct
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from agent_logger.formats.responses import ModelResponse
from agent_logger.prices import Tokens
from agent_logger.session import MAIN, Usage, Witness

WITNESSES: tuple[Witness, ...] = ("wire", "transcript", "sdk", "run", "hook")
BIT = {witness: 1 << number for number, witness in enumerate(WITNESSES)}
WITNESS_SETS = tuple(
    frozenset(witness for number, witness in enumerate(WITNESSES) if bits >> number & 1)
    for bits in range(1 << len(WITNESSES))
)

LATEST = 253_000_000_000_000_000  # microseconds, in 9987; near the end of time no zone can be computed
NEVER = -1
MOST_TOKENS = 1 << 60  # more is damage
NO_TOKENS = (0, 0, 0, 0, 0)
NOT_REPORTED = -1.0


class Kind(NamedTuple):
    family: str
    model: str | None
    tier: str | None


class Place(NamedTuple):
    session: str
    project: str | None
    agent: str
    thread: str


class Entry(msgspec.Struct, gc=False):
    """What is known of a response, from all copies of it."""

    message_id: str | None
    kind: Kind
    place: Place
    tokens: Tokens | None
    at: int  # microseconds since 1970
    final: bool
    reported: float  # dollars
    witnesses: int  # bits
    copies: int = 1
    joined: int = 0  # by what its copies were known: the weakest


def merged(one: Entry, two: Entry, joined: int) -> Entry:
    """Two copies of a response: what the more final one counts, where the first one stands. Which is which goes by
    what they say alone, so that it does not matter which came first."""
    best = one if _finality(one) >= _finality(two) else two
    first = one if _earliness(one) <= _earliness(two) else two
    return Entry(
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
    )


def _finality(entry: Entry) -> tuple[bool, bool, int, Tokens, str, str, str]:
    """The last copy of a response has most output; of equal ones the one that says more."""
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


def _earliness(entry: Entry) -> tuple[bool, int, bool, str, str, str, str]:
    """A side thread may replay what the main one said, with its time."""
    session, project, agent, thread = entry.place
    return entry.at == NEVER, entry.at, thread != MAIN, session, thread, project or "", agent


def time_of(micros: int) -> datetime | None:
    return None if micros == NEVER else datetime.fromtimestamp(micros / 1e6, UTC)


def micros_of(at: datetime | None) -> int:
    if at is None:
        return NEVER
    micros = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)
    return micros if 0 <= micros < LATEST else NEVER


def tokens_of(usage: Usage | None) -> Tokens | None:
    if usage is None:
        return None
    tokens = usage.counts
    return tokens if -MOST_TOKENS < min(tokens) <= max(tokens) < MOST_TOKENS else None


T = TypeVar("T", Kind, Place)


class Shared(Generic[T]):
    """What many rows have in common, by number. Asked for by plain tuples, which are quicker to make."""

    def __init__(self, make: Callable[[Iterable[Any]], T]) -> None:
        self._make: Callable[[Iterable[Any]], T] = make
        self._numbers: dict[tuple[str | None, ...], int] = {}
        self.all: list[T] = []

    def number(self, it: tuple[str | None, ...]) -> int:
        number = self._numbers.get(it)
        if number is None:
            number = self._numbers[it] = len(self.all)
            self.all.append(self._make(it))
        return number


# Five kinds of tokens, time, dollars, kind, place, copies, flags, witnesses, joined.
_ROW = Struct("<5qqdIIIBBB")
_FINAL, _USED = 1, 2


class Columns:
    def __init__(self) -> None:
        self._ids: list[str | None] = []
        self._data = bytearray()
        self._kinds = Shared(Kind._make)
        self._places = Shared(Place._make)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def places(self) -> Iterable[Place]:
        """Of all that was ever taken in, also where another copy is the first."""
        return self._places.all

    def entry(self, row: ModelResponse) -> Entry:
        kinds, places = self._kinds, self._places
        return Entry(
            row.message_id,
            kinds.all[kinds.number((row.family, row.model, row.tier))],
            places.all[places.number((row.session, row.project, row.agent, row.thread))],
            tokens_of(row.usage),
            micros_of(row.at),
            row.final,
            NOT_REPORTED if row.reported_cost_usd is None else row.reported_cost_usd,
            BIT[row.witness],
        )

    def append(self, entry: Entry) -> int:
        """The number of the new row."""
        self._ids.append(entry.message_id)
        self._data += self._packed(entry)
        return len(self._ids) - 1

    def __setitem__(self, row: int, entry: Entry) -> None:
        self._ids[row] = entry.message_id
        self._data[row * _ROW.size : (row + 1) * _ROW.size] = self._packed(entry)

    def __getitem__(self, row: int) -> Entry:
        given, output, read, write, hour, at, reported, kind, place, copies, flags, witnesses, joined = (
            _ROW.unpack_from(self._data, row * _ROW.size)
        )
        return Entry(
            self._ids[row],
            self._kinds.all[kind],
            self._places.all[place],
            (given, output, read, write, hour) if flags & _USED else None,
            at,
            flags & _FINAL == _FINAL,
            reported,
            witnesses,
            copies,
            joined,
        )

    def _packed(self, entry: Entry) -> bytes:
        return _ROW.pack(
            *(entry.tokens or NO_TOKENS),
            entry.at,
            entry.reported,
            self._kinds.number(entry.kind),
            self._places.number(entry.place),
            entry.copies,
            entry.final * _FINAL | (entry.tokens is not None) * _USED,
            entry.witnesses,
            entry.joined,
        )
