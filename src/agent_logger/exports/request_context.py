"""The system prompt and the tools that a model was given, where the proxy recorded the calls of a session.

Tools, and the calls of them, are functions of OpenAI's chat API here, whichever API they were sent to.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agent_logger.exports.base import ExportedSession
from agent_logger.exports.masks.mask import SessionMask, mapped
from agent_logger.files.parts import PartFile
from agent_logger.logs.log_records import read_log
from agent_logger.logs.wire_log.requests import asked_of
from agent_logger.model.records import Request, WireStart
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import MAIN
from agent_logger.views.hide import hidden_value

MAIN_KINDS = (None, "main")
MOST_NAME = 64  # characters of a function's name
_ODD = re.compile(r"[^A-Za-z0-9_-]")


class RequestContext(msgspec.Struct, frozen=True, kw_only=True):
    """What stands beside the messages of a request."""

    system: str = ""
    tools: Mapping[str, Any] = {}  # the definitions, as they were sent, by name


def request_context(session: ExportedSession, mask: SessionMask) -> RequestContext | None:
    """Return the context of the last call of the main thread that had one, without secrets, and masked; None if the
    proxy recorded none."""
    context = _last_context(session)
    if context is None:
        return None
    return RequestContext(
        system=mask.text(hidden(context.system)), tools=mapped(hidden_value(context.tools), mask.text)
    )


def _last_context(session: ExportedSession) -> RequestContext | None:
    contexts = (context for log in session.wire_logs() for context in _contexts(log))
    with_tools, last = None, None
    for last in contexts:
        if last.tools:
            with_tools = last
    return with_tools or last


def _contexts(log: PartFile) -> Iterator[RequestContext]:
    provider, request = "", None
    for item in read_log(log.folder, log.name):
        match item.value:
            case WireStart() as start:
                provider = start.provider
            case Request(kind=kind, thread=thread) as candidate if kind in MAIN_KINDS and thread in (None, MAIN):
                request = candidate
    # The last one stands for all: agents send the same prompt and tools with every call.
    view = asked_of(request, provider) if request else None
    if view and (view.system or view.tools):
        yield RequestContext(system=view.system, tools=view.tools)


# ---------------------------------------------------------------- functions


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
