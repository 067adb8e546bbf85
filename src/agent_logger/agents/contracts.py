"""What the modules that a descriptor names must have."""

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.prompt_history import Prompt
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.files.sources import Source, StampCache
from agent_logger.messages.sdk import SdkMessage
from agent_logger.model.records import Identity
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session
from agent_logger.providers.answer import Json
from agent_logger.providers.request_body import RequestBody

LONGEST_NAME = 60  # characters of an id in a message to the user


class AgentFiles(Protocol):
    """Finds and opens the files of one agent."""

    def discover(
        self, agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool, /
    ) -> Iterator[Source]: ...

    def open_session(self, source: Source, /) -> SourceFiles: ...

    def begins_session(self, first: bytes, /) -> bool:
        """Whether a main file begins with these bytes."""


class DatabaseFiles(AgentFiles, Protocol):
    """The same for an agent whose main files are databases."""

    def sessions_in(self, agent: Agent, path: Path, cache: StampCache, /) -> Iterator[Source]: ...


class SessionReader(Protocol):
    """Turns the files of a session into what happened in it. Reads what it is given and opens nothing."""

    def session_of(self, source: SourceFiles, /) -> Session: ...

    def responses_of(self, source: SourceFiles, /) -> Iterator[ModelResponse]: ...

    def parent_of(self, source: SourceFiles, /) -> str | None: ...


class CallShapes:
    """What the calls of one agent look like. The defaults here are for an agent of which nothing is known."""

    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        """Whether the call is outside the conversation: a title, a classifier, a router, a warm-up."""
        return False

    def session_in(self, body: RequestBody, *, is_own: bool) -> Identity | None:
        """Return the session that a request body names. `is_own`: the call is known to come from this agent."""
        return None


class LeftOutRow(NamedTuple):
    session: str
    row: str  # its table and id
    reason: str


class ImportDocument(NamedTuple):
    session: str
    directory: str | None  # where the session took place; the import puts it where it is started
    data: bytes
    rows: frozenset[tuple[str, str]]  # table and id
    left_out: list[LeftOutRow]
    completed: int  # rows of older versions that got fields which the import requires


class ImportDocuments(Protocol):
    """Turns the rows of a session into a document that the agent imports."""

    def import_document(self, file: File, /) -> ImportDocument:
        """Return the document. Raises `SourceError`."""


class OutputReader(Protocol):
    """Reads the lines that one agent prints."""

    def read(self, line: bytes) -> list[SdkMessage]:
        """Return the messages of one JSON object; none if the object is not one of the agent's."""


class PromptReader(Protocol):
    """Reads the lines of a prompt history."""

    def prompt_of(self, value: Json, /) -> tuple[str | None, Prompt]:
        """Return the session that a line names, and what was typed in it."""
