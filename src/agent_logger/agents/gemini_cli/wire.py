"""The calls of Gemini CLI: side calls, like the choice of a model, request answers in JSON.

With a Google login they go to Code Assist, and have the session's id beside the history; otherwise they have none.
"""

from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.model.records import Identity
from agent_logger.providers.request_body import RequestBody, named_id, text, value


class GeminiCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        config = value(body.generation_config)
        asks_for_json = isinstance(config, dict) and config.get("responseMimeType") == "application/json"
        return asks_for_json and not body.has_tools

    def session_in(self, body: RequestBody) -> Identity | None:
        session = named_id(text(body.session_id)) if body.contents is not None else None
        return Identity(id=session, source="session_id", confidence="certain") if session else None


CALLS = GeminiCalls()
