"""The files of the agent that was made up: a line per message."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.objects import salvaged, time_of_ms
from agent_logger.agents.source_files import SourceFiles, raw_lines_of
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Block, Session, Usage
from agent_logger.providers.lenient import fitting

AGENT_NAME = "notebook"
MODEL = "claude-haiku-4-5"


class Line(msgspec.Struct):
    """A line. Every field has a default, because a line may lack any of them."""

    talk: str = ""
    at: int | None = None  # seconds
    user: str | None = None
    answer: str = ""
    id: str | None = None
    tokens: tuple[int, int] | None = None

    @property
    def time(self) -> datetime | None:
        return time_of_ms(self.at and self.at * 1000)

    @property
    def usage(self) -> Usage | None:
        return Usage(input_tokens=self.tokens[0], output_tokens=self.tokens[1]) if self.tokens else None


def lines_of(source: SourceFiles) -> list[Line]:
    """Return the lines that are objects, with those of their fields that fit. Nothing is raised."""
    return [fitting(Line, value) for line in raw_lines_of(source.main) for value in salvaged(line)]


def session_of(source: SourceFiles) -> Session:
    conversation, lines = Conversation(), lines_of(source)
    for line in lines:
        if line.user is not None:
            conversation.ask(line.user, line.time)
        else:
            turn = OpenTurn(model=MODEL)
            turn.count(line.usage, line.id)
            conversation.add(turn)
            conversation.put(turn, Block(kind="text", text=line.answer), line.time)
    return Session(
        id=next((line.talk for line in lines if line.talk), source.main.name),
        agent=AGENT_NAME,
        title=conversation.title(),
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
    )


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    for line in lines_of(source):
        if line.user is None:
            yield ModelResponse(
                family="anthropic",
                message_id=line.id,
                model=MODEL,
                usage=line.usage,
                at=line.time,
                session=line.talk,
                project=None,
                agent=AGENT_NAME,
                thread=MAIN,
                final=True,
            )
