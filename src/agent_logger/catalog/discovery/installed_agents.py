"""Which agents have files on this machine, how many sessions each has, and what its files tell."""

import os
from typing import TYPE_CHECKING, cast

import msgspec

from agent_logger.agents.base import Agent, AgentLocation, module
from agent_logger.agents.folders import agent_folders, named_files
from agent_logger.agents.registry import AGENTS
from agent_logger.catalog.discovery.agent_files import sessions_of
from agent_logger.files.sources import StampCache
from agent_logger.model.plurals import pluralize

if TYPE_CHECKING:
    from agent_logger.agents.contracts import DatabaseFiles


class InstalledAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that has a folder on this machine."""

    agent: str
    folders: list[str]  # those that exist
    sessions: int
    tokens_per: str | None  # response, exchange or session; null: the files count no tokens
    response_ids: str  # vendor: responses are found on the wire by their ids; client: by order
    unreadable: list[str]  # why databases of it cannot be read at all, each reason with the path
    verified: bool  # false: its files are read as public descriptions have them; none of its client was tested

    @property
    def title(self) -> str:
        """The name, for people: `omp (unverified)`."""
        return self.agent if self.verified else f"{self.agent} (unverified)"


def installed_agents() -> list[InstalledAgent]:
    """Return the agents that have files here. No session is opened; a database is asked for its sessions."""
    return [installed for agent in AGENTS if (installed := _installed(agent))]


def _installed(agent: Agent) -> InstalledAgent | None:
    if agent.location is None or agent.reader is None:
        return None
    folders = [folder for folder in agent_folders(agent.location) if os.path.isdir(folder)]
    if not folders and not named_files(agent.location, agent_folders(agent.location)):
        return None
    sessions = {source.name for source in sessions_of(agent, StampCache())}
    if agent.location.is_named_by_user and not sessions:
        return None
    return InstalledAgent(
        agent=agent.name,
        folders=[str(folder) for folder in folders],
        sessions=len(sessions),
        tokens_per=agent.counts_per,
        response_ids=agent.response_ids,
        unreadable=_unreadable(agent.files, agent.location),
        verified=agent.is_verified,
    )


def _unreadable(files: str, location: AgentLocation) -> list[str]:
    if not location.is_database:
        return []
    return list(cast("DatabaseFiles", module(files)).unreadable(location, agent_folders(location)))


def counts_text(agent: InstalledAgent) -> str:
    """Return how many sessions there are: `codex 12 sessions`."""
    return f"{agent.title} {pluralize(agent.sessions, 'session')}"
