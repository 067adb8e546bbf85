"""The derived model: what every reader produces and every view shows.

    Session > Exchange > Turn > Block

These types say the same things whatever the witnesses were. Nothing here is stored: a session is derived from the logs,
and can be derived again, better, from the same files.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self

import msgspec

from agent_logger.model.origin import ImportOrigin

Witness = Literal["wire", "sdk", "run", "transcript", "hook"]
BlockKind = Literal["text", "thinking", "tool_use", "tool_result", "image", "other"]
ToolKind = Literal["read", "write", "edit", "shell", "search", "fetch", "agent", "mcp", "other"]
JoinedBy = Literal["message id", "request id", "tool call", "order"]

# The witnesses that report a response when it begins, with the usage that is known then.
TOLD_EARLY: frozenset[Witness] = frozenset({"sdk", "run"})
MAIN = "main"
SIDE = "side"
AGENT_PREFIX = "agent:"  # the thread of a sub-agent is this and its id
LOST = "lost"  # the end of an exchange of which nobody knows how it ended
SYNTHETIC = "<synthetic>"  # the model of what a client says in the model's name


class Model(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The base of these types. They are structs because a folder of sessions has many of them, and making a dataclass
    takes several times as long. `msgspec.structs.replace` makes a changed copy."""


class Usage(Model, frozen=True, kw_only=True, gc=False):
    """Tokens as they are billed.

    `input_tokens` leaves out what came from the cache or went into it; `cache_write_1h_tokens` is a part of
    `cache_write_tokens`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0  # part of cache_write_tokens

    def __add__(self, other: Self) -> "Usage":
        # The fields are written out, because sums over many thousand responses are made here.
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cache_write_1h_tokens=self.cache_write_1h_tokens + other.cache_write_1h_tokens,
        )

    def __sub__(self, other: Self) -> "Usage":
        """Subtract an earlier counter: what was used since `other`, for clients that report a running total."""
        return Usage(**{name: getattr(self, name) - getattr(other, name) for name in self.__struct_fields__})

    @classmethod
    def from_counts(cls, given: int, output: int, read: int, write: int, hour: int) -> "Usage":
        """Build a usage from its counts, in the order of the fields."""
        return Usage(
            input_tokens=given,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=write,
            cache_write_1h_tokens=hour,
        )

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """The counts, in the order of the fields."""
        return (
            self.input_tokens,
            self.output_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.cache_write_1h_tokens,
        )

    @property
    def context_tokens(self) -> int:
        """The tokens that the model was given to read."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class Cost(Model, frozen=True, kw_only=True, gc=False):
    """A cost in billionths of a dollar, `nano_usd`; `usd` is the same in dollars.

    `None` is unknown, with the `reason`, and never counts as nothing. `price_date` is the day of the price.
    """

    nano_usd: int | None
    price_date: str | None = None
    reason: str | None = None
    unpriced: int = 0  # responses that are not in this sum, because their price is unknown

    @property
    def usd(self) -> float | None:
        """The cost in dollars; None if no price is known."""
        return None if self.nano_usd is None else self.nano_usd / 1e9

    @staticmethod
    def total(costs: Iterable["Cost"]) -> "Cost":
        """Return the sum of costs. Those that are not known are counted in `unpriced`."""
        costs = list(costs)
        amounts = [cost.nano_usd for cost in costs if cost.nano_usd is not None]
        return Cost(
            nano_usd=sum(amounts) if amounts else None,
            price_date=max((cost.price_date for cost in costs if cost.price_date), default=None),
            reason=next((cost.reason for cost in costs if cost.reason), None),
            unpriced=sum(cost.unpriced or (cost.nano_usd is None and bool(cost.reason)) for cost in costs),
        )


class Block(Model, frozen=True, kw_only=True, gc=False):
    """A piece of a turn, or of the answer its tool calls got: a text, a thought, a tool use, its result, an image."""

    kind: BlockKind
    text: str = ""  # the text to read: an answer, a thought, the output of a tool
    id: str | None = None  # a tool call's id, on the use and on its result
    name: str | None = None  # the tool's
    input: Any = None  # the tool's, as the model wrote it
    is_error: bool = False
    at: datetime | None = None
    raw: Any = None  # the block as it came, where `text` does not say all of it


class ToolCall(Model, frozen=True, kw_only=True, gc=False):
    """A tool use and its result, paired by id. Either may be missing: killed agents leave such halves."""

    id: str | None
    name: str | None
    kind: ToolKind
    input: Any
    result: str | None
    is_error: bool
    started: datetime | None
    ended: datetime | None
    thread: str
    raw: Any = None  # the result as it came, where `result` does not say all of it: pictures


class Difference(Model, frozen=True, kw_only=True, gc=False):
    """A value that a witness reports for a turn, and that differs from the turn's."""

    field: Literal["usage", "model", "text"]
    witness: Witness
    value: Usage | str


class Turn(Model, frozen=True, kw_only=True, gc=False):
    """A model response, and the results of the tools it called.

    `blocks` are its pieces, in order; `usage` are the tokens that were billed for it, `cost` their price. `thread` is
    `main`, `agent:<id>` for a sub-agent, or `side`. `witnesses` saw it, and `differences` say where they disagree.
    """

    message_id: str | None
    request_id: str | None = None
    thread: str = MAIN
    model: str | None = None
    service_tier: str | None = None
    stop_reason: str | None = None
    blocks: Sequence[Block] = ()
    usage: Usage | None = None
    unread_usage: bool = False  # a usage was reported, and is not understood
    cost: Cost | None = None
    started: datetime | None = None
    ended: datetime | None = None
    witnesses: frozenset[Witness] = frozenset()
    complete: bool = True
    # The error that the API sent instead of the rest of the answer. The turn is not billed unless it has a usage.
    error: str | None = None
    is_sum: bool = False  # `usage` is that of the whole exchange: the client reports nothing else
    joined_by: JoinedBy | None = None  # how the copies of several witnesses were matched; `order` is a guess
    differences: Sequence[Difference] = ()
    counted_in: str | None = None  # the session in which the turn counts, if this session is a fork of it

    @property
    def is_synthetic(self) -> bool:
        """Whether this is no response of a model, but the client's own words in its place: an error, an
        interruption."""
        return self.model == SYNTHETIC

    @property
    def is_billed(self) -> bool:
        """Whether this is a response that was billed. A response without usage was billed too, but the amount is
        unknown. So was one that the wire saw begin and that was cut, but not one that the API ended with an error."""
        if self.model == SYNTHETIC:
            return False
        if self.usage is not None or self.unread_usage:
            return True
        answered = bool(self.message_id and self.complete) or "wire" in self.witnesses
        return answered and self.error is None

    @property
    def is_final(self) -> bool:
        """Whether `usage` is what was billed in the end. An SDK, or a run, reports what is known when a response
        begins, unless it also reports how the response ended."""
        is_early = bool(self.witnesses) and self.witnesses <= TOLD_EARLY
        return self.complete and not (is_early and self.usage and self.stop_reason is None)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tools that the response called, each with its result."""
        uses, results = [], []
        for block in self.blocks:
            if block.kind == "tool_use":
                uses.append(block)
            elif block.kind == "tool_result":
                results.append(block)
        answers = {block.id: block for block in results if block.id}
        used = {use.id for use in uses}
        orphans = [result for result in results if result.id not in used]
        return [self._call(use, answers.get(use.id or "")) for use in uses] + [
            self._call(None, orphan) for orphan in orphans
        ]

    def _call(self, use: Block | None, result: Block | None) -> ToolCall:
        block = use or result
        return ToolCall(
            id=block.id if block else None,
            name=use.name if use else None,
            kind=tool_kind(use.name) if use and use.name else "other",
            input=use.input if use else None,
            result=result.text if result else None,
            is_error=bool(result and result.is_error),
            started=use.at if use else None,
            ended=result.at if result else None,
            thread=self.thread,
            raw=result.raw if result else None,
        )


class ModelTotal(Model, frozen=True, kw_only=True, gc=False):
    model: str | None
    usage: Usage | None  # none: tokens were used, and nobody knows how many


class ClientTotal(Model, frozen=True, kw_only=True, gc=False):
    """The total usage that a client reports for a stretch of a session: as a rule, for an exchange, in its result."""

    witness: Witness
    models: tuple[ModelTotal, ...]
    started: datetime | None = None
    ended: datetime | None = None
    message_ids: tuple[str, ...] = ()  # the ids of its responses that this witness saw
    is_whole: bool = True  # sub-agents and side calls included; false: the main thread alone
    exchange: int | None = None  # the number of the exchange, if the stretch is one
    # Whether the stretch is the session, over all its runs: another witness may have seen some of them, and not others.
    is_session: bool = False

    @property
    def is_request(self) -> bool:
        """Whether the total stands for one request whose answer its client did not write down; an open one has no
        end."""
        unknown = self.witness == "transcript" and all(model.usage is None for model in self.models)
        return unknown and not self.message_ids and len(self.models) == 1


class NotItemised(Model, frozen=True, kw_only=True, gc=False):
    """The usage of one model in a client's total beyond the responses that any witness reports."""

    model: str | None
    usage: Usage | None
    cost: Cost | None
    at: datetime | None = None
    exchange: int | None = None


class Exchange(Model, frozen=True, kw_only=True, gc=False):
    """A user input and all that follows until the agent waits for the next one.

    `complete` is false if it ended otherwise; `end_reason` then says how. `origin` is who began it, if that was not a
    person.
    """

    number: int
    started: datetime | None = None
    ended: datetime | None = None
    user_input: str | None = None
    origin: str | None = None  # who began the exchange, if not a person
    turns: Sequence[Turn] = ()
    complete: bool = True
    end_reason: str | None = None
    printed: str | None = None  # the output of a run that has no turns
    # Whether the conversation continued from a point before this exchange: the user took the exchange back, or two
    # processes wrote into one file.
    left: bool = False

    @property
    def usage(self) -> Usage:
        """The tokens that were billed in the exchange, each response once."""
        return _billed(self.turns)

    @property
    def cost(self) -> Cost:
        """The cost of the exchange."""
        return _cost(self.turns)


class SubAgent(Model, frozen=True, kw_only=True, gc=False):
    """An agent that another one started, by a tool call."""

    thread: str  # the thread of its turns
    parent_thread: str = MAIN
    tool_use_id: str | None = None  # the call that started it, if that is known
    kind: str | None = None  # the client's word for what it is good at
    description: str | None = None


class Compaction(Model, frozen=True, kw_only=True, gc=False):
    """A replacement of the history by a summary of it."""

    at: datetime | None = None
    thread: str = MAIN
    trigger: str | None = None  # manual, auto
    tokens_before: int | None = None
    tokens_after: int | None = None


class ContextFile(Model, frozen=True, kw_only=True, gc=False):
    """A file that an agent took along when the session began. Its text is not stored: an HMAC allows two to be
    compared."""

    path: str
    kind: Literal["instructions", "settings"]
    bytes: int | None = None
    hmac: str | None = None


class Inherited(Model, frozen=True, kw_only=True, gc=False):
    """The part of a fork that came before it, which counts in the sessions that had it first."""

    exchanges: int
    turns: int
    usage: Usage
    cost: Cost
    counted_in: Sequence[str]  # the ids of these sessions


class Session(Model, frozen=True, kw_only=True, gc=False):
    """A conversation with an agent, as one witness or all of them have it.

    It consists of `exchanges`, each a user input and the `turns` that answer it; `side_turns` are outside of them.
    `agents` are its sub-agents, `parent` is the session that it was forked from. A fork begins with turns of another
    session: `inherited`, where that is known.
    """

    id: str
    agent: str | None = None
    title: str | None = None
    project: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    exchanges: Sequence[Exchange] = ()
    side_turns: Sequence[Turn] = ()  # titles, classifiers, warm-ups: outside every exchange
    parent: str | None = None
    agents: Sequence[SubAgent] = ()
    prompts_only: bool = False  # the agent's file is gone; its history has what was typed
    main_missing: bool = False  # the session's main file is gone; the files of its sub-agents are left
    reported_cost_usd: float | None = None  # the cost of the whole session, as the client reports it
    hooked: bool = False  # hooks of its agent reported it
    end_reason: str | None = None  # the reason that hooks reported: `clear`, `logout`, `prompt_input_exit`, ...
    compactions: Sequence[Compaction] = ()
    context_files: Sequence[ContextFile] = ()  # the instructions and settings that applied, where they were recorded
    inherited: Inherited | None = None  # the part before the fork; none: there is none, or it is unknown
    totals: Sequence[ClientTotal] = ()
    not_itemised: Sequence[NotItemised] = ()
    damaged_lines: int = 0  # lines of its files that could not be read, as the catalog counts them
    unread_calls: int = 0  # calls to models that the proxy recorded as bytes, and that are not understood
    imported: Sequence[ImportOrigin] = ()  # the imports that it is from; none: this machine recorded it

    @property
    def turns(self) -> list[Turn]:
        """All turns: those of the exchanges, then side calls, such as titles."""
        return [turn for exchange in self.exchanges for turn in exchange.turns] + list(self.side_turns)

    @property
    def own_turns(self) -> list[Turn]:
        """The turns that count in this session."""
        return [turn for turn in self.turns if turn.counted_in is None] if self.inherited else self.turns

    @property
    def threads(self) -> list[str]:
        """The threads in the order of their first turn: `main`, `agent:<id>` for a sub-agent, `side`."""
        return list(dict.fromkeys(turn.thread for turn in self.turns))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of all turns, in order."""
        return [call for turn in self.turns for call in turn.tool_calls]

    @property
    def files(self) -> list[str]:
        """Paths that tools were given, in the order of their first use."""
        paths = (path for call in self.tool_calls for path in paths_in(call.input))
        return list(dict.fromkeys(paths))

    @property
    def witnesses(self) -> frozenset[Witness]:
        """The witnesses that saw the session: `transcript`, `sdk`, `run`, `wire`, `hook`."""
        hooks: frozenset[Witness] = frozenset({"hook"}) if self.hooked else frozenset()
        return hooks.union(*(turn.witnesses for turn in self.turns))

    @property
    def usage(self) -> Usage:
        """The tokens that were billed, sub-agents and side calls included, each response once; of a fork, those after
        it."""
        return sum((remainder.usage for remainder in self.not_itemised if remainder.usage), _billed(self.own_turns))

    @property
    def cost(self) -> Cost:
        """The cost of what was billed, as `usage` counts it."""
        return Cost.total(
            [_cost(self.own_turns), *(remainder.cost for remainder in self.not_itemised if remainder.cost)]
        )

    @property
    def context_tokens(self) -> int | None:
        """The tokens that the model read for its last response on the main thread; None if that is not known."""
        sizes = self._context_sizes()
        return sizes[-1] if sizes else None

    @property
    def peak_context_tokens(self) -> int | None:
        """The most tokens that the model read for a response on the main thread; None if that is not known."""
        return max(self._context_sizes(), default=None)

    def _context_sizes(self) -> list[int]:
        return [turn.usage.context_tokens for turn in self.turns if turn.thread == MAIN and turn.usage]


def _unique(turns: Iterable[Turn]) -> list[Turn]:
    """The turns with each response once: a later copy of a message id is the more final one."""
    return list({turn.message_id or id(turn): turn for turn in turns}.values())


def _billed(turns: Iterable[Turn]) -> Usage:
    return sum((turn.usage for turn in _unique(turns) if turn.usage), Usage())


def _cost(turns: Iterable[Turn]) -> Cost:
    return Cost.total(turn.cost for turn in _unique(turns) if turn.cost)


PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "absolute_path")


def paths_in(tool_input: Any) -> list[str]:
    """Return the paths that a tool was given."""
    if not isinstance(tool_input, Mapping):
        return []
    return [path for key in PATH_KEYS if isinstance(path := tool_input.get(key), str)]


# The names of the agents' own tools, lower case, and those of common editors. A name with `mcp__` in front is its
# server's.
TOOL_KINDS: Mapping[ToolKind, frozenset[str]] = {
    "read": frozenset({"read", "read_file", "read_many_files", "view", "view_file", "view_image", "notebookread"})
    | {"read_files"},
    "write": frozenset({"write", "write_file", "write_to_file", "create", "create_file", "save", "append"}),
    "edit": frozenset(
        {"edit", "edit_file", "multiedit", "notebookedit", "apply_patch", "replace", "patch", "str_replace"}
        | {"str_replace_editor", "str_replace_based_edit_tool", "search_replace", "applypatch", "file_editor"}
        | {"patch_many", "morph", "hashline_edit"}
    ),
    "shell": frozenset(
        {
            "bash",
            "shell",
            "exec_command",
            "execute",
            "local_shell",
            "local_shell_call",
            "run_commands",
            "run_shell_command",
            "run_terminal_command",
            "terminal",
            "bashoutput",
        }
        | {
            "killshell",
            "killbash",
            "monitor",
            "write_stdin",
            "list_background_processes",
            "read_background_output",
        }
        | {"read_bash", "write_bash", "stop_bash", "list_bash", "checkbackgroundjob"}
        | {"ipython", "tmux"}
        | {"powershell", "read_powershell", "write_powershell", "stop_powershell", "list_powershell"}
        | {"terminal", "read_terminal", "close_terminal", "process", "execute_code", "exec"}
    ),
    "search": frozenset(
        {
            "grep",
            "glob",
            "ls",
            "list",
            "list_dir",
            "list_directory",
            "lsp",
            "search_file_content",
            "tree",
            "grep_search",
        }
        | {"websearch", "web_search", "google_web_search", "codesearch", "toolsearch"}
        | {"search", "search_codebase", "search_files", "session_search", "x_search", "memory_search", "chats", "rag"}
    ),
    "fetch": frozenset({"webfetch", "web_fetch", "fetch", "fetchurl", "web_extract"}),
    "agent": frozenset(
        {"agent", "task", "delegate", "invoke_agent", "listagents", "sendmessage", "workflow"}
        | {"spawn_agent", "wait_agent", "send_input", "resume_agent", "close_agent"}
        | {"read_agent", "write_agent", "list_agents", "subagent", "delegate_task"}
        | {"sessions_spawn", "sessions_send", "sessions_yield", "subagents", "agents_list"}
        | {"agentswarm", "spawn_subagent", "get_command_or_subagent_output", "kill_command_or_subagent"}
    ),
    "mcp": frozenset({"listmcpresourcestool", "readmcpresourcetool"}),
}


def tool_kind(name: str) -> ToolKind:
    if name.startswith("mcp__"):
        return "mcp"
    return _KIND_OF.get(name.lower(), "other")


_KIND_OF = {name: kind for kind, names in TOOL_KINDS.items() for name in names}
