"""The flight recorder for coding agents.

Names are re-exported lazily: `import agent_logger` costs nothing until one is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_logger.prices import price
    from agent_logger.session import Block, Cost, Exchange, Session, ToolCall, Turn, Usage
    from agent_logger.store.read import read_session

__version__ = "0.1.0"

_HOMES = {
    "Block": "session",
    "Cost": "session",
    "Exchange": "session",
    "Session": "session",
    "ToolCall": "session",
    "Turn": "session",
    "Usage": "session",
    "price": "prices",
    "read_session": "store.read",
}

__all__ = ["Block", "Cost", "Exchange", "Session", "ToolCall", "Turn", "Usage", "price", "read_session"]


def __getattr__(name: str) -> Any:
    try:
        module = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'agent_logger' has no attribute {name!r}") from None
    return getattr(import_module(f".{module}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
