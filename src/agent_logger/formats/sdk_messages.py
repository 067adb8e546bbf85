"""Messages of the Claude Agent SDK and of `stream-json` output, as the exchange log keeps them.

They are read by shape: what is missing is `None`, what is unknown is kept as it came.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.records import Message, Stats


class _Block(msgspec.Struct, frozen=True):
    type: str = "unknown"
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | None = None


class _Inner(msgspec.Struct, frozen=True):
    id: str | None = None
    model: str | None = None
    content: str | list[dict[str, Any]] = ""
    usage: dict[str, Any] | None = None


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class SdkMessage(msgspec.Struct, frozen=True):
    """One message, as far as its type has these fields."""

    type: str
    subtype: str | None = None
    session_id: str | None = None
    message: _Inner | str | None = None  # a text in some system messages
    parent_tool_use_id: str | None = None
    # system/init
    model: str | None = None
    cwd: str | None = None
    tools: list[str] | None = None
    permissionMode: str | None = None  # noqa: N815 (the client's name)
    # result
    is_error: bool | None = None
    num_turns: int | None = None
    duration_ms: int | None = None
    duration_api_ms: int | None = None
    total_cost_usd: float | None = None
    usage: _Usage | None = None

    @property
    def is_init(self) -> bool:
        return self.type == "system" and self.subtype == "init"

    @property
    def is_result(self) -> bool:
        return self.type == "result"


def read(message: dict[str, Any]) -> SdkMessage:
    """Raises `msgspec.ValidationError` for what is no such message."""
    return msgspec.convert(message, SdkMessage)


def entries(message: SdkMessage, ts: str) -> Iterator[Message]:
    """What an assistant or user message adds to its exchange: one entry a block."""
    if not isinstance(message.message, _Inner):
        return
    content = message.message.content
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for raw in blocks:
        yield _entry(message, message.message, raw, ts)


def _entry(message: SdkMessage, inner: _Inner, raw: dict[str, Any], ts: str) -> Message:
    block = msgspec.convert(raw, _Block)
    known = Message(
        source="assistant" if message.type == "assistant" else "user",
        type=block.type,
        ts=ts,
        message_id=inner.id,
        parent_tool_use_id=message.parent_tool_use_id,
        usage=_raw(inner.usage) if inner.usage else msgspec.UNSET,
    )
    match block.type:
        case "text" | "thinking":
            return replace(known, text=block.text or block.thinking)
        case "tool_use":
            return replace(known, tool_use_id=block.id, name=block.name, input=_raw(block.input))
        case "tool_result":
            return replace(
                known,
                source="tool",
                type="result",
                tool_use_id=block.tool_use_id,
                is_error=bool(block.is_error),
                output=_text(block.content),
                content=msgspec.UNSET if isinstance(block.content, str) else _raw(block.content),
            )
    return replace(known, content=_raw(raw))


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(it["text"] for it in blocks if isinstance(it, dict) and isinstance(it.get("text"), str))


def stats(result: SdkMessage, before: SdkMessage | None) -> Stats:
    """Of the exchange that a result ends. `before` is the session's previous one: two of its numbers count on."""
    usage, total = result.usage or _Usage(), result.total_cost_usd
    cost_before = (before and before.total_cost_usd) or 0
    api_before = (before and before.duration_api_ms) or 0
    return Stats(
        num_turns=result.num_turns,
        duration_ms=result.duration_ms,
        duration_api_ms=None if result.duration_api_ms is None else result.duration_api_ms - api_before,
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        cache_creation=usage.cache_creation_input_tokens,
        cache_read=usage.cache_read_input_tokens,
        cost_usd=None if total is None else round(total - cost_before, 9),
        reported_total_cost_usd=total,
    )
