"""A session as the page shows it: chapters, cut into segments that are drawn when they come into view.

A session of ten thousand messages is tens of megabytes as HTML, and nobody reads it all. Each segment has a few dozen
turns, and each long tool result has its own address.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from agent_logger.catalog.summary import SessionSummary
from agent_logger.model.prices import price
from agent_logger.model.session import MAIN, Compaction, Cost, Exchange, Session, Turn
from agent_logger.views.figures import compaction_text, short
from agent_logger.views.outline import (
    AgentWork,
    Chapter,
    NumberedTurn,
    chapters,
    compactions_of,
    side_turns,
)

SEGMENT_TURNS = 30
# A context that drops below this share was cleared or rewound, if it was not compacted.
FALL = 0.6
FALL_TOKENS = 20_000  # only a context of at least this size is considered


@dataclass(frozen=True, slots=True)
class PageSegment:
    key: str  # `3` for the first of the third exchange, then `3-2`
    chapter: Chapter
    turns: Sequence[NumberedTurn]
    is_first: bool
    is_last: bool

    @property
    def size(self) -> int:
        """How many turns are visible at first, to guess the height of the segment."""
        return len(self.turns) + len(self.chapter.agents if self.is_last else ())


@dataclass(frozen=True, slots=True)
class ContextFall:
    turn: int  # the first turn with the smaller context
    before: int
    after: int
    compaction: Compaction | None = None  # none: cleared or rewound, or the reason is unknown

    @property
    def text(self) -> str:
        if self.compaction is None:
            return f"dropped from {short(self.before)} to {short(self.after)} tokens"
        before, after = self.compaction.tokens_before, self.compaction.tokens_after
        return compaction_text(
            replace(self.compaction, tokens_before=before or self.before, tokens_after=after or self.after)
        )


class SessionView:
    def __init__(self, summary: SessionSummary, session: Session, state: str = "") -> None:
        self.summary, self.session = summary, session
        self.state = state  # of its files when they were read
        self.turns: list[Turn] = session.turns
        self._costs = [_cost(turn) for turn in self.turns]
        self._exchange_costs = dict(self._by_exchange())
        self.chapters = list(chapters(session))
        self.segments = [segment for chapter in self.chapters for segment in _cut(chapter)]
        self.side_turns = side_turns(session)
        self._by_key = {segment.key: number for number, segment in enumerate(self.segments)}

    def cost(self, number: int) -> Cost | None:
        """The cost of a turn."""
        return self._costs[number]

    def cost_of(self, exchange: Exchange) -> Cost:
        """The cost of all responses of an exchange, each once, and of what its client counts beyond them."""
        return self._exchange_costs[exchange.number]

    def segment(self, key: str) -> PageSegment | None:
        number = self._by_key.get(key)
        return None if number is None else self.segments[number]

    def from_segment(self, key: str) -> list[PageSegment]:
        return self.segments[self._by_key.get(key, 0) :]

    def numbered_turn(self, number: int) -> NumberedTurn | None:
        place = self._places.get(number)
        return place[0] if place else None

    def path_to_turn(self, number: int) -> list[str]:
        """The ids of the elements that must be loaded and open before a turn can be seen, from the outside in."""
        place = self._places.get(number)
        return place[1] if place else []

    def agent(self, first_turn: int) -> AgentWork | None:
        """The work of a sub-agent, by the number of its first turn."""
        return self._agents.get(first_turn)

    def _by_exchange(self) -> Iterator[tuple[int, Cost]]:
        first = 0
        for exchange in self.session.exchanges:
            costs = self._costs[first : first + len(exchange.turns)]
            first += len(exchange.turns)
            once = {turn.message_id or id(turn): cost for turn, cost in zip(exchange.turns, costs, strict=True) if cost}
            beyond = [
                remainder.cost for remainder in self.session.not_itemised if remainder.exchange == exchange.number
            ]
            yield exchange.number, Cost.total([*once.values(), *filter(None, beyond)])

    @cached_property
    def context(self) -> list[tuple[int, int]]:
        """The number of each turn of the main thread, and the size of its context in tokens."""
        return [
            (number, turn.usage.context_tokens)
            for number, turn in enumerate(self.turns)
            if turn.thread == MAIN and turn.usage and turn.usage.context_tokens
        ]

    @cached_property
    def falls(self) -> list[ContextFall]:
        pairs, compactions = zip(self.context, self.context[1:], strict=False), compactions_of(self.session)
        drops = []
        for (last, before), (number, after) in pairs:
            between = (candidate for at in range(last + 1, number + 1) for candidate in compactions.get(at, ()))
            compaction = next((compaction for compaction in between if compaction.thread == MAIN), None)
            if compaction or (before >= FALL_TOKENS and after < FALL * before):
                drops.append(ContextFall(number, before, after, compaction))
        return drops

    @cached_property
    def _places(self) -> dict[int, tuple[NumberedTurn, list[str]]]:
        places: dict[int, tuple[NumberedTurn, list[str]]] = {}
        for segment in self.segments:
            way = [f"part-{segment.key}"]
            places |= _walk(segment.turns, way)
            for agent in segment.chapter.agents if segment.is_last else ():
                places |= _walk(agent.turns, [*way, agent_id(agent)])
        return places | {turn.number: (turn, ["beside"]) for turn in self.side_turns}

    @cached_property
    def _agents(self) -> dict[int, AgentWork]:
        turns = (turn for segment in self.segments for turn in segment.turns)
        unattached = (agent for chapter in self.chapters for agent in chapter.agents)
        return {agent.turns[0].number: agent for agent in (*_agents_of(turns), *_with_inner(unattached)) if agent.turns}


def _cost(turn: Turn) -> Cost | None:
    if turn.cost or turn.usage is None:
        return turn.cost
    return price(turn.usage, turn.model, turn.started or turn.ended, turn.service_tier)


def agent_id(agent: AgentWork) -> str:
    """The id of the element that holds the agent's work."""
    return f"agent-{agent.turns[0].number}" if agent.turns else "agent"


def _cut(chapter: Chapter) -> Iterator[PageSegment]:
    number, turns = chapter.exchange.number, chapter.turns
    last = max(0, len(turns) - 1) // SEGMENT_TURNS
    for at in range(last + 1):
        yield PageSegment(
            key=f"{number}-{at + 1}" if at else str(number),
            chapter=chapter,
            turns=turns[at * SEGMENT_TURNS : (at + 1) * SEGMENT_TURNS],
            is_first=at == 0,
            is_last=at == last,
        )


def _walk(turns: Iterable[NumberedTurn], way: list[str]) -> dict[int, tuple[NumberedTurn, list[str]]]:
    places = {}
    for turn in turns:
        places[turn.number] = (turn, way)
        for agents in turn.agents.values():
            for agent in agents:
                places |= _walk(agent.turns, [*way, agent_id(agent)])
    return places


def _agents_of(turns: Iterable[NumberedTurn]) -> Iterator[AgentWork]:
    for turn in turns:
        for agents in turn.agents.values():
            yield from _with_inner(agents)


def _with_inner(agents: Iterable[AgentWork]) -> Iterator[AgentWork]:
    for agent in agents:
        yield agent
        yield from _agents_of(agent.turns)
