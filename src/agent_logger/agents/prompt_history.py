"""What was typed in all sessions: some agents keep it in a file beside their sessions.

It outlives the sessions' own files, which clients delete after a while. Of a session whose file is gone it has the
prompts and their times, and nothing else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from agent_logger.agents.objects import objects_of
from agent_logger.agents.source_files import File
from agent_logger.model.session import LOST, Exchange, Session

if TYPE_CHECKING:
    from agent_logger.agents.contracts import PromptReader

_EVERY_LINE = re.compile(rb"(?!)")


@dataclass(frozen=True, slots=True)
class Prompt:
    text: str
    at: datetime | None
    project: str | None

    @property
    def is_command(self) -> bool:
        """Whether the prompt is a command of the client, which no model needs to have seen."""
        return self.text.startswith("/")


def prompts_of(reader: "PromptReader", file: File) -> dict[str, list[Prompt]]:
    """Return the prompts by session, in the order they were typed; without sessions in which only commands were
    typed."""
    by_session: dict[str, list[Prompt]] = {}
    for value in objects_of(file, but=_EVERY_LINE):
        session, prompt = reader.prompt_of(value)
        if session and prompt.text.strip():
            by_session.setdefault(session, []).append(prompt)
    return {name: prompts for name, prompts in by_session.items() if not all(prompt.is_command for prompt in prompts)}


def session_of(agent: str, name: str, prompts: Sequence[Prompt]) -> Session:
    """Build a session in which each prompt begins an exchange, of which nothing more is known."""
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
            Exchange(number=number, started=prompt.at, user_input=prompt.text, complete=False, end_reason=LOST)
            for number, prompt in enumerate(prompts, 1)
        ],
        prompts_only=True,
    )
