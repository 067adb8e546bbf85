"""The files of OhMyPi: one per session, as pi's, and a folder of the same name with those of its sub-agents."""

from collections.abc import Container, Iterator, Sequence
from itertools import islice
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.locations import main_files, matching
from agent_logger.agents.single_file import id_in
from agent_logger.agents.source_files import SourceFiles
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of_copy

__all__ = ["begins_session", "discover", "open_session", "recognises"]

MOST_AGENTS = 10_000  # files of sub-agents of one session
_STARTS = (b'{"type":"session"', b'{"type":"title"')


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    for path in main_files(agent.location, folders, sealed=sealed) if agent.location else ():
        stat, name = stat_of_copy(str(path)), id_in(str(path))
        if stat is None or name in skip:
            continue
        files = FileStamps()
        files.add_stat(stat, "")
        others = []
        for other in _agents_of(path, sealed=sealed):
            if below := stat_of_copy(str(other)):
                files.add_stat(below, other.relative_to(path.parent).as_posix())
                others.append(str(other))
        yield Source(str(path), agent.name, str(path), name, files.modified, files.size, files.stamp, tuple(others))


def open_session(source: Source) -> SourceFiles:
    path = Path(source.path)
    others = _agents_of(path, sealed=True) if source.others is None else map(Path, source.others)
    files = [source_file(path.parent, other.relative_to(path.parent).as_posix()) for other in others]
    return SourceFiles(source_file(path.parent, path.name), files)


def begins_session(first: bytes) -> bool:
    return first.startswith(_STARTS)


def recognises(first: bytes) -> bool:
    return False  # pi's files begin alike: the path must tell


def _agents_of(path: Path, *, sealed: bool) -> list[Path]:
    """Return the files of the sub-agents, at any depth that is used: agents may start agents."""
    patterns = (["*.jsonl"], ["*", "*.jsonl"], ["*", "*", "*.jsonl"])
    below = path.with_suffix("")
    return list(
        islice((other for pattern in patterns for other in matching(below, pattern, sealed=sealed)), MOST_AGENTS)
    )
