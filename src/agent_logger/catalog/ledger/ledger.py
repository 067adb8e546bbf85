"""The ledger: every model response once, whichever witness saw it. Every total is a sum over its rows.

Several sources report the same response: the wire, the client's transcript, the copy of it in a forked or resumed
session. How copies are recognised, from the most certain way to the least:

`message id`  an id in a vendor's form known to be unique. Different request ids do not separate what it joins: clients
              replay messages in side threads, and gateways answer, with request ids of their own.
`request id`  any other id, together with a request id.
`time`        the same in everything, to the moment, in another session: a fork copied it.
`order`       seen by another witness in the same session, with the same model and tokens: the first there is the
              first here. This is a guess, and the row says so.

Clients also report what an exchange used in all. What that has beyond all known responses is a row for each model, with
`result` in the place of the above: it counts, and is no response (`copies` is 0), unless no response at all was
reported.

Ids that servers reuse (Ollama counts to 998 and starts again) join nothing: such responses count per call.

Nothing depends on the order in which rows are added: a ledger is a function of what was added, in any order and in any
number of portions. So a choice between copies depends on their content, never on which came first.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from agent_logger.catalog.ledger.ordering import same_by_order
from agent_logger.catalog.ledger.rows import (
    BIT,
    NEVER,
    NO_PLACES,
    NOT_REPORTED,
    WITNESS_SETS,
    LedgerEntry,
    LedgerPlace,
    RowKind,
    Rows,
    merge,
    micros_of,
    time_of,
    tokens_of,
)
from agent_logger.model.not_itemised import SeenResponse, Stretch, remainders
from agent_logger.model.prices import NO_USAGE, Tokens, nano_usd, price_date
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import MAIN, SYNTHETIC, Cost, Usage, Witness

NOBODY = ("", "unknown")

JoinedBy = Literal["message id", "request id", "time", "order", "result"]
JOINED_BY: tuple[JoinedBy | None, ...] = (None, "message id", "request id", "time", "order", "result")
MESSAGE_ID, REQUEST_ID, TIME, ORDER, RESULT = range(1, 6)

# With 16 or more characters after the vendor's prefix: local servers have shorter ids, and count.
UNIQUE_ID = re.compile(
    r"msg_(?:[a-z]+_)?[A-Za-z0-9-]{16,}"  # Anthropic; `msg_bdrk_…`, `msg_vrtx_…` through its resellers
    r"|chatcmpl-[A-Za-z0-9-]{16,}"
    r"|resp_[A-Za-z0-9-]{16,}"
    r"|gen-\d+-[A-Za-z0-9]{16,}"  # OpenRouter
)
# This id has no prefix, and is shorter than a UUID, which would be the client's.
GEMINI_ID = re.compile(r"[A-Za-z0-9_-]{20,32}")
LONG_REQUEST_ID = 8  # characters; a shorter one is a counter
LONG_AGO, FAR_OFF = 1971, 9980  # years; times outside have no time in the ledger


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A response. A Struct with plain numbers, because a total makes a million of them."""

    family: str
    message_id: str | None
    model: str | None
    tier: str | None
    tokens: Tokens | None
    nano_usd: int | str  # or the reason why it is unknown
    reported_cost_usd: float | None
    at: datetime | None
    session: str
    project: str | None
    agent: str
    thread: str
    witnesses: frozenset[Witness]
    copies: int  # how many times it was reported
    joined_by: JoinedBy | None
    partial: bool  # cut, or seen by a witness that does not see the end; `usage` is as much as was reported

    @property
    def usage(self) -> Usage | None:
        if self.tokens is None:
            return None
        given, output, read, write, hour = self.tokens
        return Usage(
            input_tokens=given,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=write,
            cache_write_1h_tokens=hour,
        )

    @property
    def cost(self) -> Cost:
        if isinstance(self.nano_usd, str):
            return Cost(nano_usd=None, reason=self.nano_usd)
        return Cost(nano_usd=self.nano_usd, price_date=price_date())

    @property
    def why(self) -> str:
        """Return why this row counts, and counts once."""
        if self.joined_by == "result":
            return self._why_not_itemised
        sources = ", ".join(sorted(self.witnesses))
        if self.joined_by is None:
            sighting = f"seen once ({sources})"
        else:
            sighting = f"seen by {self.copies} sources ({sources}), matched by {REASONS[self.joined_by]}"
        if self.partial and self.tokens is None:
            whole = "cut off before its usage, counted as unknown"
        else:
            whole = "cut off, counted as far as it came" if self.partial else "counted once"
        unpriced = f"; cost unknown: {self.nano_usd}" if isinstance(self.nano_usd, str) else ""
        return f"{sighting}; {whole}{unpriced}"

    @property
    def is_response(self) -> bool:
        """Whether this is a response, and not what a client counts beyond all known responses."""
        return self.copies > 0

    @property
    def _why_not_itemised(self) -> str:
        witnesses = ", ".join(sorted(self.witnesses))
        if self.tokens is None and self.is_response:
            return f"a request whose answer was not recorded ({witnesses}); counted as unknown"
        by = f"the client's own total ({witnesses})"
        if self.tokens is None:
            return f"not itemised: {by} holds an earlier history, so the amount is unknown"
        what = "has more than all known responses" if not self.is_response else "is all there is"
        unpriced = f"; cost unknown: {self.nano_usd}" if isinstance(self.nano_usd, str) else ""
        return f"not itemised: {by} {what}; counted{unpriced}"


REASONS: dict[JoinedBy, str] = {
    "message id": "message id",
    "request id": "message and request id",
    "time": "the same time in another session",
    "order": "session, model, tokens and order",
    "result": "the client's total",
}


class Ledger:
    """Collects responses. `places`: the order of sessions that have responses in common, parents before forks."""

    def __init__(self, places: Mapping[str, int] = NO_PLACES) -> None:
        self._rows = Rows()
        self._family = places
        self._rows_by_key: dict[str, int] = {}  # by the key that identifies a response
        self._by_time: dict[
            int, int
        ] = {}  # by the hash of the content: the texts would take more than the rows
        self._forks: dict[int, set[str]] = {}  # rows identified by time that are in several sessions
        self._again: dict[tuple[int, str], int] = {}  # how often one session repeats the same
        self._witness_bits: dict[str, int] = {}  # by session: the bits of its witnesses
        self._totals: list[ReportedTotal] = []

    def add(self, responses: Iterable[ModelResponse]) -> None:
        for response in responses:
            if response.model != SYNTHETIC:  # no model was called
                self._add(response, self._rows.entry(response))

    def add_totals(self, totals: Iterable[ReportedTotal]) -> None:
        for total in totals:
            self._totals.append(total)
            self._rows.place((total.session, total.project, total.agent, MAIN))

    def rows(self) -> Iterator[LedgerRow]:
        """Yield the rows in no particular order."""
        places = self.places()
        return (_row(entry, places[entry.place]) for entry in self.entries())

    def places(self) -> dict[LedgerPlace, LedgerPlace]:
        """Return the places of all entries, each completed with what other witnesses of its session know."""
        facts = _PlaceFacts(self._rows.places)
        return {place: facts.complete(place) for place in self._rows.places}

    def entries(self, session_of: Callable[[LedgerEntry], str] | None = None) -> Iterator[LedgerEntry]:
        """Yield the rows as they are stored. What `order` joins, and what is not itemised, is found now, because it
        needs all rows. `session_of`: which session a response counts in, where that is known better than by its
        time."""
        if not self._totals:
            yield from self._responses()
            return
        gathered = list(self._responses())
        yield from gathered
        yield from self._not_itemised(gathered, session_of or (lambda entry: entry.place.session))

    def _not_itemised(
        self, entries: Sequence[LedgerEntry], session_of: Callable[[LedgerEntry], str]
    ) -> Iterator[LedgerEntry]:
        by = {Stretch(total.session, total.total): total for total in self._totals}
        for row in remainders(by, (_response_of(entry, session_of(entry)) for entry in entries)):
            total = by[row.stretch]
            yield LedgerEntry(
                message_id=None,
                kind=RowKind(total.family, row.model, None),
                place=self._rows.place((total.session, total.project, total.agent, MAIN)),
                tokens=tokens_of(row.usage),
                at=micros_of(total.total.ended or total.total.started),
                final=True,
                reported=NOT_REPORTED,
                witnesses=BIT[total.total.witness],
                copies=int(row.is_sum),
                joined=RESULT,
            )

    def _responses(self) -> Iterator[LedgerEntry]:
        several = {session for session, bits in self._witness_bits.items() if bits & (bits - 1)}
        others = same_by_order(self._rows_of(several)) if several else {}
        taken = {other for rows in others.values() for other in rows}
        for number, entry in enumerate(self._rows.all):
            if number not in taken:
                for other in others.get(number, ()):
                    entry = merge(entry, self._rows.all[other], ORDER, self._family)
                yield entry

    def _rows_of(self, sessions: set[str]) -> Iterator[tuple[int, LedgerEntry, bool]]:
        """Yield the rows of sessions, each with whether its id is unique."""
        for number, entry in enumerate(self._rows.all):
            if entry.place.session in sessions:
                yield (
                    number,
                    entry,
                    bool(entry.message_id and is_unique_id(entry.kind.family, entry.message_id)),
                )

    # ------------------------------------------------------------ adding

    def _add(self, response: ModelResponse, entry: LedgerEntry) -> None:
        session = response.session
        self._witness_bits[session] = self._witness_bits.get(session, 0) | entry.witnesses
        if key := _key_of(response):
            self._put(*key, entry)
        elif entry.at == NEVER:
            self._rows.append(entry)  # nothing distinguishes it from others, or makes it a copy
        else:
            self._put_by_time(entry)

    def _put(self, key: str, joined: int, entry: LedgerEntry) -> None:
        row = self._rows_by_key.get(key)
        if row is None:
            self._rows_by_key[key] = self._rows.append(entry)
        else:
            self._rows.all[row] = merge(self._rows.all[row], entry, joined, self._family)

    def _put_by_time(self, entry: LedgerEntry) -> None:
        """Add an entry without an id. One that differs only in the session is a copy; in the same session it is another
        call."""
        facts = _content_of(entry)
        key = hash(facts)
        row = self._by_time.get(key)
        if row is not None and entry.place.session in self._sessions(row):
            again = self._again.get((key, entry.place.session), 0) + 1
            self._again[key, entry.place.session] = again
            key = hash((key, again))
            row = self._by_time.get(key)
        if row is None:
            self._by_time[key] = self._rows.append(entry)
        elif _content_of(other := self._rows.all[row]) == facts:
            self._forks[row] = self._sessions(row) | {entry.place.session}
            self._rows.all[row] = merge(other, entry, TIME, self._family)
        else:
            self._rows.append(entry)  # two hashes collided, which is next to impossible

    def _sessions(self, row: int) -> set[str]:
        return self._forks.get(row) or {self._rows.all[row].place.session}


def shared_key(response: ModelResponse) -> str | None:
    """Return a key for comparing sessions: responses with different keys are never the same response, in any sessions.
    None: it has no copy, except perhaps in its own session."""
    if key := _key_of(response):
        return key[0]
    at = micros_of(response.at)
    return None if at == NEVER else f"@{at}"


def have_unique_ids(responses: Sequence[ModelResponse]) -> bool:
    """Whether these make as many rows, unchanged, as they do in a session's file with unique ids."""
    ids = {
        response.message_id
        for response in responses
        if response.message_id and is_unique_id(response.family, response.message_id)
    }
    witnesses = {response.witness for response in responses}
    years = {response.at.year for response in responses if response.at} or {LONG_AGO}
    return (
        len(ids) == len(responses) and len(witnesses) <= 1 and LONG_AGO <= min(years) <= max(years) < FAR_OFF
    )


def _key_of(response: ModelResponse) -> tuple[str, int] | None:
    message_id, request_id = response.message_id, response.request_id
    if message_id and is_unique_id(response.family, message_id):
        return message_id, MESSAGE_ID
    if request_id and len(request_id) >= LONG_REQUEST_ID:
        return f"{message_id}\0{request_id}", REQUEST_ID
    return None


def is_unique_id(family: str, message_id: str) -> bool:
    """Whether no other response has this id, judging by its vendor's form."""
    if UNIQUE_ID.fullmatch(message_id):
        return True
    return family == "gemini" and GEMINI_ID.fullmatch(message_id) is not None


def _content_of(entry: LedgerEntry) -> tuple[object, ...]:
    """Return everything but the session."""
    return (
        entry.message_id,
        entry.kind,
        entry.place[1:],
        entry.at,
        entry.tokens,
        entry.final,
        entry.reported,
        entry.witnesses,
    )


class _PlaceFacts:
    """What some witnesses of a session know, and others do not."""

    def __init__(self, places: Iterable[LedgerPlace]) -> None:
        self.projects: dict[str, str] = {}
        self.agents: dict[str, str] = {}
        for session, project, agent, _ in places:
            if project:
                self.projects[session] = min(self.projects.get(session, project), project)
            if agent not in NOBODY:
                self.agents[session] = min(self.agents.get(session, agent), agent)

    def complete(self, place: LedgerPlace) -> LedgerPlace:
        session, project, agent, thread = place
        name = self.agents.get(session, agent) if agent in NOBODY else agent
        return LedgerPlace(session, project or self.projects.get(session), name, thread)


def _response_of(entry: LedgerEntry, session: str) -> SeenResponse:
    first, last = entry.at, max(entry.at, entry.last_at)
    return SeenResponse(
        message_id=entry.message_id,
        session=session,
        thread=entry.place.thread,
        model=entry.kind.model,
        tokens=entry.tokens,
        first=None if first == NEVER else first / 1e6,
        last=None if last == NEVER else last / 1e6,
        is_final=entry.final,
        witnesses=WITNESS_SETS[entry.witnesses],
    )


def nano_usd_of(entry: LedgerEntry) -> int | str:
    """Return what the response cost, or why that is not known."""
    _, model, tier = entry.kind
    if entry.tokens is None:
        return NO_USAGE
    return nano_usd(entry.tokens, model, time_of(entry.at), tier, is_sum=entry.joined == RESULT)


def reported_usd_of(entry: LedgerEntry) -> float | None:
    return None if entry.reported == NOT_REPORTED else entry.reported


def joined_by_of(entry: LedgerEntry) -> JoinedBy | None:
    return JOINED_BY[entry.joined]


def _row(entry: LedgerEntry, place: LedgerPlace) -> LedgerRow:
    (family, model, tier), (session, project, agent, thread) = entry.kind, place
    return LedgerRow(
        family=family,
        message_id=entry.message_id,
        model=model,
        tier=tier,
        tokens=entry.tokens,
        nano_usd=nano_usd_of(entry),
        reported_cost_usd=reported_usd_of(entry),
        at=time_of(entry.at),
        session=session,
        project=project,
        agent=agent,
        thread=thread,
        witnesses=WITNESS_SETS[entry.witnesses],
        copies=entry.copies,
        joined_by=joined_by_of(entry),
        partial=not entry.final,
    )
