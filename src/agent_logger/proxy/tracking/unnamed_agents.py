"""Sub-agents of clients that do not name them on the wire, as Claude Code before 2.1.197: known by what they were told.

A tool call of the model's has a prompt, and the sub-agent's every request begins with it. It goes by the call's id.

Only who has not been answered yet needs this: then the sub-agent is known by its history, as any thread is. So it is
kept in memory, and after a restart the tails of the logs tell it again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_logger.providers.lenient import fitting
from agent_logger.providers.request_body import value

AGENT = "agent:"  # how the threads of sub-agents begin
TOOLS = ("Task", "Agent")
MOST_PROMPTS, MOST_SESSIONS = 200, 1_000  # that are remembered; of each session the last ones


class _Given(msgspec.Struct):
    prompt: str = ""


class _Block(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    name: str | None = None
    id: str | None = None
    input: _Given | None = None


class _Message(msgspec.Struct):
    content: str | list[_Block] | None = None

    @property
    def blocks(self) -> list[_Block]:
        content = self.content
        return [_Block(text=content)] if isinstance(content, str) else content or []


def is_unnamed(thread: str) -> bool:
    """Whether it goes by a tool call, as no client calls its sub-agents."""
    return thread.startswith(AGENT + "toolu_")


class UnnamedAgents:
    """Those that were started, by the root of a session's logs."""

    def __init__(self) -> None:
        self._prompts: dict[str, dict[str, str]] = {}  # by prompt, the id of the call

    def note(self, root: str, message: Mapping[str, Any]) -> None:
        """An answer of the model's."""
        for block in fitting(_Message, message).blocks:
            if block.type == "tool_use" and block.name in TOOLS and block.id and block.input:
                self._start(root, block.id, block.input.prompt.strip())

    def _start(self, root: str, call: str, prompt: str) -> None:
        if prompt:
            prompts = self._prompts.setdefault(root, {})
            prompts[prompt] = call
            _forget(prompts, MOST_PROMPTS)
            _forget(self._prompts, MOST_SESSIONS)

    def asking(self, root: str, units: Sequence[msgspec.Raw]) -> str | None:
        """The call that started who sends this history."""
        prompts = self._prompts.get(root)
        if not prompts or not units:
            return None
        texts = (block.text for block in fitting(_Message, value(units[0])).blocks if block.text)
        return next(filter(None, (prompts.get(text.strip()) for text in texts)), None)


def _forget(prompts: dict[str, Any], most: int) -> None:
    if len(prompts) > most:
        del prompts[next(iter(prompts))]
