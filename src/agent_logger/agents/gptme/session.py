"""Turns gptme's conversation into a session, and into its billed responses.

What was undone, or left out by a compaction, is only in other files of the folder: these are read as well.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.gptme.messages import (
    CONFIG,
    CONVERSATION,
    META,
    GptmeMessage,
    GptmeMetadata,
    SubAgentMeta,
    blocks_of,
    is_failure,
    messages_of,
)
from agent_logger.agents.objects import object_in
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import AGENT_PREFIX, MAIN, Block, Compaction, Exchange, Session, SubAgent
from agent_logger.providers.blocks import base
from agent_logger.providers.lenient import fitting

AGENT_NAME = "gptme"
FAMILIES = {"anthropic": "anthropic", "gemini": "gemini"}  # all others have ids like OpenAI's
INTERRUPTED = "Interrupted by user"
CUT_BY_USER = "... ^C Interrupted"
FAILED = "LLM request failed:"
REMINDER = "<system>"  # begins what gptme itself says in the user's name
SUB_AGENT_TOOL = "subagent"
COMPLETE = "complete"  # the tool that ends an exchange
_FOLDER = re.compile(r"^\*\*Working Directory:\*\* (/.+)$", re.MULTILINE)
_FOLDER_WORDS = "**Working Directory:** "


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the files."""
    main, *agents = _logs(source)
    for agent in agents:
        main.conversation.place(agent.conversation.turns())
        main.conversation.compactions += agent.conversation.compactions
    settings = _settings(source.text(f"{main.name}/{CONFIG}"))
    return Session(
        id=main.name,
        agent=AGENT_NAME,
        title=settings.get("name") or main.conversation.title(),
        project=_project(main, settings),
        started=main.conversation.started,
        ended=main.conversation.ended,
        exchanges=main.exchanges(),
        agents=[_sub_agent(agent, main, agents) for agent in agents],
        compactions=main.conversation.compactions,
    )


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    logs = _logs(source)
    main = logs[0]
    project = _project(main, _settings(source.text(f"{main.name}/{CONFIG}")))
    for log in logs:
        for turn in log.conversation.turns():
            if turn.is_counted:
                yield turn.as_response(family=log.family_of(turn), session=main.name, project=project, agent=AGENT_NAME)


# ---------------------------------------------------------------- the files of a session


def _logs(source: SourceFiles) -> "list[_Log]":
    """Return the main conversation, and those of its sub-agents."""
    files: dict[str, list[File]] = {_name_of(source.main): [source.main]}
    for file in source.others:
        files.setdefault(_name_of(file), []).append(file)
    metas = {name: _meta(source, name) for name in files}
    main, *agents = files
    return [
        _Log(main, MAIN, files[main], None),
        *(_Log(name, f"{AGENT_PREFIX}{metas[name].agent_id or name}", files[name], metas[name]) for name in agents),
    ]


def _name_of(file: File) -> str:
    """Return the session's id, which is the name of its folder; of a file that is elsewhere, its own name."""
    first, *more = file.name.replace("\\", "/").split("/")
    return first if more else first.rsplit(".", 1)[0]


def _meta(source: SourceFiles, name: str) -> SubAgentMeta:
    return fitting(SubAgentMeta, object_in((source.text(f"{name}/{META}") or "{}").encode("utf-8", "replace")))


def _settings(text: str | None) -> dict[str, str]:
    """Return the texts of the settings of a conversation."""
    try:
        chat = tomllib.loads(text or "").get("chat")
    except (ValueError, RecursionError):
        return {}
    return {name: value for name, value in chat.items() if type(value) is str} if isinstance(chat, dict) else {}


def _project(log: "_Log", settings: dict[str, str]) -> str | None:
    """Return the folder that the model was told; the settings shorten it (`~/project`)."""
    workspace = settings.get("workspace", "")
    return log.folder or (workspace if workspace.startswith("/") else None)


def _sub_agent(agent: "_Log", main: "_Log", agents: "Iterable[_Log]") -> SubAgent:
    meta = agent.meta or SubAgentMeta()
    starter = next((log for log in agents if log.name == meta.parent and log is not agent), main)
    calls = (
        block.id
        for turn in starter.conversation.turns()
        for block in turn.blocks
        if block.kind == "tool_use" and _starts(block, meta.agent_id)
    )
    return SubAgent(
        thread=agent.thread,
        parent_thread=starter.thread,
        tool_use_id=next(calls, None),
        kind=SUB_AGENT_TOOL,
        description=meta.agent_id,
    )


def _starts(block: Block, agent: str | None) -> bool:
    """Whether a tool call starts this sub-agent: its code calls a function with the sub-agent's name."""
    written = repr(block.input)
    return bool(agent) and SUB_AGENT_TOOL in f"{block.name} {written}" and f"{agent}" in written


# ---------------------------------------------------------------- one conversation


@dataclass(slots=True)
class _GptmeTurn(OpenTurn):
    provider: str = ""
    calls: dict[str, None] = field(default_factory=dict)  # ids of calls without a result, in order
    last_call: str | None = None  # the id of the call that ends the exchange


class _Log:
    """The messages of one conversation, in order."""

    def __init__(self, name: str, thread: str, files: list[File], meta: SubAgentMeta | None) -> None:
        self.name, self.thread, self.meta = name, thread, meta
        self.conversation = Conversation()
        self.folder: str | None = meta.workdir if meta else None  # that the model was told
        self._left: set[int] = set()  # places of exchanges that were undone
        self._compacts = False  # the next answer is the summary of a compaction
        for message, is_left in _messages(files):
            self._take(message, is_left=is_left)

    def exchanges(self) -> list[Exchange]:
        exchanges = self.conversation.as_exchanges()
        return [replace(exchange, left=exchange.number - 1 in self._left) for exchange in exchanges]

    def family_of(self, turn: OpenTurn) -> str:
        provider = turn.provider if isinstance(turn, _GptmeTurn) else ""
        return FAMILIES.get(provider, "openai")

    def _take(self, message: GptmeMessage, *, is_left: bool) -> None:
        about, at = message.about, message.at
        is_summary, self._compacts = self._compacts, message.role == "system" and about.begins_summary
        match message.role:
            case "assistant" if is_summary:
                self.conversation.compactions.append(Compaction(at=at, thread=self.thread))
            case "assistant":
                self._answer(message, about, at)
            case "user" if not (message.hide or message.content.startswith(REMINDER)):
                self.conversation.ask(message.content, at)
                if is_left:
                    self._left.add(len(self.conversation.exchanges) - 1)
            case "system" if not self._compacts:
                self._system(message, about, at)

    def _answer(self, message: GptmeMessage, about: GptmeMetadata, at: datetime | None) -> None:
        usage = message.usage()
        provider, _, model = (about.model or "").partition("/")
        turn = _GptmeTurn(thread=self.thread, model=about.served_model or model or provider or None, provider=provider)
        turn.complete = not message.content.endswith(CUT_BY_USER)
        turn.count(usage, None)  # whatever was not counted was billed, too
        turn.see(at)
        self.conversation.add(turn)
        self.conversation.current().end_reason = None  # an error before it was overcome
        for block in blocks_of(message, about):
            self.conversation.put(turn, block, at)
            if block.kind == "tool_use" and block.id:
                turn.calls[block.id] = None
                turn.last_call = block.id if block.name == COMPLETE else turn.last_call
        self.conversation.see(at)

    def _system(self, message: GptmeMessage, about: GptmeMetadata, at: datetime | None) -> None:
        """Take the result of a tool, an error, or what the model is told."""
        exchanges = self.conversation.exchanges
        if about.error or message.content.startswith(FAILED):
            self.conversation.end("failed", at)
        elif message.content == INTERRUPTED:
            self.conversation.end("cut", at)
        elif self.folder is None and _FOLDER_WORDS in message.content and (match := _FOLDER.search(message.content)):
            self.folder = match[1]
        elif exchanges and not message.hide:
            self._result(message, about, at)

    def _result(self, message: GptmeMessage, about: GptmeMetadata, at: datetime | None) -> None:
        """Add a tool's result. A tool may have several messages, which have the call's id. In files without ids, the
        message after a call is its result."""
        turns = self.conversation.exchanges[-1].turns
        last = turns[-1] if turns and isinstance(turns[-1], _GptmeTurn) else None
        call = message.call_id
        if call is None and last and "#" in (first := next(iter(last.calls), "")):
            call = first
        if call is None:
            return
        if last:
            if call in self.conversation.answered and _add_to_result(last, call, message.content):
                return
            last.calls.pop(call, None)
        result = base.result(call, message.content, name=about.tool, is_error=is_failure(message.content))
        self.conversation.result(result, at)
        if last and call == last.last_call:
            self.conversation.end("result", at)


def _add_to_result(turn: OpenTurn, call: str, text: str) -> bool:
    for at, block in enumerate(turn.blocks):
        if block.kind == "tool_result" and block.id == call:
            failed = block.is_error or is_failure(text)
            turn.blocks[at] = replace(block, text=f"{block.text}\n\n{text}", is_error=failed)
            return True
    return False


def _messages(files: list[File]) -> list[tuple[GptmeMessage, bool]]:
    """Return the messages of a conversation, each with whether it was undone.

    After a compaction, the whole conversation is in a file of its own. Other branches repeat what they share with it.
    Times do not tell the order: all prompts of a command line have the time at which it began.
    """
    main = next((file for file in files if file.name.endswith(CONVERSATION)), files[0])
    branches = [file for file in files if "/branches/" in file.name.replace("\\", "/")]
    merged = [(message, False) for message in messages_of(main)]
    for file in files:
        if file is not main and file not in branches:
            merged = _inserted(merged, [(message, False) for message in messages_of(file)])
    # The number of a branch is in its name. Of two that begin at the same message, the first one comes first.
    for file in sorted(branches, key=lambda file: (len(file.name), file.name), reverse=True):
        merged = _inserted([(message, True) for message in messages_of(file)], merged)
    return merged


def _inserted(
    messages: list[tuple[GptmeMessage, bool]], into: list[tuple[GptmeMessage, bool]]
) -> list[tuple[GptmeMessage, bool]]:
    """Insert messages behind those that they follow; leave out those that are there already."""
    places = {message.key: place for place, (message, _) in enumerate(into)}
    behind: dict[int, list[tuple[GptmeMessage, bool]]] = {}
    place = -1
    for message, is_left in messages:
        if message.key in places:
            place = places[message.key]
        else:
            behind.setdefault(place, []).append((message, is_left))
    groups = ([entry, *behind.get(place, ())] for place, entry in enumerate(into))
    return [*behind.get(-1, ()), *(entry for group in groups for entry in group)]
