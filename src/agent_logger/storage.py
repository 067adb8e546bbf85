"""The storage of sessions for agents that others write."""

from agent_logger.transcripts.storage import FileStorage as FileStorage
from agent_logger.transcripts.storage import InMemoryStorage as InMemoryStorage
from agent_logger.transcripts.storage import Message as Message
from agent_logger.transcripts.storage import SessionStorage as SessionStorage
from agent_logger.transcripts.storage import StoredSession as StoredSession
