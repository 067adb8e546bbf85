"""opencode's sessions, from the rows of its database, or of the files before it: `session`, `message`, `part`.

A message of the assistant's is one or more steps, each a response of a model with its tokens. Sub-agents are sessions
that name their parent. A fork is a session with copies of its parent's messages under new ids, at the old times: those
are cut, for they were billed in the parent. Neither the vendor's ids of responses nor the calls for titles are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent_logger.formats.conversation import Conversation, OpenTurn
from agent_logger.formats.human_input import typed
from agent_logger.formats.objects import object_in, time_of_ms
from agent_logger.formats.responses import ModelResponse
from agent_logger.formats.source import File, Source
from agent_logger.session import MAIN, Block, Compaction, Session, Usage
from agent_logger.wire.answer import Json, count, fields_of, text_of
from agent_logger.wire.jsonl import Entry

AGENT = "opencode"
FAMILIES = {"google": "gemini", "google-vertex": "gemini", "google-vertex-anthropic": "anthropic"}


@dataclass(slots=True)
class _Message:
    id: str
    at: datetime | None
    fields: Json
    parts: list[tuple[datetime | None, Json]] = field(default_factory=list)

    @property
    def completed(self) -> datetime | None:
        return time_of_ms(fields_of(self.fields.get("time")).get("completed"))


@dataclass(slots=True)
class _Step:
    """One response of a model, as far as it came."""

    message: _Message
    number: int  # in the message
    parts: list[tuple[datetime | None, Json]] = field(default_factory=list)
    finish: Json | None = None

    @property
    def id(self) -> str:
        return self.message.id if self.number == 1 else f"{self.message.id}#{self.number}"

    @property
    def usage(self) -> Usage | None:
        """Of a step without an end, what the message tells, if that is anything."""
        if self.finish is not None:
            return _usage(self.finish.get("tokens"))
        told = _usage(self.message.fields.get("tokens")) if self.number == 1 else None
        return told if told and (told.context_tokens or told.output_tokens) else None

    @property
    def cost(self) -> float | None:
        """opencode writes 0 for what it has no price of."""
        cost = fields_of(self.finish).get("cost")
        return cost if type(cost) is float and cost > 0 else None


def session_of(source: Source) -> Session:
    """Whatever is in the rows, nothing is raised."""
    main = _Rows(source.main)
    told = main.conversation(MAIN)
    for file in source.others:
        other = _Rows(file)
        inner = other.conversation(other.thread)
        told.place(inner.turns())
        told.compactions += inner.compactions
    told.see(main.started)
    return Session(
        id=main.id,
        agent=AGENT,
        title=text_of(main.fields.get("title")) or told.title(),
        project=main.project,
        started=told.started,
        ended=told.ended,
        exchanges=told.told(),
        parent=main.forked_from or text_of(main.fields.get("parent_id")),
        compactions=told.compactions,
    )


def responses_of(source: Source) -> Iterator[ModelResponse]:
    main: _Rows | None = None
    for file in (source.main, *source.others):
        rows = _Rows(file)
        main = main or rows
        for step in rows.steps():
            if step.usage is None:
                continue
            provider = text_of(step.message.fields.get("providerID")) or ""
            yield ModelResponse(
                family=FAMILIES.get(provider, provider),
                message_id=None,
                request_id=None,
                model=text_of(step.message.fields.get("modelID")),
                usage=step.usage,
                tier=None,
                at=step.message.at,
                session=main.id,
                project=main.project,
                agent=AGENT,
                thread=MAIN if rows is main else rows.thread,
                final=step.finish is not None,
                reported_cost_usd=step.cost,
                witness="transcript",
            )


class _Rows:
    """The rows of one session, put together."""

    def __init__(self, file: File) -> None:
        self.fields: Json = {}  # of the session
        self.messages: dict[str, _Message] = {}
        self._name = file.name
        for entry in file.entries:
            if isinstance(entry, Entry) and type(entry.value) is dict:
                self._take(entry.value)

    @property
    def id(self) -> str:
        return text_of(self.fields.get("id")) or self._name

    @property
    def thread(self) -> str:
        return f"agent:{self.id}"

    @property
    def project(self) -> str | None:
        """Before 0.6 only the messages of the assistant told it."""
        paths = (fields_of(it.fields.get("path")).get("cwd") for it in self.messages.values())
        return text_of(self.fields.get("directory")) or next(filter(None, map(text_of, paths)), None)

    @property
    def started(self) -> datetime | None:
        return time_of_ms(self.fields.get("time_created"))

    @property
    def forked_from(self) -> str | None:
        return text_of(self.fields.get("forked_from"))

    def _take(self, row: Json) -> None:
        table, name = row.get("table"), text_of(row.get("id"))
        if table == "session":
            self.fields = row
        elif table == "message" and name:
            at = time_of_ms(row.get("time_created"))
            if not self._is_copy(at):
                self.messages[name] = _Message(name, at, _data(row))
        elif table == "part" and (message := self.messages.get(text_of(row.get("message_id")) or "")):
            part = _data(row)
            message.parts.append((_time_of_part(message, row, part), part))

    def _is_copy(self, at: datetime | None) -> bool:
        return bool(self.forked_from and at and self.started and at < self.started)

    def steps(self) -> Iterator[_Step]:
        for message in self.messages.values():
            if message.fields.get("role") == "assistant":
                yield from _steps(message)

    def conversation(self, thread: str) -> Conversation:
        told = Conversation()
        for message in self.messages.values():
            if message.fields.get("role") == "assistant":
                for step in _steps(message):
                    _answer(told, step, thread)
                _end(told, message)
            else:
                told.compactions += _compactions(message, thread)
                if text := _typed(message):
                    told.ask(text, message.at)
        return told


def _time_of_part(message: _Message, row: Json, part: Json) -> datetime | None:
    """A row may be younger than what it tells: those that were made of files all have the time when they were made."""
    started = time_of_ms(fields_of(part.get("time")).get("start"))
    written = time_of_ms(row.get("time_created"))
    completed = message.completed
    return started or (min(written, completed) if written and completed else written)


def _steps(message: _Message) -> Iterator[_Step]:
    step = _Step(message, 1)
    for at, part in message.parts:
        kind = part.get("type")
        if kind == "step-start" and step.parts:  # the one before has no end
            yield step
            step = _Step(message, step.number + 1)
        elif kind == "step-finish":
            step.finish = part
            yield step
            step = _Step(message, step.number + 1)
        elif kind != "step-start":
            step.parts.append((at, part))
    if step.parts or (step.number == 1 and step.usage):
        yield step


def _answer(told: Conversation, step: _Step, thread: str) -> None:
    fields = step.message.fields
    turn = OpenTurn(
        thread=thread,
        message_id=step.id,
        model=text_of(fields.get("modelID")),
        stop_reason=text_of(fields_of(step.finish).get("reason")),
        usage=step.usage,
        complete=step.finish is not None,
    )
    turn.see(step.message.at)
    told.add(turn)
    told.see(step.message.at)
    for at, part in step.parts:
        for block in _blocks(part):
            told.put(turn, block, block.at or at)


def _end(told: Conversation, message: _Message) -> None:
    told.see(message.completed)
    if message.fields.get("error"):
        told.current()
        aborted = fields_of(message.fields["error"]).get("name") == "MessageAbortedError"
        told.end("cut" if aborted else "failed", message.completed)


def _compactions(message: _Message, thread: str) -> Iterator[Compaction]:
    for _, part in message.parts:
        if part.get("type") == "compaction":
            auto = part.get("auto")
            trigger = ("auto" if auto else "manual") if type(auto) is bool else None
            yield Compaction(at=message.at, thread=thread, trigger=trigger)


def _typed(message: _Message) -> str | None:
    """What a person typed; opencode marks the texts that it adds itself."""
    parts = [part for _, part in message.parts if part.get("synthetic") is not True]
    texts = [text_of(part.get("text")) or "" for part in parts if part.get("type") == "text"]
    files = any(part.get("type") == "file" for part in parts)
    return typed(texts) or ("[file]" if files else None)


def _blocks(part: Json) -> Iterator[Block]:
    match part.get("type"):
        case "text":
            yield Block(kind="text", text=text_of(part.get("text")) or "")
        case "reasoning":
            yield Block(kind="thinking", text=text_of(part.get("text")) or "")
        case "tool":
            yield from _tool(part)
        case "file":
            mime = text_of(part.get("mime")) or ""
            yield Block(kind="image" if mime.startswith("image/") else "other", raw=part)
        case _:
            yield Block(kind="other", raw=part)


def _tool(part: Json) -> Iterator[Block]:
    state, called, name = fields_of(part.get("state")), text_of(part.get("callID")), text_of(part.get("tool"))
    times = fields_of(state.get("time"))
    started, ended = time_of_ms(times.get("start")), time_of_ms(times.get("end"))
    yield Block(kind="tool_use", id=called, name=name, input=state.get("input"), at=started)
    if state.get("status") in ("completed", "error"):
        failed = state["status"] == "error"
        text = text_of(state.get("error" if failed else "output")) or ""
        yield Block(kind="tool_result", id=called, name=name, text=text, is_error=failed, at=ended)


def _usage(tokens: Any) -> Usage | None:
    if type(tokens) is not dict:
        return None
    cache = fields_of(tokens.get("cache"))
    asked, answered, thought = (count(tokens, name) for name in ("input", "output", "reasoning"))
    read, written = count(cache, "read"), count(cache, "write")
    if thought and count(tokens, "total") == asked + answered + read + written:
        thought = 0  # is in `output` already
    return Usage(
        input_tokens=asked,
        output_tokens=answered + thought,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _data(row: Json) -> Json:
    data = row.get("data")
    return object_in(data) if isinstance(data, bytes) else {}
