"""The storage of sessions for agents that others write."""

from agent_logger.transcripts.storage import (
    FileStorage,
    InMemoryStorage,
    Message,
    SessionStorage,
    StoredSession,
)

__all__ = ["FileStorage", "InMemoryStorage", "Message", "SessionStorage", "StoredSession"]
