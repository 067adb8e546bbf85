"""The flight recorder for coding agents.

Names are re-exported lazily: `import agent_logger` costs nothing until one is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_logger.formats.claude_records import (
        AssistantRecord,
        ResultRecord,
        SummaryRecord,
        SystemRecord,
        TokenUsage,
        ToolResultRecord,
        ToolUseRecord,
        UserRecord,
    )
    from agent_logger.prices import price
    from agent_logger.session import Block, Cost, Exchange, Session, SubAgent, ToolCall, Turn, Usage
    from agent_logger.store.read import read_session

__version__ = "0.1.0"

_HOMES = {
    "AssistantRecord": "formats.claude_records",
    "Block": "session",
    "Cost": "session",
    "Exchange": "session",
    "ResultRecord": "formats.claude_records",
    "Session": "session",
    "SubAgent": "session",
    "SummaryRecord": "formats.claude_records",
    "SystemRecord": "formats.claude_records",
    "TokenUsage": "formats.claude_records",
    "ToolCall": "session",
    "ToolResultRecord": "formats.claude_records",
    "ToolUseRecord": "formats.claude_records",
    "Turn": "session",
    "Usage": "session",
    "UserRecord": "formats.claude_records",
    "price": "prices",
    "read_session": "store.read",
}

__all__ = [
    "AssistantRecord",
    "Block",
    "Cost",
    "Exchange",
    "ResultRecord",
    "Session",
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
    "price",
    "read_session",
]


def __getattr__(name: str) -> Any:
    try:
        module = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'agent_logger' has no attribute {name!r}") from None
    return getattr(import_module(f".{module}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
