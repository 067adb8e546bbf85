"""What the manifests of recordings say, for agents whose manifests list every response of the model with its kind."""

from collections.abc import Collection
from pathlib import Path

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.files.sources import StampCache
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session, Usage


class RecordedUsage(msgspec.Struct):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def as_usage(self) -> Usage:
        return Usage(
            input_tokens=self.input,
            output_tokens=self.output,
            cache_read_tokens=self.cache_read,
            cache_write_tokens=self.cache_write,
        )


class RecordedResponse(msgspec.Struct):
    kind: str
    complete: bool
    id: str | None = None
    usage: RecordedUsage | None = None


class Recording(msgspec.Struct):
    responses: list[RecordedResponse]

    def usage(self, kinds: Collection[str]) -> Usage:
        usages = (response.usage.as_usage() for response in self.of(kinds) if response.usage)
        return sum(usages, Usage())

    def of(self, kinds: Collection[str]) -> list[RecordedResponse]:
        return [response for response in self.responses if response.kind in kinds and response.complete]


def recording(folder: Path) -> Recording:
    return msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Recording)


def read_home(agent: Agent, home: Path) -> dict[str, tuple[Session, list[ModelResponse]]]:
    """The sessions below a home, by id, each with its responses."""
    assert agent.location
    folders = [home / name for name in agent.location.default] or [home]
    sources = list(agent.discover(folders, StampCache()))
    read = {}
    for source in sources:
        session = agent.session_of(agent.open_session(source))
        assert session.id == source.name
        read[session.id] = session, list(agent.responses_of(agent.open_session(source)))
    return read
