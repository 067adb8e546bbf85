"""Opens a session's file, wherever an agent keeps it, for its reader."""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from agent_logger.agents.claude_code.transcript.lines import session_of_line
from agent_logger.agents.claude_code.transcript.subagents import agent_of
from agent_logger.agents.framing import modified, source_file
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import FIRST_BYTES

MOST_AGENTS = 10_000  # files of sub-agents of one session
MOST_SIDE_BYTES = 16 << 20  # bytes of a tool's result in a file of its own
# Seconds since the last change of a folder: file system clocks cannot tell two close changes apart.
SETTLED_SECONDS = 2.0


def claude_source(path: Path, agents: Iterable[str] | None = None) -> SourceFiles:
    """Open a Claude Code session by its main file, with its sub-agents in every layout that existed:
    `<session>/subagents/`, and in older ones `subagents/` of the project or beside the session. `agents`: the names of
    their files from the session's folder on, if they were found already.

    If the session's main file is gone, the agents that were found are read alone. Files are opened when they are read.
    Raises `SourceError` for anything but a regular file, and `OSError`.
    """
    agents = agents if agents is None else list(agents)
    is_there = foreign.existing(path) is not None
    if not is_there and (not agents or os.path.lexists(path)):
        os.lstat(path)
        raise SourceError(f"{path}: not a regular file")
    folder, stem = path.parent, path.name.removesuffix(".jsonl")
    if agents is None:
        own = [f"{stem}/subagents/{name}" for name in _agents_in(folder / stem / "subagents")]
        agents = [*own, *_others_agents(folder, stem)]
    return SourceFiles(
        main=source_file(folder, path.name) if is_there else File(path.name, (), chunks=tuple),
        others=[source_file(folder, name) for name in dict.fromkeys(agents)],
        text=partial(_side_text, folder, stem),
        main_missing=not is_there,
    )


def _others_agents(folder: Path, stem: str) -> Iterator[str]:
    """Find the session's agents among those of other sessions; the first line of a file says which session it belongs
    to."""
    for below in ("subagents/", ""):
        for name in _agents_in(folder / below):
            path = folder / below / name
            if _session_of(path, modified(path)) == stem:
                yield below + name


def _agents_in(folder: Path) -> Sequence[str]:
    """List the agent files in a folder, but not in a folder that is a link: a project must not lead us out of it."""
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode):
            return ()
        if time.time() - status.st_mtime < SETTLED_SECONDS:
            return _listed(folder)
        return _cached_listing(folder, status.st_ino, status.st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=1000)  # each session of a project asks for all that is in its folder
def _cached_listing(folder: Path, *_stamp: int) -> Sequence[str]:
    return _listed(folder)


def _listed(folder: Path) -> Sequence[str]:
    with os.scandir(folder) as entries:
        names = {
            entry.name.removesuffix(foreign.SEALED)
            for entry in entries
            if entry.name[:6] == "agent-" and entry.is_file(follow_symlinks=False)
        }
    return sorted(filter(agent_of, names))[:MOST_AGENTS]


@lru_cache(maxsize=20_000)  # each session of a project asks it of all agents there
def _session_of(path: Path, _modified: float) -> str | None:
    return session_in(path)


def session_in(path: Path) -> str | None:
    """Return the session that the first line of a file names."""
    return session_of_line(next(foreign.chunks(path), b"")[:FIRST_BYTES].partition(b"\n")[0])


def _side_text(folder: Path, stem: str, name: str) -> str | None:
    """Read a side file of the session, or nothing. Names come from the files, so one that leads outside the session is
    refused."""
    parts = PurePosixPath(name).parts
    if not parts or any(part in ("", ".", "..", "/") or "\0" in part for part in parts):
        return None
    if parts[0] not in (stem, "subagents") and not (len(parts) == 1 and parts[0].startswith("agent-")):
        return None
    above = (folder.joinpath(*parts[:count]) for count in range(1, len(parts)))
    if any(path.is_symlink() for path in above):
        return None
    return foreign.text(folder.joinpath(*parts), MOST_SIDE_BYTES)
