"""A line of Codex' `history.jsonl`."""

from typing import Any

import msgspec

from agent_logger.agents.prompt_history import Prompt, prompt_time
from agent_logger.providers.answer import Json
from agent_logger.providers.lenient import fitting


class _Line(msgspec.Struct):
    text: str = ""
    ts: Any = None
    session_id: str | None = None
    conversation_id: str | None = None  # older versions


def prompt_of(value: Json) -> tuple[str | None, Prompt]:
    line = fitting(_Line, value)
    return line.session_id or line.conversation_id, Prompt(line.text, prompt_time(line.ts, 1), None)
