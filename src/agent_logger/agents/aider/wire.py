"""The calls of aider: those that ask for a commit message, or for a summary, have system prompts of their own."""

from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.providers.request_body import RequestBody

_SIDE = (
    b"You are an expert software engineer that generates concise",
    b"*Briefly* summarize this partial conversation",
)


class AiderCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        prompt = body.system_prompt
        first = [bytes(unit) for unit in units[:1]] + ([prompt.encode()] if isinstance(prompt, str) else [])
        return any(words in text for words in _SIDE for text in first)


CALLS = AiderCalls()
