"""The files of Prime Agent: one per session, whose name need not have its id. A sub-agent has a session of its own,
which says how deep it is, and names the file of the one that started it."""

import os
from collections.abc import Container, Iterator, Sequence
from functools import partial
from pathlib import Path, PureWindowsPath

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, first_line_stamp, stat_of_copy
from agent_logger.providers.lenient import fitting

__all__ = ["begins_session", "discover", "open_session", "recognises"]

MOST_FIRST_BYTES = 1 << 16  # bytes of a header


class _Header(msgspec.Struct):
    type: str = ""
    id: str | None = None
    depth: int = msgspec.field(name="rlmDepth", default=0)
    parent: str | None = msgspec.field(name="parentSession", default=None)


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. Those of sub-agents belong to that of the session that started them."""
    paths = map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ())
    stats = {path: stat for path in paths if (stat := stat_of_copy(path))}
    threads: dict[str, AgentThread] = {}
    names: dict[str, str] = {}
    for path, stat in stats.items():
        if heads := cache.cached(path, first_line_stamp(stat), partial(_heads, path)):
            names[path], started_by = heads
            threads[path] = AgentThread(_stem(path), started_by)
    for path, agents in families(threads).items():
        if names[path] not in skip:
            files = FileStamps()
            for file in (path, *agents):
                files.add_stat(stats[file], os.path.basename(file))
            yield Source(path, agent.name, path, names[path], files.modified, files.size, files.stamp, tuple(agents))


def open_session(source: Source) -> SourceFiles:
    path = Path(source.path)
    others = [source_file(Path(other).parent, os.path.basename(other)) for other in source.others or ()]
    return SourceFiles(source_file(path.parent, path.name), others)


def begins_session(first: bytes) -> bool:
    return first.startswith(b'{"type":"session"')


def recognises(first: bytes) -> bool:
    return begins_session(first) and b'"rlmDepth":' in first.split(b"\n", 1)[0]


def _heads(path: str) -> list[str | None] | None:
    """Return the session's id, and the file of the session that started it; None if the first line is no header."""
    first = (foreign.text(Path(path), MOST_FIRST_BYTES) or "").split("\n", 1)[0]
    try:
        header = fitting(_Header, msgspec.json.decode(first))
    except (ValueError, RecursionError):
        return None
    if header.type != "session":
        return None
    return [header.id or _stem(path), _stem(header.parent) if header.parent and header.depth > 0 else None]


def _stem(path: str) -> str:
    """Return the name of a file without its suffix: the path may be of another system."""
    return PureWindowsPath(path).name.removesuffix(".jsonl")
