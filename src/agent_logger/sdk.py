"""The Claude Agent SDK's `SessionStore` on our storage."""

from agent_logger.transcripts.sdk_store import AgentLoggerSessionStore as AgentLoggerSessionStore
