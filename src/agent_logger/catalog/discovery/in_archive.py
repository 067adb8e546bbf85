"""What another home's archive has of an agent: there it stands for the folders of the agent, which are on the other
machine. `home` is the key of the home."""

from collections.abc import Iterator
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.archive.layout import copies, folders
from agent_logger.archive.sessions import archived_in
from agent_logger.files.sources import Source, StampCache
from agent_logger.files.stored_text import restored


def sessions_in_archive(home: str, agent: Agent) -> Iterator[Source]:
    for folder in folders(Path(restored(home))):
        if folder.agent == agent.name:
            yield from (session.source for session in archived_in(folder, StampCache()))


def files_in_archive(home: str, agent: Agent) -> Iterator[Path]:
    for folder in folders(Path(restored(home))):
        if folder.agent == agent.name:
            yield from (copy.target for copy in copies(folder))
