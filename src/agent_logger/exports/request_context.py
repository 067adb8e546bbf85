"""The system prompt and the tools that a model was given, where the proxy recorded the calls of a session."""

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
