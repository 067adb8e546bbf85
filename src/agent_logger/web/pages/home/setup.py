"""Help for users who have no sessions yet: which agents are installed, and the command that records each."""

import shutil
from dataclasses import dataclass

from agent_logger.agents.base import Agent
from agent_logger.agents.registry import AGENTS
from agent_logger.catalog.discovery.agent_files import sessions_of
from agent_logger.files.sources import StampCache


@dataclass(frozen=True, slots=True)
class AgentSetup:
    agent: str
    is_installed: bool
    sessions: int
    line: str


def agent_setups() -> list[AgentSetup]:
    """The agents, the installed ones first."""
    setups = [setup for agent in AGENTS if (setup := _setup(agent))]
    return sorted(setups, key=lambda setup: not setup.is_installed)


def _setup(agent: Agent) -> AgentSetup | None:
    if agent.run is None:
        return None
    sessions = sum(not source.main_missing for source in sessions_of(agent, StampCache()))
    return AgentSetup(agent.name, shutil.which(agent.run.executable) is not None, sessions, line_to_record(agent))


def line_to_record(agent: Agent | None) -> str:
    """The line that records the agent; of a program that is not known, the beginning of that line."""
    example = agent.run.example or agent.run.executable if agent and agent.run else "COMMAND"
    return f"agent-logger run -- {example}"
