"""The message objects of an SDK as the JSON they were made from, read by shape: the SDK is not imported.

The Claude Agent SDK turns each line of its client into a dataclass. The name of the class gives the type, `content`
gives the message inside, `data` is the line itself. A class that was unknown when this was written is handled the same
way.
"""

import dataclasses
import re
from typing import Any

from agent_logger.protocols.json_text import encode

_INNER = {
    "model": "model",
    "message_id": "id",
    "usage": "usage",
    "stop_reason": "stop_reason",
    "stopReason": "stopReason",
}
_RENAMED = {"model_usage": "modelUsage"}


def json_of(message: object) -> bytes | None:
    """The message as one JSON object; `None` for anything that is not a message."""
    if isinstance(message, dict):
        return encode(message)
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        return encode(_message(message))
    return None


def blocks(content: object) -> object:
    """Content as JSON has it: blocks may be objects of the SDK, or dicts already."""
    return [_block(block) for block in content] if isinstance(content, list | tuple) else content


def _message(message: Any) -> dict[str, Any]:
    fields = _fields(message)
    data = fields.get("data")
    if isinstance(data, dict):
        return data if "type" in data else {"type": "system", "subtype": fields.get("subtype"), **data}
    kind = _snake(message, "Message")
    if "content" not in fields:
        return {"type": kind, **{_RENAMED.get(key, key): value for key, value in fields.items()}}
    inner = {name: fields.pop(key) for key, name in _INNER.items() if fields.get(key) is not None}
    content = blocks(fields.pop("content"))
    return {"type": kind, "message": {"role": kind, **inner, "content": content}, **fields}


def _block(block: Any) -> Any:
    if dataclasses.is_dataclass(block) and not isinstance(block, type):
        return {"type": _snake(block, "Block"), **_fields(block)}
    return block


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}


def _snake(value: object, suffix: str) -> str:
    """The name of a class in snake case, without its suffix: `ToolUseBlock` is a `tool_use`; so is a subclass of it
    with a name of its own."""
    names = [cls.__name__ for cls in type(value).__mro__]
    name = next((candidate for candidate in names if candidate.endswith(suffix)), names[0]).removesuffix(suffix)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
