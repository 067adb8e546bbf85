"""The folders and files of agents on this machine, as the environment says."""

import os
from collections.abc import Iterable
from pathlib import Path

from agent_logger import config
from agent_logger.agents.base import Agent, AgentLocation
from agent_logger.agents.locations import folders_of, is_file, main_files


def agent_folders(location: AgentLocation | None) -> list[Path]:
    """Return where an agent keeps its sessions, as the environment, or the user's settings, say. Links on the way are
    followed, because their owner made them."""
    if location is None:
        return []
    named = config.agent_folders() if location.is_named_by_user else ()
    folders = named or folders_of(location, os.environ, Path.home())
    return list(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))


def agent_files(agent: Agent) -> list[Path]:
    """Return the main files of an agent on this machine."""
    if agent.location is None:
        return []
    folders = agent_folders(agent.location)
    return sorted({*main_files(agent.location, folders), *named_files(agent.location, folders)})


def named_files(location: AgentLocation, folders: Iterable[Path]) -> list[Path]:
    """Return the main file that a variable names, if it exists."""
    named = os.environ.get(location.file_variable or "")
    return [path for folder in folders if named and is_file(path := folder / named)]


def variables(names: Iterable[str]) -> dict[str, str]:
    """Return the environment variables with these names that are set; no others, because they hold secrets."""
    return {name: value for name in names if (value := os.environ.get(name))}
