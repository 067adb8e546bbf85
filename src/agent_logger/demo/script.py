"""What the scripted API will say: scenarios of lanes and turns, read from JSON.

A request is answered with the next turn of the first lane that matches it. Lanes count their turns separately, so a
sub-agent or a title request does not disturb the main conversation.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from agent_logger.demo.http import DemoRequest


class ScriptUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens under Anthropic's names; the other APIs derive theirs from these."""

    input_tokens: int = 10
    cache_creation_input_tokens: int = 100
    cache_read_input_tokens: int = 1000
    output_tokens: int = 20
    reasoning_tokens: int = 0  # part of output_tokens; only OpenAI reports them separately


class ScriptText(msgspec.Struct, frozen=True, tag="text"):
    text: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    thinking: str
    signature: str = "RmFrZVNpZ25hdHVyZQ=="


class ScriptToolUse(msgspec.Struct, frozen=True, tag="tool_use"):
    name: str
    input: dict[str, Any]  # in any form that the tool accepts
    id: str = ""  # if empty, each reply has a new one


class RawItem(msgspec.Struct, frozen=True, tag="raw_item"):
    """An output item of the Responses API that no other block can express; other APIs leave it out."""

    item: dict[str, Any]


Block = ScriptText | Thinking | ScriptToolUse | RawItem


class ScriptTurn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer of the model. `text` is short for one text block."""

    text: str | None = None
    content: tuple[Block, ...] = ()
    usage: ScriptUsage = ScriptUsage()
    id: str = ""  # if empty, each reply has a new one
    model: str = ""  # if empty, the requested one
    stop_reason: str = ""  # if empty, what the blocks imply
    pieces: int = 3  # deltas per block
    wait_ms: float = 0  # before the first byte
    chunk_ms: float = 0  # after each event

    @property
    def blocks(self) -> Sequence[Block]:
        return self.content if self.text is None else (ScriptText(self.text),)


@dataclass(frozen=True)
class ScriptPrompt:
    """What every API's requests have in common."""

    model: str
    system: str
    users: Sequence[str]  # the texts of the user's messages
    has_tools: bool
    stream: bool


class ScriptMatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition that holds if all its keys do; patterns are searched for, not anchored."""

    no_tools: bool | None = None
    path_re: str = ""
    model_re: str = ""
    system_re: str = ""
    first_user_re: str = ""
    last_user_re: str = ""
    any_user_re: str = ""
    header: Mapping[str, str] = {}  # name in lower case: pattern

    def holds(self, request: DemoRequest, prompt: ScriptPrompt) -> bool:
        users = prompt.users or [""]
        searches = [
            (self.path_re, request.path),
            (self.model_re, prompt.model),
            (self.system_re, prompt.system),
            (self.first_user_re, users[0]),
            (self.last_user_re, users[-1]),
            (self.any_user_re, "\n".join(users)),
            *((pattern, request.header(name)) for name, pattern in self.header.items()),
        ]
        tools_fit = self.no_tools in (None, not prompt.has_tools)
        return tools_fit and all(re.search(pattern, text, re.DOTALL) for pattern, text in searches)


T = TypeVar("T", bound=ScriptTurn)


class Lane(msgspec.Struct, Generic[T], frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = "main"
    match: ScriptMatch = ScriptMatch()
    repeat: bool = False  # start over after the last turn
    turns: tuple[T, ...]


class Scenario(msgspec.Struct, Generic[T], frozen=True, kw_only=True, forbid_unknown_fields=True):
    lanes: tuple[Lane[T], ...]
    models: tuple[str, ...] = ()  # for the list of models


def fill(text: str, variables: Mapping[str, str]) -> str:
    """Put values where `{{NAME}}` stands in the strings of a JSON text."""
    for name, value in variables.items():
        text = text.replace("{{" + name + "}}", msgspec.json.encode(value).decode()[1:-1])
    return text


class OffScriptError(Exception):
    """The scenario has no turn for this request. The client gets a 400."""


@dataclass(frozen=True)
class Cue(Generic[T]):
    """The turn that answers one request, and its place in the scenario."""

    lane: str
    number: int  # from 0
    turn: T


class Script(Generic[T]):
    """A scenario being played: which turn comes next in each lane."""

    def __init__(self, scenario: Scenario[T]) -> None:
        self.scenario = scenario
        self._played: Counter[str] = Counter()

    def next(self, request: DemoRequest, prompt: ScriptPrompt) -> Cue[T]:
        for lane in self.scenario.lanes:
            if lane.match.holds(request, prompt):
                return self._advance(lane)
        raise OffScriptError("no lane of the scenario matches")

    def _advance(self, lane: Lane[T]) -> Cue[T]:
        number = self._played[lane.name]
        if number >= len(lane.turns) and not lane.repeat:
            raise OffScriptError(f"lane {lane.name!r} has no turn {number}")
        self._played[lane.name] += 1
        return Cue(lane.name, number, lane.turns[number % len(lane.turns)])
