"""The files of pi: one per session, whose first line identifies it as one."""

from agent_logger.agents.single_file import discover, open_session

__all__ = ["begins_session", "discover", "open_session", "recognises"]


def begins_session(first: bytes) -> bool:
    return first.startswith(b'{"type":"session"')


def recognises(first: bytes) -> bool:
    return begins_session(first) and b'"version":' in first.split(b"\n", 1)[0]
