"""What is known of an agent: one `Agent` in each package beside this module, and all of them in `registry`.

A descriptor is data. Code is named by its module and imported when it is needed: most commands read the files of one
agent, and `--help` those of none.
"""

import re
from collections.abc import Container, Iterator, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Literal, cast

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from agent_logger.agents.contracts import AgentFiles, SessionReader
    from agent_logger.agents.source_files import SourceFiles
    from agent_logger.files.sources import Source, StampCache
    from agent_logger.model.responses import ModelResponse
    from agent_logger.model.session import Session

SINGLE_FILE = "agent_logger.agents.single_file"


class AgentLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent keeps its sessions. Patterns are matched below each of its folders, name by name; `**` matches
    everything from there on."""

    default: tuple[str, ...]  # its folders, below the home
    globs: tuple[str, ...]  # of main files
    older: tuple[str, ...] = ()  # of files that were main ones before these, the newest kind first
    variable: str | None = None  # of the environment, names the folder instead
    below: str = ""  # of what the variable names
    several: bool = False  # the variable may name several folders, separated by commas
    file_variable: str | None = None  # names a main file, from the folder if it is relative
    is_database: bool = False  # a main file is a database with many sessions, which cannot be copied as it is
    keep: tuple[str, ...] = ()  # what the archive copies
    # What belongs to one session, beside the main file and those of its sub-agents, and what its project shares.
    # `{folder}` is that of the main file, `{above}` the one above that, `{stem}` the main file's name without its end.
    beside: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


class WireIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent's calls are recognised by a proxy."""

    user_agents: tuple[str, ...] = ()  # how the user agent or the originator begins, in lower case
    session_headers: tuple[str, ...] = ()  # that have the session's id, the most certain first
    agent_header: str | None = None  # that has the id of the sub-agent that asks, or again the session's
    calls: str | None = None  # module with `CALLS`, its `CallShapes`
    compaction: str | None = None  # how the prompt for a summary of the conversation begins
    compaction_item: str | None = None  # the type of an item that asks for one
    # The prompt of a sub-agent that does not name itself is that of the tool call which started it.
    matches_agents_by_prompt: bool = False
    # How a session that has no id on the wire is found in the agent's files.
    match_files_by: Literal["response_ids", "words"] | None = None


class RunSupport(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of the agent, as far as `run` must understand it."""

    executable: str
    package: str  # of npm, that installs it
    headless: tuple[str, ...]  # any of these makes it print and end, and need no terminal
    resume_option: str  # that an id follows
    prompt_after: tuple[str, ...] = ()  # options that the prompt follows; none: it is the last argument
    resume: tuple[str, ...] = ()
    go_on: tuple[str, ...] = ()  # options that continue the last session, whichever it is
    flags: tuple[str, ...] = ()  # options without a value
    lists: tuple[str, ...] = ()  # options with many
    output: str | None = None  # module with `OUTPUT`, its `OutputReader`; none: the Agent SDK's form
    example: str | None = None  # a command line that is recorded, where the executable alone is not


class ProxySetup(msgspec.Struct, frozen=True, kw_only=True):
    """What sends the agent through the proxy."""

    variable: str | None = None
    must_match: bool = False  # the variable counts only with the very URL that `env` sets
    settings_file: str | None = None  # below its folder; has the address in it
    hint: str | None = None  # what to do, where `env` does not


class ImportSupport(msgspec.Struct, frozen=True, kw_only=True):
    """How a session gets into the agent's database: by a command of its own."""

    command: tuple[str, ...]  # that a document follows
    documents: str  # module with `ImportDocuments`


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    location: AgentLocation | None = None
    main_file: re.Pattern[str] | None = None  # how the path of a session's main file ends
    files: str = SINGLE_FILE  # module with `AgentFiles`
    reader: str | None = None  # module with `SessionReader`; none: its files are not read
    responses: str | None = None  # module with `responses_of`, where that is not the reader
    wire: WireIdentity = WireIdentity()
    run: RunSupport | None = None
    setup: ProxySetup | None = None
    imports: ImportSupport | None = None
    family: str | None = None  # of models, if it can use one alone
    response_ids: Literal["vendor", "client"] = "vendor"  # who made those in its files
    names_sessions_on_wire: bool = True
    names_parents: bool = False  # the reader has `parent_of`
    reads_on: bool = False  # the reader can continue where it ended, when a file has grown
    grows_by_lines: bool = True  # else only the whole file tells what is new
    has_id_inside: bool = False  # the name of a main file holds only a part of the session's id
    lists_every_call: bool = False  # its files list every call, also those for titles and the like
    prompt_history: str | None = None  # a file in its folder that has what was typed in all sessions
    prompt_reader: str | None = None  # module with `PromptReader`, for that file
    processes: str | None = None  # module with `noted_sessions`: which sessions a process has open
    naming: str | None = None  # module with `project_folders`: the names of a project's folder
    cleanup: str | None = None  # module with `cleanup_days`: after how many it deletes sessions
    context: bool = False  # instructions and settings that apply to a session are noted with it

    def session_of(self, source: "SourceFiles") -> "Session":
        return self._reader.session_of(source)

    def responses_of(self, source: "SourceFiles") -> Iterator["ModelResponse"]:
        reader = cast("SessionReader", module(self.responses)) if self.responses else self._reader
        return reader.responses_of(source)

    def parent_of(self, source: "SourceFiles") -> str | None:
        """Return the session that this one was forked from, if its file names one. Reads the beginning of the file
        only."""
        return self._reader.parent_of(source) if self.names_parents else None

    def discover(
        self,
        folders: Sequence["Path"],
        cache: "StampCache",
        skip: Container[str] = (),
        *,
        sealed: bool = False,
    ) -> Iterator["Source"]:
        """Find the sessions below folders of the agent, or below copies of them, without opening any. `skip`: names of
        sessions to leave out. `sealed`: a file may be packed, as copies are, and counts by the name it had before."""
        return self._files.discover(self, folders, cache, skip, sealed)

    def open_session(self, source: "Source") -> "SourceFiles":
        """Return the files of a session. If `source.others` is None, look for them. Raises `SourceError`, `OSError`."""
        return self._files.open_session(source)

    def is_main_file(self, path: str, first: bytes) -> bool:
        """Whether the end of the path and the first bytes are those of a main file. The file of a sub-agent is not
        one."""
        return bool(self.main_file and self.main_file.search(path)) and self._files.begins_session(first)

    @property
    def _files(self) -> "AgentFiles":
        return cast("AgentFiles", module(self.files))

    @property
    def _reader(self) -> "SessionReader":
        if self.reader is None:
            raise ValueError(f"no reader for files of {self.name}")
        return cast("SessionReader", module(self.reader))


@cache
def module(name: str) -> ModuleType:
    return import_module(name)
