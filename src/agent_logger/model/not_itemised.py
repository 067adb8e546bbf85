"""What clients count beyond the responses that any witness reports.

A client's result says what its exchange took in all, by model. An SDK, or a run, does not get every response: the last
answer of a sub-agent, a title, a compaction, the end of an answer. What remains of such a total after all known
responses of its stretch are subtracted is not itemised, and counts too. So does a request that its client wrote down
without an answer: its size is unknown, unless another witness saw the answer.

Which responses belong to a stretch is known by the ids that its witness got. A response that only others saw belongs to
the stretch it falls into by time; where the clocks of witnesses differ, as in a log that was replayed, to the first one
that has room for it. A stretch whose responses all went through the proxy has no remainder: the proxy saw every call of
it. The total of a session is no such stretch: the proxy may have seen one run of it, and not another.
"""

import math
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from agent_logger.model.prices import Tokens, canonical
from agent_logger.model.responses import ModelResponse, utc
from agent_logger.model.session import MAIN, ClientTotal, Usage, Witness

SLACK_SECONDS = 2.0  # between a witness that notes when it hears something and one that notes when it happened
AT_WORK_SECONDS = 900.0  # how long a call or a tool may take without output
INPUT, OUTPUT, READ, WRITE, HOUR = range(5)
NOTHING: Tokens = (0, 0, 0, 0, 0)


class Stretch(NamedTuple):
    session: str
    total: ClientTotal


class Remainder(NamedTuple):
    stretch: Stretch
    model: str | None
    usage: Usage | None
    # The total of an exchange whose responses nobody reported: there was at least one response.
    is_sum: bool


def in_flight_until(total: ClientTotal) -> float | None:
    """The time until which the answer to a request without one may still come, in seconds since 1970."""
    if total.ended is not None or not total.is_request:
        return None
    started = _seconds(total.started)
    return started + AT_WORK_SECONDS if started else None


def remainders(stretches: Iterable[Stretch], responses: Iterable[ModelResponse]) -> list[Remainder]:
    """Return the part of each total that is not itemised. The order of the arguments does not matter. Requests in
    flight are left out."""
    now = time.time()
    over = [stretch for stretch in dict.fromkeys(stretches) if (in_flight_until(stretch.total) or 0.0) < now]
    opened = sorted(map(_Open, over), key=_Open.order)
    if not opened:
        return []
    sessions = _Sessions(responses, {stretch.session for stretch in opened})
    groups: dict[tuple[str, Witness], list[_Open]] = {}
    for stretch in opened:
        stretch.take_seen(sessions)
        groups.setdefault((stretch.session, stretch.total.witness), []).append(stretch)
    for (session, _), group in groups.items():
        _claim(group, sessions.responses[session])
    settled = _Settled()
    for stretch in opened:
        stretch.settle(settled.totals_beside(stretch))
        settled.add(stretch)
    return [row for stretch in opened for row in stretch.rows]


class _Sessions:
    def __init__(self, responses: Iterable[ModelResponse], sessions: set[str]) -> None:
        self.responses: dict[str, list[ModelResponse]] = {session: [] for session in sessions}
        self._by_id: dict[str, list[ModelResponse]] = {}
        for response in responses:
            if response.session in sessions:
                self.responses[response.session].append(response)
            if response.message_id:
                self._by_id.setdefault(response.message_id, []).append(response)

    def of(self, message_id: str, session: str) -> ModelResponse | None:
        """The response with this id. A fork's responses may stand in the session it came from."""
        responses = self._by_id.get(message_id, ())
        return next(
            (response for response in responses if response.session == session),
            responses[0] if len(responses) == 1 else None,
        )


@dataclass(slots=True, eq=False)
class _Open:
    """A stretch while responses are subtracted from its total."""

    stretch: Stretch
    left: dict[str, Tokens] = field(init=False)  # the tokens that are left, by model
    names: dict[str, str | None] = field(init=False)
    unknown: list[str | None] = field(init=False)  # models whose usage is unknown
    itemised: list[ModelResponse] = field(default_factory=list)
    claimed: list[ModelResponse] = field(default_factory=list)
    named: set[str] = field(default_factory=set)  # models of responses that were taken off
    strays: list[ModelResponse] = field(default_factory=list)
    is_adrift: bool = False  # no clock tells what else happened in it
    rows: list[Remainder] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left, self.names = {}, {}
        self.unknown = [model.model for model in self.total.models if model.usage is None]
        for model in self.total.models:
            if model.usage is not None:
                name = _name(model.model)
                self.names.setdefault(name, model.model)
                self.left[name] = _plus(self.left.get(name, NOTHING), model.usage.counts)

    @property
    def session(self) -> str:
        return self.stretch.session

    @property
    def total(self) -> ClientTotal:
        return self.stretch.total

    def order(self) -> tuple[object, ...]:
        """The sort key: the shortest first, because a fork's history has all that its parent's has, and more."""
        total = self.total
        ids = total.message_ids
        return len(ids), _seconds(total.started) or 0.0, self.session, total.witness, ids, str(total.models)

    def take_seen(self, sessions: _Sessions) -> None:
        responses = (sessions.of(message_id, self.session) for message_id in dict.fromkeys(self.total.message_ids))
        self.itemised = [response for response in responses if response]
        for response in self.itemised:
            if self.total.is_whole or response.thread == MAIN:
                self.take(response)

    def take(self, response: ModelResponse) -> None:
        name = self._model_of(response)
        if name in self.left and response.tokens:
            self.left[name] = _minus(self.left[name], response.tokens)
            self.named.add(name)
        elif response.tokens:
            self.strays.append(response)

    def take_strays(self) -> None:
        """Subtract the responses whose model the total does not name: gateways have names of their own for models. Each
        belongs to a model of the total that no response names."""
        for response in self.strays:
            for name in self.left.keys() - self.named:
                if _has_room(self.left[name], response):
                    self.left[name] = _minus(self.left[name], response.tokens or NOTHING)
                    break

    def claim(self, response: ModelResponse) -> None:
        self.claimed.append(response)
        self.take(response)

    def has_room_for(self, response: ModelResponse) -> bool:
        name = self._model_of(response)
        if name in self.left:
            return _has_room(self.left[name], response)
        return any(_has_room(self.left[model], response) for model in self.left.keys() - self.named)

    def is_answered_by(self, response: ModelResponse) -> bool:
        """Whether this is a request without an answer, and another witness saw the answer."""
        is_free = self.total.is_request and not self.claimed
        return is_free and _name(self.total.models[0].model) == _name(response.model)

    @property
    def span(self) -> tuple[float | None, float | None]:
        """When the stretch began and ended. A stretch without an end has just begun: its start stands for both."""
        start, end = _seconds(self.total.started), _seconds(self.total.ended)
        return start, start if end is None else end

    def spans(self, seconds: float | None) -> bool:
        return self.distance(seconds) <= SLACK_SECONDS

    def distance(self, seconds: float | None) -> float:
        """How many seconds the moment is before or after the stretch."""
        start, end = self.span
        if seconds is None or start is None or end is None:
            return math.inf
        return max(start - seconds, seconds - end, 0.0)

    def is_on_the_wire(self) -> bool:
        if self.total.message_ids:
            whole = len(self.itemised) == len(set(self.total.message_ids))
            return whole and all("wire" in response.witnesses for response in self.itemised)
        return any("wire" in response.witnesses for response in self.claimed)

    def settle(self, beside: Iterable["_Open"]) -> None:
        """List what is left as not itemised, without what other totals of the same responses have listed already."""
        self.take_strays()
        for row in (row for other in beside for row in other.rows):
            name = _name(row.model)
            if name in self.left and row.usage:
                self.left[name] = _minus(self.left[name], row.usage.counts)
        is_covered = self.is_on_the_wire() or (not self.total.is_whole and bool(self.claimed))
        if is_covered and not self.total.is_session:
            return
        is_sum = not (self.itemised or self.claimed or self.total.message_ids)
        for name, tokens in self.left.items():
            usage = _usage(tokens)
            if any(usage.counts):
                self.rows.append(Remainder(self.stretch, self.names[name], usage, is_sum))
        if not is_covered:
            self.rows += [Remainder(self.stretch, model, None, is_sum) for model in self.unknown]

    def overlaps(self, other: "_Open") -> bool:
        if self.is_adrift or other.is_adrift:
            return True
        return self.spans(other.span[1]) or other.spans(self.span[1])

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another response: every response reads something."""
        return not any(left[kind] > 0 for left in self.left.values() for kind in (INPUT, READ, WRITE))

    def _model_of(self, response: ModelResponse) -> str:
        only = next(iter(self.left)) if len(self.left) == 1 and response.model is None else None
        return only if only is not None else _name(response.model)


class _Settled:
    """Stretches whose rows are known, indexed by what identifies another total of the same responses: an id that both
    name, or else the session, if the total is another witness's."""

    def __init__(self) -> None:
        self._order: dict[_Open, int] = {}
        self._by_id: dict[str, list[_Open]] = {}
        self._with_ids: dict[str, dict[Witness, list[_Open]]] = {}  # by session and witness
        self._without_ids: dict[str, dict[Witness, list[_Open]]] = {}

    def add(self, stretch: _Open) -> None:
        self._order[stretch] = len(self._order)
        for message_id in set(stretch.total.message_ids):
            self._by_id.setdefault(message_id, []).append(stretch)
        kind = self._with_ids if stretch.total.message_ids else self._without_ids
        kind.setdefault(stretch.session, {}).setdefault(stretch.total.witness, []).append(stretch)

    def totals_beside(self, stretch: _Open) -> list[_Open]:
        """The other totals of the same responses, in the order in which they were added."""
        same = {other for message_id in stretch.total.message_ids for other in self._by_id.get(message_id, ())}
        kinds = [self._without_ids] if stretch.total.message_ids else [self._without_ids, self._with_ids]
        others = (
            other
            for kind in kinds
            for witness, members in kind.get(stretch.session, {}).items()
            if witness != stretch.total.witness
            for other in members
        )
        same.update(other for other in others if stretch.overlaps(other))
        return sorted(same, key=self._order.__getitem__)


class _Calendar:
    """The stretches of a group, by time."""

    def __init__(self, group: Sequence[_Open]) -> None:
        times = [(*stretch.span, stretch) for stretch in group]
        self._spans = sorted(
            ((start, end, stretch) for start, end, stretch in times if start is not None and end is not None),
            key=itemgetter(0),
        )
        self._starts = [start for start, _, _ in self._spans]
        self._latest = list(accumulate((end for _, end, _ in self._spans), max))  # end of all up to here

    def spanning(self, seconds: float | None) -> list[_Open]:
        """The stretches that contain this moment, the earliest first."""
        if seconds is None:
            return []
        stretches: list[_Open] = []
        at = bisect_right(self._starts, seconds + SLACK_SECONDS) - 1
        while at >= 0 and self._latest[at] >= seconds - SLACK_SECONDS:
            if self._spans[at][2].spans(seconds):
                stretches.append(self._spans[at][2])
            at -= 1
        return stretches[::-1]


def _has_room(left: Tokens, response: ModelResponse) -> bool:
    tokens = response.tokens or NOTHING
    kinds = (INPUT, OUTPUT, READ, WRITE) if response.final else (INPUT, READ, WRITE)
    return any(tokens) and all(tokens[kind] <= left[kind] for kind in kinds)


def _claim(group: Sequence[_Open], responses: Sequence[ModelResponse]) -> None:
    """Give the stretches of one witness, in its own order, the responses that only other witnesses saw. `group` is in
    the order of `_Open.order`, and of stretches that began together stays so."""
    group = sorted(
        (stretch for stretch in group if stretch.total.is_whole or not stretch.total.message_ids), key=_began
    )
    claimed = {id(response) for stretch in group for response in stretch.itemised}
    others = (
        [
            response
            for response in responses
            if id(response) not in claimed and response.witnesses - {group[0].total.witness}
        ]
        if group
        else []
    )
    others.sort(key=lambda other: (_seconds(other.at) or 0.0, other.message_id or "", other.tokens or NOTHING))
    both = [(stretch, response) for stretch in group for response in stretch.itemised if len(response.witnesses) > 1]
    agree = [
        stretch
        for stretch, response in both
        if stretch.spans(_seconds(response.at)) and stretch.spans(_seconds(response.last_at or response.at))
    ]
    if agree or not both:
        others = _claim_by_time(group, others)
    if not agree and not any(stretch.claimed for stretch in group):
        for stretch in group:
            stretch.is_adrift = True
        _claim_by_room(group, others)


def _claim_by_time(group: Sequence[_Open], others: Sequence[ModelResponse]) -> list[ModelResponse]:
    """Assign responses to stretches by time. Returns the rest, which belongs to no stretch."""
    if not others:  # nearly always, where a client counts each response
        return []
    rest, calendar = [], _Calendar(group)
    for response in others:
        seconds = _seconds(response.at)
        fitting = calendar.spanning(seconds)
        request = next((stretch for stretch in fitting if stretch.is_answered_by(response)), None)
        if request:
            request.claim(response)
        elif fitting := [stretch for stretch in fitting if not stretch.total.is_request]:
            nearest = min(stretch.distance(seconds) for stretch in fitting)
            near = [stretch for stretch in fitting if stretch.distance(seconds) == nearest]
            next((stretch for stretch in near if stretch.has_room_for(response)), near[0]).claim(response)
        else:
            rest.append(response)
    return rest


def _claim_by_room(group: Sequence[_Open], others: Sequence[ModelResponse]) -> None:
    """Assign responses to stretches by size: a response that is exactly what a stretch has left belongs to it; then
    each goes to the first stretch that has room."""
    if not others:
        return
    by_tokens: dict[Tokens | None, deque[ModelResponse]] = {}
    for response in others:
        by_tokens.setdefault(_without_hour(response.tokens), deque()).append(response)
    taken: set[int] = set()
    for stretch in group:
        left = [_without_hour(tokens) for tokens in stretch.left.values() if any(tokens)]
        if len(left) == 1 and (same := by_tokens.get(left[0])):
            taken.add(id(same[0]))
            stretch.claim(same.popleft())
    partial = next((stretch for stretch in group if not stretch.total.is_whole), None)
    roomy = [stretch for stretch in group if not stretch.is_full]
    for response in (other for other in others if id(other) not in taken):
        fitting = next((stretch for stretch in roomy if stretch.has_room_for(response)), None)
        if fitting:
            fitting.claim(response)
            if fitting.is_full:
                roomy.remove(fitting)
        elif partial:
            partial.claim(response)


def _without_hour(tokens: Tokens | None) -> Tokens | None:
    return (tokens[INPUT], tokens[OUTPUT], tokens[READ], tokens[WRITE], 0) if tokens else None


def _began(stretch: _Open) -> float:
    return _seconds(stretch.total.started) or 0.0


def _name(model: str | None) -> str:
    return canonical(model or "") or model or ""


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else utc(time).timestamp()


def _plus(one: Tokens, two: Tokens) -> Tokens:
    return (one[0] + two[0], one[1] + two[1], one[2] + two[2], one[3] + two[3], one[4] + two[4])


def _minus(one: Tokens, two: Tokens) -> Tokens:
    return (one[0] - two[0], one[1] - two[1], one[2] - two[2], one[3] - two[3], one[4] - two[4])


def _usage(left: Tokens) -> Usage:
    given, output, read, write, hour = (max(0, count) for count in left)
    return Usage.from_counts(given, output, read, write, min(hour, write))
