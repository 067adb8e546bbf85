"""Sub-agents of clients that do not name them on the wire, as Claude Code before 2.1.197: known by what they were told.

A tool call of the model's has a prompt, and the sub-agent's every request begins with it. It goes by the call's id.

Only who has not been answered yet needs this: then the sub-agent is known by its history, as any thread is. So it is
kept in memory, and after a restart the tails of the logs tell it again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_logger.tracking.body import value

AGENT = "agent:"  # how the threads of sub-agents begin
TOOLS = ("Task", "Agent")
MOST_PROMPTS, MOST_SESSIONS = 200, 1_000  # that are remembered; of each session the last ones


def is_unnamed(thread: str) -> bool:
    """Whether it goes by a tool call, as no client calls its sub-agents."""
    return thread.startswith(AGENT + "toolu_")


class UnnamedAgents:
    """Those that were started, by the root of a session's logs."""

    def __init__(self) -> None:
        self._told: dict[str, dict[str, str]] = {}  # by prompt, the id of the call

    def note(self, root: str, message: Mapping[str, Any]) -> None:
        """An answer of the model's."""
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") in TOOLS:
                self._start(root, block.get("id"), block.get("input"))

    def _start(self, root: str, call: Any, given: Any) -> None:
        prompt = given.get("prompt") if isinstance(given, dict) else None
        if isinstance(prompt, str) and prompt.strip() and isinstance(call, str):
            told = self._told.setdefault(root, {})
            told[prompt.strip()] = call
            _forget(told, MOST_PROMPTS)
            _forget(self._told, MOST_SESSIONS)

    def asking(self, root: str, units: Sequence[msgspec.Raw]) -> str | None:
        """The call that started who sends this history."""
        told = self._told.get(root)
        first = value(units[0]) if told and units else None
        if not told or not isinstance(first, dict):
            return None
        content = first.get("content")
        texts = (
            [it.get("text") for it in content if isinstance(it, dict)]
            if isinstance(content, list)
            else [content]
        )
        found = (told.get(text.strip()) for text in texts if isinstance(text, str))
        return next(filter(None, found), None)


def _forget(told: dict[str, Any], most: int) -> None:
    if len(told) > most:
        del told[next(iter(told))]
