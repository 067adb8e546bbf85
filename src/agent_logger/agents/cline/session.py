"""Cline's sessions, from the documents of one session.

- A response has its usage in `metrics`, with cached tokens in `inputTokens`. Zeros stand for a response that was cut,
  of which Cline does not know the usage.
- An input of a person is wrapped in `<user_input>`. Results of tools are messages of the user, too.
- What `<id>.json` sums up over all runs, `metadata.usage` and `aggregateUsage`, is not needed: every response is there.
- Ids of messages are Cline's own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.objects import time_of, time_of_ms
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import AGENT_PREFIX, MAIN, Block, Compaction, Session, SubAgent, Turn, Usage
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import TokenCounts

AGENT_NAME = "cline"
MESSAGES = ".messages.json"
MOST_USD = 1e9  # a higher cost is a mistake
COMPACTION = "compaction_summary"  # the kind of the message that stands for those before it
SPAWN_TOOL = "spawn_agent"
# The vendors of models, by Cline's names of providers. Others are known by Cline's name.
FAMILIES = {
    "openai-compatible": "openai",
    "openai-native": "openai",
    "openai-codex": "openai",
    "vertex": "gemini",
    "google": "gemini",
}
_INPUT = re.compile(r"\s*<user_input\b[^>]*>(.*?)</user_input>", re.DOTALL)


class _Origin(msgspec.Struct):
    parent: str | None = msgspec.field(name="parentThreadId", default=None)


class _Head(msgspec.Struct):
    """The document of messages, without these."""

    id: str | None = msgspec.field(name="sessionId", default=None)
    origin: _Origin | None = None


class _About(msgspec.Struct):
    """The document that describes the session."""

    session_id: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    status: str | None = None
    cwd: str | None = None
    workspace_root: str | None = None
    prompt: str | None = None
    metadata: Json | None = None


class _Model(msgspec.Struct):
    id: str | None = None
    provider: str | None = None


class _Metadata(msgspec.Struct):
    role: str | None = msgspec.field(name="displayRole", default=None)
    kind: str | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    role: str | None = None
    content: Any = None
    ts: Any = None
    model: _Model | None = msgspec.field(name="modelInfo", default=None)
    metrics: Json | None = None
    metadata: _Metadata | None = None

    @property
    def at(self) -> datetime | None:
        return time_of_ms(self.ts)

    @property
    def is_response(self) -> bool:
        """Whether a model said it: Cline notes its own errors as messages of the assistant's."""
        return self.role == "assistant" and (self.metadata is None or self.metadata.role is None)

    def counted(self) -> "_Counted":
        """What the response took."""
        usage = _usage(self.metrics)
        has_any = usage is not None and bool(usage.context_tokens or usage.output_tokens)
        return _Counted(usage if has_any else None, is_unread=usage is None and bool(self.metrics))

    @property
    def cost(self) -> float | None:
        """The cost in dollars; Cline writes 0 where it has no price."""
        cost = fields_of(self.metrics).get("cost")
        return float(cost) if isinstance(cost, int | float) and 0 < cost < MOST_USD else None


class _Counted(NamedTuple):
    usage: Usage | None
    is_unread: bool  # there are counts, which are not understood

    @property
    def is_cut(self) -> bool:
        """Whether the response has no usage, because it did not end."""
        return self.usage is None and not self.is_unread


@dataclass(slots=True)
class _ClineTurn(OpenTurn):
    error: str | None = None

    def as_turn(self) -> Turn:
        return replace(OpenTurn.as_turn(self), error=self.error)


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the documents."""
    main, agents, about = _documents(source)
    conversation = main.conversation(MAIN)
    for agent in agents:
        inner = agent.conversation(agent.thread)
        conversation.place(inner.turns())
        conversation.compactions += inner.compactions
    for time in (about.started_at, about.ended_at):
        conversation.see(time_of(time))
    if about.prompt and not conversation.exchanges:
        conversation.ask(about.prompt, time_of(about.started_at))
    last = conversation.exchanges[-1] if conversation.exchanges else None
    if last and not last.turns and about.status in ENDS:
        last.end_reason = ENDS[about.status]
    title = fields_of(about.metadata).get("title")
    return Session(
        id=main.id or about.session_id or main.name,
        agent=AGENT_NAME,
        title=(title if type(title) is str else None) or conversation.title(),
        project=about.cwd or about.workspace_root,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        agents=list(_started(main, agents)),
        compactions=conversation.compactions,
    )


# The end of an exchange without a response, by the status of the session.
ENDS = {"failed": "failed", "completed": "failed", "cancelled": "cut"}


def parent_of(source: SourceFiles) -> str | None:
    return None


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    main, agents, about = _documents(source)
    session = main.id or about.session_id or main.name
    for document in (main, *agents):
        for message in document.responses:
            counted = message.counted()
            if counted.is_cut:
                continue
            model = message.model or _Model()
            yield ModelResponse(
                family=FAMILIES.get(model.provider or "", model.provider or ""),
                model=model.id,
                usage=counted.usage,
                at=message.at,
                session=session,
                project=about.cwd or about.workspace_root,
                agent=AGENT_NAME,
                thread=MAIN if document is main else document.thread,
                reported_cost_usd=message.cost,
            )


def _documents(source: SourceFiles) -> "tuple[_Messages, list[_Messages], _About]":
    """Return the messages of the session, those of its sub-agents, and what describes it."""
    files = [source.main, *source.others]
    about = next((_about(file) for file in files if not file.name.endswith(MESSAGES)), _About())
    agents = [_Messages(file) for file in source.others if file.name.endswith(MESSAGES)]
    return _Messages(source.main), agents, about


def _values(file: File) -> Iterator[Json]:
    for entry in file.entries:
        value = entry.value if isinstance(entry, JsonEntry) else None
        if type(value) is dict:
            yield value


def _about(file: File) -> _About:
    return fitting(_About, next(_values(file), {}))


class _Messages:
    """A document of messages."""

    def __init__(self, file: File) -> None:
        self.name = file.name.rsplit("/", 1)[-1].removesuffix(".json").removesuffix(".messages")
        is_about = not file.name.endswith(MESSAGES)  # the document of messages is missing
        head, *messages = list(_values(file)) or [{}]
        self._head = fitting(_Head, {} if is_about else head)
        self.messages = [] if is_about else [fitting(_Message, message) for message in messages]

    @property
    def id(self) -> str | None:
        return self._head.id

    @property
    def thread(self) -> str:
        """The thread of a sub-agent, which is the last part of its session's name."""
        return AGENT_PREFIX + (self.id or self.name).rpartition("__")[2]

    @property
    def parent_thread(self) -> str:
        parent = self._head.origin.parent if self._head.origin else None
        _, is_agent, name = (parent or "").rpartition("__")
        return AGENT_PREFIX + name if is_agent else MAIN

    @property
    def responses(self) -> list[_Message]:
        return [message for message in self.messages if message.is_response]

    @property
    def task(self) -> str | None:
        """What the agent was asked first."""
        first = next((message for message in self.messages if message.role == "user"), None)
        return _typed(first) if first else None

    def calls(self) -> Iterator[tuple[str, str]]:
        """Yield the id and the task of each call that starts a sub-agent."""
        for message in self.responses:
            for part in base.parts_of(message.content):
                call, task = part.get("id"), fields_of(part.get("input")).get("task")
                if part.get("name") == SPAWN_TOOL and type(call) is str and type(task) is str:
                    yield call, task.strip()

    def conversation(self, thread: str) -> Conversation:
        conversed = Conversation()
        for message in self.messages:
            if message.is_response:
                _answer(conversed, message, thread)
            elif message.role == "assistant":
                _note(conversed, message)
            elif message.role == "user":
                _take_input(conversed, message, thread)
        return conversed


def _answer(conversation: Conversation, message: _Message, thread: str) -> None:
    blocks, counted = list(_blocks(message.content)), message.counted()
    if not blocks and counted.is_cut:
        return
    turn = _ClineTurn(thread=thread, message_id=message.id, model=message.model.id if message.model else None)
    turn.usage, turn.unread_usage, turn.complete = counted.usage, counted.is_unread, not counted.is_cut
    turn.see(message.at)
    conversation.add(turn)
    conversation.see(message.at)
    for block in blocks:
        conversation.put(turn, block, message.at)


def _note(conversation: Conversation, message: _Message) -> None:
    """Take an error that Cline shows: it ends the exchange, unless a response follows."""
    exchange = conversation.current()
    conversation.see(message.at)
    exchange.see(message.at)
    last = exchange.turns[-1] if exchange.turns else None
    if message.metadata and message.metadata.role == "error":
        exchange.end_reason = "failed"
        if isinstance(last, _ClineTurn) and not last.complete:
            last.error = base.joined_text(message.content) or None


def _take_input(conversation: Conversation, message: _Message, thread: str) -> None:
    results = [part for part in base.parts_of(message.content) if part.get("type") == "tool_result"]
    for part in results:
        conversation.result(_result(part), message.at)
    if message.metadata and message.metadata.kind == COMPACTION:
        conversation.compactions.append(Compaction(at=message.at, thread=thread))
    elif (text := _typed(message)) and not (message.metadata and (message.metadata.role or message.metadata.kind)):
        conversation.ask(text, message.at)


def _typed(message: _Message) -> str | None:
    blocks = list(_blocks(message.content))
    texts = [block.text for block in blocks if block.kind == "text"]
    wrapped = [text for block in texts for text in _INPUT.findall(block)]
    return typed(wrapped or texts) or ("[image]" if any(block.kind == "image" for block in blocks) else None)


def _blocks(content: Any) -> Iterator[Block]:
    for part in [{"type": "text", "text": content}] if type(content) is str else base.parts_of(content):
        text = part.get("text")
        match part.get("type"):
            case "text":
                yield Block(kind="text", text=text if type(text) is str else "")
            case "thinking":
                thought = part.get("thinking")
                yield Block(kind="thinking", text=thought if type(thought) is str else "")
            case "tool_use":
                yield Block(kind="tool_use", id=_text(part, "id"), name=_text(part, "name"), input=part.get("input"))
            case "image":
                yield Block(kind="image", raw=part)
            case "tool_result":
                pass
            case _:
                yield Block(kind="other", raw=part)


def _text(part: Json, name: str) -> str | None:
    value = part.get(name)
    return value if type(value) is str else None


def _result(part: Json) -> Block:
    """Return the result of a tool call. It may hold several, one of each command or file."""
    content = part.get("content")
    items = list(base.parts_of(content))
    failed = part.get("is_error") is True or any(item.get("success") is False for item in items)
    return Block(
        kind="tool_result",
        id=_text(part, "tool_use_id"),
        name=_text(part, "name"),
        text=content if type(content) is str else "\n".join(map(_item_text, items)),
        is_error=failed,
        raw=content if len(items) > 1 or any("success" not in item for item in items) else None,
    )


def _item_text(item: Json) -> str:
    values = (item.get(name) for name in ("result", "text", "error", "content"))
    return next((value for value in values if type(value) is str), "")


def _started(main: _Messages, agents: list[_Messages]) -> Iterator[SubAgent]:
    """Pair sub-agents with the calls that started them: these have the same task, in the same order."""
    calls = [(call, task) for document in (main, *agents) for call, task in document.calls()]
    for agent in agents:
        task = (agent.task or "").strip()
        call = next((pair for pair in calls if pair[1] == task), None)
        if call:
            calls.remove(call)
        yield SubAgent(
            thread=agent.thread,
            parent_thread=agent.parent_thread,
            tool_use_id=call[0] if call else None,
            kind="subagent",
            description=task.split("\n")[0] or None,
        )


def _usage(metrics: Json | None) -> Usage | None:
    counts = TokenCounts(metrics)
    read, written = counts("cacheReadTokens"), counts("cacheWriteTokens")
    return counts.usage(counts("inputTokens") - read - written, counts("outputTokens"), read, written)
