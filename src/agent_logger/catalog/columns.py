"""Where the ledger keeps its rows: by column, in arrays, at about 110 bytes a row and the id.

As objects, a million responses would take four times as much. An `Entry` is one row taken out.
"""

from array import array
from datetime import UTC, datetime

import msgspec

from agent_logger.formats.responses import ModelResponse
from agent_logger.prices import Tokens
from agent_logger.session import MAIN, Usage, Witness

WITNESSES: tuple[Witness, ...] = ("wire", "transcript", "sdk", "run", "hook")
BIT = {witness: 1 << number for number, witness in enumerate(WITNESSES)}

LATEST = 253_000_000_000_000_000  # in 9987; near the end of time no zone can be computed
NEVER = -1
MOST_TOKENS = 1 << 60  # more is damage
NOT_REPORTED = -1.0
NO_TOKENS = (0, 0, 0, 0, 0)

_FINAL, _USED = 1, 2


class Entry(msgspec.Struct, gc=False):
    """What is known of a response, from all copies of it."""

    family: str
    message_id: str | None
    model: str | None
    tier: str | None
    tokens: Tokens | None
    at: int  # microseconds since 1970
    session: str
    project: str | None
    agent: str
    thread: str
    final: bool
    reported: float  # dollars
    witnesses: int  # bits
    copies: int = 1
    joined: int = 0  # by what its copies were known: the weakest


def entry_of(row: ModelResponse) -> Entry:
    return Entry(
        row.family,
        row.message_id,
        row.model,
        row.tier,
        _tokens(row.usage),
        _micros(row.at),
        row.session,
        row.project,
        row.agent,
        row.thread,
        row.final,
        NOT_REPORTED if row.reported_cost_usd is None else row.reported_cost_usd,
        BIT[row.witness],
    )


def _tokens(usage: Usage | None) -> Tokens | None:
    if usage is None:
        return None
    tokens = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.cache_write_1h_tokens,
    )
    return tokens if -MOST_TOKENS < min(tokens) <= max(tokens) < MOST_TOKENS else None


def _micros(at: datetime | None) -> int:
    if at is None:
        return NEVER
    micros = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)
    return micros if 0 <= micros < LATEST else NEVER


def time_of(micros: int) -> datetime | None:
    return None if micros == NEVER else datetime.fromtimestamp(micros / 1e6, UTC)


def merged(one: Entry, two: Entry, joined: int) -> Entry:
    """Two copies of a response: what the more final one counts, where the first one stands. Which is which goes by
    what they say alone, so that it does not matter which came first."""
    best = one if _finality(one) >= _finality(two) else two
    place = one if _place(one) <= _place(two) else two
    return Entry(
        best.family,
        min(filter(None, (one.message_id, two.message_id)), default=None),
        best.model,
        best.tier,
        best.tokens,
        min((at for at in (one.at, two.at) if at != NEVER), default=NEVER),
        place.session,
        place.project,
        place.agent,
        place.thread,
        best.final,
        max(one.reported, two.reported),
        one.witnesses | two.witnesses,
        one.copies + two.copies,
        max(one.joined, two.joined, joined),
    )


def _finality(entry: Entry) -> tuple[bool, bool, int, tuple[int, ...], str, str, str]:
    """The last copy of a response has most output; of equal ones the one that says more."""
    tokens = entry.tokens or NO_TOKENS
    return (
        entry.final,
        entry.tokens is not None,
        tokens[1],
        tokens,
        entry.model or "",
        entry.tier or "",
        entry.family,
    )


def _place(entry: Entry) -> tuple[int, bool, str, str, str, str]:
    """Where it stood first. A side thread may replay what the main one said, with its time."""
    at = (1 << 62) if entry.at == NEVER else entry.at
    return at, entry.thread != MAIN, entry.session, entry.thread, entry.project or "", entry.agent


class Texts:
    """Texts that many rows share, by number; 0 is none."""

    def __init__(self) -> None:
        self._numbers: dict[str | None, int] = {None: 0}
        self.texts: list[str | None] = [None]

    def number(self, text: str | None) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


class Columns:
    """The loops over columns are written out: they are most of the time that a ledger takes."""

    def __init__(self) -> None:
        self._texts = Texts()
        self._ids: list[str | None] = []
        self._input, self._output, self._read, self._write, self._hour = (array("q") for _ in range(5))
        self._family, self._model, self._tier, self._thread = (array("I") for _ in range(4))
        self._session, self._project, self._agent = (array("I") for _ in range(3))
        self._at = array("q")
        self._reported = array("d")
        self._copies = array("I")
        self._flags, self._witnesses, self._joined = (array("B") for _ in range(3))

    def __len__(self) -> int:
        return len(self._ids)

    def append(self, entry: Entry) -> int:
        """The number of the new row."""
        number = self._texts.number
        given, output, read, write, hour = entry.tokens or NO_TOKENS
        self._ids.append(entry.message_id)
        self._input.append(given)
        self._output.append(output)
        self._read.append(read)
        self._write.append(write)
        self._hour.append(hour)
        self._family.append(number(entry.family))
        self._model.append(number(entry.model))
        self._tier.append(number(entry.tier))
        self._thread.append(number(entry.thread))
        self._session.append(number(entry.session))
        self._project.append(number(entry.project))
        self._agent.append(number(entry.agent))
        self._at.append(entry.at)
        self._reported.append(entry.reported)
        self._copies.append(entry.copies)
        self._flags.append((_FINAL if entry.final else 0) | (_USED if entry.tokens is not None else 0))
        self._witnesses.append(entry.witnesses)
        self._joined.append(entry.joined)
        return len(self._ids) - 1

    def __setitem__(self, row: int, entry: Entry) -> None:
        number = self._texts.number
        given, output, read, write, hour = entry.tokens or NO_TOKENS
        self._ids[row] = entry.message_id
        self._input[row], self._output[row] = given, output
        self._read[row], self._write[row], self._hour[row] = read, write, hour
        self._family[row], self._model[row] = number(entry.family), number(entry.model)
        self._tier[row], self._thread[row] = number(entry.tier), number(entry.thread)
        self._session[row], self._project[row] = number(entry.session), number(entry.project)
        self._agent[row] = number(entry.agent)
        self._at[row], self._reported[row], self._copies[row] = entry.at, entry.reported, entry.copies
        self._flags[row] = (_FINAL if entry.final else 0) | (_USED if entry.tokens is not None else 0)
        self._witnesses[row], self._joined[row] = entry.witnesses, entry.joined

    def __getitem__(self, row: int) -> Entry:
        texts, flags = self._texts.texts, self._flags[row]
        tokens = (self._input[row], self._output[row], self._read[row], self._write[row], self._hour[row])
        return Entry(
            texts[self._family[row]] or "",
            self._ids[row],
            texts[self._model[row]],
            texts[self._tier[row]],
            tokens if flags & _USED else None,
            self._at[row],
            texts[self._session[row]] or "",
            texts[self._project[row]],
            texts[self._agent[row]] or "",
            texts[self._thread[row]] or "",
            flags & _FINAL == _FINAL,
            self._reported[row],
            self._witnesses[row],
            self._copies[row],
            self._joined[row],
        )

    def session(self, row: int) -> str:
        return self._texts.texts[self._session[row]] or ""
