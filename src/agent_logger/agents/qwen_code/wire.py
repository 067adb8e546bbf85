"""The calls of Qwen Code: after an answer it calls a model to update its memory."""

from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.providers.request_body import RequestBody, only_text

KEEPS_MEMORY = "You are now acting as the managed memory"


class QwenCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        first = units[0]
        return KEEPS_MEMORY.encode() in bytes(first) and (only_text(first) or "").startswith(KEEPS_MEMORY)


CALLS = QwenCalls()
