"""The contracts of the modules that a descriptor names."""

from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from agent_logger.agents.base import Agent, AgentLocation
from agent_logger.agents.prompt_history import Prompt
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.files.sources import Source, StampCache
from agent_logger.messages.sdk import SdkMessage
from agent_logger.model.records import Identity
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import Session
from agent_logger.providers.json_values import Json
from agent_logger.providers.request_body import RequestBody

LONGEST_NAME = 60  # characters of an id in a message to the user


class AgentFiles(Protocol):
    """Finds and opens the files of one agent."""

    def discover(
        self, agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool, /
    ) -> Iterator[Source]: ...

    def open_session(self, source: Source, /) -> SourceFiles: ...

    def begins_session(self, first: bytes, /) -> bool:
        """Whether a main file, of which the name is right, may begin with these bytes."""

    def recognises(self, first: bytes, /) -> bool:
        """Whether only a main file of this agent begins with these bytes, whatever its name."""


class DatabaseFiles(AgentFiles, Protocol):
    """Finds, opens and copies the files of an agent whose main files are SQLite databases."""

    def sessions_in(self, agent: Agent, path: Path, cache: StampCache, /) -> Iterator[Source]: ...

    def copy(self, path: Path, to: Path, /) -> None:
        """Copy the whole database as it is now into an empty file. Raises `SourceError`, `OSError`."""

    def root_of(self, path: Path, session: str, /) -> str | None:
        """Return the session that started this one, itself or through others; None if none did, or it is not in the
        database."""

    def unreadable(self, location: AgentLocation, folders: Sequence[Path], /) -> Iterator[str]:
        """Yield why databases cannot be read at all, each reason with the path."""

    def tables(self) -> tuple[str, ...]:
        """Return the tables that hold sessions; their rows are identified by `id`."""


class SessionReader(Protocol):
    """Turns the files of a session into a `Session`, and into its responses. It opens nothing, and never raises for the
    content of a file."""

    def session_of(self, source: SourceFiles, /) -> Session: ...

    def responses_of(self, source: SourceFiles, /) -> Iterator[ModelResponse]: ...

    def billed_of(self, source: SourceFiles, /) -> tuple[list[ModelResponse], list[ReportedTotal]]:
        """Only where the descriptor has `reports_totals`."""

    def parent_of(self, source: SourceFiles, /) -> str | None:
        """Only where the descriptor has `names_parents`."""


class CallShapes:
    """The shapes of one agent's calls. The defaults are for an agent of which nothing is known."""

    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        """Whether the call is outside the conversation: a title, a classifier, a router, a warm-up."""
        return False

    def session_in(self, body: RequestBody) -> Identity | None:
        """Return the session that a request body names."""
        return None

    def agent_in(self, body: RequestBody) -> str | None:
        """Return the id of the sub-agent that a request body names; None if the main agent makes the call."""
        return None


class LeftOutRow(msgspec.Struct, frozen=True):
    session: str
    row: str  # the table and the id of the row
    reason: str


class ImportDocument(NamedTuple):
    session: str
    # The folder of the session. The import puts the session into the folder in which it is started.
    directory: str | None
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

    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        """Whether output that begins with this object is the agent's."""

    def read(self, line: bytes) -> list[SdkMessage]:
        """Return the messages of one JSON object; none if the object is not one of the agent's."""


class PromptReader(Protocol):
    """Reads the lines of a prompt history."""

    def prompt_of(self, value: Json, /) -> tuple[str | None, Prompt]:
        """Return the session that a line names, and what was typed in it."""


# ---------------------------------------------------------------- one process of an agent, sent through the proxy
#
# Variables that hold base URLs are set for every command. What an agent needs besides them is its `ChildSetup`:
# settings that win over the variables, or a base URL that it takes as an argument only. Its files stay as they are.
#
# An agent that takes no base URL goes through the forward door: the proxy and its certificates are named in variables.

# How an agent's calls reach the proxy.
Door = Literal["base-url", "forward"]


class ChildCommand(NamedTuple):
    """A command that is about to be started."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path  # the working folder of the command


def with_first(argv: tuple[str, ...], *arguments: str) -> tuple[str, ...]:
    """Return the command line with these arguments in front of its own."""
    return (argv[0], *arguments, *argv[1:])


class Through(Protocol):
    def __call__(self, provider: str, url: str, /) -> str | None:
        """Return the URL that reaches a base URL by way of the proxy; `None` if the proxy cannot reach it."""


class ChildSetup:
    """The changes that send an agent through the proxy. The defaults are for an agent that needs variables only."""

    def settings_environment(self, child: ChildCommand) -> Mapping[str, str]:
        """Return the variables that the agent's settings replace."""
        return {}

    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        """Return further variables that send the agent through the proxy; `None` for one that must stay as it is.
        `is_own`: the command is the agent's. Any other command may start any agent, too."""
        return {}

    def arguments(self, child: ChildCommand, through: Through) -> tuple[str, ...]:
        """Return the command line that sends the agent through the proxy."""
        return child.argv

    def ignores_base_url(self, child: ChildCommand) -> bool:
        """Whether the agent uses a login with which it ignores base URLs."""
        return False

    def door(self, child: ChildCommand) -> Door:
        """Return the door by which the agent can be recorded, with its login and its settings."""
        return "forward" if self.ignores_base_url(child) else "base-url"

    def forward_arguments(self, child: ChildCommand, variables: Mapping[str, str]) -> tuple[str, ...]:
        """Return the command line with which these variables hold, although the agent's settings replace some."""
        return child.argv
