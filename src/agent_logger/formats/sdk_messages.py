"""Messages of the Claude Agent SDK and of `stream-json` output, as the exchange log keeps them.

They are read by shape: what is missing is `None`, what is unknown is kept as it came. The head of a message decides
which fields are looked for; a field of the wrong shape costs what stands in it, not the message.

Agents wait for this: a long text is passed over, and stays the JSON it came as, on its way to the log.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from agent_logger.formats import json_text
from agent_logger.formats.json_text import raw as raw_json
from agent_logger.records import Json, Message, as_text

T = TypeVar("T")
UNKNOWN, STDERR, STREAM_EVENT = "unknown", "stderr", "stream_event"
RESULT_MESSAGE = "result_message"  # the entry of a result; `result` alone is a tool's


class Block(msgspec.Struct, frozen=True):
    """A piece of what was said. Its texts are the JSON they came as."""

    type: str = "unknown"
    text: Json = UNSET
    thinking: Json = UNSET
    id: str | None = None
    name: str | None = None
    input: Json = UNSET
    tool_use_id: str | None = None
    content: Json = UNSET
    is_error: bool | None = None


class Inner(msgspec.Struct, frozen=True):
    """The model's, or the user's, message in a message."""

    id: str | None = None
    model: str | None = None
    content: str | list[Block] = ""
    usage: Raw | UnsetType = UNSET
    stop_reason: str | None = None


class Init(msgspec.Struct, frozen=True):
    """What a session begins with; said again at every exchange."""

    model: str | None = None
    cwd: str | None = None
    tools: list[str] | None = None
    permissionMode: str | None = None  # noqa: N815 (the client's name)


class CacheCreation(msgspec.Struct, frozen=True):
    ephemeral_1h_input_tokens: int | None = None


class ReportedUsage(msgspec.Struct, frozen=True):
    """The tokens of one response, or of the main thread's responses in one exchange."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None

    @property
    def context(self) -> int:
        """What the model read."""
        parts = (self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens)
        return sum(it or 0 for it in parts)


class Result(msgspec.Struct, frozen=True):
    is_error: bool | None = None
    num_turns: int | None = None
    duration_ms: int | None = None
    duration_api_ms: int | None = None
    total_cost_usd: float | None = None
    total_cost: float | None = None  # 1.0, and the next
    cost_usd: float | None = None
    result: Any = None  # the answer's last text
    structured_output: Raw | UnsetType = UNSET
    usage: ReportedUsage | None = None
    model_usage: dict[str, dict[str, Any]] | None = msgspec.field(default=None, name="modelUsage")
    model_usage_since_last_result: dict[str, dict[str, Any]] | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    stop_reason: str | None = None
    permission_denials: Raw | UnsetType = UNSET
    errors: list[str] | None = None


class _Head(msgspec.Struct, frozen=True):
    type: str
    subtype: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    uuid: str | None = None


class _Beside(_Head, frozen=True):
    """With what stands beside it in some messages."""

    origin: Raw | UnsetType = UNSET
    error: str | None = None
    tool_use_result: Raw | UnsetType = UNSET
    isReplay: bool | None = None  # noqa: N815


class _More(_Beside, frozen=True):
    message: Inner | str | None = None  # a text in some system messages


class _Message(msgspec.Struct, frozen=True):
    """Of one whose blocks are not all as they should be."""

    id: str | None = None
    model: str | None = None
    content: str | list[Raw] = ""
    usage: Raw | UnsetType = UNSET
    stop_reason: str | None = None


class _WithMessage(msgspec.Struct, frozen=True):
    message: _Message


class _Origin(msgspec.Struct, frozen=True):
    kind: str = ""


class _EventMessage(msgspec.Struct, frozen=True):
    id: str | None = None


class _EventDelta(msgspec.Struct, frozen=True):
    stop_reason: str | None = None


class StreamEvent(msgspec.Struct, frozen=True):
    type: str = ""
    message: _EventMessage | None = None
    usage: dict[str, Any] | None = None
    delta: _EventDelta | None = None


class _Event(msgspec.Struct, frozen=True):
    event: StreamEvent = StreamEvent()


@dataclass(frozen=True, slots=True)
class SdkMessage:
    """One message: its head, and the part that its type has."""

    raw: bytes  # all of it, as it came
    type: str
    subtype: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    origin: Raw | UnsetType = UNSET
    error: str | None = None
    tool_use_result: Raw | UnsetType = UNSET
    is_replay: bool = False
    inner: Inner | None = None
    init: Init | None = None
    result: Result | None = None
    event: StreamEvent | None = None
    is_translated: bool = False  # the parts are made of `raw`, which is kept beside them

    @property
    def is_text(self) -> bool:
        """No message at all: a line of text, on either output."""
        return self.type in (UNKNOWN, STDERR)

    @property
    def is_human(self) -> bool:
        """Whether a person's input led to it, as far as it says: most say nothing."""
        return not self.origin or (_part(self.origin, _Origin) or _Origin()).kind == "human"

    @property
    def prompt(self) -> str | list[Raw] | None:
        """What the user said, if this is that: on its way to the client, or sent back by it."""
        if self.type != "user" or self.inner is None or self.parent_tool_use_id or not self.is_human:
            return None
        if self.uuid and not self.is_replay:
            return None  # of the client's own making: tool results, notes to the model
        content = self.inner.content
        is_result = isinstance(content, list) and any(it.type == "tool_result" for it in content)
        return None if is_result else self.content

    @property
    def content(self) -> str | list[Raw]:
        """What was said, with its blocks as they came."""
        said = self.inner.content if self.inner else ""
        if isinstance(said, str):
            return said
        found = _part(self.raw, _WithMessage)
        return found.message.content if found else []


def read(line: bytes) -> SdkMessage:
    """Never fails: what is no message is one of type `unknown`."""
    head: _Head | None = _part(line, _More) or _part(line, _Head)
    if head is None and (mended := json_text.mended(line)) and (head := _part(mended, _Head)):
        line = mended
    if head is None:
        return SdkMessage(line, UNKNOWN)
    more = head if isinstance(head, _More) else _loosely(line, head)
    known = SdkMessage(
        line,
        head.type,
        head.subtype,
        head.session_id or None,
        head.parent_tool_use_id,
        head.uuid,
        UNSET if _is_null(more.origin) else more.origin,
        more.error,
        UNSET if _is_null(more.tool_use_result) else more.tool_use_result,
        bool(more.isReplay),
    )
    match head.type, head.subtype:
        case (("assistant" | "user"), _):
            known = _with(known, inner=more.message if isinstance(more.message, Inner) else None)
            # Who sends a prompt to the client calls the session `default`, or whatever.
            sent = known.prompt is not None and not known.is_replay
            return _with(known, session_id=None) if sent else known
        case "system", "init":
            return _with(known, init=_part(line, Init) or Init())
        case "result", _:
            return _with(known, result=_part(line, Result) or Result())
        case "stream_event", _:
            return _with(known, event=(_part(line, _Event) or _Event()).event)
        case (("tool_use" | "tool_result"), _):
            return _tool_line(known)
    return known


def _loosely(line: bytes, head: _Head) -> _More:
    """What can be read of a message that has something odd in it."""
    beside = _part(line, _Beside) or _Beside(type=head.type)
    found = _part(line, _More) or _part(line, _WithMessage)
    if isinstance(found, _More):
        return found
    inner = None
    if found:
        it, content = found.message, found.message.content
        blocks = content if isinstance(content, str) else [_part(raw, Block) or Block() for raw in content]
        inner = Inner(it.id, it.model, blocks, it.usage, it.stop_reason)
    return _More(
        type=beside.type,
        message=inner,
        origin=beside.origin,
        error=beside.error,
        tool_use_result=beside.tool_use_result,
        isReplay=beside.isReplay,
    )


class _ToolLine(msgspec.Struct, frozen=True):
    """A tool use, or what came of it, that is a line of its own."""

    tool: str | None = None
    name: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    input: Any = None
    output: Any = None
    content: Any = None
    is_error: bool | None = None


def _tool_line(known: SdkMessage) -> SdkMessage:
    line = _part(known.raw, _ToolLine)
    if line is None:
        return known
    name, use_id = line.tool or line.name, line.tool_use_id or line.id
    if known.type == "tool_use":
        return translated(known, "assistant", tool_use(use_id, name, line.input))
    output = line.content if line.output is None else line.output
    return translated(known, "user", tool_result(use_id, name, output, is_error=bool(line.is_error)))


def translated(known: SdkMessage, kind: str, block: Block, *, again: bool = False) -> SdkMessage:
    """The message that another line stands for; `again`: one that stood for another already, which has the line."""
    return dataclasses.replace(known, type=kind, inner=Inner(content=[block]), is_translated=not again)


def text_block(text: str) -> Block:
    return Block(type="text", text=raw_json(text))


def thought(text: str) -> Block:
    return Block(type="thinking", thinking=raw_json(text))


def tool_use(use_id: str | None, name: str | None, given: Any) -> Block:
    return Block(type="tool_use", id=use_id, name=name, input=raw_json(given))


def tool_result(use_id: str | None, name: str | None, output: Any, *, is_error: bool) -> Block:
    is_content = output is None or isinstance(output, str | list)
    content = raw_json(output if is_content else json_text.encode(output).decode())
    return Block(type="tool_result", tool_use_id=use_id, name=name, is_error=is_error, content=content)


def _with(message: SdkMessage, **parts: Any) -> SdkMessage:
    for name, value in parts.items():
        object.__setattr__(message, name, value)  # it is new, and not handed out yet
    return message


def _part(line: bytes | Raw, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors, and so is what is not UTF-8
        return None


def _is_null(value: Raw | UnsetType) -> bool:
    return isinstance(value, UnsetType) or _begins(value, b"n")


def _begins(value: Raw, first: bytes) -> bool:
    """Without a copy, for it may be long."""
    return memoryview(value)[:1] == first


# ---------------------------------------------------------------- entries of an exchange


class Entry(Message, frozen=True, kw_only=True):
    """A message as it is to be written: of a text it has the JSON. To decode that and to encode it again would take
    longer than all else."""

    text: Any = None
    output: Any = None

    @property
    def told(self) -> str:
        """Its text or output, to be read."""
        found = self.output if self.text is None else self.text
        return str(json_text.decode(found)) if isinstance(found, Raw) else found or ""


def _is_text(value: Json) -> bool:
    return isinstance(value, UnsetType) or _begins(value, b'"') or _begins(value, b"n")


def _text(value: Json) -> Raw | None:
    return None if isinstance(value, UnsetType) or _is_null(value) else value


def entries(message: SdkMessage, ts: str) -> Iterator[Entry]:
    """What a message adds to its exchange: one entry a block; for what is no conversation, one in all."""
    if message.inner is None:
        yield _whole(message, ts)
        return
    content = message.inner.content
    blocks = [text_block(content)] if isinstance(content, str) else content
    if not blocks:  # but a model that had nothing to say was paid for that, too
        yield replace(_known(message, message.inner, message.type, ts), content=Raw(message.raw))
    whole: str | list[Raw] = ""  # of blocks that are kept as they came
    for number, block in enumerate(blocks):
        entry = _entry(message, message.inner, block, ts)
        if message.is_translated and not number:
            entry = replace(entry, content=Raw(message.raw))
        elif entry.type not in TOLD_WHOLLY:
            whole = whole or message.content
            entry = replace(entry, content=whole[number]) if isinstance(whole, list) else entry
        yield entry


TOLD_WHOLLY = ("text", "tool_use", "result")  # entries that say all there is in their block


def _whole(message: SdkMessage, ts: str) -> Entry:
    if message.is_text:
        text, encoding = as_text(message.raw)
        return Entry(source="system", type=message.type, ts=ts, raw=text, raw_encoding=encoding)
    names = {"result": RESULT_MESSAGE, "system": message.subtype or "system"}
    return Entry(
        source="assistant" if message.event else "system",
        type=names.get(message.type, message.type),
        ts=ts,
        parent_tool_use_id=message.parent_tool_use_id,
        origin=message.origin,
        content=Raw(message.raw),
    )


def _known(message: SdkMessage, inner: Inner, kind: str, ts: str) -> Entry:
    return Entry(
        source="assistant" if message.type == "assistant" else "user",
        type=kind,
        ts=ts,
        message_id=inner.id,
        parent_tool_use_id=message.parent_tool_use_id,
        origin=message.origin,
        usage=inner.usage,
        model=inner.model,
        stop_reason=inner.stop_reason,
        error=message.error,
    )


def _entry(message: SdkMessage, inner: Inner, block: Block, ts: str) -> Entry:
    if not (_is_text(block.text) and _is_text(block.thinking)):
        block = Block()
    known = _known(message, inner, block.type, ts)
    match block.type:
        case "text":
            return replace(known, text=_text(block.text))
        case "thinking":
            return replace(known, text=_text(block.thinking))
        case "tool_use":
            return replace(known, tool_use_id=block.id, name=block.name, input=block.input)
        case "tool_result":
            output, content = _output(block.content)
            return replace(
                known,
                source="tool",
                type="result",
                tool_use_id=block.tool_use_id,
                name=block.name,
                is_error=bool(block.is_error),
                output=output,
                content=content,
                tool_use_result=message.tool_use_result,
            )
    return replace(known, tool_use_id=block.id or block.tool_use_id, name=block.name, input=block.input)


def _output(content: Json) -> tuple[Raw | str, Json]:
    """What a tool put out as a text, and its blocks, if it is more than that."""
    if isinstance(content, UnsetType):
        return "", raw_json(None)
    if _begins(content, b'"'):
        return content, UNSET
    return text_of(json_text.decode(content)), content


def text_of(content: Any) -> str:
    """The text of blocks, for whoever wants a string."""
    if isinstance(content, str):
        return content
    found = content if isinstance(content, list) else []
    return "\n".join(it["text"] for it in found if isinstance(it, dict) and isinstance(it.get("text"), str))
