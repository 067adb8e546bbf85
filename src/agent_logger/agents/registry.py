"""The known agents. Each is a row here, a package beside this module, and a folder under `tests/data/`."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, cast

from agent_logger.agents import claude_code, codex, gemini_cli, opencode, pi, qwen_code
from agent_logger.agents.base import Agent, AgentLocation, WireIdentity, module

if TYPE_CHECKING:
    from agent_logger.agents.contracts import CallShapes

AGENTS: tuple[Agent, ...] = (
    claude_code.AGENT,
    codex.AGENT,
    gemini_cli.AGENT,
    opencode.AGENT,
    qwen_code.AGENT,
    pi.AGENT,
)

_LOG_NAME = re.compile(r"\d{8}([_-])\d{6}\1")  # the form of our own logs' names
_NOTHING_KNOWN = WireIdentity()


def agent_called(name: str | None) -> Agent | None:
    return next((agent for agent in AGENTS if agent.name == name), None)


def reader_of(name: str | None) -> Agent | None:
    """Return the agent of that name, if its files can be read."""
    agent = agent_called(name)
    return agent if agent and agent.reader else None


def located() -> Iterator[tuple[Agent, AgentLocation]]:
    """Yield the agents that have files."""
    return ((agent, agent.location) for agent in AGENTS if agent.location)


def recognise(path: str, first: bytes) -> Agent | None:
    """Return the agent whose main file this is, by the end of its path and its first bytes; None if it is no agent's,
    or a sub-agent's."""
    return next((agent for agent in AGENTS if agent.is_main_file(path, first)), None)


def wire_of(name: str | None) -> WireIdentity:
    agent = agent_called(name)
    return agent.wire if agent else _NOTHING_KNOWN


@cache
def calls_of(name: str | None) -> "CallShapes | None":
    """Return what the calls of an agent look like; None if nothing is known of them."""
    calls = wire_of(name).calls
    return cast("CallShapes", module(calls).CALLS) if calls else None


def resume_command(name: str | None, session: str) -> list[str] | None:
    """Return the command that resumes a session; None for an agent that cannot, or that gave the session no name."""
    agent = agent_called(name)
    if agent is None or agent.run is None or _LOG_NAME.match(session):
        return None
    return [agent.run.executable, agent.run.resume_option, session]


def names_sessions_on_wire(name: str | None) -> bool:
    agent = agent_called(name)
    return agent is not None and agent.names_sessions_on_wire
