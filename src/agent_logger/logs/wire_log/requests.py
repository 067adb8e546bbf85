"""What a call sent to the model, independent of the API; and what is new in it since the call before.

Agents send their whole history again with every call. Only the difference matters to a reader: the messages that were
added, and a system prompt or tools that have changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import msgspec

from agent_logger.logs.wire_log.answers import body_of
from agent_logger.model.records import Request
from agent_logger.model.session import Block
from agent_logger.providers import request_body
from agent_logger.providers.blocks.base import joined_text, value_of
from agent_logger.providers.blocks.registry import message_blocks
from agent_logger.providers.json_values import fields_of, text_of
from agent_logger.providers.lenient import fitting
from agent_logger.providers.registry import Dialect, dialect_of

# Moves to the newest block with every call, and is not part of the conversation.
CACHE_MARK = "cache_control"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    # user, assistant, tool, system, ... as the API calls it; for an item without a role, its type.
    role: str
    blocks: Sequence[Block]
    raw: Any  # as it was sent


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView:
    model: str | None
    system: str  # the prompt beside the messages, as text
    tools: Mapping[str, Any]  # their definitions, by name, in order
    messages: Sequence[SentMessage]
    goes_on_from: str | None = None  # the answer that the messages follow, where they alone were sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    before: str | None
    after: str | None


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What changed in a call since the one before it in its thread. What is unchanged is left out."""

    since: str  # that call
    unchanged: int = msgspec.field(name="kept")  # messages at the beginning that are the same
    dropped: int  # messages after them that are gone
    messages: Sequence[SentMessage] = ()  # that are new
    model: Change | None = None
    system: Change | None = None
    tools_added: Sequence[str] = ()
    tools_removed: Sequence[str] = ()
    tools_changed: Sequence[str] = ()


def asked_of(request: Request, provider: str) -> RequestView | None:
    """Return what a call sent; None for a call to no model, or whose body cannot be read."""
    dialect = dialect_of(provider, request.path)
    body = dialect.request(body_of(request), request.path) if dialect else None
    if dialect is None or body is None:
        return None
    return RequestView(
        model=request_body.text(body.model),
        system=_system(body.system_prompt),
        tools=dict(_tools(request_body.value(body.tools))),
        messages=[_message(dialect, message) for message in dialect.messages(body)],
        goes_on_from=request_body.text(body.previous_response_id),
    )


def changes(before: RequestView, after: RequestView, since: str) -> Changes:
    """Compare two calls. `since`: the name of the call before."""
    same = 0 if after.goes_on_from else _same(before.messages, after.messages)
    both = before.tools.keys() & after.tools.keys()
    return Changes(
        since=since,
        unchanged=same,
        dropped=0 if after.goes_on_from else len(before.messages) - same,
        messages=after.messages[same:],
        model=_change(before.model, after.model),
        system=_change(before.system, after.system),
        tools_added=[name for name in after.tools if name not in both],
        tools_removed=[name for name in before.tools if name not in both],
        tools_changed=[
            name
            for name in after.tools
            if name in both and without_cache_marks(before.tools[name]) != without_cache_marks(after.tools[name])
        ],
    )


def _change(before: str | None, after: str | None) -> Change | None:
    return None if before == after else Change(before=before, after=after)


def _same(before: Sequence[SentMessage], after: Sequence[SentMessage]) -> int:
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: comparable(pair[0]) == comparable(pair[1]), pairs))


def comparable(message: SentMessage) -> Any:
    """Return a message for comparison. When the cache's mark moves on, a single text block may become a text."""
    fields = without_cache_marks(message.raw)
    content = fields.get("content") if isinstance(fields, dict) else None
    return {**fields, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else fields


def without_cache_marks(value: Any) -> Any:
    """Remove the marks of the cache: on messages and tools, on their blocks, and on those in results of tools."""
    if isinstance(value, list):
        return [without_cache_marks(item) for item in value]
    if not isinstance(value, dict):
        return value
    unmarked = {name: item for name, item in value.items() if name != CACHE_MARK}
    return unmarked | {"content": without_cache_marks(unmarked["content"])} if "content" in unmarked else unmarked


# ---------------------------------------------------------------- reading


class _Function(msgspec.Struct):
    name: str | None = None


class _Tool(msgspec.Struct):
    name: str | None = None
    type: str | None = None
    function: _Function | None = None
    custom: _Function | None = None
    declared: list[Any] | None = msgspec.field(name="functionDeclarations", default=None)  # Gemini's


def _tools(tools: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tools by name, as they were sent."""
    for given in tools if isinstance(tools, list) else ():
        declared = fitting(_Tool, given).declared
        for tool in [given] if declared is None else declared:
            yield _name(fitting(_Tool, tool)), tool


def _name(tool: _Tool) -> str:
    inner = tool.function or tool.custom
    return (inner.name if inner else None) or tool.name or tool.type or ""


def _message(dialect: Dialect, raw: msgspec.Raw) -> SentMessage:
    value = value_of(raw)
    fields = fields_of(value)
    role = text_of(fields.get("role")) or text_of(fields.get("type")) or ""
    return SentMessage(role=role, blocks=message_blocks(dialect, fields), raw=value)


def _system(value: Any) -> str:
    return joined_text(value.get("parts") if isinstance(value, dict) else value)  # Gemini's is a dict
