"""The files of opencode: a database with all sessions; before that, files for each session, its messages and parts."""

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.agents.folders import named_files
from agent_logger.agents.locations import main_files, older_files_in
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.errors import SourceError
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    if agent.location is None:
        return
    names = set()
    databases = {*main_files(agent.location, folders), *named_files(agent.location, folders)}
    for source in (source for path in sorted(databases) for source in sessions_in(agent, path, cache)):
        names.add(source.name)
        if source.name not in skip:
            yield source
    older = [path for folder in folders for path in older_files_in(agent.location, folder)]
    for source in _older_sessions(agent, older, cache):
        if source.name not in names and source.name not in skip:  # else it continued in a database
            yield source


def sessions_in(agent: Agent, path: Path, cache: StampCache) -> Iterator[Source]:
    """Find the sessions of a database. It is not opened while it is unchanged; else each session has a stamp inside."""
    files = FileStamps()
    for name in (str(path), f"{path}-wal"):
        if stat := stat_of(name):
            files.add_stat(stat, "")
    for name, modified, size, stamp in cache.cached(str(path), files.stamp, partial(_stamps, path)):
        yield Source(f"{path}#{name}", agent.name, str(path), name, modified, size, stamp)


def open_session(source: Source) -> SourceFiles:
    """Open a session; without a name, the newest session of a database."""
    from agent_logger.agents.opencode import database, older_files

    path = Path(source.path)
    if path.suffix == ".json":
        return older_files.source_of(path, None if source.others is None else list(map(Path, source.others)))
    name = source.name or next(iter(database.session_ids(path)), None)
    if name is None:
        raise SourceError(f"{path}: no session in it")
    return database.source_of(path, name)


def begins_session(first: bytes) -> bool:
    """Whether the bytes begin a database, or the file of a session that no other started."""
    return first.startswith(b"SQLite format 3\0") or (first[:1] == b"{" and b'"parentID"' not in first)


def _stamps(path: Path) -> list[tuple[str, float, int, str]]:
    from agent_logger.agents.opencode import database

    with suppress(SourceError, OSError):
        return database.session_stamps(path)
    return []


# ---------------------------------------------------------------- before there was a database


def _older_sessions(agent: Agent, paths: Iterable[Path], cache: StampCache) -> Iterator[Source]:
    threads: dict[str, AgentThread] = {}
    for name, path in _by_session(paths).items():
        if stat := stat_of(path):
            stamp = f"by:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}"
            (by,) = cache.cached(path, stamp, partial(_parent, path))
            threads[path] = AgentThread(name, by)
    for path, agents in families(threads).items():
        files, name = _stamped((path, *agents)), threads[path].id
        yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp, tuple(agents))


def _by_session(paths: Iterable[Path]) -> dict[str, str]:
    """Return the first file of each session. A session with two files was imported from an older version."""
    files: dict[str, str] = {}
    for path in paths:
        files.setdefault(path.stem, str(path))
    return files


def _parent(path: str) -> list[str | None]:
    from agent_logger.agents.opencode.older_files import started_by

    return [started_by(Path(path))]


def _stamped(paths: Iterable[str]) -> FileStamps:
    """Stamp the files together with their messages, which are written again when they are complete; parts are not
    read."""
    from agent_logger.agents.opencode.older_files import message_files

    files = FileStamps()
    for path in paths:
        for file in (path, *map(str, message_files(Path(path)))):
            if stat := stat_of(file):
                files.add_stat(stat, os.path.basename(file))
    return files
