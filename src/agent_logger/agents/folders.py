"""The folders and files of agents on this machine, as the environment says."""

import os
from collections.abc import Iterable
from pathlib import Path

from agent_logger.agents.base import Agent, AgentLocation
from agent_logger.agents.locations import folders_of, is_file, main_files, older_files_in


def agent_folders(location: AgentLocation | None) -> list[Path]:
    """Where an agent keeps its sessions, as the environment says; links on the way are followed, for its owner made
    them."""
    folders = folders_of(location, os.environ, Path.home()) if location else []
    return list(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))


def agent_files(agent: Agent) -> list[Path]:
    """The main files of an agent on this machine."""
    if agent.location is None:
        return []
    folders = agent_folders(agent.location)
    return sorted({*main_files(agent.location, folders), *named_files(agent.location, folders)})


def named_files(location: AgentLocation, folders: Iterable[Path]) -> list[Path]:
    """The main file that a variable names, if it is there."""
    named = os.environ.get(location.file_variable or "")
    return [path for folder in folders if named and is_file(path := folder / named)]


def older_agent_files(agent: Agent) -> list[Path]:
    """The same of what it wrote before: a newer version may have taken over what is in them."""
    if agent.location is None:
        return []
    folders = agent_folders(agent.location)
    return [path for folder in folders for path in older_files_in(agent.location, folder)]


def variables(names: Iterable[str]) -> dict[str, str]:
    """Of the environment, those that are set; no other, for they hold secrets."""
    return {name: value for name in names if (value := os.environ.get(name))}
