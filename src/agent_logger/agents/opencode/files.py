"""The files of opencode: a database with all sessions; before that, files for each session, its messages and parts."""

import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.agents.databases.sessions import SessionDatabases
from agent_logger.agents.locations import older_files_in
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of

DATABASES = SessionDatabases("agent_logger.agents.opencode.database")
sessions_in, copy, tables = DATABASES.sessions_in, DATABASES.copy, DATABASES.tables
root_of, unreadable = DATABASES.root_of, DATABASES.unreadable


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    if agent.location is None:
        return
    names = set()
    for source in DATABASES.discover(agent, folders, cache, (), sealed):
        names.add(source.name)
        if source.name not in skip:
            yield source
    older = [path for folder in folders for path in older_files_in(agent.location, folder)]
    for source in _older_sessions(agent, older, cache):
        if source.name not in names and source.name not in skip:  # the others continued in a database
            yield source


def open_session(source: Source) -> SourceFiles:
    """Open a session; without a name, the newest session of a database."""
    path = Path(source.path)
    first = next(foreign.chunks(path), b"")
    if first[:1] == b"{" or (path.suffix == ".json" and not first.startswith(b"SQLite format 3\0")):  # damaged, else
        from agent_logger.agents.opencode import older_files

        return older_files.source_of(path, None if source.others is None else list(map(Path, source.others)))
    return DATABASES.open_session(source)


def begins_session(first: bytes) -> bool:
    """Whether the bytes begin a database, or the file of a session that no other started."""
    return first.startswith(b"SQLite format 3\0") or (first[:1] == b"{" and b'"parentID"' not in first)


_TABLES = (b"session", b"message", b"part")
FORK_TABLE = b"kilo_board"  # which a fork of opencode has besides
_SESSION_FILE = re.compile(rb'\{\s*"id"\s*:\s*"ses_')


def tables_in(first: bytes) -> set[bytes]:
    """Return the tables that the beginning of a database names."""
    return set(re.findall(rb"CREATE TABLE [`\"]?(\w+)", first))


def recognises(first: bytes) -> bool:
    """Whether the bytes begin a database with opencode's tables, or the file of a session."""
    if not begins_session(first):
        return False
    tables = tables_in(first)
    return (tables.issuperset(_TABLES) and FORK_TABLE not in tables) or bool(_SESSION_FILE.match(first))


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
