"""Messages of the Claude Agent SDK and of `stream-json` output.

They are read by shape: missing fields are `None`, unknown ones are stored as received. The head of a message decides
which fields are looked for; a field of the wrong shape loses its own content, not the message.

Agents wait for this code: a long text is not decoded, and stays the JSON it came as, on its way to the log.
"""

from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import asdict, force_setattr, replace

from agent_logger.messages.human_input import typed
from agent_logger.model.records import Json
from agent_logger.protocols import json_text
from agent_logger.protocols.json_text import is_null
from agent_logger.protocols.json_text import raw as raw_json
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import MOST_TOKENS, usage_of

T = TypeVar("T")
UNKNOWN, STDERR, STREAM_EVENT = "unknown", "stderr", "stream_event"
# An estimate after each piece of thinking; the thinking itself follows.
THINKING_PROGRESS = "thinking_tokens"


class SdkBlock(msgspec.Struct, frozen=True):
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


class _InnerFields(msgspec.Struct, frozen=True, kw_only=True):
    id: str | None = None
    model: str | None = None
    usage: Raw | UnsetType = UNSET
    stop_reason: str | None = None
    stop_reason_camel: str | None = msgspec.field(name="stopReason", default=None)

    @property
    def stopped(self) -> str | None:
        return self.stop_reason or self.stop_reason_camel


class Inner(_InnerFields, frozen=True, kw_only=True):
    """The model's or the user's message inside a message of the SDK."""

    content: str | list[SdkBlock] = ""


class _Loose(_InnerFields, frozen=True, kw_only=True):
    """The inner message whose blocks are not all as they should be."""

    content: str | list[Raw] = ""


class Init(msgspec.Struct, frozen=True):
    """What a session begins with; repeated at every exchange."""

    model: str | None = None
    cwd: str | None = None
    tools: list[str] | None = None
    permissionMode: str | None = None  # noqa: N815 (the client's name)


class SdkCacheCreation(msgspec.Struct, frozen=True):
    ephemeral_1h_input_tokens: int | None = None


class ReportedUsage(msgspec.Struct, frozen=True):
    """The tokens of one response, or of the main thread's responses in one exchange."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: SdkCacheCreation | None = None

    @property
    def is_understood(self) -> bool:
        """Whether there are counts, and no value that cannot be one."""
        types = (
            self.input_tokens,
            self.output_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
        )
        counts = [count for count in types if count is not None]
        return bool(counts) and 0 <= min(counts) <= max(counts) < MOST_TOKENS

    @property
    def context(self) -> int:
        """How many tokens the model read."""
        parts = (self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens)
        return sum(count or 0 for count in parts)


def reported_usage(value: Any) -> ReportedUsage | None:
    """A usage object in the words of any vendor; `None` if it is not understood."""
    usage = usage_of(value)
    if usage is None:
        return None
    hour = usage.cache_write_1h_tokens
    return ReportedUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_creation_input_tokens=usage.cache_write_tokens,
        cache_read_input_tokens=usage.cache_read_tokens,
        cache_creation=SdkCacheCreation(hour) if hour else None,
    )


@lru_cache(maxsize=8)
def usage_in(data: bytes) -> ReportedUsage | None:
    """The `reported_usage` of JSON text, cached: several callers ask for the usage of the same message, one after the
    other. Raises `ValueError` and `RecursionError`."""
    return reported_usage(msgspec.json.decode(data))


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
    """A head with the fields that some messages have beside it."""

    origin: Raw | UnsetType = UNSET
    error: str | None = None
    tool_use_result: Raw | UnsetType = UNSET
    isReplay: bool | None = None  # noqa: N815


class _More(_Beside, frozen=True):
    message: Inner | str | None = None  # a text in some system messages


class _WithMessage(msgspec.Struct, frozen=True):
    message: _Loose


class _Origin(msgspec.Struct, frozen=True):
    kind: str = ""


class _EventMessage(msgspec.Struct, frozen=True):
    id: str | None = None


class _EventDelta(msgspec.Struct, frozen=True):
    stop_reason: str | None = None


class SdkStreamEvent(msgspec.Struct, frozen=True):
    type: str = ""
    message: _EventMessage | None = None
    usage: dict[str, Any] | None = None
    delta: _EventDelta | None = None


class _Event(msgspec.Struct, frozen=True):
    event: SdkStreamEvent = SdkStreamEvent()


class SdkMessage(msgspec.Struct, frozen=True):
    """A message: its head, and the part that belongs to its type."""

    raw: bytes  # the whole message, as received
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
    event: SdkStreamEvent | None = None
    is_translated: bool = False  # the parts are made of `raw`, which is kept beside them

    @property
    def is_text(self) -> bool:
        """Whether this is no message at all, but a line of text on either output."""
        return self.type in (UNKNOWN, STDERR)

    @property
    def is_progress(self) -> bool:
        """Whether this is a step of something that is reported whole later: such a step is only written to the live
        file."""
        return self.event is not None or (self.type == "system" and self.subtype == THINKING_PROGRESS)

    @property
    def is_human(self) -> bool:
        """Whether a person's input led to the message, as far as it says: most say nothing."""
        return not self.origin or (_part(self.origin, _Origin) or _Origin()).kind == "human"

    @property
    def prompt(self) -> str | list[Raw] | None:
        """What the user said, if this message is a prompt: on its way to the client, or sent back by it."""
        if self.type != "user" or self.inner is None or self.parent_tool_use_id or not self.is_human:
            return None
        if self.uuid and not self.is_replay:
            return None  # of the client's own making: tool results, notes to the model
        content = self.inner.content
        is_result = isinstance(content, list) and any(block.type == "tool_result" for block in content)
        # What a command of the client's printed is sent back like a prompt.
        is_printed = self.is_replay and isinstance(content, str) and bool(content) and not typed([content])
        return None if is_result or is_printed else self.content

    @property
    def content(self) -> str | list[Raw]:
        """The content, with its blocks as received."""
        parts = self.inner.content if self.inner else ""
        if isinstance(parts, str):
            return parts
        part = _part(self.raw, _WithMessage)
        return part.message.content if part else []


def read(line: bytes) -> SdkMessage:
    """Read a line as a message. Never fails: a line that is no message becomes one of type `unknown`."""
    head: _Head | None = _part(line, _More) or _part(line, _Head)
    if head is None and (mended := json_text.mended(line)) and (head := _part(mended, _Head)):
        line = mended
    if head is None:
        return SdkMessage(line, UNKNOWN)
    more = head if isinstance(head, _More) else _loosely(line, head)
    message = SdkMessage(
        line,
        head.type,
        head.subtype,
        head.session_id or None,
        head.parent_tool_use_id,
        head.uuid,
        UNSET if is_null(more.origin) else more.origin,
        more.error,
        UNSET if is_null(more.tool_use_result) else more.tool_use_result,
        bool(more.isReplay),
    )
    match head.type, head.subtype:
        case (("assistant" | "user"), _):
            message = _with(message, inner=more.message if isinstance(more.message, Inner) else None)
            # Who sends a prompt to the client calls the session `default`, or whatever.
            sent = message.prompt is not None and not message.is_replay
            return _with(message, session_id=None) if sent else message
        case "system", "init":
            return _with(message, init=_part(line, Init) or Init())
        case "result", _:
            return _with(message, result=_result(line))
        case "stream_event", _:
            return _with(message, event=(_part(line, _Event) or _Event()).event)
        case (("tool_use" | "tool_result"), _):
            return _tool_line(message)
    return message


class _ResultUsage(msgspec.Struct, frozen=True):
    usage: Any = None


def _result(line: bytes) -> Result:
    """Read a result. Its usage may be in other words than Anthropic's, or not be a usage at all."""
    result, usage = _part(line, Result), _part(line, _ResultUsage)
    if usage is None or usage.usage is None or (result and result.usage and result.usage.is_understood):
        return result or Result()
    if result is None and (fields := _part(line, dict[str, Any])):
        result = fitting(Result, {**fields, "usage": None})
    return replace(result or Result(), usage=reported_usage(usage.usage))


def _loosely(line: bytes, head: _Head) -> _More:
    """What can be read of a message that has something odd in it."""
    beside = _part(line, _Beside) or _Beside(type=head.type)
    loose = _part(line, _More) or _part(line, _WithMessage)
    if isinstance(loose, _More):
        return loose
    inner = None
    if loose:
        content = loose.message.content
        blocks = content if isinstance(content, str) else [_part(raw, SdkBlock) or SdkBlock() for raw in content]
        inner = Inner(**asdict(loose.message) | {"content": blocks})
    return _More(**asdict(beside), message=inner)


class _ToolLine(msgspec.Struct, frozen=True):
    """A tool use, or its result, that is a line of its own."""

    tool: str | None = None
    name: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    input: Any = None
    output: Any = None
    content: Any = None
    is_error: bool | None = None


def _tool_line(message: SdkMessage) -> SdkMessage:
    line = _part(message.raw, _ToolLine)
    if line is None:
        return message
    name, use_id = line.tool or line.name, line.tool_use_id or line.id
    if message.type == "tool_use":
        return translated(message, "assistant", tool_use(use_id, name, line.input))
    output = line.content if line.output is None else line.output
    return translated(message, "user", tool_result(use_id, name, output, is_error=bool(line.is_error)))


def translated(message: SdkMessage, kind: str, block: SdkBlock, *, again: bool = False) -> SdkMessage:
    """The message that represents a line of another form. `again`: an earlier message of the
    same line keeps the line."""
    return replace(message, type=kind, inner=Inner(content=[block]), is_translated=not again)


def text_block(text: str) -> SdkBlock:
    return SdkBlock(type="text", text=raw_json(text))


def thought(text: str) -> SdkBlock:
    return SdkBlock(type="thinking", thinking=raw_json(text))


def tool_use(use_id: str | None, name: str | None, given: Any) -> SdkBlock:
    return SdkBlock(type="tool_use", id=use_id, name=name, input=raw_json(given))


def tool_result(use_id: str | None, name: str | None, output: Any, *, is_error: bool) -> SdkBlock:
    is_content = output is None or isinstance(output, str | list)
    content = raw_json(output if is_content else json_text.encode(output).decode())
    return SdkBlock(type="tool_result", tool_use_id=use_id, name=name, is_error=is_error, content=content)


def _with(message: SdkMessage, **parts: Any) -> SdkMessage:
    for name, value in parts.items():
        force_setattr(message, name, value)  # it is new, and not handed out yet
    return message


def _part(line: bytes | Raw, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors, and so is what is not UTF-8
        return None
