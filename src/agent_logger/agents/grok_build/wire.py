"""The calls of Grok Build: titles have no tools, or no session; lines for a dashboard have both, and are known by their
prompt."""

from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.providers.request_body import RequestBody, only_text

DASHBOARD = "<system-reminder>Write an ultra-short dashboard line"


class GrokCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        if not has_id or not body.has_tools:
            return True
        last = units[-1]
        return DASHBOARD.encode() in bytes(last) and (only_text(last) or "").startswith(DASHBOARD)


CALLS = GrokCalls()
