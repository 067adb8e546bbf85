"""The flight recorder for coding agents.

Names are re-exported lazily: `import agent_logger` costs nothing until one is used.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from agent_logger.agents.claude_code.context import Context, Settings
    from agent_logger.agents.claude_code.transcript.records import (
        AssistantRecord,
        ResultRecord,
        SummaryRecord,
        SystemRecord,
        TokenUsage,
        ToolResultRecord,
        ToolUseRecord,
        UserRecord,
    )
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.discovery.sessions import SessionLocation, discover, find_session
    from agent_logger.catalog.discovery.sessions import SessionLocation as Place
    from agent_logger.catalog.joining.calls import CallDetail, WireCall
    from agent_logger.catalog.summary import Filter, Hit, SessionSummary
    from agent_logger.hooks.events import HookInput
    from agent_logger.logs.reader import read_session
    from agent_logger.messages.outcome import Failure, RunMetadata
    from agent_logger.model.prices import price
    from agent_logger.model.records import ExchangeRecord, ExchangeStats, Message, SessionEnd, SessionStart
    from agent_logger.model.session import (
        Block,
        Cost,
        Difference,
        Exchange,
        Inherited,
        Session,
        SubAgent,
        ToolCall,
        Turn,
        Usage,
    )
    from agent_logger.recording.context import context
    from agent_logger.recording.run.events import Event
    from agent_logger.recording.run.runner import RunResult, run, run_async, stream
    from agent_logger.recording.sdk_logger import SessionLogger
    from agent_logger.transcripts.storage import FileStorage, InMemoryStorage, SessionStorage, StoredSession

__version__ = "0.1.0"

_HOMES = {
    "AssistantRecord": "agent_logger.agents.claude_code.transcript.records",
    "Block": "agent_logger.model.session",
    "CallDetail": "agent_logger.catalog.joining.calls",
    "Catalog": "agent_logger.catalog.catalog",
    "Context": "agent_logger.agents.claude_code.context",
    "Cost": "agent_logger.model.session",
    "Difference": "agent_logger.model.session",
    "Event": "agent_logger.recording.run.events",
    "Exchange": "agent_logger.model.session",
    "ExchangeRecord": "agent_logger.model.records",  # a line of a log; `Exchange` is what all witnesses say
    "ExchangeStats": "agent_logger.model.records",
    "Failure": "agent_logger.messages.outcome",
    "FileStorage": "agent_logger.transcripts.storage",
    "Filter": "agent_logger.catalog.summary",
    "Hit": "agent_logger.catalog.summary",
    "HookInput": "agent_logger.hooks.events",
    "InMemoryStorage": "agent_logger.transcripts.storage",
    "Inherited": "agent_logger.model.session",
    "Message": "agent_logger.model.records",
    "Place": "agent_logger.catalog.discovery.sessions:SessionLocation",  # the name it had
    "ResultRecord": "agent_logger.agents.claude_code.transcript.records",
    "RunMetadata": "agent_logger.messages.outcome",
    "RunResult": "agent_logger.recording.run.runner",
    "Session": "agent_logger.model.session",
    "SessionEnd": "agent_logger.model.records",
    "SessionLocation": "agent_logger.catalog.discovery.sessions",
    "SessionLogger": "agent_logger.recording.sdk_logger",
    "SessionStart": "agent_logger.model.records",
    "SessionStorage": "agent_logger.transcripts.storage",
    "SessionSummary": "agent_logger.catalog.summary",
    "Settings": "agent_logger.agents.claude_code.context",
    "StoredSession": "agent_logger.transcripts.storage",
    "SubAgent": "agent_logger.model.session",
    "SummaryRecord": "agent_logger.agents.claude_code.transcript.records",
    "SystemRecord": "agent_logger.agents.claude_code.transcript.records",
    "TokenUsage": "agent_logger.agents.claude_code.transcript.records",
    "ToolCall": "agent_logger.model.session",
    "ToolResultRecord": "agent_logger.agents.claude_code.transcript.records",
    "ToolUseRecord": "agent_logger.agents.claude_code.transcript.records",
    "Turn": "agent_logger.model.session",
    "Usage": "agent_logger.model.session",
    "UserRecord": "agent_logger.agents.claude_code.transcript.records",
    "WireCall": "agent_logger.catalog.joining.calls",
    "context": "agent_logger.recording.context",
    "discover": "agent_logger.catalog.discovery.sessions",
    "find_session": "agent_logger.catalog.discovery.sessions",
    "price": "agent_logger.model.prices",
    "read_session": "agent_logger.logs.reader",
    "run": "agent_logger.recording.run.runner",
    "run_async": "agent_logger.recording.run.runner",
    "stream": "agent_logger.recording.run.runner",
}

__all__ = [
    "AssistantRecord",
    "Block",
    "CallDetail",
    "Catalog",
    "Context",
    "Cost",
    "Difference",
    "Event",
    "Exchange",
    "ExchangeRecord",
    "ExchangeStats",
    "Failure",
    "FileStorage",
    "Filter",
    "Hit",
    "HookInput",
    "InMemoryStorage",
    "Inherited",
    "Message",
    "Place",
    "ResultRecord",
    "RunMetadata",
    "RunResult",
    "Session",
    "SessionEnd",
    "SessionLocation",
    "SessionLogger",
    "SessionStart",
    "SessionStorage",
    "SessionSummary",
    "Settings",
    "StoredSession",
    "SubAgent",
    "SummaryRecord",
    "SystemRecord",
    "TokenUsage",
    "ToolCall",
    "ToolResultRecord",
    "ToolUseRecord",
    "Turn",
    "Usage",
    "UserRecord",
    "WireCall",
    "context",
    "discover",
    "find_session",
    "price",
    "read_session",
    "run",
    "run_async",
    "stream",
]


def __getattr__(name: str) -> Any:
    try:
        module, _, called = _HOMES[name].partition(":")
    except KeyError:
        raise AttributeError(f"module 'agent_logger' has no attribute {name!r}") from None
    return getattr(import_module(module), called or name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _FormerNames:
    """Finds modules by the names that they had before they moved."""

    @staticmethod
    def find_spec(name: str, *_: object) -> "ModuleSpec | None":
        if not name.startswith("agent_logger."):
            return None
        from agent_logger._former_names import spec_of

        return spec_of(name)


sys.meta_path.append(_FormerNames)
