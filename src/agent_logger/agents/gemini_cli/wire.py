"""The calls of Gemini CLI: side calls, like the choice of a model, request answers in JSON."""

from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.providers.request_body import RequestBody, value


class GeminiCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        config = value(body.generation_config)
        asks_for_json = isinstance(config, dict) and config.get("responseMimeType") == "application/json"
        return asks_for_json and not body.has_tools


CALLS = GeminiCalls()
