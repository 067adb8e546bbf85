"""The types of Goose's rows, and of the JSON in them."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.objects import object_as, parts_in, time_of, time_of_ms
from agent_logger.agents.source_files import File
from agent_logger.messages.human_input import typed
from agent_logger.model.session import Block, Usage
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.answer import MOST_NESTED
from agent_logger.providers.blocks.base import joined_text
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.lenient import REFUSED, fitting
from agent_logger.providers.token_counts import TokenCounts

# An id that Goose made. Anthropic's begin like that, too.
OWN_ID = re.compile(r"msg_(?:\d{8}_\d+_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOST_SECONDS = 1e11  # later times are in milliseconds


class Inference(msgspec.Struct):
    provider: str | None = None
    requested_model: str | None = msgspec.field(name="requestedModel", default=None)
    resolved_model: str | None = msgspec.field(name="resolvedModel", default=None)

    @property
    def model(self) -> str | None:
        return self.resolved_model or self.requested_model


class Metadata(msgspec.Struct):
    is_user_visible: bool = msgspec.field(name="userVisible", default=True)
    inference: Inference | None = None
    usage: Json | None = None


class GooseRow(msgspec.Struct):
    """A row of any of the three tables."""

    table: str = ""
    id: Any = None
    created: Any = msgspec.field(name="created_timestamp", default=None)
    name: str | None = None  # fields of a session: this and the following
    description: str | None = None
    working_dir: str | None = None
    parent: str | None = msgspec.field(name="parent_session_id", default=None)
    created_at: str | None = None
    provider: str | None = msgspec.field(name="provider_name", default=None)
    role: str | None = None  # fields of a message: this and the next
    message_id: str | None = None
    model: str | None = None  # fields of a call: this and the following
    cost: Any = None
    is_compaction: Any = None

    @property
    def at(self) -> datetime | None:
        since = self.created
        if type(since) is int or type(since) is float:
            return time_of_ms(since if since > _MOST_SECONDS else since * 1000)
        return time_of(self.created_at)


class StoredMessage(msgspec.Struct):
    """A message, with its JSON decoded."""

    row: GooseRow
    parts: list[Json]
    metadata: Metadata
    response_id: str | None  # the vendor's id of the response; none if Goose made the id
    usage: Usage | None


class _PartHead(msgspec.Struct):
    """What tells the kind of a part."""

    type: str | None = None
    id: str | None = None
    text: str | None = None


_metadata_decoder = msgspec.json.Decoder(Metadata)
_decode_heads = msgspec.json.Decoder(list[_PartHead]).decode


class BilledCall(msgspec.Struct):
    """A call in the ledger."""

    row: GooseRow
    usage: Usage | None

    @property
    def cost(self) -> float | None:
        cost = self.row.cost
        return cost if type(cost) is float and cost > 0 else None


class SessionRows:
    """The rows of one session. `spoken`: with all that was said; otherwise parts have only what tells their kind."""

    def __init__(self, file: File, *, spoken: bool = True) -> None:
        self._spoken = spoken
        self.session = GooseRow()
        self.messages: list[StoredMessage] = []
        self.calls: list[BilledCall] = []
        for entry in file.entries:
            if isinstance(entry, JsonEntry) and type(entry.value) is dict:
                self._take(fitting(GooseRow, entry.value), entry.value)
        name = self.session.id
        self.id = name if type(name) is str and name else file.name

    def _take(self, row: GooseRow, fields: Json) -> None:
        match row.table:
            case "sessions":
                self.session = row
            case "messages":
                metadata = object_as(_metadata_decoder, fields.get("metadata_json"))
                content = fields.get("content_json")
                parts = parts_in(content) if self._spoken else _heads(content)
                usage = usage_of(metadata.usage)
                self.messages.append(StoredMessage(row, parts, metadata, _vendor_id(row.message_id), usage))
            case "usage_ledger":
                self.calls.append(BilledCall(row, usage_of(fields)))


def _vendor_id(name: str | None) -> str | None:
    return None if not name or OWN_ID.fullmatch(name) else name


def _heads(data: Any) -> list[Json]:
    """Return the parts with what tells their kind. What is not as Goose writes it is decoded whole."""
    if isinstance(data, bytes) and data.count(b"{") + data.count(b"[") <= MOST_NESTED:
        with suppress(*REFUSED):
            return [{"type": head.type, "id": head.id, "text": head.text} for head in _decode_heads(data)]
    return parts_in(data)


def usage_of(value: Any) -> Usage | None:
    """Read token counts, of a message or of the ledger. Those of the input contain the cache."""
    counts = TokenCounts(value)
    given, output = counts("input_tokens"), counts("output_tokens")
    read, written = counts("cache_read_tokens"), counts("cache_write_tokens")
    return counts.usage(given - read - written, output, read, written)


# ---------------------------------------------------------------- content


def typed_in(parts: list[Json]) -> str | None:
    """Return what a person typed."""
    has_other = any(part.get("type") == "image" for part in parts)
    return typed([text_of(part.get("text")) or "" for part in parts if part.get("type") == "text"]) or (
        "[image]" if has_other else None
    )


def blocks_of(parts: list[Json]) -> Iterator[Block]:
    for part in parts:
        match part.get("type"):
            case "text":
                yield Block(kind="text", text=text_of(part.get("text")) or "")
            case "thinking" | "reasoning":
                yield Block(kind="thinking", text=text_of(part.get("thinking")) or text_of(part.get("text")) or "")
            case "toolRequest" | "frontendToolRequest":
                yield _tool_use(part)
            case "image":
                yield Block(kind="image", raw=part)
            case "toolResponse":
                pass
            case _:
                yield Block(kind="other", raw=part)


def _tool_use(part: Json) -> Block:
    call = fields_of(fields_of(part.get("toolCall")).get("value"))
    return Block(
        kind="tool_use", id=text_of(part.get("id")), name=text_of(call.get("name")), input=call.get("arguments")
    )


def results_of(parts: list[Json]) -> Iterator[Block]:
    for part in parts:
        if part.get("type") == "toolResponse":
            result = fields_of(part.get("toolResult"))
            value = result.get("value")
            # Older versions have the content alone. A tool that fails has a result, whose value says so.
            content = fields_of(value).get("content") if type(value) is dict else value
            failed = result.get("status") == "error" or fields_of(value).get("isError") is True
            text = joined_text(content) or text_of(result.get("error")) or ""
            yield Block(kind="tool_result", id=text_of(part.get("id")), text=text, is_error=failed)
