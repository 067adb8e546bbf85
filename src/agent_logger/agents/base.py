"""The descriptor of an agent: one `Agent` in each package beside this module, and all of them in `registry`.

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
    from agent_logger.model.responses import ModelResponse, ReportedTotal
    from agent_logger.model.session import Session

SINGLE_FILE = "agent_logger.agents.single_file"
PYTHON_INSTALLER = "uv tool install"
# Ends the path of a file with the rows of one session, which were taken out of a database.
ROWS_SUFFIX = ".rows.jsonl"


class AgentLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent keeps its sessions. Patterns are matched below each of its folders, name by name; `**` matches
    everything from there on."""

    # The agent's folders, below the home.
    default: tuple[str, ...] = ()
    # Whether the agent has no folder of its own: its files are searched for in the folders that the user names (the
    # setting `agent_folders`), and nowhere else. The archive copies main files only.
    is_named_by_user: bool = False
    # Patterns of the main files.
    globs: tuple[str, ...]
    # Patterns of the main files of older versions, the newest kind first.
    older: tuple[str, ...] = ()
    # The environment variable that names another folder.
    variable: str | None = None
    # The path from the folder that the variable names to the agent's folder.
    below: str = ""
    # The agent's folder below the one that `XDG_DATA_HOME` names, where the variable above is another one.
    below_data_home: str | None = None
    # The environment variable that names a further folder, with the main files themselves.
    main_files_variable: str | None = None
    # Whether the variable may name several folders, separated by commas.
    several: bool = False
    # The environment variable that names a main file; a relative path starts at the agent's folder.
    file_variable: str | None = None
    # Whether a main file is a database with many sessions, which cannot be copied as a file. Then `Agent.files` is a
    # `DatabaseFiles`.
    is_database: bool = False
    # Patterns of the files that the archive copies.
    keep: tuple[str, ...] = ()
    # Patterns of the files that belong to one session, besides its main file and those of its sub-agents; and of the
    # files that all sessions of a project share. `{folder}` is the folder of the main file, `{above}` the folder above
    # that, `{stem}` the name of the main file without its suffix.
    beside: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


class WireIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """How a proxy recognises the agent's calls."""

    # The beginning of the user agent or the originator, in lower case.
    user_agents: tuple[str, ...] = ()
    # Where the user agent is that of a library, or another agent's: headers that this agent alone sends, and the
    # beginning of its system prompt.
    headers: tuple[str, ...] = ()
    system_prompt: str | None = None
    # Names of SDKs that its calls have instead, like those of many programs.
    sdk_clients: tuple[str, ...] = ()
    # Headers with the session's id, the most certain first.
    session_headers: tuple[str, ...] = ()
    # Whether `prompt_cache_key` in a request body is the session's id.
    cache_key_is_session: bool = False
    # Whether that has dashes, and the id in the agent's files has none.
    has_dashes_on_wire: bool = False
    # The header with the id of the sub-agent that makes the call; it may repeat the session's id.
    agent_header: str | None = None
    # The header that only sub-agents send, where the main agent has an id in `agent_header`, too.
    parent_header: str | None = None
    # Module with `CALLS`, a `CallShapes`.
    calls: str | None = None
    # The beginning of the prompt that asks for a summary of the conversation.
    compaction: str | None = None
    # The type of the item that asks for a summary.
    compaction_item: str | None = None
    # Whether a sub-agent that does not name itself is recognised by its prompt: the tool call that started it has the
    # same.
    matches_agents_by_prompt: bool = False
    # Whether a sub-agent names a session of its own; the tool call that started it has its prompt.
    agents_have_sessions: bool = False
    # How a session that has no id on the wire is found in the agent's files.
    match_files_by: Literal["response_ids", "words"] | None = None


class RunSupport(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of the agent, as far as `run` must understand it."""

    executable: str
    # The package that installs the executable, and the command that installs it.
    package: str
    installer: str = "npm install -g"
    # Options any of which makes the agent print its answer and exit, so that it needs no terminal.
    headless: tuple[str, ...]
    # The words of `resume_command`, which the session's id follows; empty: no session is resumed by its id.
    resume_option: str
    # Options that the prompt follows; none: the prompt is the last argument.
    prompt_after: tuple[str, ...] = ()
    # All spellings of the option that resumes a session by its id.
    resume: tuple[str, ...] = ()
    # Options that continue the last session, whichever that is.
    go_on: tuple[str, ...] = ()
    # Options without a value.
    flags: tuple[str, ...] = ()
    # Options with several values.
    lists: tuple[str, ...] = ()
    # Module with `OUTPUT`, an `OutputReader`. None: only lines in the form of the Claude Agent SDK are understood; any
    # other line is recorded as it is.
    output: str | None = None
    # Whether the tokens that a run prints at its end are those of the whole session, earlier runs included.
    prints_session_totals: bool = False
    # A command line that is recorded, where the executable alone is not.
    example: str | None = None


class ProxySetup(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that send the agent through the proxy."""

    # The environment variable that the agent reads its base URL from.
    variable: str | None = None
    # Whether the variable counts only if it has exactly the URL that `env` sets.
    must_match: bool = False
    # The settings file, below the agent's folder, that can have a base URL.
    settings_file: str | None = None
    # The user's next step, where `env` is not enough.
    hint: str | None = None
    # Module with `SETUP`, a `ChildSetup`; none: variables are enough.
    child: str | None = None
    # For the forward door (`docs/doors.md`): whether the agent reads `NODE_EXTRA_CA_CERTS`, and whether it needs
    # `NODE_USE_ENV_PROXY` to use a proxy.
    reads_extra_certificates: bool = True
    needs_node_proxy: bool = False

    @property
    def takes_base_url(self) -> bool:
        """Whether one process of the agent can be given a base URL."""
        return self.variable is not None or self.child is not None


class ImportSupport(msgspec.Struct, frozen=True, kw_only=True):
    """The command of the agent that imports a session into its database."""

    # The command, which the path of a document follows.
    command: tuple[str, ...]
    # Module that is an `ImportDocuments`.
    documents: str


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """The descriptor of an agent. A field that names a module says which class of `contracts.py` the module must be,
    or which function it has."""

    name: str
    # Other names that people use.
    aliases: tuple[str, ...] = ()
    location: AgentLocation | None = None
    # The end of the path of a session's main file.
    main_file: re.Pattern[str] | None = None
    # Module that is an `AgentFiles`.
    files: str = SINGLE_FILE
    # Module that is a `SessionReader`; none: the agent's files are not read.
    reader: str | None = None
    # Module with `responses_of`, where that is not the reader.
    responses: str | None = None
    wire: WireIdentity = WireIdentity()
    run: RunSupport | None = None
    setup: ProxySetup | None = None
    imports: ImportSupport | None = None
    # The hosts of the agent's own back end, where its models answer; `*.example.com`: all below example.com. The
    # forward door records them. Hosts of model APIs that anybody uses are `KNOWN_HOSTS` in `proxy/relay/route.py`.
    model_hosts: tuple[str, ...] = ()
    # The family of models, if the agent can use only one.
    family: str | None = None
    # Whether its plans limit what is used in blocks of five hours.
    is_limited_by_block: bool = False
    # The maker of the response ids in the agent's files.
    response_ids: Literal["vendor", "client"] = "vendor"
    # Whether a session has its id in the agent's requests.
    names_sessions_on_wire: bool = True
    # The form of session ids, where sub-agents have such an id on the wire, and only the agent's database says which
    # session started them.
    sub_agent_ids: re.Pattern[str] | None = None
    # The form of the agent's session ids, where the names of our own logs look alike.
    session_ids: re.Pattern[str] | None = None
    # The form of the agent's session ids, where they repeat: it numbers its sessions on each machine anew. Then the
    # stamp of a session begins with when it was created, and a semicolon.
    repeating_ids: re.Pattern[str] | None = None
    # Whether the tests have files of the real client. Otherwise the reader follows public descriptions of them, and
    # every list of agents says `unverified`.
    is_verified: bool = True
    # Whether the reader has `parent_of`.
    names_parents: bool = False
    # Whether the reader has `billed_of`: the agent's files also count what parts of a session used in all.
    reports_totals: bool = False
    # Whether its files are Claude Code's, whose reader can continue where it stopped when a file has grown
    # (`catalog/refresh/incremental.py`). Files of any other agent are read as a whole.
    reads_on: bool = False
    # Whether a session grows by new lines of its file; otherwise only the whole file shows what is new.
    grows_by_lines: bool = True
    # Whether the name of a main file has only a part of the session's id.
    has_id_inside: bool = False
    # What the agent's files count tokens for; none: they count none.
    counts_per: Literal["response", "exchange", "session"] | None = "response"
    # Whether the agent's files list every call, including those for titles and the like.
    lists_every_call: bool = False
    # The file in the agent's folder with the prompts of all sessions.
    prompt_history: str | None = None
    # Module that is a `PromptReader`, for that file.
    prompt_reader: str | None = None
    # Module with `noted_sessions`: which sessions a process has open.
    processes: str | None = None
    # Module with `project_folders`: the names of a project's folder.
    naming: str | None = None
    # Module with `cleanup_days`: after how many days the agent deletes sessions.
    cleanup: str | None = None
    # Whether the instructions and settings that apply to a session are recorded with it.
    context: bool = False

    def session_of(self, source: "SourceFiles") -> "Session":
        return self._reader.session_of(source)

    def responses_of(self, source: "SourceFiles") -> Iterator["ModelResponse"]:
        reader = cast("SessionReader", module(self.responses)) if self.responses else self._reader
        return reader.responses_of(source)

    def billed_of(self, source: "SourceFiles") -> tuple[list["ModelResponse"], list["ReportedTotal"]]:
        """Return the responses, and the totals that the agent reports beyond them."""
        return self._reader.billed_of(source) if self.reports_totals else (list(self.responses_of(source)), [])

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
        if source.path.endswith(ROWS_SUFFIX):
            from agent_logger.agents.databases.rows_file import open_rows

            return open_rows(source.path)
        return self._files.open_session(source)

    def is_main_file(self, path: str, first: bytes) -> bool:
        """Whether the end of the path and the first bytes are those of a main file. The file of a sub-agent is not
        one."""
        return bool(self.main_file and self.main_file.search(path)) and self._files.begins_session(first)

    def recognises(self, first: bytes) -> bool:
        """Whether the first bytes alone show that it is a main file."""
        return self.reader is not None and self._files.recognises(first)

    @property
    def _files(self) -> "AgentFiles":
        return cast("AgentFiles", module(self.files))

    @property
    def _reader(self) -> "SessionReader":
        if self.reader is None:
            raise ValueError(f"agent-logger cannot read files of {self.name}")
        return cast("SessionReader", module(self.reader))


@cache
def module(name: str) -> ModuleType:
    return import_module(name)
