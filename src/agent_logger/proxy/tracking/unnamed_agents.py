"""Sub-agents of clients that do not name them on the wire, as Claude Code before 2.1.197: recognised by their prompt.

A tool call of the model has a prompt, and every request of the sub-agent begins with it. The sub-agent is named by the
call's id.

Only a sub-agent without an answer so far needs this: after the first answer it is recognised by its history, as any
thread is. So this is kept in memory, and after a restart it is learned again from the tails of the logs.
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
    """Whether the thread is named by a tool call, which no client's own name for a sub-agent is."""
    return thread.startswith(AGENT + "toolu_")


class UnnamedAgents:
    """The sub-agents that were started, by the root of a session's logs."""

    def __init__(self) -> None:
        self._prompts: dict[str, dict[str, str]] = {}  # by prompt, the id of the call

    def note(self, root: str, message: Mapping[str, Any]) -> None:
        """Note the sub-agents that an answer of the model starts."""
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
        """The tool call that started the sender of this history."""
        prompts = self._prompts.get(root)
        if not prompts or not units:
            return None
        texts = (block.text for block in fitting(_Message, value(units[0])).blocks if block.text)
        return next(filter(None, (prompts.get(text.strip()) for text in texts)), None)


def _forget(prompts: dict[str, Any], most: int) -> None:
    if len(prompts) > most:
        del prompts[next(iter(prompts))]
