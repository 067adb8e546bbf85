"""Tools and the calls of them as functions of OpenAI's chat API, whichever API they were sent to."""

import json
import re
from collections.abc import Mapping
from typing import Any

MOST_NAME = 64  # characters of a function's name
_ODD = re.compile(r"[^A-Za-z0-9_-]")


def function_name(name: str | None) -> str:
    """Return a name that the API takes."""
    return _ODD.sub("_", name or "unknown")[:MOST_NAME]


def arguments_of(value: Any) -> dict[str, Any]:
    """Return the input of a tool as an object. A tool may take a text, such as a patch."""
    if isinstance(value, str):
        value = _object_in(value) or value
    if isinstance(value, dict):
        return value
    return {} if value is None else {"input": value}


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def function_definitions(tools: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [_function(name, definition) for name, definition in tools.items()]


def _function(name: str, definition: Any) -> dict[str, Any]:
    fields = definition if isinstance(definition, dict) else {}
    inner = fields.get("function")
    fields = inner if isinstance(inner, dict) else fields
    parameters = next(
        (
            fields[key]
            for key in ("input_schema", "parameters", "parametersJsonSchema")
            if isinstance(fields.get(key), dict)
        ),
        {"type": "object", "properties": {}},
    )
    description = fields.get("description")
    function = {"name": name, "parameters": parameters}
    if isinstance(description, str):
        function["description"] = description
    return {"type": "function", "function": function}
