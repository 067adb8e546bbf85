"""The files of an agent that writes each session into one file: the default where a descriptor names no other
module."""

from collections.abc import Container, Iterator, Sequence
from pathlib import Path, PurePosixPath

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import SourceFiles
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of_copy
from agent_logger.model.ids import UUID


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. The name of a file contains the session's id, or is the id."""
    for path in map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()):
        if agent.main_file and not agent.main_file.search(path):
            continue
        stat, name = stat_of_copy(path), id_in(path)
        if stat and name not in skip:
            files = FileStamps()
            files.add_stat(stat, "")
            yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp)


def open_session(source: Source) -> SourceFiles:
    path = Path(source.path)
    return SourceFiles(source_file(path.parent, path.name))


def begins_session(first: bytes) -> bool:
    return first.startswith(b"{")


def recognises(first: bytes) -> bool:
    return False  # any JSON begins like this: the name must tell


def id_in(path: str) -> str:
    """Return the client's id in the name of a file, else the name."""
    name = PurePosixPath(path).stem
    match = UUID.search(name)
    return match[0] if match else name
