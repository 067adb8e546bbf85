"""A session that is being built, whichever agent's file is read: inputs, turns, and the results of tools."""

from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from agent_logger.model.prices import priced
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Block, Compaction, Exchange, Turn, Usage, Witness

TRANSCRIPT: frozenset[Witness] = frozenset({"transcript"})


@dataclass(slots=True, kw_only=True)
class Sighting:
    """The start and the end of something, as far as it was seen."""

    started: datetime | None = None
    ended: datetime | None = None

    def see(self, at: datetime | None) -> None:
        if at is None:
            return
        if self.started is None or at < self.started:
            self.started = at
        if self.ended is None or at > self.ended:
            self.ended = at


@dataclass(slots=True)
class OpenTurn(Sighting):
    thread: str = MAIN
    message_id: str | None = None
    model: str | None = None
    tier: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    unread_usage: bool = False
    complete: bool = True
    blocks: list[Block] = field(default_factory=list)

    @property
    def is_counted(self) -> bool:
        """Whether the usage was reported, understood or not."""
        return self.usage is not None or self.unread_usage

    def count(self, usage: Usage | None, message_id: str | None) -> None:
        """Set the usage as the agent counted it; None if it was not understood."""
        self.usage, self.unread_usage, self.message_id = usage, usage is None, message_id

    @property
    def calls_tools(self) -> bool:
        return any(block.kind == "tool_use" for block in self.blocks)

    def as_turn(self) -> Turn:
        turn = Turn(
            message_id=self.message_id,
            thread=self.thread,
            model=self.model,
            service_tier=self.tier,
            stop_reason=self.stop_reason,
            blocks=self.blocks,
            usage=self.usage,
            unread_usage=self.unread_usage,
            started=self.started,
            ended=self.ended,
            witnesses=TRANSCRIPT,
            complete=self.complete,
        )
        return priced(turn)

    def as_response(
        self,
        *,
        family: str,
        session: str,
        project: str | None,
        agent: str,
        thread: str | None = None,
        cost_usd: float | None = None,
    ) -> ModelResponse:
        """Return what of the turn is billed. `thread`: instead of its own; `cost_usd`: as the agent counts it."""
        return ModelResponse(
            family=family,
            message_id=self.message_id,
            model=self.model,
            usage=self.usage,
            tier=self.tier,
            at=self.started,
            session=session,
            project=project,
            agent=agent,
            thread=thread or self.thread,
            final=self.complete,
            reported_cost_usd=cost_usd,
        )


@dataclass(slots=True)
class OpenExchange(Sighting):
    user_input: str | None = None
    origin: str | None = None
    turns: list[OpenTurn] = field(default_factory=list)
    end_reason: str | None = None  # the client's word for it

    def as_exchange(self, number: int, *, last: bool) -> Exchange:
        reason = self.end_reason or self._guessed_end(last=last)
        return Exchange(
            number=number,
            started=self.started,
            ended=self.ended,
            user_input=self.user_input,
            origin=self.origin,
            turns=[turn.as_turn() for turn in self.turns],
            complete=reason == "result",
            end_reason=reason,
        )

    def _guessed_end(self, *, last: bool) -> str | None:
        """Guess how the exchange ended from its last turn, where the client does not say that it yielded. The model
        goes on after the results of tools."""
        own = [turn for turn in self.turns if turn.thread == MAIN]
        if own and own[-1].complete and not own[-1].calls_tools:
            return "result"
        return None if last else "input"


class Conversation(Sighting):
    def __init__(self) -> None:
        super().__init__()
        self.exchanges: list[OpenExchange] = []
        self.compactions: list[Compaction] = []
        self._callers: dict[str, OpenTurn] = {}
        self.answered: set[str] = set()  # ids of tool calls
        self._latest: OpenTurn | None = None

    def ask(self, text: str, at: datetime | None) -> None:
        """Begin an exchange with a person's input."""
        self.see(at)
        self.exchanges.append(OpenExchange(text, started=at, ended=at))

    def current(self) -> OpenExchange:
        if not self.exchanges:  # the beginning is missing
            self.exchanges.append(OpenExchange())
        return self.exchanges[-1]

    def add(self, turn: OpenTurn) -> None:
        """Add a turn that begins now."""
        self.current().turns.append(turn)
        self._latest = turn

    def put(self, turn: OpenTurn, block: Block, at: datetime | None) -> None:
        self._see(turn, at)
        turn.blocks.append(replace(block, at=at) if at and not block.at else block)
        if block.kind == "tool_use" and block.id:
            self._callers[block.id] = turn
            self.answered.discard(block.id)  # some servers use ids again
        elif block.kind == "tool_result" and block.id:
            self.answered.add(block.id)

    def result(self, block: Block, at: datetime | None) -> None:
        """Add a tool's result to the turn that called it, once; to the latest turn if that is not known."""
        if block.id and block.id in self.answered:
            return
        turn = self._callers.get(block.id or "") or self._latest
        if turn is None:
            turn = OpenTurn(complete=False)
            self.add(turn)
        self.put(turn, block, at)

    def end(self, reason: str, at: datetime | None) -> None:
        """Note that the agent has yielded."""
        self.see(at)
        if self.exchanges:
            self.exchanges[-1].see(at)
            self.exchanges[-1].end_reason = reason

    def place(self, turns: list[OpenTurn]) -> None:
        """Add the turns of a sub-agent to the exchange that was in flight when it began."""
        began = min((turn.started for turn in turns if turn.started), default=None)
        before = [
            open_exchange
            for open_exchange in self.exchanges
            if began and open_exchange.started and open_exchange.started <= began
        ]
        exchange = before[-1] if before else self.current()
        exchange.turns.extend(turns)
        for turn in turns:
            self.see(turn.started)
            self.see(turn.ended)

    def turns(self) -> list[OpenTurn]:
        return [turn for exchange in self.exchanges for turn in exchange.turns]

    def as_exchanges(self) -> list[Exchange]:
        count = len(self.exchanges)
        return [exchange.as_exchange(number, last=number == count) for number, exchange in enumerate(self.exchanges, 1)]

    def title(self) -> str | None:
        inputs = (exchange.user_input for exchange in self.exchanges if exchange.user_input)
        return next((text.strip().split("\n")[0] for text in inputs), None)

    def _see(self, turn: OpenTurn, at: datetime | None) -> None:
        turn.see(at)
        self.see(at)
        if self.exchanges:
            self.exchanges[-1].see(at)
