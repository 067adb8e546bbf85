"""A session laid out for reading: exchanges as chapters, numbered turns, sub-agents under the call that started them.

Everything is made on demand, turn by turn: the first page of a long session is there at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten

from msgspec.structs import replace

from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import (
    MAIN,
    SIDE,
    TOLD_EARLY,
    Block,
    Compaction,
    Difference,
    Exchange,
    NotItemised,
    Session,
    SubAgent,
    ToolCall,
    Turn,
    Usage,
)
from agent_logger.views.endings import exchange_ending
from agent_logger.views.figures import compaction_text, not_itemised_text, tokens, utc
from agent_logger.views.hide import hidden_value
from agent_logger.views.pictures import pictures_in
from agent_logger.views.pieces import Json, OutputPiece, Piece, Prose, ToolView
from agent_logger.views.tools.tools import tool_view

LONGEST_REMARK = 200  # characters
CUT = "incomplete (cut off)"
DEEPEST = 8  # levels of nested sub-agents; deeper ones are shown beside the others


@dataclass(frozen=True, slots=True)
class Thought:
    text: str


@dataclass(frozen=True, slots=True)
class TextPart:
    """What the model wrote, or a picture, or a block of an unknown kind."""

    piece: Piece


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call, and the agents that it started."""

    call: ToolCall
    view: ToolView
    agents: tuple["AgentWork", ...] = ()


Part = Thought | TextPart | ToolUse


@dataclass(frozen=True, slots=True)
class NumberedTurn:
    number: int  # its place in `Session.turns`
    turn: Turn
    agents: Mapping[str, tuple["AgentWork", ...]] = field(default_factory=dict)  # by the tool call's id
    compactions: Sequence[Compaction] = ()  # since the previous turn

    def parts(self) -> Iterator[Part]:
        """The parts in the order of the blocks; a result is with its call."""
        calls = iter(self.turn.tool_calls)  # uses first, then results without a use
        for block in self.turn.blocks:
            if block.kind == "tool_use":
                yield self._tool_use(next(calls))
            elif block.kind != "tool_result" and not self._is_agent_prompt(block):
                yield from _parts_of(block)
        yield from map(self._tool_use, calls)

    def preceding_events(self) -> Iterator[str]:
        """What happened to the conversation since the previous turn."""
        yield from map(compaction_text, self.compactions)

    def remarks(self) -> Iterator[str]:
        """What a reader should know beside the text: that the turn was cut, and where a witness differs."""
        if self.turn.error:
            yield f"failed: {shorten(hidden(self.turn.error), LONGEST_REMARK)}"
        elif not self.turn.complete:
            yield CUT
        for difference in self.turn.differences:
            if self._is_early_count(difference):
                continue
            remark = (
                tokens(difference.value)
                if isinstance(difference.value, Usage)
                else shorten(hidden(difference.value), LONGEST_REMARK)
            )
            yield f"the {difference.witness} witness has a different {difference.field}: {remark}"

    def _is_early_count(self, difference: Difference) -> bool:
        """Whether the difference is the output count that an SDK or a run reported before the output was there: every
        turn has one, and it means nothing."""
        if difference.witness not in TOLD_EARLY or not isinstance(difference.value, Usage) or self.turn.usage is None:
            return False
        return replace(difference.value, output_tokens=self.turn.usage.output_tokens) == self.turn.usage

    def _is_agent_prompt(self, block: Block) -> bool:
        """Whether the block is an SDK's copy of the prompt in the call that started a sub-agent, where it is shown
        already."""
        if block.kind != "other" or not block.text:
            return False
        inputs = (
            other.input for other in self.turn.blocks if other.kind == "tool_use" and isinstance(other.input, dict)
        )
        return any(fields.get("prompt") == block.text for fields in inputs)

    def _tool_use(self, call: ToolCall) -> ToolUse:
        return ToolUse(call, tool_view(call), self.agents.get(call.id or "", ()))


@dataclass(frozen=True, slots=True)
class AgentWork:
    """What a sub-agent did in one exchange."""

    thread: str
    agent: SubAgent | None  # none: only its turns are known
    turns: tuple[NumberedTurn, ...]

    @property
    def name(self) -> str:
        if self.thread == SIDE:
            return "side calls"
        names = (self.agent.kind, self.agent.description) if self.agent else ()
        return hidden(": ".join(filter(None, names))) or "sub-agent"


@dataclass(frozen=True, slots=True)
class Chapter:
    exchange: Exchange
    turns: tuple[NumberedTurn, ...]  # of the main thread
    agents: tuple[AgentWork, ...]  # agents whose call is in another exchange, or unknown
    not_itemised: tuple[NotItemised, ...] = ()

    @property
    def user_input(self) -> str | None:
        return None if self.exchange.user_input is None else hidden(self.exchange.user_input)

    @property
    def origin(self) -> str:
        """What began the exchange, if it was not a person."""
        return hidden(self.exchange.origin or "")

    @property
    def output(self) -> OutputPiece | None:
        """The output of a run about which nothing else is known."""
        return OutputPiece(hidden(self.exchange.printed)) if self.exchange.printed else None

    @property
    def _last_turn_is_cut(self) -> bool:
        """Whether the last turn was cut, and says so itself."""
        return self.exchange.end_reason == "cut" and any(CUT in turn.remarks() for turn in self.turns[-1:])

    @property
    def remarks(self) -> list[str]:
        """Notes that the exchange did not complete, if that is known, and that the conversation did not continue from
        it."""
        ending = None if self._last_turn_is_cut else exchange_ending(self.exchange)
        cut = [hidden(ending.text)] if ending else []
        left = ["rewound: the conversation continued from a point before this exchange"] if self.exchange.left else []
        return cut + left + [not_itemised_text(remainder) for remainder in self.not_itemised]


def chapters(session: Session) -> Iterator[Chapter]:
    agents = {agent.thread: agent for agent in session.agents}
    compactions, first = compactions_of(session), 0
    for exchange in session.exchanges:
        beyond = tuple(remainder for remainder in session.not_itemised if remainder.exchange == exchange.number)
        yield _Layout(agents, exchange, first, compactions).chapter(beyond)
        first += len(exchange.turns)


def compactions_of(session: Session) -> dict[int, list[Compaction]]:
    """The compactions by the number of the first turn after each. A compaction that no turn of its thread follows is
    left out."""
    by_turn: dict[int, list[Compaction]] = {}
    turns = session.turns if session.compactions else []
    for compaction in session.compactions:
        following = (number for number, turn in enumerate(turns) if _is_after(turn, compaction))
        if (number := next(following, None)) is not None:
            by_turn.setdefault(number, []).append(compaction)
    return by_turn


def _is_after(turn: Turn, compaction: Compaction) -> bool:
    if turn.thread != compaction.thread or turn.started is None or compaction.at is None:
        return False
    return utc(turn.started) >= utc(compaction.at)


def side_turns(session: Session) -> list[NumberedTurn]:
    """The side turns, outside the conversation: titles, classifiers, warm-ups."""
    first = sum(len(exchange.turns) for exchange in session.exchanges)
    return [NumberedTurn(number, turn) for number, turn in enumerate(session.side_turns, first)]


class _Layout:
    def __init__(
        self,
        agents: Mapping[str, SubAgent],
        exchange: Exchange,
        first: int,
        compactions: Mapping[int, Sequence[Compaction]],
    ) -> None:
        self._sub_agents, self._exchange, self._compactions = agents, exchange, compactions
        self._threads: dict[str, list[tuple[int, Turn]]] = {}
        for number, turn in enumerate(exchange.turns, first):
            self._threads.setdefault(turn.thread, []).append((number, turn))
        self._threads_by_call: dict[str, list[str]] = {}  # threads by the tool call that started them
        for thread in self._threads:
            self._threads_by_call.setdefault(self._call_of(thread), []).append(thread)

    def _call_of(self, thread: str) -> str:
        agent = self._sub_agents.get(thread)
        # Without other information, some clients name the thread after the call.
        return (agent and agent.tool_use_id) or thread.removeprefix("agent:")

    def chapter(self, not_itemised: tuple[NotItemised, ...]) -> Chapter:
        main = self._numbered(self._threads.pop(MAIN, []), 0)
        agents = []
        while self._threads:  # also threads that name each other as their parent, in a circle
            agents.append(self._agent_work(next(iter(self._threads)), 0))
        return Chapter(self._exchange, main, tuple(agents), not_itemised)

    def _numbered(self, turns: Sequence[tuple[int, Turn]], depth: int) -> tuple[NumberedTurn, ...]:
        return tuple(
            NumberedTurn(number, turn, self._agents(turn, depth), self._compactions.get(number, ()))
            for number, turn in turns
        )

    def _agents(self, turn: Turn, depth: int) -> dict[str, tuple[AgentWork, ...]]:
        if len(self._threads_by_call) <= 1 or depth >= DEEPEST:  # usually there is only the main thread
            return {}
        calls = (block.id for block in turn.blocks if block.kind == "tool_use" and block.id)
        threads_by_call = {
            call: [thread for thread in self._threads_by_call.get(call, ()) if thread in self._threads]
            for call in calls
        }
        return {
            call: tuple(self._agent_work(thread, depth + 1) for thread in threads)
            for call, threads in threads_by_call.items()
            if threads
        }

    def _agent_work(self, thread: str, depth: int) -> AgentWork:
        turns = self._threads.pop(thread, [])
        return AgentWork(thread, self._sub_agents.get(thread), self._numbered(turns, depth))


def _parts_of(block: Block) -> Iterator[Part]:
    if block.kind == "thinking":
        yield Thought(hidden(block.text))
    elif block.kind == "text":
        yield TextPart(Prose(hidden(block.text)))
    elif pictures := pictures_in(block.raw):
        yield from map(TextPart, pictures)
    elif block.text or block.raw is None:
        yield TextPart(Prose(hidden(block.text)))
    else:
        yield TextPart(Json(hidden_value(block.raw)))
