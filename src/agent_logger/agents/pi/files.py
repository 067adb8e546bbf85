"""The files of pi: one per session, whose first line identifies it as one."""

from agent_logger.agents.single_file import discover, open_session

__all__ = ["begins_session", "discover", "open_session"]


def begins_session(first: bytes) -> bool:
    return first.startswith(b'{"type":"session"')
