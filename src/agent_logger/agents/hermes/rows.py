"""The types of Hermes' rows, and of the JSON in them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.objects import parts_in, time_of_ms
from agent_logger.model.session import Block, Usage
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.token_counts import TokenCounts

JSON_CONTENT = "\0json:"  # before a content of several parts, which is JSON
# What Hermes says in the place of a tool that did not run, or raised an error. Tools report their own errors in JSON.
_TOOL_ERRORS = ("Error executing tool", "[Tool execution cancelled", "[Tool execution skipped")
_UNKNOWN_TOOL = " does not exist. Available tools: "


class HermesRow(msgspec.Struct):
    """A row of any of the three tables."""

    table: str = ""
    id: Any = None
    source_session: str | None = None  # fields of a session: this and the following
    model: str | None = None
    title: str | None = None
    cwd: str | None = None
    git_repo_root: str | None = None
    started_at: Any = None  # seconds, all times
    ended_at: Any = None
    api_call_count: Any = None  # a field of a session, and of what it used of a model
    task: str | None = None  # fields of such a use: this and the next
    last_seen: Any = None
    is_copy: bool = False  # fields of a message: this and the following
    role: str | None = None
    timestamp: Any = None
    active: Any = None
    compacted: Any = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None

    @property
    def at(self) -> datetime | None:
        return time_of(self.timestamp)


def time_of(seconds: Any) -> datetime | None:
    return time_of_ms(seconds * 1000) if type(seconds) is float or type(seconds) is int else None


def content_of(value: Any) -> Any:
    """Return the content of a message: a text, or a list of parts."""
    if type(value) is not str:
        return None
    return parts_in(value.removeprefix(JSON_CONTENT).encode()) if value.startswith(JSON_CONTENT) else value


def usage_of(fields: Json) -> Usage | None:
    """Return tokens as Hermes adds them up, the input without the cache; None if there are none: it adds zeros where
    a provider reports no usage."""
    counts = TokenCounts(fields)
    given, output = counts("input_tokens"), counts("output_tokens")
    usage = counts.usage(given, output, counts("cache_read_tokens"), counts("cache_write_tokens"))
    return usage if usage and any(usage.counts) else None


# ---------------------------------------------------------------- content


def blocks_of(row: HermesRow, fields: Json) -> Iterator[Block]:
    """Yield what a model said, and the tools that it called."""
    if thought := row.reasoning or row.reasoning_content:
        yield base.thinking(thought)
    for part in base.parts_of(content_of(fields.get("content"))):
        text = text_of(part.get("text"))
        yield base.other(part) if text is None else base.text(text)
    for call in parts_in(fields.get("tool_calls")):
        function = fields_of(call.get("function"))
        name = text_of(call.get("id")) or text_of(call.get("call_id"))
        yield base.use(name, text_of(function.get("name")), base.arguments(function.get("arguments")))


def result_of(row: HermesRow, fields: Json) -> Block:
    content = content_of(fields.get("content"))
    text = base.joined_text(content)
    return base.result(row.tool_call_id, content, name=row.tool_name or None, is_error=_is_failure(text))


def _is_failure(text: str) -> bool:
    """Whether a tool failed, which only its result says; a command that ends with an error code fails, too."""
    if not text.startswith("{"):
        return text.startswith(_TOOL_ERRORS) or _UNKNOWN_TOOL in text[:200]
    result = fields_of(base.value_of(text))
    has_failed = result.get("exit_code") not in (None, 0) or result.get("success") is False
    return has_failed or bool(result.get("error")) or result.get("status") == "error"
