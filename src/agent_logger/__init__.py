"""The flight recorder for coding agents.

Names are re-exported lazily: `import agent_logger` costs nothing until one is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_logger.capture.context import context
    from agent_logger.capture.logger import SessionLogger
    from agent_logger.capture.runner import RunResult, run, run_async, stream
    from agent_logger.catalog.calls import CallDetail, WireCall
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.sessions import Place, discover, find_session
    from agent_logger.catalog.summary import Filter, Hit, SessionSummary
    from agent_logger.formats.claude_code.records import (
        AssistantRecord,
        ResultRecord,
        SummaryRecord,
        SystemRecord,
        TokenUsage,
        ToolResultRecord,
        ToolUseRecord,
        UserRecord,
    )
    from agent_logger.formats.cli_output.events import Event
    from agent_logger.formats.cli_output.outcome import Failure, RunMetadata
    from agent_logger.formats.hooks import HookInput
    from agent_logger.prices import price
    from agent_logger.records import Exchange as ExchangeRecord
    from agent_logger.records import ExchangeStats, Message, SessionEnd, SessionStart
    from agent_logger.session import (
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
    from agent_logger.storage import FileStorage, InMemoryStorage, SessionStorage, StoredSession
    from agent_logger.store.context import Context, Settings
    from agent_logger.store.read import read_session

__version__ = "0.1.0"

_HOMES = {
    "AssistantRecord": "formats.claude_code.records",
    "Block": "session",
    "CallDetail": "catalog.calls",
    "Catalog": "catalog.catalog",
    "Context": "store.context",
    "Cost": "session",
    "Difference": "session",
    "Event": "formats.cli_output.events",
    "Exchange": "session",
    "ExchangeRecord": "records:Exchange",  # the line of a log; `Exchange` is what all witnesses say together
    "ExchangeStats": "records",
    "Failure": "formats.cli_output.outcome",
    "FileStorage": "storage",
    "Filter": "catalog.summary",
    "Hit": "catalog.summary",
    "HookInput": "formats.hooks",
    "InMemoryStorage": "storage",
    "Inherited": "session",
    "Message": "records",
    "Place": "catalog.sessions",
    "ResultRecord": "formats.claude_code.records",
    "RunMetadata": "formats.cli_output.outcome",
    "RunResult": "capture.runner",
    "Session": "session",
    "SessionEnd": "records",
    "SessionLogger": "capture.logger",
    "SessionStart": "records",
    "SessionStorage": "storage",
    "SessionSummary": "catalog.summary",
    "Settings": "store.context",
    "StoredSession": "storage",
    "SubAgent": "session",
    "SummaryRecord": "formats.claude_code.records",
    "SystemRecord": "formats.claude_code.records",
    "TokenUsage": "formats.claude_code.records",
    "ToolCall": "session",
    "ToolResultRecord": "formats.claude_code.records",
    "ToolUseRecord": "formats.claude_code.records",
    "Turn": "session",
    "Usage": "session",
    "UserRecord": "formats.claude_code.records",
    "WireCall": "catalog.calls",
    "context": "capture.context",
    "discover": "catalog.sessions",
    "find_session": "catalog.sessions",
    "price": "prices",
    "read_session": "store.read",
    "run": "capture.runner",
    "run_async": "capture.runner",
    "stream": "capture.runner",
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
    return getattr(import_module(f".{module}", __name__), called or name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
