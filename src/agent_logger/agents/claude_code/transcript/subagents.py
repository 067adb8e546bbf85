"""The sub-agents of a Claude Code session: which agent a file belongs to, and which tool call started it.

The meta file beside an agent's file names the tool call; else the result that names the agent does; else the prompt
decides. Agents that only warm up the cache are `side`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from agent_logger.agents.claude_code.transcript.turns import TurnLines
from agent_logger.model.session import MAIN, SIDE, SubAgent, tool_kind
from agent_logger.providers.json_values import fields_of

WARM_UP = "Warmup"  # the prompt of agents that 2.1.4 starts to fill the cache

_FILE = re.compile(r"(?:.*/)?agent-([^/]+)\.jsonl\Z")


def agent_of(name: str) -> str | None:
    """Return the id of the sub-agent whose file has this name; None if it is a session's file."""
    match = _FILE.match(name)
    return match[1] if match else None


class SubagentMeta(msgspec.Struct, frozen=True, rename="camel"):
    """What `agent-<id>.meta.json` says about the agent."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
    parent_agent_id: str | None = None


_meta = msgspec.json.Decoder(SubagentMeta)


def meta_of(name: str, text: Callable[[str], str | None]) -> SubagentMeta:
    """Read the meta file, by the name of the agent's own file; empty if there is none, or it cannot be read."""
    content = text(name.removesuffix(".jsonl") + ".meta.json")
    try:
        return _meta.decode(content) if content else SubagentMeta()
    except (ValueError, RecursionError):
        return SubagentMeta()


@dataclass(slots=True, eq=False)
class AgentLines:
    """A sub-agent while its lines are read."""

    id: str
    prompt: str | None = None
    meta: SubagentMeta = field(default_factory=SubagentMeta)
    turns: list[TurnLines] = field(default_factory=list)

    @property
    def thread(self) -> str:
        return SIDE if self.prompt == WARM_UP else f"agent:{self.id}"


class Joins:
    """The tool call that started each agent, by the most certain evidence there is."""

    def __init__(self, agents: Iterable[AgentLines], results: Mapping[str, str], uses: Mapping[str, TurnLines]) -> None:
        """Join agents and calls. `results`: the tool call whose result names an agent, by the agent's id."""
        self._uses = uses
        self._agents = list(agents)
        self.call_of: dict[str, str] = {}  # ids of calls by the agent's id
        for agent in self._agents:
            tool_use_id = agent.meta.tool_use_id or results.get(agent.id)
            if tool_use_id:
                self.call_of[agent.id] = tool_use_id
        if len(self.call_of) < len(self._agents):
            self._join_by_prompt()
        self.agents_of: dict[str, list[AgentLines]] = {}  # agents by the id of the call that started them
        for agent in self._agents:
            if agent.id in self.call_of:
                self.agents_of.setdefault(self.call_of[agent.id], []).append(agent)

    def _join_by_prompt(self) -> None:
        taken = set(self.call_of.values())
        open_calls: dict[str, list[str]] = {}
        for call, prompt in self._prompts():
            if call not in taken:
                open_calls.setdefault(prompt, []).append(call)
        for agent in self._agents:
            calls = open_calls.get(agent.prompt or "")
            if agent.id not in self.call_of and calls:
                self.call_of[agent.id] = calls.pop(0)

    def _prompts(self) -> Iterable[tuple[str, str]]:
        for turn in dict.fromkeys(self._uses.values()):
            for block in turn.blocks:
                prompt = fields_of(block.input).get("prompt")
                if block.kind == "tool_use" and block.id and tool_kind(block.name or "") == "agent":
                    yield block.id, prompt if isinstance(prompt, str) else ""

    def sub_agents(self) -> list[SubAgent]:
        return [self._sub_agent(agent) for agent in self._agents if agent.thread != SIDE]

    def _sub_agent(self, agent: AgentLines) -> SubAgent:
        call = self.call_of.get(agent.id)
        caller = self._uses.get(call or "")
        parent = agent.meta.parent_agent_id
        return SubAgent(
            thread=agent.thread,
            parent_thread=caller.thread if caller else f"agent:{parent}" if parent else MAIN,
            tool_use_id=call,
            kind=agent.meta.agent_type,
            description=agent.meta.description,
        )
