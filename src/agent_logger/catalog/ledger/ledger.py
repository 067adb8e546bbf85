"""The ledger: every model response once, whichever witness saw it. Every total is a sum over its rows.

Several sources report the same response: the wire, the client's transcript, the copy of it in a forked or resumed
session. How copies are recognised, from the most certain way to the least:

`message id`  an id in a vendor's form known to be unique. Different request ids do not separate what it joins: clients
              replay messages in side threads, and gateways answer, with request ids of their own.
`request id`  any other id, together with a request id.
`time`        the same in everything, to the moment, in another session or another home: it was copied.
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

from msgspec.structs import replace

from agent_logger.catalog.ledger.ordering import same_by_order
from agent_logger.catalog.ledger.rows import NEVER, NO_PLACES, LedgerPlace, LedgerRow, merge, micros_of, place_of
from agent_logger.model.not_itemised import Stretch, remainders
from agent_logger.model.prices import NO_USAGE, nano_usd
from agent_logger.model.responses import (
    ModelResponse,
    ReportedTotal,
    ResponseMatch,
    countable,
    countable_usage,
)
from agent_logger.model.session import MAIN, SYNTHETIC, Witness

NOBODY = ("", "unknown")

# Ids that no two responses share have 16 or more characters after the vendor's prefix. Shorter ids may be counters of
# local servers. Claude Code's reader accepts more forms (`is_unique`), because it joins no money by them.
UNIQUE_ID = re.compile(
    r"msg_(?:[a-z]+_)?[A-Za-z0-9-]{16,}"  # Anthropic; `msg_bdrk_…`, `msg_vrtx_…` through its resellers
    r"|chatcmpl-[A-Za-z0-9-]{16,}"
    r"|resp_[A-Za-z0-9-]{16,}"
    r"|gen-\d+-[A-Za-z0-9]{16,}"  # OpenRouter
)
# Gemini's ids have no prefix, and are shorter than UUIDs, which a client would have made.
GEMINI_ID = re.compile(r"[A-Za-z0-9_-]{20,32}")
LONG_REQUEST_ID = 8  # characters; a shorter one is a counter


class Ledger:
    """Collects responses. `places`: the order of sessions that have responses in common, parents before forks."""

    def __init__(self, places: Mapping[str, int] = NO_PLACES) -> None:
        self._merged_responses: list[ModelResponse] = []
        self._places: set[LedgerPlace] = set()  # those of all copies, not only of the first
        self._family = places
        self._numbers_by_key: dict[str, int] = {}  # the key identifies a response
        # The key is the hash of the content: the texts would take more memory than the responses.
        self._by_content: dict[int, int] = {}
        # Sessions and homes of responses that were identified by content, if several.
        self._holders: dict[int, set[tuple[str, str]]] = {}
        self._again: dict[tuple[int, tuple[str, str]], int] = {}  # how often one of them repeats a content
        self._witnesses: dict[str, frozenset[Witness]] = {}  # witnesses by session
        self._totals: list[ReportedTotal] = []

    def add(self, responses: Iterable[ModelResponse]) -> None:
        for response in responses:
            if response.model != SYNTHETIC:  # no model was called
                self._add(countable(response))

    def add_totals(self, totals: Iterable[ReportedTotal]) -> None:
        for total in totals:
            self._totals.append(total)
            self._places.add((total.session, total.project, total.agent, MAIN, total.home))

    def rows(self, session_of: Callable[[ModelResponse], str] | None = None) -> Iterator[LedgerRow]:
        """Yield the rows in no particular order. `session_of`: which session a response counts in, where that is known
        better than by its time."""
        facts = _PlaceFacts(self._places)
        for response in self._responses(session_of or (lambda response: response.session)):
            session, project, agent = facts.complete(response)
            if session_of and response.joined_by != "result":
                session = session_of(response)
            yield _row(response, session, project, agent)

    def _responses(self, session_of: Callable[[ModelResponse], str]) -> Iterator[ModelResponse]:
        """Yield the merged responses. What `order` joins, and what is not itemised, is found now, because it needs all
        of them."""
        if not self._totals:
            yield from self._itemised()
            return
        itemised = list(self._itemised())
        yield from itemised
        yield from self._not_itemised(itemised, session_of)

    def _not_itemised(
        self, responses: Sequence[ModelResponse], session_of: Callable[[ModelResponse], str]
    ) -> Iterator[ModelResponse]:
        # Of equal totals, that of the own home counts.
        totals = sorted(self._totals, key=lambda total: total.home, reverse=True)
        by = {Stretch(total.session, total.total): total for total in totals}
        places = ((response, session_of(response)) for response in responses)
        placed = [
            response if response.session == session else replace(response, session=session)
            for response, session in places
        ]
        for row in remainders(by, placed):
            total = by[row.stretch]
            remainder = ModelResponse(
                family=total.family,
                model=row.model,
                usage=countable_usage(row.usage),
                at=total.total.ended or total.total.started,
                session=total.session,
                project=total.project,
                agent=total.agent,
                thread=MAIN,
                witnesses=frozenset({total.total.witness}),
                copies=int(row.is_sum),
                joined_by="result",
                home=total.home,
            )
            yield countable(remainder)

    def _itemised(self) -> Iterator[ModelResponse]:
        several = {session for session, witnesses in self._witnesses.items() if len(witnesses) > 1}
        others = same_by_order(self._numbered(several)) if several else {}
        taken = {other for rows in others.values() for other in rows}
        for number, response in enumerate(self._merged_responses):
            if number not in taken:
                for other in others.get(number, ()):
                    response = merge(response, self._merged_responses[other], "order", self._family)
                yield response

    def _numbered(self, sessions: set[str]) -> Iterator[tuple[int, ModelResponse, bool]]:
        """Yield the responses of sessions, each with its number and whether its id is unique."""
        for number, response in enumerate(self._merged_responses):
            if response.session in sessions:
                message_id = response.message_id
                yield number, response, bool(message_id and is_unique_id(response.family, message_id))

    # ------------------------------------------------------------ adding

    def _add(self, response: ModelResponse) -> None:
        session = response.session
        self._places.add(place_of(response))
        witnesses = self._witnesses.get(session, frozenset())
        if not response.witnesses <= witnesses:
            self._witnesses[session] = witnesses | response.witnesses
        if key := _key_of(response):
            self._put(*key, response)
        else:
            self._put_by_content(response)

    def _append(self, response: ModelResponse) -> int:
        """Add a response. Returns its number."""
        self._merged_responses.append(response)
        return len(self._merged_responses) - 1

    def _put(self, key: str, match: ResponseMatch, response: ModelResponse) -> None:
        row = self._numbers_by_key.get(key)
        if row is None:
            self._numbers_by_key[key] = self._append(response)
        else:
            self._merged_responses[row] = merge(self._merged_responses[row], response, match, self._family)

    def _put_by_content(self, response: ModelResponse) -> None:
        """Add a response without an id. One that differs only in the session or the home is a copy; in the same session
        of the same home it is another call."""
        content, holder = _content_of(response), (response.session, response.home)
        key = hash(content)
        row = self._by_content.get(key)
        if row is not None and holder in self._holders_of(row):
            again = self._again.get((key, holder), 0) + 1
            self._again[key, holder] = again
            key = hash((key, again))
            row = self._by_content.get(key)
        if row is None:
            self._by_content[key] = self._append(response)
        elif _content_of(other := self._merged_responses[row]) == content:
            self._holders[row] = self._holders_of(row) | {holder}
            self._merged_responses[row] = merge(other, response, "time", self._family)
        else:
            self._append(response)  # two hashes collided, which is next to impossible

    def _holders_of(self, row: int) -> set[tuple[str, str]]:
        first = self._merged_responses[row]
        return self._holders.get(row) or {(first.session, first.home)}


def shared_key(response: ModelResponse) -> str | None:
    """Return a key for comparing sessions: responses with different keys are never the same response, in any sessions.
    None: it has no copy, except perhaps in its own session."""
    if key := _key_of(response):
        return key[0]
    at = micros_of(response.at)
    return None if at == NEVER else f"@{at}"


def _key_of(response: ModelResponse) -> tuple[str, ResponseMatch] | None:
    message_id, request_id = response.message_id, response.request_id
    if message_id and is_unique_id(response.family, message_id):
        return message_id, "message id"
    if request_id and len(request_id) >= LONG_REQUEST_ID:
        return f"{message_id}\0{request_id}", "request id"
    return None


def is_unique_id(family: str, message_id: str) -> bool:
    """Whether no other response has this id, judging by its vendor's form."""
    if UNIQUE_ID.fullmatch(message_id):
        return True
    return family == "gemini" and GEMINI_ID.fullmatch(message_id) is not None


def _content_of(response: ModelResponse) -> tuple[object, ...]:
    """Return everything but the session and the home. Without a time, nothing tells a response from others: only
    another home can have a copy, in the same session."""
    return (
        response.session if response.at is None else None,
        response.message_id,
        response.family,
        response.model,
        response.tier,
        response.project,
        response.agent,
        response.thread,
        response.at,
        response.tokens,
        response.final,
        response.reported_cost_usd,
        response.witnesses,
    )


class _PlaceFacts:
    """The facts about a session that some of its witnesses know, and others do not."""

    def __init__(self, places: Iterable[LedgerPlace]) -> None:
        self.projects: dict[str, str] = {}
        self.agents: dict[str, str] = {}
        for session, project, agent, *_ in places:
            if project:
                self.projects[session] = min(self.projects.get(session, project), project)
            if agent not in NOBODY:
                self.agents[session] = min(self.agents.get(session, agent), agent)

    def complete(self, response: ModelResponse) -> tuple[str, str | None, str]:
        """Return the session, the project and the agent of a response."""
        session, agent = response.session, response.agent
        name = self.agents.get(session, agent) if agent in NOBODY else agent
        return session, response.project or self.projects.get(session), name


def _row(response: ModelResponse, session: str, project: str | None, agent: str) -> LedgerRow:
    """Make the row of a response. It has no request id: copies have different ones."""
    return LedgerRow(
        family=response.family,
        message_id=response.message_id,
        model=response.model,
        usage=response.usage,
        tier=response.tier,
        at=response.at,
        session=session,
        project=project,
        agent=agent,
        thread=response.thread,
        final=response.final,
        reported_cost_usd=response.reported_cost_usd,
        witnesses=response.witnesses,
        copies=response.copies,
        joined_by=response.joined_by,
        last_at=response.last_at,
        home=response.home,
        nano_usd=nano_usd_of(response),
    )


def nano_usd_of(response: ModelResponse) -> int | str:
    """Return the cost of the response, or the reason why it is unknown."""
    usage = response.usage
    if usage is None:
        return NO_USAGE
    return nano_usd(usage.counts, response.model, response.at, response.tier, is_sum=response.joined_by == "result")
