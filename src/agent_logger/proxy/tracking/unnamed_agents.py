"""Sub-agents of clients that do not name them on the wire, as Claude Code before 2.1.197, or that name a session of
their own, as Grok Build: recognised by their prompt.

A tool call of the model has a prompt, and every request of the sub-agent begins with it. The sub-agent is named by the
call's id, or by its own session.

Only a sub-agent without an answer so far needs this: after the first answer it is recognised by its history, as any
thread is. So this is kept in memory, and after a restart it is learned again from the tails of the logs.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agent_logger.model.session import AGENT_PREFIX
from agent_logger.providers.blocks.base import value_of
from agent_logger.providers.lenient import fitting
from agent_logger.providers.request_body import value

TOOLS = ("Task", "Agent", "spawn_subagent")
FIRST_UNITS = 3  # the prompt is among these; a system prompt may stand before it
MOST_PROMPTS, MOST_SESSIONS = 200, 1_000  # remembered prompts of a session, the last ones; remembered sessions


class _Given(msgspec.Struct):
    prompt: str = ""


class _Block(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    name: str | None = None
    id: str | None = None
    input: _Given | None = None


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    """A tool call in chat completions."""

    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    role: str | None = None
    content: str | list[_Block] | None = None
    tool_calls: list[_ToolCall] | None = None

    @property
    def blocks(self) -> list[_Block]:
        content = self.content
        return [_Block(text=content)] if isinstance(content, str) else content or []

    @property
    def uses(self) -> Iterator[tuple[str | None, str | None, str]]:
        """The id, the tool and the prompt of each tool call that has a prompt."""
        for block in self.blocks:
            if block.type == "tool_use" and block.input:
                yield block.id, block.name, block.input.prompt
        for call in self.tool_calls or ():
            function = call.function or _Function()
            if function.name in TOOLS:
                yield call.id, function.name, fitting(_Given, value_of(function.arguments or "")).prompt


def is_unnamed(thread: str) -> bool:
    """Whether the thread is named by a tool call, which no client's own name for a sub-agent is."""
    return thread.startswith((AGENT_PREFIX + "toolu_", AGENT_PREFIX + "call_"))


class UnnamedAgents:
    """The sub-agents that were started, by the root of a session's logs."""

    def __init__(self) -> None:
        self._prompts: dict[str, dict[str, str]] = {}  # ids of tool calls by prompt

    def note(self, root: str, message: Mapping[str, Any]) -> None:
        """Note the sub-agents that an answer of the model starts."""
        for call, tool, prompt in fitting(_Message, message).uses:
            if tool in TOOLS and call:
                self._start(root, call, prompt.strip())

    def _start(self, root: str, call: str, prompt: str) -> None:
        if prompt:
            prompts = self._prompts.setdefault(root, {})
            prompts[prompt] = call
            _forget(prompts, MOST_PROMPTS)
            _forget(self._prompts, MOST_SESSIONS)

    def call_that_sent(self, root: str, units: Sequence[msgspec.Raw]) -> str | None:
        """The tool call that started the sender of this history."""
        prompts = self._prompts.get(root)
        if not prompts or not units:
            return None
        texts = (block.text.strip() for block in _first_message(units).blocks if block.text)
        # Some clients put the state of the project before the prompt.
        parts = ((text, text.rpartition("\n\n")[2].strip()) for text in texts)
        return next(filter(None, (prompts.get(part) for pair in parts for part in pair)), None)

    def root_that_started(self, units: Sequence[msgspec.Raw]) -> str | None:
        """The session whose tool call started the sender of this history; the latest if several have such a call."""
        return next((root for root in reversed(self._prompts) if self.call_that_sent(root, units)), None)


def _first_message(units: Sequence[msgspec.Raw]) -> _Message:
    """The first message that a person, or a tool call, may have written."""
    messages = (fitting(_Message, value(unit)) for unit in units[:FIRST_UNITS])
    return next((message for message in messages if message.role not in ("system", "developer")), _Message())


def _forget(prompts: dict[str, Any], most: int) -> None:
    if len(prompts) > most:
        del prompts[next(iter(prompts))]
