"""The calls of Goose: those of a conversation have tools. The others ask for titles, or for a summary."""

from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.providers.request_body import RequestBody


class GooseCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        return not body.has_tools


CALLS = GooseCalls()
