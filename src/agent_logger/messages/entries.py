"""Messages as the entries of an exchange: one per block; what is no conversation is stored whole.

Agents wait for this code too: a text is written as the JSON it came as, and is never decoded.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from agent_logger.messages.sdk import THINKING_PROGRESS, Inner, SdkBlock, SdkMessage, text_block
from agent_logger.model.records import Json, Message, as_text
from agent_logger.protocols import json_text
from agent_logger.protocols.json_text import begins, is_null
from agent_logger.protocols.json_text import raw as raw_json

RESULT_MESSAGE = "result_message"  # the entry of a result; `result` alone is a tool's
EXCEPTION = "exception"  # the entry of the exception that ended an exchange, as the SDK's logger saw it
TOLD_WHOLLY = ("text", "tool_use", "result")  # entries that say all there is in their block


class ExchangeEntry(Message, frozen=True, kw_only=True):
    """A message as it is written: of a text it has the JSON. Decoding that and encoding it again would take longer than
    everything else."""

    text: Any = None
    output: Any = None

    @property
    def plain_text(self) -> str:
        """The text or the output of the entry, for reading."""
        value = self.output if self.text is None else self.text
        return str(json_text.decode(value)) if isinstance(value, Raw) else value or ""


def _is_text(value: Json) -> bool:
    return isinstance(value, UnsetType) or begins(value, b'"') or begins(value, b"n")


def _text(value: Json) -> Raw | None:
    return None if isinstance(value, UnsetType) or is_null(value) else value


def entries(message: SdkMessage, ts: str) -> Iterator[ExchangeEntry]:
    """What a message adds to its exchange: one entry per block; a single entry for anything else."""
    if message.inner is None:
        yield _whole(message, ts)
        return
    content = message.inner.content
    blocks = [text_block(content)] if isinstance(content, str) else content
    if not blocks:  # an empty response was billed too
        yield replace(_typed_entry(message, message.inner, message.type, ts), content=Raw(message.raw))
    whole: str | list[Raw] = ""  # of blocks that are stored as received
    for number, block in enumerate(blocks):
        entry = _entry(message, message.inner, block, ts)
        if message.is_translated and not number:
            entry = replace(entry, content=Raw(message.raw))
        elif entry.type not in TOLD_WHOLLY:
            whole = whole or message.content
            if isinstance(whole, list):
                is_thought = entry.type == "thinking" and entry.text is not None
                entry = replace(entry, content=_beside_thought(whole[number]) if is_thought else whole[number])
        yield entry


def is_thinking_progress(entry: Message) -> bool:
    """Whether the entry reports progress of thinking: logs of older versions have an entry for each step."""
    return entry.source == "system" and entry.type == THINKING_PROGRESS


def _beside_thought(block: Raw) -> Json:
    """The rest of a thinking block, without its text, which the entry already has: its signature."""
    try:
        fields = msgspec.json.decode(block, type=dict[str, Raw])
    except (ValueError, RecursionError):
        return block
    rest = {name: value for name, value in fields.items() if name != "thinking"}
    return raw_json(rest) if rest.keys() - {"type"} else UNSET


def whole_thought(content: Any, text: str) -> Any:
    """The whole thinking block. In older logs the stored block includes the text."""
    if not isinstance(content, dict) or "thinking" in content:
        return content
    kind, rest = content.get("type", "thinking"), {k: v for k, v in content.items() if k != "type"}
    return {"type": kind, "thinking": text, **rest}


def _whole(message: SdkMessage, ts: str) -> ExchangeEntry:
    if message.is_text:
        text, encoding = as_text(message.raw)
        return ExchangeEntry(source="system", type=message.type, ts=ts, raw=text, raw_encoding=encoding)
    names = {"result": RESULT_MESSAGE, "system": message.subtype or "system"}
    return ExchangeEntry(
        source="assistant" if message.event else "system",
        type=names.get(message.type, message.type),
        ts=ts,
        parent_tool_use_id=message.parent_tool_use_id,
        origin=message.origin,
        content=Raw(message.raw),
    )


def _typed_entry(message: SdkMessage, inner: Inner, kind: str, ts: str) -> ExchangeEntry:
    return ExchangeEntry(
        source="assistant" if message.type == "assistant" else "user",
        type=kind,
        ts=ts,
        message_id=inner.id,
        parent_tool_use_id=message.parent_tool_use_id,
        origin=message.origin,
        usage=inner.usage,
        model=inner.model,
        stop_reason=inner.stopped,
        error=message.error,
    )


def _entry(message: SdkMessage, inner: Inner, block: SdkBlock, ts: str) -> ExchangeEntry:
    if not (_is_text(block.text) and _is_text(block.thinking)):
        block = SdkBlock()
    entry = _typed_entry(message, inner, block.type, ts)
    match block.type:
        case "text":
            return replace(entry, text=_text(block.text))
        case "thinking":
            return replace(entry, text=_text(block.thinking))
        case "tool_use":
            return replace(entry, tool_use_id=block.id, name=block.name, input=block.input)
        case "tool_result":
            output, content = _output(block.content)
            return replace(
                entry,
                source="tool",
                type="result",
                tool_use_id=block.tool_use_id,
                name=block.name,
                is_error=bool(block.is_error),
                output=output,
                content=content,
                tool_use_result=message.tool_use_result,
            )
    return replace(entry, tool_use_id=block.id or block.tool_use_id, name=block.name, input=block.input)


def _output(content: Json) -> tuple[Raw | str, Json]:
    """The output of a tool as text, and its blocks if it is more than text."""
    if isinstance(content, UnsetType):
        return "", raw_json(None)
    if begins(content, b'"'):
        return content, UNSET
    return text_of(json_text.decode(content)), content


def text_of(content: Any) -> str:
    """The text of blocks, for a caller that wants a string."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(
        block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
    )
