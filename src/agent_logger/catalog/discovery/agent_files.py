"""Finds the files of agents, where the agents keep them."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.agents.folders import agent_folders, named_files
from agent_logger.agents.registry import AGENTS
from agent_logger.files.sources import PROMPTS_ONLY, FileStamps, Source, StampCache, stat_of


def agent_sessions(remembered: StampCache) -> Iterator[Source]:
    """Find the sessions of other agents on this machine."""
    there = set()
    for source in (source for agent in AGENTS for source in sessions_of(agent, remembered)):
        if not source.main_missing:
            there.add((source.agent, source.name))
        yield source
    typed = list(_histories(remembered))
    there |= remembered.passed_over if typed else set()
    yield from (source for source in typed if (source.agent, source.name) not in there)


def sessions_of(agent: Agent, remembered: StampCache) -> Iterator[Source]:
    """Find the sessions of one agent on this machine."""
    if agent.reader is None or agent.location is None:
        return
    folders = agent_folders(agent.location)
    if any(os.path.isdir(folder) for folder in folders) or named_files(agent.location, folders):
        yield from agent.discover(folders, remembered)


def _histories(remembered: StampCache) -> Iterator[Source]:
    """Find everything that was ever typed, also in sessions whose file exists."""
    for agent in AGENTS:
        for folder in agent_folders(agent.location) if agent.prompt_history else ():
            path = f"{folder}/{agent.prompt_history}"
            if stat := stat_of(path):
                files = FileStamps()
                files.add_stat(stat, "")
                typed = remembered.cached(path, files.stamp, partial(_typed, agent, path))
                for name, modified, size in typed:
                    stamp = f"{PROMPTS_ONLY}{modified}:{size}"
                    yield Source(f"{path}#{name}", agent.name, path, name, modified, size, stamp)


def _typed(agent: Agent, path: str) -> list[tuple[str, float, int]]:
    from agent_logger.agents.deleted_sessions import prompts_in  # finding files needs no readers

    return [
        (
            name,
            max((prompt.at.timestamp() for prompt in prompts if prompt.at), default=0.0),
            sum(len(prompt.text) for prompt in prompts),
        )
        for name, prompts in prompts_in(agent, Path(path)).items()
    ]
