"""What the blocks of every dialect are made of. An unknown part is kept as `other`, a part without a shape is left
out."""

from collections.abc import Iterator
from typing import Any

import msgspec

from agent_logger.model.session import Block, BlockKind
from agent_logger.providers.json_values import Json, parsed


def parts_of(content: Any) -> Iterator[Json]:
    """Yield the parts of a content. A text is short for one part."""
    if isinstance(content, str):
        if content:
            yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict):
                yield part


def text(content: str | None) -> Block:
    return Block(kind="text", text=content or "")


def thinking(thought: str | None) -> Block:
    return Block(kind="thinking", text=thought or "")


def use(called: str | None, name: str | None, given: Any) -> Block:
    return Block(kind="tool_use", id=called, name=name, input=given)


def result(called: str | None, content: Any, *, name: str | None = None, is_error: bool = False) -> Block:
    parts = list(parts_of(content))
    told_all = isinstance(content, str | None) or (
        isinstance(content, list) and all(isinstance(part.get("text"), str) for part in parts)
    )
    return Block(
        kind="tool_result",
        text=joined_text(content) if isinstance(content, str | list | None) else _json(content),
        id=called,
        name=name,
        is_error=is_error,
        raw=None if told_all else content,
    )


def other(part: Json, kind: BlockKind = "other") -> Block:
    return Block(kind=kind, raw=part)


def joined_text(content: Any) -> str:
    """The text of a content, or of those of its parts that are text."""
    return "\n".join(part["text"] for part in parts_of(content) if isinstance(part.get("text"), str))


def arguments(given: Any) -> Any:
    """The arguments of a tool call. Those of a call that was cut, or that the model wrote wrong, stay text."""
    if not isinstance(given, str):
        return given
    value = value_of(given)
    return given if value is None else value


def value_of(raw: msgspec.Raw | str) -> Any:
    """The value of JSON text; `None` if it cannot be read."""
    try:
        return parsed(raw if isinstance(raw, str) else bytes(raw).decode())
    except (ValueError, RecursionError):
        return None


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, RecursionError):
        return ""
