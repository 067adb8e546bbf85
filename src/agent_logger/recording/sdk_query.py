"""The Claude Agent SDK's `query`: called for a logger, or recognised in a stream that a logger is given.

The package does not need the SDK: it is imported when a query is made, and not before.
"""

import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

PACKAGE = "claude_agent_sdk"


def sdk_query() -> Callable[..., AsyncIterator[Any]]:
    """Return the SDK's `query`. Raises `ModuleNotFoundError`, with what to do, if the SDK is not installed."""
    try:
        from claude_agent_sdk import query
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        missing = "SessionLogger.query needs the Claude Agent SDK: pip install claude-agent-sdk"
        raise ModuleNotFoundError(missing, name=PACKAGE) from error
    call: Callable[..., AsyncIterator[Any]] = query  # of no known type where the SDK is not installed
    return call


def query_arguments(stream: object) -> dict[str, Any] | None:
    """Return the arguments of the call of the SDK's `query` that made this stream; `None` if another function made it,
    or if it has started already: then the prompt is on its way."""
    code = getattr(getattr(sys.modules.get(PACKAGE), "query", None), "__code__", None)
    frame = getattr(stream, "ag_frame", None)
    if code is None or frame is None or frame.f_code is not code:
        return None
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    arguments = dict(frame.f_locals)
    return arguments if arguments.keys() == set(names) else None  # else it has variables of its own already


def resumed_session(options: object) -> tuple[str | None, bool]:
    """Return the session that these options resume, and whether they continue one at all: "the last one" has no
    name here."""
    extra = getattr(options, "extra_args", None) or {}
    session = getattr(options, "resume", None) or extra.get("resume")
    return session, bool(session or getattr(options, "continue_conversation", False) or "continue" in extra)
