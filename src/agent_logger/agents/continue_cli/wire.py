"""The calls of Continue: the one that asks for a title has a prompt of its own, and no system prompt."""

from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.providers.request_body import RequestBody

_TITLE = b"please reply with a title for the chat that is 3-4 words in length"


class ContinueCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        return len(units) == 1 and _TITLE in bytes(units[0])


CALLS = ContinueCalls()
