"""opencode's sessions, from the rows of its database, or of the files before it: `session`, `message`, `part`.

A message of the assistant's is one or more steps, each a response of a model with its tokens. Sub-agents are sessions
that name their parent. A fork is a session with copies of its parent's messages under new ids, at the old times: those
are cut, because they were billed in the parent. opencode keeps neither the vendor's ids of responses nor the calls for
titles.

Programs that continue opencode's code have the same rows: `OpencodeSessions` reads them, too. The forks of one may also
copy sub-agents; then all copies are kept, and the ledger recognises them by time and content.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.objects import object_as, object_in, time_of_ms
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import AGENT_PREFIX, MAIN, Block, Compaction, Session, SubAgent, Usage
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import TokenCounts

# The title before a model, or the user, chose one.
_PLACEHOLDER = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT[\d:.]+Z(?: \(fork #\d+\))*")
TASK = "task"  # the tool that starts a sub-agent
FAMILIES = {"google": "gemini", "google-vertex": "gemini", "google-vertex-anthropic": "anthropic"}


class _Row(msgspec.Struct):
    """A row of any of the three tables."""

    table: str = ""
    id: str | None = None
    message_id: str | None = None  # a field of a part
    time_created: Any = None
    title: str | None = None  # fields of a session: this and the following
    directory: str | None = None
    parent_id: str | None = None
    forked_from: str | None = None

    @property
    def at(self) -> datetime | None:
        return time_of_ms(self.time_created)


class _Times(msgspec.Struct):
    start: Any = None  # milliseconds, all of them
    end: Any = None
    completed: Any = None


class _Folder(msgspec.Struct):
    cwd: str | None = None


class _Error(msgspec.Struct):
    name: str | None = None


class _MessageData(msgspec.Struct):
    """What the JSON of a message says."""

    role: str | None = None
    model: str | None = msgspec.field(name="modelID", default=None)
    provider: str | None = msgspec.field(name="providerID", default=None)
    tokens: Json | None = None
    path: _Folder | None = None
    time: _Times | None = None
    error: Any = None


class _ToolMetadata(msgspec.Struct):
    exit: Any = None  # of a command: its exit code, or null if it was ended
    session: str | None = msgspec.field(name="sessionId", default=None)  # of a sub-agent; before 1.0, none


class _Task(msgspec.Struct):
    """The input of a tool that starts a sub-agent."""

    description: str | None = None
    prompt: str | None = None
    kind: str | None = msgspec.field(name="subagent_type", default=None)


class _State(msgspec.Struct):
    """The state of a tool."""

    status: str | None = None
    input: Any = None
    output: str | None = None
    error: str | None = None
    time: _Times | None = None
    metadata: _ToolMetadata | None = None

    @property
    def failed(self) -> bool:
        """Whether the tool failed. A command that exits with a code other than 0 is `completed`."""
        code = self.metadata.exit if self.metadata else None
        return self.status == "error" or (type(code) is int and code != 0)


class _Part(msgspec.Struct):
    """What the JSON of a part says."""

    type: str | None = None
    text: str | None = None
    synthetic: bool | None = None
    auto: bool | None = None  # a field of a compaction
    mime: str | None = None  # a field of a file
    tool: str | None = None
    call: str | None = msgspec.field(name="callID", default=None)
    state: _State | None = None
    time: _Times | None = None
    reason: str | None = None  # fields of the end of a step: this and the following
    tokens: Json | None = None
    cost: Any = None


class _BilledPart(msgspec.Struct):
    """What the JSON of a part says of what was billed."""

    type: str | None = None
    tokens: Json | None = None
    cost: Any = None


_message_decoder, _part_decoder, _billed_part_decoder = map(msgspec.json.Decoder, (_MessageData, _Part, _BilledPart))


@dataclass(slots=True)
class _Piece:
    """A part and its time. `raw` is what it was read from, for parts that have no kind of block here."""

    at: datetime | None
    part: _Part
    raw: Any


@dataclass(frozen=True, slots=True)
class _Message:
    id: str
    at: datetime | None
    data: _MessageData
    pieces: list[_Piece] = field(default_factory=list)

    @property
    def completed(self) -> datetime | None:
        return time_of_ms(self.data.time.completed) if self.data.time else None


@dataclass(slots=True)
class _Step:
    """A response of a model, as far as it came."""

    message: _Message
    number: int  # the number of the part in its message
    pieces: list[_Piece] = field(default_factory=list)
    finish: _Part | None = None

    @property
    def id(self) -> str:
        return self.message.id if self.number == 1 else f"{self.message.id}#{self.number}"

    @property
    def usage(self) -> Usage | None:
        """Return the step's usage; for a step without an end, the message's, if it has any."""
        if self.finish is not None:
            return _usage(self.finish.tokens)
        reported = _usage(self.message.data.tokens) if self.number == 1 else None
        return reported if reported and (reported.context_tokens or reported.output_tokens) else None

    @property
    def unread_usage(self) -> bool:
        """Whether the step ended with a usage that is not understood."""
        return self.finish is not None and self.finish.tokens is not None and self.usage is None

    @property
    def cost(self) -> float | None:
        """Return the cost; opencode writes 0 where it has no price."""
        cost = self.finish.cost if self.finish else None
        return cost if type(cost) is float and cost > 0 else None


class OpencodeSessions:
    """The reader of one program's sessions: a `SessionReader`. `keeps_copies`: a fork has what it was forked from."""

    def __init__(self, agent: str, *, keeps_copies: bool = False) -> None:
        self._agent, self._keeps_copies = agent, keeps_copies

    def session_of(self, source: SourceFiles) -> Session:
        """Read a session. Nothing is raised, whatever is in the rows."""
        main = _Rows(source.main, keeps_copies=self._keeps_copies)
        conversation = main.conversation(MAIN)
        others = [_Rows(file, keeps_copies=self._keeps_copies) for file in source.others]
        for other in others:
            inner = other.conversation(other.thread)
            conversation.place(inner.turns())
            conversation.compactions += inner.compactions
        conversation.see(main.session.at)
        return Session(
            id=main.id,
            agent=self._agent,
            title=main.title or conversation.title(),
            project=main.project,
            started=conversation.started,
            ended=conversation.ended,
            exchanges=conversation.as_exchanges(),
            parent=_parent(main.session),
            agents=_sub_agents(main, others),
            compactions=conversation.compactions,
        )

    def parent_of(self, source: SourceFiles) -> str | None:
        """Return the parent that the session's row names, which is the first row."""
        values = (
            entry.value for entry in source.main.entries if isinstance(entry, JsonEntry) and type(entry.value) is dict
        )
        rows = (fitting(_Row, value) for value in values)
        session = next((row for row in rows if row.table == "session"), None)
        return _parent(session) if session else None

    def responses_of(self, source: SourceFiles) -> Iterator[ModelResponse]:
        main: _Rows | None = None
        for file in (source.main, *source.others):
            rows = _Rows(file, keeps_copies=self._keeps_copies, spoken=False)
            main = main or rows
            for step in rows.steps():
                usage = step.usage
                if usage is None and not step.unread_usage:
                    continue
                provider = step.message.data.provider or ""
                yield ModelResponse(
                    family=FAMILIES.get(provider, provider),
                    model=step.message.data.model,
                    usage=usage,
                    at=step.message.at,
                    session=main.id,
                    project=main.project,
                    agent=self._agent,
                    thread=MAIN if rows is main else rows.thread,
                    final=step.finish is not None,
                    reported_cost_usd=step.cost,
                )


def _parent(session: _Row) -> str | None:
    return session.forked_from or session.parent_id


def _sub_agents(main: "_Rows", others: "list[_Rows]") -> list[SubAgent]:
    calls: dict[str, deque[tuple[str, _Part]]] = {}  # by the sub-agent's id, or by its prompt
    for rows in (main, *others):
        for part in rows.tasks():
            metadata = part.state.metadata if part.state else None
            key = (metadata.session if metadata else None) or _task(part).prompt
            if key:
                calls.setdefault(key, deque()).append((MAIN if rows is main else rows.thread, part))
    threads = {rows.id: rows.thread for rows in others}
    agents = []
    for other in others:
        starters = calls.get(other.id) or calls.get(other.prompt or "")
        started_in, part = (
            starters.popleft() if starters else (threads.get(other.session.parent_id or "", MAIN), _Part())
        )
        task = _task(part)
        agents.append(
            SubAgent(
                thread=other.thread,
                parent_thread=started_in,
                tool_use_id=part.call,
                kind=task.kind,
                description=task.description or other.title,
            )
        )
    return agents


def _task(part: _Part) -> _Task:
    given = part.state.input if part.state else None
    return fitting(_Task, given if type(given) is dict else {})


class _Rows:
    """The rows of one session, put together. `spoken`: with what was said, and not only what was billed."""

    def __init__(self, file: File, *, keeps_copies: bool, spoken: bool = True) -> None:
        self.session = _Row()
        self._keeps_copies, self._spoken = keeps_copies, spoken
        self.messages: dict[str, _Message] = {}
        self._name = file.name
        for entry in file.entries:
            if isinstance(entry, JsonEntry) and type(entry.value) is dict:
                self._take(fitting(_Row, entry.value), entry.value.get("data"))

    @property
    def id(self) -> str:
        return self.session.id or self._name

    @property
    def title(self) -> str | None:
        title = self.session.title or ""
        return None if _PLACEHOLDER.fullmatch(title) else title

    @property
    def thread(self) -> str:
        """Return the thread of a sub-agent. The copy of one in a fork has the thread of the original."""
        return f"{AGENT_PREFIX}{self.session.forked_from or self.id}"

    @property
    def project(self) -> str | None:
        """Return the project's folder. Before 0.6 only the messages of the assistant named it."""
        folders = (message.data.path.cwd for message in self.messages.values() if message.data.path)
        return self.session.directory or next(filter(None, folders), None)

    @property
    def prompt(self) -> str | None:
        return next(filter(None, map(_typed, self.messages.values())), None)

    def tasks(self) -> Iterator[_Part]:
        """Yield the tool calls that started sub-agents."""
        parts = (piece.part for message in self.messages.values() for piece in message.pieces)
        return (part for part in parts if part.tool == TASK)

    def _take(self, row: _Row, data: Any) -> None:
        match row.table:
            case "session":
                self.session = row
            case "message" if row.id and not self._is_cut(row.at):
                self.messages[row.id] = _Message(row.id, row.at, object_as(_message_decoder, data))
            case "part" if message := self.messages.get(row.message_id or ""):
                message.pieces.append(self._piece(message, row, data))

    def _piece(self, message: _Message, row: _Row, data: Any) -> _Piece:
        if self._spoken:
            part = object_as(_part_decoder, data)
            return _Piece(_time_of_part(message, row, part), part, data)
        billed = object_as(_billed_part_decoder, data)
        return _Piece(None, _Part(type=billed.type, tokens=billed.tokens, cost=billed.cost), data)

    def _is_cut(self, at: datetime | None) -> bool:
        if self._keeps_copies or not self.session.forked_from:
            return False
        began = self.session.at
        return bool(at and began and at < began)

    def steps(self) -> Iterator[_Step]:
        for message in self.messages.values():
            if message.data.role == "assistant":
                yield from _steps(message)

    def conversation(self, thread: str) -> Conversation:
        conversed = Conversation()
        for message in self.messages.values():
            if message.data.role == "assistant":
                for step in _steps(message):
                    _answer(conversed, step, thread)
                _end(conversed, message)
            else:
                conversed.compactions += _compactions(message, thread)
                if text := _typed(message):
                    conversed.ask(text, message.at)
        return conversed


def _time_of_part(message: _Message, row: _Row, part: _Part) -> datetime | None:
    """Return the time of a part. A row may be younger than what it describes: rows that were made from files all have
    the time when they were made."""
    started = time_of_ms(part.time.start) if part.time else None
    written = min(row.at, message.completed) if row.at and message.completed else row.at
    return started or written


# The parts that a response consists of. Others note what the client did beside it (`patch`, `snapshot`), or are
# newer than this: none of them is a response.
CONTENT = frozenset({"text", "reasoning", "tool", "file"})


def _steps(message: _Message) -> Iterator[_Step]:
    step = _Step(message, 1)
    for piece in message.pieces:
        kind = piece.part.type
        if kind == "step-start" and step.pieces:  # the one before has no end
            yield step
            step = _Step(message, step.number + 1)
        elif kind == "step-finish":
            step.finish = piece.part
            yield step
            step = _Step(message, step.number + 1)
        elif kind in CONTENT:
            step.pieces.append(piece)
    if step.pieces or (step.number == 1 and step.usage):
        yield step


def _answer(conversation: Conversation, step: _Step, thread: str) -> None:
    turn = OpenTurn(
        thread=thread,
        message_id=step.id,
        model=step.message.data.model,
        stop_reason=step.finish.reason if step.finish else None,
        usage=step.usage,
        unread_usage=step.unread_usage,
        complete=step.finish is not None,
    )
    turn.see(step.message.at)
    conversation.add(turn)
    conversation.see(step.message.at)
    for piece in step.pieces:
        for block in _blocks(piece):
            conversation.put(turn, block, block.at or piece.at)


def _end(conversation: Conversation, message: _Message) -> None:
    conversation.see(message.completed)
    if error := message.data.error:
        conversation.current()
        aborted = fitting(_Error, error).name == "MessageAbortedError"
        conversation.end("cut" if aborted else "failed", message.completed)


def _compactions(message: _Message, thread: str) -> Iterator[Compaction]:
    for piece in message.pieces:
        if piece.part.type == "compaction":
            trigger = {True: "auto", False: "manual", None: None}[piece.part.auto]
            yield Compaction(at=message.at, thread=thread, trigger=trigger)


def _typed(message: _Message) -> str | None:
    """Return what a person typed; opencode marks the texts that it adds itself."""
    parts = [piece.part for piece in message.pieces if piece.part.synthetic is not True]
    texts = [part.text or "" for part in parts if part.type == "text"]
    files = any(part.type == "file" for part in parts)
    return typed(texts) or ("[file]" if files else None)


def _blocks(piece: _Piece) -> Iterator[Block]:
    part = piece.part
    match part.type:
        case "text":
            yield Block(kind="text", text=part.text or "")
        case "reasoning":
            yield Block(kind="thinking", text=part.text or "")
        case "tool":
            yield from _tool(part)
        case "file" if (part.mime or "").startswith("image/"):
            yield Block(kind="image", raw=_json(piece.raw))
        case _:
            yield Block(kind="other", raw=_json(piece.raw))


def _tool(part: _Part) -> Iterator[Block]:
    state = part.state or _State()
    times = state.time or _Times()
    started, ended = time_of_ms(times.start), time_of_ms(times.end)
    yield Block(kind="tool_use", id=part.call, name=part.tool, input=state.input, at=started)
    if state.status in ("completed", "error"):
        text = (state.error if state.status == "error" else state.output) or ""
        yield Block(kind="tool_result", id=part.call, name=part.tool, text=text, is_error=state.failed, at=ended)


def _usage(tokens: Json | None) -> Usage | None:
    counts = TokenCounts(tokens)
    cache = counts.inner("cache")
    input_tokens, answered, thought = (counts(name) for name in ("input", "output", "reasoning"))
    read, written = cache("read"), cache("write")
    if thought and counts("total") == input_tokens + answered + read + written:
        thought = 0  # already counted in `output`
    return counts.usage(input_tokens, answered + thought, read, written)


def _json(data: Any) -> Json:
    """Decode the JSON in a row; empty if it is not an object."""
    return object_in(data) if isinstance(data, bytes) else {}


AGENT_NAME = "opencode"
_READER = OpencodeSessions(AGENT_NAME)
session_of, responses_of, parent_of = _READER.session_of, _READER.responses_of, _READER.parent_of
