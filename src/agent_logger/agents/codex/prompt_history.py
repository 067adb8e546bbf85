"""A line of Codex' `history.jsonl`."""

import msgspec

from agent_logger.agents.objects import time_of_ms
from agent_logger.agents.prompt_history import Prompt
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import fitting


class _Line(msgspec.Struct):
    text: str = ""
    ts: int | float | None = None  # seconds
    session_id: str | None = None
    conversation_id: str | None = None  # older versions


def prompt_of(value: Json) -> tuple[str | None, Prompt]:
    line = fitting(_Line, value)
    at = time_of_ms(line.ts * 1000) if line.ts is not None else None
    return line.session_id or line.conversation_id, Prompt(line.text, at, None)
