"""A line of Claude Code's `history.jsonl`. Pasted text is stored apart from typed text."""

import re
from typing import Any

import msgspec

from agent_logger.agents.objects import time_of_ms
from agent_logger.agents.prompt_history import Prompt
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import fitting

_PASTED = re.compile(r"\[Pasted text #(\d+)[^\]]*\]")


class _Pasted(msgspec.Struct):
    content: str | None = None


class _Line(msgspec.Struct):
    display: str = ""
    pasted: dict[str, _Pasted] | None = msgspec.field(name="pastedContents", default=None)
    timestamp: Any = None
    project: str | None = None
    session: str | None = msgspec.field(name="sessionId", default=None)


def prompt_of(value: Json) -> tuple[str | None, Prompt]:
    line = fitting(_Line, value)
    pasted = line.pasted or {}
    text = _PASTED.sub(lambda mark: pasted.get(mark[1], _Pasted()).content or mark[0], line.display)
    return line.session, Prompt(text, time_of_ms(line.timestamp), line.project)
