"""What was typed, over all sessions: `history.jsonl`, which Claude Code and Codex keep beside their sessions.

It outlives the sessions' own files, which clients delete after a while. Of a session whose file is gone it tells the
prompts and their times, and nothing else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from agent_logger.agents.objects import in_utc, objects_of
from agent_logger.agents.source_files import File
from agent_logger.model.session import LOST, Exchange, Session
from agent_logger.providers.answer import Json
from agent_logger.providers.lenient import fitting

_EVERY_LINE = re.compile(rb"(?!)")
_PASTED = re.compile(r"\[Pasted text #(\d+)[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Prompt:
    text: str
    at: datetime | None
    project: str | None

    @property
    def is_command(self) -> bool:
        """Of the client's; no model needs to have seen it."""
        return self.text.startswith("/")


def prompts_of(file: File) -> dict[str, list[Prompt]]:
    """By session, in the order they were typed; without sessions that only commands were typed in."""
    by_session: dict[str, list[Prompt]] = {}
    for value in objects_of(file, but=_EVERY_LINE):
        session, prompt = _of_codex(value) if "ts" in value else _of_claude_code(value)
        if session and prompt.text.strip():
            by_session.setdefault(session, []).append(prompt)
    return {
        name: prompts
        for name, prompts in by_session.items()
        if not all(prompt.is_command for prompt in prompts)
    }


class _Pasted(msgspec.Struct):
    content: str | None = None


class _ClaudeLine(msgspec.Struct):
    display: str = ""
    pasted: dict[str, _Pasted] | None = msgspec.field(name="pastedContents", default=None)
    timestamp: Any = None
    project: str | None = None
    session: str | None = msgspec.field(name="sessionId", default=None)


def _of_claude_code(value: Json) -> tuple[str | None, Prompt]:
    line = fitting(_ClaudeLine, value)
    pasted = line.pasted or {}
    text = _PASTED.sub(lambda mark: pasted.get(mark[1], _Pasted()).content or mark[0], line.display)
    return line.session, Prompt(text, _time(line.timestamp, 1000), line.project)


class _CodexLine(msgspec.Struct):
    text: str = ""
    ts: Any = None
    session_id: str | None = None
    conversation_id: str | None = None  # older versions


def _of_codex(value: Json) -> tuple[str | None, Prompt]:
    line = fitting(_CodexLine, value)
    return line.session_id or line.conversation_id, Prompt(line.text, _time(line.ts, 1), None)


def _time(value: Any, parts: int) -> datetime | None:
    """`parts` of a second since 1970."""
    try:
        return in_utc(datetime.fromtimestamp(value / parts, UTC))
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def session_of(agent: str, name: str, prompts: Sequence[Prompt]) -> Session:
    """Each prompt was the beginning of an exchange, of which nothing more is known."""
    times = [prompt.at for prompt in prompts if prompt.at]
    first = next((prompt for prompt in prompts if not prompt.is_command), None)
    return Session(
        id=name,
        agent=agent,
        title=first.text.strip().split("\n")[0] if first else None,
        project=next((prompt.project for prompt in prompts if prompt.project), None),
        started=min(times, default=None),
        ended=max(times, default=None),
        exchanges=[
            Exchange(
                number=number, started=prompt.at, user_input=prompt.text, complete=False, end_reason=LOST
            )
            for number, prompt in enumerate(prompts, 1)
        ],
        prompts_only=True,
    )
