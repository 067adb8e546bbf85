"""The turns of a session while its files are read: which turn a line, a tool call or a result belongs to."""

from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript.turns import TurnLines, is_unique
from agent_logger.model.session import Block


class TurnIndex:
    def __init__(self) -> None:
        self.all: list[TurnLines] = []  # turns in the order of their first lines
        self.by_tool_call: dict[str, TurnLines] = {}  # turns by the id of a tool call
        self._by_message: dict[str, TurnLines] = {}
        self.latest: dict[str, TurnLines] = {}  # the latest turn by thread
        self.open: dict[str, TurnLines] = {}  # the latest turn by thread, until a prompt follows it
        self._unnamed: dict[str, list[str]] = {}  # by thread, calls without an id that have no result yet

    def find(self, message_id: str | None, request_id: str | None, thread: str) -> TurnLines | None:
        """Return the turn that a line of a response belongs to; None if it begins another one."""
        turn = self._by_message.get(message_id) if message_id else None
        return turn if turn and (turn.is_unique or self._is_same(turn, request_id, thread)) else None

    def _is_same(self, turn: TurnLines, request_id: str | None, thread: str) -> bool:
        """Whether the line belongs to the turn with its id. Local servers count to 999 and start again, so several
        responses may share one id."""
        if turn.request_id and request_id:
            return turn.request_id == request_id
        return self.open.get(thread) is turn and not turn.results

    def begin(self, message_id: str | None, thread: str) -> TurnLines:
        # A turn is identified by its id, so one whose id was used before has none.
        own_id = None if message_id in self._by_message else message_id
        turn = TurnLines(own_id, thread, is_unique=is_unique(message_id))
        self.all.append(turn)
        if message_id:
            self._by_message[message_id] = turn
        return turn

    def unique_turn(self, message_id: str | None) -> TurnLines | None:
        turn = self._by_message.get(message_id or "")
        return turn if turn and turn.is_unique else None

    def prompt(self) -> None:
        """Note input of the model: what it says next is another response."""
        self.open.clear()

    def add_tool_call(self, turn: TurnLines, use: Block) -> Block:
        """Note the turn that called a tool. Returns the call with an id: one without gets one, so that its result,
        which has none either, can be joined to it."""
        if not use.id:
            use = replace(use, id=f"#{len(self.by_tool_call)}")
            self._unnamed.setdefault(turn.thread, []).append(use.id or "")
        self.by_tool_call.setdefault(use.id or "", turn)
        return use

    def result(self, result: Block, thread: str) -> tuple[Block, TurnLines | None]:
        """Return the turn that called the tool, if that is known. A result without an id belongs to the first call that
        has no id and no result yet, and gets its id."""
        waiting = self._unnamed.get(thread) if not result.id else None
        result = replace(result, id=waiting.pop(0)) if waiting else result
        return result, self.by_tool_call.get(result.id or "")
