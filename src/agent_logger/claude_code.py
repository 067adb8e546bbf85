"""The lines of Claude Code's session files, as types."""

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

__all__ = [
    "AssistantRecord",
    "ResultRecord",
    "SummaryRecord",
    "SystemRecord",
    "TokenUsage",
    "ToolResultRecord",
    "ToolUseRecord",
    "UserRecord",
]
