"""The calls of Kimi Code: with Anthropic's API, its sessions are in `metadata.user_id`."""

import re

from agent_logger.agents.contracts import CallShapes
from agent_logger.model.ids import UUID_PATTERN
from agent_logger.model.records import Identity
from agent_logger.providers.request_body import RequestBody, value

_SESSION = re.compile(rf"session_{UUID_PATTERN}")


class KimiCalls(CallShapes):
    def session_in(self, body: RequestBody) -> Identity | None:
        """Return the session that Kimi Code's calls name; those of its sub-agents name the same."""
        metadata = value(body.metadata) if len(body.metadata) else None
        user = metadata.get("user_id") if isinstance(metadata, dict) else None
        if not (isinstance(user, str) and _SESSION.fullmatch(user)):
            return None
        return Identity(id=user, source="metadata.user_id", confidence="certain")


CALLS = KimiCalls()
