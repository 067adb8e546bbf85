"""The calls of a wire log while it is read: threads, exchanges, and the outcome of each call."""

from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from agent_logger.model.prices import priced
from agent_logger.model.session import MAIN, Block, Exchange, Turn
from agent_logger.providers.registry import Dialect


@dataclass(slots=True, eq=False)
class LoggedCall:
    thread: str
    kind: str | None
    dialect: Dialect | None
    websocket: bool
    started: datetime | None
    model: str | None = None  # that was requested
    asks_model: bool = False  # maybe at an endpoint that is not known
    exchange: "ExchangeCalls | None" = None  # none: it is outside of exchanges
    ended: datetime | None = None
    open: bool = True
    retried: bool = False
    turn: Turn | None = None
    results: list[Block] = field(default_factory=list)  # of the tools that the turn called

    def as_turn(self) -> Turn | None:
        turn = self.turn
        return turn and priced(replace(turn, blocks=[*turn.blocks, *self.results]))


@dataclass(slots=True, eq=False)
class ExchangeCalls:
    user_input: str | None
    started: datetime | None
    calls: list[LoggedCall] = field(default_factory=list)

    def main_calls(self) -> list[LoggedCall]:
        return [call for call in self.calls if call.thread == MAIN and call.kind != "compact" and not call.retried]

    def as_exchange(self, number: int, *, last: bool) -> Exchange:
        times = [time for call in self.calls for time in (call.started, call.ended) if time]
        complete, reason = self._ending(last=last)
        return Exchange(
            number=number,
            started=self.started,
            ended=max(times, default=None),
            user_input=self.user_input,
            turns=[turn for call in self.calls if (turn := call.as_turn())],
            complete=complete,
            end_reason=reason,
        )

    def _ending(self, *, last: bool) -> tuple[bool, str | None]:
        """Whether the agent finished its work, and how it ended; the reason is None while it is still working."""
        calls = self.main_calls()
        if not calls or any(call.open for call in calls):
            return False, None if last else "input"
        turn = calls[-1].turn
        if turn is None:
            return False, "failed"
        if not turn.complete:
            return False, "failed" if turn.error else "cut"
        if _waits(turn):
            return False, None if last else "input"
        return True, "result"


def _waits(turn: Turn) -> bool:
    """Whether the client has to run a tool; a tool that the provider ran has its result in the answer."""
    results = {block.id for block in turn.blocks if block.kind == "tool_result"}
    uses = [block for block in turn.blocks if block.kind == "tool_use"]
    return turn.stop_reason == "pause_turn" or any(use.id not in results for use in uses)


@dataclass(slots=True)
class CallThread:
    """The state of a thread of the conversation."""

    messages: int = 0  # of its last request
    # Tool calls without a result, by id.
    uses: dict[str, tuple[Block, LoggedCall]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)  # ids of those that have one
    latest: LoggedCall | None = None  # that was answered

    def answer(self, call: LoggedCall, blocks: list[Block]) -> None:
        uses = {block.id: (block, call) for block in blocks if block.kind == "tool_use" and block.id}
        self.latest = call
        self.uses.update(uses)
        self.answered.difference_update(uses)  # some servers use the same ids in every answer

    def attach(self, result: Block, at: datetime | None, *, orphans: bool) -> None:
        """Attach a result to the turn that called the tool, once; or, if that is not known, to the latest."""
        if result.id and result.id in self.answered:
            return
        called = result.id if result.id in self.uses else self._by_name(result)
        if called:
            _, call = self.uses.pop(called)
        elif orphans and self.latest:
            call = self.latest
        else:
            return
        self.answered.update(filter(None, (result.id, called)))
        call.results.append(replace(result, id=called or result.id, at=at))

    def _by_name(self, result: Block) -> str | None:
        """Find a call by its name. Gemini's calls have no id; its client gives them one, but only in the history that
        it sends back."""
        keys = (key for key, (use, _) in self.uses.items() if "#" in key and use.name == result.name)
        return next(keys, None) if result.name else None
