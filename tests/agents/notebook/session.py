"""The files of the agent that was made up: a line per message."""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from agent_logger.agents.source_files import SourceFiles, raw_lines_of
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Block, Exchange, Session, Turn, Usage


class Line(msgspec.Struct):
    talk: str = ""
    at: int = 0
    user: str | None = None
    answer: str = ""
    id: str = ""
    tokens: tuple[int, int] = (0, 0)

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    @property
    def usage(self) -> Usage:
        return Usage(input_tokens=self.tokens[0], output_tokens=self.tokens[1])


def lines(source: SourceFiles) -> list[Line]:
    return [msgspec.json.decode(line, type=Line) for line in raw_lines_of(source.main)]


def session_of(source: SourceFiles) -> Session:
    read = lines(source)
    prompts = [line for line in read if line.user]
    return Session(
        id=next((line.talk for line in read), source.main.name),
        agent="notebook",
        title=next((line.user for line in prompts), None),
        started=min((line.time for line in read), default=None),
        ended=max((line.time for line in read), default=None),
        exchanges=[
            Exchange(
                number=1,
                started=read[0].time if read else None,
                user_input=prompts[0].user if prompts else None,
                turns=[turn_of(line) for line in read if not line.user],
            )
        ],
    )


def turn_of(line: Line) -> Turn:
    return Turn(
        message_id=line.id,
        model="claude-haiku-4-5",
        started=line.time,
        ended=line.time,
        usage=line.usage,
        blocks=[Block(kind="text", text=line.answer)],
        witnesses=frozenset({"transcript"}),
    )


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    for line in lines(source):
        if not line.user:
            yield ModelResponse(
                family="anthropic",
                message_id=line.id,
                request_id=None,
                model="claude-haiku-4-5",
                usage=line.usage,
                tier=None,
                at=line.time,
                session=line.talk,
                project=None,
                agent="notebook",
                thread="main",
                final=True,
                reported_cost_usd=None,
                witness="transcript",
            )
