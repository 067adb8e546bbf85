"""One session or sub-agent, whichever version wrote it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.model.session import MAIN, SIDE, Block, Compaction, Turn, Usage


@dataclass(slots=True)
class VibeTurn(OpenTurn):
    error: str | None = None

    def as_turn(self) -> Turn:
        return replace(OpenTurn.as_turn(self), error=self.error)


@dataclass(slots=True)
class VibePart:
    """A session, or the session of a sub-agent."""

    id: str
    thread: str
    conversation: Conversation = field(default_factory=Conversation)
    aside: list[VibeTurn] = field(default_factory=list)  # summaries
    compactions: list[Compaction] = field(default_factory=list)
    model: str | None = None
    usage: Usage | None = None  # of all its responses
    project: str | None = None
    title: str | None = None
    source_session: str | None = None  # that it was forked or imported from
    started: datetime | None = None
    ended: datetime | None = None
    # Of a sub-agent.
    started_by: str = MAIN  # the thread
    tool_use_id: str | None = None
    kind: str | None = None
    description: str | None = None

    def turns(self) -> Iterator[VibeTurn]:
        turns = (turn for turn in self.conversation.turns() if isinstance(turn, VibeTurn))
        return (turn for part in (turns, self.aside) for turn in part if turn.thread in (self.thread, SIDE))

    def tool_uses(self) -> dict[str | None, Block]:
        return {block.id: block for turn in self.turns() for block in turn.blocks if block.kind == "tool_use"}

    def settle(self) -> None:
        """Mark all responses as billed with an unknown usage if nothing says what they took in all."""
        if self.usage is None:
            for turn in self.turns():
                turn.unread_usage = turn.usage is None and turn.complete
