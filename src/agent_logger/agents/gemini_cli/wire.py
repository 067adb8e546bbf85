"""The calls of Gemini CLI: side calls, like the choice of a model, request answers in JSON.

With a Google login they go to Code Assist, and have the session's id beside the history; otherwise they have none. What
made the call is beside that: the session's id, with `########` and a number in a terminal, or a sub-agent's id with `#`
and the number of its turn.
"""

import re
from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.model.ids import UUID_PATTERN
from agent_logger.model.records import Identity
from agent_logger.providers.request_body import RequestBody, named_id, text, value

_SUB_AGENT = re.compile(rf"({UUID_PATTERN})#\d+")


class GeminiCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        return self._asks_for_json(body)

    def session_in(self, body: RequestBody) -> Identity | None:
        session = named_id(text(body.session_id)) if body.contents is not None else None
        return Identity(id=session, source="session_id", confidence="certain") if session else None

    def agent_in(self, body: RequestBody) -> str | None:
        match = _SUB_AGENT.fullmatch(text(body.user_prompt_id) or "")
        return match[1] if match and not self._asks_for_json(body) else None

    @staticmethod
    def _asks_for_json(body: RequestBody) -> bool:
        config = value(body.generation_config)
        asks = isinstance(config, dict) and config.get("responseMimeType") == "application/json"
        return asks and not body.has_tools


CALLS = GeminiCalls()
