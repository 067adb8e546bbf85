"""Gemini CLI chats: `tmp/<project>/chats/session-<time>-<id>.jsonl`, and `.json` of older versions, one document.

A chat is a log of changes: a line with an `id` is a message, or a newer state of one; `$set` changes the chat itself.
`$set.messages` replaces what the model will be sent, on every resume and compression, with copies that have lost their
tokens and tools; `$rewindTo` takes messages back. We keep what happened: nothing that was said and billed is taken out
again, and a copy only fills in what is missing.

Calls of the model router are in no chat. Sub-agents have chats of their own in `chats/<session>/`.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from agent_logger.formats.conversation import Conversation, OpenTurn
from agent_logger.formats.fitting import REFUSED
from agent_logger.formats.human_input import typed
from agent_logger.formats.objects import objects_of, time_of
from agent_logger.formats.responses import ModelResponse
from agent_logger.formats.source import File, Source
from agent_logger.formats.wire_log.blocks import part_block
from agent_logger.session import MAIN, Block, Session, Usage
from agent_logger.wire.answer import Json, count, fields_of, parsed, text_of

AGENT = "gemini-cli"
PROJECT_FILE = ".project_root"  # in the folder above the chats
FIRST_MESSAGES = 10  # the client tells the model at once where it is
_TICK = re.compile(
    rb'\{"\$set":\{"lastUpdated":"[^"\\]*"\}\}'
)  # every other line is one, and its neighbour has the time
_WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n\s*- (.+)")


def session_of(source: Source) -> Session:
    """Whatever is in the files, nothing is raised."""
    chat = _Chat(source.main, source)
    told = chat.conversation(MAIN)
    for file in source.others:
        other = _Chat(file, source)
        told.place(other.conversation(other.thread).turns())
    told.see(chat.started)
    return Session(
        id=chat.id,
        agent=AGENT,
        title=text_of(chat.fields.get("summary")) or told.title(),
        project=_project(source, chat),
        started=told.started,
        ended=told.ended,
        exchanges=told.told(),
    )


def responses_of(source: Source) -> Iterator[ModelResponse]:
    main = _Chat(source.main, source)
    project = _project(source, main)
    for chat in (main, *(_Chat(file, source) for file in source.others)):
        for message in chat.messages.values():
            usage = _usage(message.get("tokens"))
            if usage is None or message.get("type") != "gemini":
                continue
            yield ModelResponse(
                family="gemini",
                message_id=text_of(message.get("id")),
                request_id=None,
                model=text_of(message.get("model")),
                usage=usage,
                tier=None,
                at=time_of(message.get("timestamp")),
                session=main.id,
                project=project,
                agent=AGENT,
                thread=MAIN if chat is main else chat.thread,
                final=True,
                reported_cost_usd=None,
                witness="transcript",
            )


class _Chat:
    """One file, all its changes made."""

    def __init__(self, file: File, source: Source) -> None:
        self.fields: Json = {}  # of the chat itself
        self.messages: dict[str, Json] = {}  # the latest state of each, in the order of their first
        self._name = file.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        for line in _document(file, source) if file.name.endswith(".json") else objects_of(file, _TICK):
            self._take(line)

    @property
    def id(self) -> str:
        return text_of(self.fields.get("sessionId")) or self._name

    @property
    def thread(self) -> str:
        return f"agent:{self.id}"

    @property
    def started(self) -> datetime | None:
        return time_of(self.fields.get("startTime"))

    def _take(self, line: Json) -> None:
        if type(line.get("id")) is str:
            self._message(line)
            return
        changes = fields_of(line["$set"]) if "$set" in line else line
        copies = changes.pop("messages", None)
        if "startTime" in self.fields:
            changes.pop("startTime", None)  # a resume tells its own
        self.fields.update(changes)
        for copy in copies if type(copies) is list else ():
            if type(copy) is dict and type(copy.get("id")) is str:
                self._copy(copy)

    def _message(self, message: Json) -> None:
        known = self.messages.get(message["id"], {})
        first = known.get("timestamp")
        self.messages[message["id"]] = {**known, **message, "timestamp": first or message.get("timestamp")}

    def _copy(self, message: Json) -> None:
        self.messages[message["id"]] = {**message, **self.messages.get(message["id"], {})}

    # ------------------------------------------------------------ what happened

    def conversation(self, thread: str) -> Conversation:
        told = Conversation()
        for message in self.messages.values():
            at = time_of(message.get("timestamp"))
            match message.get("type"):
                case "user":
                    _ask(told, message, at)
                case "gemini":
                    _answer(told, message, at, thread)
        return told


def _ask(told: Conversation, message: Json, at: datetime | None) -> None:
    content = message.get("content")
    if type(content) is list and all(_is_answered(told, part) for part in content):
        return  # as nearly all results are: they stand with their calls too
    blocks = list(_content(content))
    for block in blocks:
        if block.kind == "tool_result":
            told.result(block, at)
    texts = [block.text for block in blocks if block.kind == "text"]
    if text := typed(texts) or ("[image]" if any(block.kind == "image" for block in blocks) else None):
        told.ask(text, at)


def _is_answered(told: Conversation, part: Any) -> bool:
    called = fields_of(fields_of(part).get("functionResponse")).get("id")
    return type(called) is str and told.has_result(called)


def _answer(told: Conversation, message: Json, at: datetime | None, thread: str) -> None:
    turn = OpenTurn(
        thread=thread,
        message_id=text_of(message.get("id")),
        model=text_of(message.get("model")),
        usage=_usage(message.get("tokens")),
    )
    turn.see(at)
    told.add(turn)
    told.see(at)
    calls = [call for call in _list(message.get("toolCalls")) if type(call) is dict]
    for block in [*_thoughts(message.get("thoughts")), *_content(message.get("content"))]:
        if not (calls and block.kind == "tool_use"):  # a copy has them among its parts
            told.put(turn, block, at)
    for call in calls:
        use = Block(
            kind="tool_use",
            id=text_of(call.get("id")),
            name=text_of(call.get("name")),
            input=call.get("args"),
        )
        told.put(turn, use, at)
        if result := _result(call):
            told.result(result, time_of(call.get("timestamp")) or at)


def _thoughts(thoughts: Any) -> Iterator[Block]:
    for thought in _list(thoughts):
        fields = fields_of(thought)
        texts = (text_of(fields.get(name)) for name in ("subject", "description"))
        if text := "\n".join(filter(None, texts)):
            yield Block(kind="thinking", text=text)


def _content(content: Any) -> Iterator[Block]:
    """A text is short for one part, a part for a list of it."""
    if type(content) is str:
        if content:
            yield Block(kind="text", text=content)
        return
    for part in [content] if type(content) is dict else _list(content):
        if type(part) is str:
            yield Block(kind="text", text=part)
        elif type(part) is dict:
            yield part_block(part)


def _result(call: Json) -> Block | None:
    """What a tool gave; none if it was never run, or still runs."""
    found = (part_block(part) for part in _list(call.get("result")) if type(part) is dict)
    block = next((it for it in found if it.kind == "tool_result"), None)
    failed = call.get("status") in ("error", "cancelled")
    if block is None and not failed:
        return None
    shown = text_of(call.get("resultDisplay")) or ""
    return Block(
        kind="tool_result",
        text=block.text if block else shown,
        id=text_of(call.get("id")),
        name=text_of(call.get("name")),
        is_error=failed or bool(block and block.is_error),
        raw=block.raw if block else None,
    )


def _usage(tokens: Any) -> Usage | None:
    """`input` holds what came from the cache; thoughts are billed as output."""
    if type(tokens) is not dict:
        return None
    cached = count(tokens, "cached")
    return Usage(
        input_tokens=max(0, count(tokens, "input") + count(tokens, "tool") - cached),
        output_tokens=count(tokens, "output") + count(tokens, "thoughts"),
        cache_read_tokens=cached,
    )


def _project(source: Source, chat: _Chat) -> str | None:
    if told := (source.text(PROJECT_FILE) or "").strip():
        return told
    if (folders := _list(chat.fields.get("directories"))) and type(folders[0]) is str:
        return folders[0]
    for message in islice(chat.messages.values(), FIRST_MESSAGES):
        for block in _content(message.get("content")):
            if block.kind == "text" and (found := _WORKSPACE.search(block.text)):
                return found[1]
    return None


def _document(file: File, source: Source) -> Iterable[Json]:
    """A chat of an older version: its fields, then its messages, as lines would tell them."""
    try:
        chat = parsed(source.text(file.name) or "")
    except REFUSED:
        return
    fields = fields_of(chat)
    yield {key: value for key, value in fields.items() if key not in ("messages", "id", "$set")}
    yield from (it for it in _list(fields.get("messages")) if type(it) is dict)


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []
