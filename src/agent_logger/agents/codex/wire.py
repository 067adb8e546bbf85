"""The calls of Codex: its sessions in `prompt_cache_key`."""

from agent_logger.agents.contracts import CallShapes
from agent_logger.model.records import Identity
from agent_logger.providers.request_body import RequestBody, named_id, text


class CodexCalls(CallShapes):
    def session_in(self, body: RequestBody, *, is_own: bool) -> Identity | None:
        """Return the session in `prompt_cache_key` of Codex' own calls. Other clients give one key to all of their
        sessions: there it only says which prompts begin alike."""
        session = named_id(text(body.prompt_cache_key)) if is_own else None
        return Identity(id=session, source="prompt_cache_key", confidence="likely") if session else None


CALLS = CodexCalls()
