"""The flight recorder for coding agents.

Names are re-exported lazily: `import agent_logger` costs nothing until one is used.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__version__ = "0.1.0"

# The public names, by the module that defines them. Type checkers read `__init__.pyi`, which `./dev docs` writes from
# this table.
_HOMES = {
    "agent_logger.agents.claude_code.context": ["Context", "Settings"],
    "agent_logger.agents.claude_code.transcript.records": [
        "AssistantRecord",
        "ResultRecord",
        "SummaryRecord",
        "SystemRecord",
        "TokenUsage",
        "ToolResultRecord",
        "ToolUseRecord",
        "UserRecord",
    ],
    "agent_logger.catalog.catalog": ["Catalog"],
    "agent_logger.catalog.discovery.sessions": ["SessionLocation", "discover", "find_session"],
    "agent_logger.catalog.joining.calls": ["CallDetail", "WireCall"],
    "agent_logger.catalog.summary": ["Filter", "Hit", "SessionSummary"],
    "agent_logger.hooks.events": ["HookInput"],
    "agent_logger.logs.reader": ["read_session"],
    "agent_logger.messages.outcome": ["Failure", "RunMetadata"],
    "agent_logger.model.prices": ["price"],
    "agent_logger.model.records": [
        "ExchangeRecord",
        "ExchangeStats",
        "Message",
        "SessionEnd",
        "SessionStart",
    ],
    "agent_logger.model.session": [
        "Block",
        "Cost",
        "Difference",
        "Exchange",
        "Inherited",
        "Session",
        "SubAgent",
        "ToolCall",
        "Turn",
        "Usage",
    ],
    "agent_logger.recording.context": ["context"],
    "agent_logger.recording.run.events": ["Event"],
    "agent_logger.recording.run.printed": ["read_output"],
    "agent_logger.recording.run.runner": ["RunResult", "run", "run_async", "stream"],
    "agent_logger.recording.sdk_logger": ["SessionLogger"],
    "agent_logger.transcripts.storage": ["FileStorage", "InMemoryStorage", "SessionStorage", "StoredSession"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_FORMER = {"Place": "SessionLocation"}  # names that warn until they are removed

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        from agent_logger._former_names import warn_of

        warn_of(f"agent_logger.{name}", f"agent_logger.{_FORMER[name]}")
        name = _FORMER[name]
    if name not in _HOME_OF:
        raise AttributeError(f"module 'agent_logger' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


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
