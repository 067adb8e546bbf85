"""Keys taken out of what is shown, on the way from a session to its pieces: nothing reaches a view past this."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agent_logger.redact import hidden
from agent_logger.session import ToolCall

DEEPEST = 100  # levels of a JSON value; nobody reads further


def hidden_value(value: Any, depth: int = 0) -> Any:
    """A JSON value, every text in it."""
    if isinstance(value, str):
        return hidden(value)
    if depth > DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {
            hidden(key) if isinstance(key, str) else key: hidden_value(it, depth + 1)
            for key, it in value.items()
        }
    if isinstance(value, list | tuple):
        return [hidden_value(it, depth + 1) for it in value]
    return value


def hidden_call(call: ToolCall) -> ToolCall:
    """All but `raw`: of that only pictures are shown, and a text in the letters of one would break it."""
    return replace(
        call,
        name=None if call.name is None else hidden(call.name),
        input=hidden_value(call.input),
        result=None if call.result is None else hidden(call.result),
    )
