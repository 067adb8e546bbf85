"""Gemini CLI chats: `tmp/<project>/chats/session-<time>-<id>.jsonl`, and `.json` of older versions, one document.

A chat is a log of changes: a line with an `id` is a message, or a newer state of one; `$set` changes the chat itself.
`$set.messages` replaces what the model will be sent, on every resume and compression, with copies that have lost their
tokens and tools; `$rewindTo` takes messages back. We keep what happened: nothing that was said and billed is removed
again, and a copy only fills in what is missing.

Calls of the model router are in no chat. Sub-agents have chats of their own in `chats/<session>/`.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.gemini_cli import PROJECT_FILE
from agent_logger.agents.objects import objects_of, time_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Block, Session, Usage
from agent_logger.providers.blocks import base
from agent_logger.providers.blocks.gemini import part_block
from agent_logger.providers.json_values import Json, fields_of, parsed, text_of
from agent_logger.providers.lenient import REFUSED, fitting
from agent_logger.providers.token_counts import TokenCounts

AGENT_NAME = "gemini-cli"
FIRST_MESSAGES = 10  # the client starts with messages that say where it is
# Every other line is one of these, and its neighbour has the time.
_TICK = re.compile(rb'\{"\$set":\{"lastUpdated":"[^"\\]*"\}\}')
_WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n\s*- (.+)")


class _About(msgspec.Struct):
    """The chat itself."""

    id: str = msgspec.field(name="sessionId", default="")
    summary: str | None = None
    started: str | None = msgspec.field(name="startTime", default=None)
    directories: list[str] | None = None


class _Thought(msgspec.Struct):
    subject: str | None = None
    description: str | None = None


class _Call(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    args: Any = None
    status: str | None = None
    result: list[Json] | None = None
    display: Any = msgspec.field(name="resultDisplay", default=None)
    timestamp: str | None = None


class _Message(msgspec.Struct):
    id: str = ""
    type: str = ""
    timestamp: str | None = None
    model: str | None = None
    content: Any = None  # a text, a part, or a list of both
    thoughts: list[_Thought] | None = None
    calls: list[_Call] | None = msgspec.field(name="toolCalls", default=None)
    tokens: Json | None = None

    @property
    def at(self) -> datetime | None:
        return time_of(self.timestamp)


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the files."""
    chat = _Chat(source.main, source)
    conversation = chat.conversation(MAIN)
    for file in source.others:
        other = _Chat(file, source)
        conversation.place(other.conversation(other.thread).turns())
    conversation.see(time_of(chat.about.started))
    return Session(
        id=chat.id,
        agent=AGENT_NAME,
        title=chat.about.summary or conversation.title(),
        project=_project(source, chat),
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
    )


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    main = _Chat(source.main, source)
    project = _project(source, main)
    for chat in (main, *(_Chat(file, source) for file in source.others)):
        for message in chat.messages:
            if message.tokens is None or message.type != "gemini":
                continue
            yield ModelResponse(
                family="gemini",
                message_id=message.id,
                model=message.model,
                usage=_usage(message.tokens),
                at=message.at,
                session=main.id,
                project=project,
                agent=AGENT_NAME,
                thread=MAIN if chat is main else chat.thread,
            )


class _Chat:
    """A chat file with all its changes applied."""

    def __init__(self, file: File, source: SourceFiles) -> None:
        self._fields: Json = {}
        self._states: dict[str, Json] = {}  # the latest of each message, in the order of their first
        for line in _document(file, source) if file.name.endswith(".json") else objects_of(file, _TICK):
            self._take(line)
        self.about = fitting(_About, self._fields)
        self.messages = [fitting(_Message, state) for state in self._states.values()]
        self.id = self.about.id or file.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]

    @property
    def thread(self) -> str:
        return f"agent:{self.id}"

    def _take(self, line: Json) -> None:
        if type(line.get("id")) is str:
            self._message(line)
            return
        changes = fields_of(line["$set"]) if "$set" in line else line
        copies = changes.pop("messages", None)
        if "startTime" in self._fields:
            changes.pop("startTime", None)  # a resume has its own
        self._fields.update(changes)
        for copy in copies if type(copies) is list else ():
            if type(copy) is dict and type(copy.get("id")) is str:
                self._copy(copy)

    def _message(self, message: Json) -> None:
        state = self._states.get(message["id"], {})
        first = state.get("timestamp")
        self._states[message["id"]] = {**state, **message, "timestamp": first or message.get("timestamp")}

    def _copy(self, message: Json) -> None:
        self._states[message["id"]] = {**message, **self._states.get(message["id"], {})}

    # ------------------------------------------------------------ what happened

    def conversation(self, thread: str) -> Conversation:
        conversed = Conversation()
        for message in self.messages:
            match message.type:
                case "user":
                    _ask(conversed, message)
                case "gemini":
                    _answer(conversed, message, thread)
        return conversed


def _ask(conversation: Conversation, message: _Message) -> None:
    content, at = message.content, message.at
    if type(content) is list and all(_is_answered(conversation, part) for part in content):
        return  # nearly all results are: they are stored with their calls too
    blocks = list(_content(content))
    for block in blocks:
        if block.kind == "tool_result":
            conversation.result(block, at)
    texts = [block.text for block in blocks if block.kind == "text"]
    if text := typed(texts) or ("[image]" if any(block.kind == "image" for block in blocks) else None):
        conversation.ask(text, at)


def _is_answered(conversation: Conversation, part: Any) -> bool:
    called = fields_of(fields_of(part).get("functionResponse")).get("id")
    return type(called) is str and called in conversation.answered


def _answer(conversation: Conversation, message: _Message, thread: str) -> None:
    at, calls = message.at, message.calls or ()
    turn = OpenTurn(thread=thread, message_id=message.id, model=message.model)
    if message.tokens is not None:
        turn.count(_usage(message.tokens), message.id)
    turn.see(at)
    conversation.add(turn)
    conversation.see(at)
    thoughts = ("\n".join(filter(None, (each.subject, each.description))) for each in message.thoughts or ())
    for block in [*(base.thinking(text) for text in thoughts if text), *_content(message.content)]:
        if not (calls and block.kind == "tool_use"):  # a copy has them among its parts
            conversation.put(turn, block, at)
    for call in calls:
        conversation.put(turn, Block(kind="tool_use", id=call.id, name=call.name, input=call.args), at)
        if result := _result(call):
            conversation.result(result, time_of(call.timestamp) or at)


def _content(content: Any) -> Iterator[Block]:
    """Return the blocks of a message. A text is short for one part, a part for a list of it."""
    for part in [content] if type(content) is dict or (type(content) is str and content) else _list(content):
        if type(part) is str:
            yield Block(kind="text", text=part)
        elif type(part) is dict:
            yield part_block(part)


def _result(call: _Call) -> Block | None:
    """Return what a tool gave; None if it was never run, or is still running."""
    blocks = (part_block(part) for part in call.result or ())
    block = next((answer for answer in blocks if answer.kind == "tool_result"), None)
    failed = call.status in ("error", "cancelled")
    if block is None and not failed:
        return None
    return Block(
        kind="tool_result",
        text=block.text if block else text_of(call.display) or "",
        id=call.id,
        name=call.name,
        is_error=failed or bool(block and block.is_error),
        raw=block.raw if block else None,
    )


def _usage(tokens: Json | None) -> Usage | None:
    """Convert token counts. `input` includes what was read from the cache; thoughts are billed as output."""
    counts = TokenCounts(tokens)
    cached = counts("cached")
    input_tokens, answered = counts("input") + counts("tool"), counts("output") + counts("thoughts")
    return counts.usage(input_tokens - cached, answered, cached)


def _project(source: SourceFiles, chat: _Chat) -> str | None:
    if folder := (source.text(PROJECT_FILE) or "").strip():
        return folder
    if chat.about.directories:
        return chat.about.directories[0]
    for message in chat.messages[:FIRST_MESSAGES]:
        for block in _content(message.content):
            if block.kind == "text" and (match := _WORKSPACE.search(block.text)):
                return match[1]
    return None


def _document(file: File, source: SourceFiles) -> Iterable[Json]:
    """Yield a chat of an older version as lines: its fields, then its messages."""
    try:
        chat = parsed(source.text(file.name) or "")
    except REFUSED:
        return
    fields = fields_of(chat)
    yield {key: value for key, value in fields.items() if key not in ("messages", "id", "$set")}
    yield from (message for message in _list(fields.get("messages")) if type(message) is dict)


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []
