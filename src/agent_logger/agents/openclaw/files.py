"""The files of OpenClaw: a database for each agent with all its sessions; before that, a file for each session.

Beside the older files is `sessions.json`, which names the key of each session, and the key that started a sub-agent.
"""

from collections.abc import Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.databases.sessions import SessionDatabases
from agent_logger.agents.framing import source_file
from agent_logger.agents.locations import older_files_in
from agent_logger.agents.objects import object_in
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of
from agent_logger.model.ids import UUID
from agent_logger.providers.lenient import fitting

DATABASES = SessionDatabases("agent_logger.agents.openclaw.database")
sessions_in, copy, tables = DATABASES.sessions_in, DATABASES.copy, DATABASES.tables
root_of, unreadable = DATABASES.root_of, DATABASES.unreadable
INDEX = "sessions.json"
MOST_INDEX_BYTES = 64 << 20
DATABASE = b"SQLite format 3\0"


class _Entry(msgspec.Struct):
    """What the index says of a key."""

    session: str | None = msgspec.field(name="sessionId", default=None)
    spawned_by: str | None = msgspec.field(name="spawnedBy", default=None)


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
    for source in _older_sessions(agent, folders, cache):
        if source.name not in names and source.name not in skip:  # the others are in a database now
            yield source


def open_session(source: Source) -> SourceFiles:
    """Open a session; without a name, the newest session of a database."""
    path = Path(source.path)
    if path.suffix != ".jsonl" or next(foreign.chunks(path), b"").startswith(DATABASE):
        return DATABASES.open_session(source)
    others = [source_file(path.parent, Path(other).name) for other in source.others or ()]
    return SourceFiles(source_file(path.parent, path.name), others)


def begins_session(first: bytes) -> bool:
    return first.startswith((DATABASE, b'{"type":"session"')) or not first  # empty: everything is in its log


def recognises(first: bytes) -> bool:
    """Whether the bytes begin a database that names OpenClaw's tables. Its older files begin as pi's."""
    return first.startswith(DATABASE) and b"CREATE TABLE session_nodes" in first and b"openclaw" in first


# ---------------------------------------------------------------- before there was a database


def _older_sessions(agent: Agent, folders: Sequence[Path], cache: StampCache) -> Iterator[Source]:
    assert agent.location
    by_folder: dict[Path, dict[str, AgentThread]] = {}
    for path in (path for folder in folders for path in older_files_in(agent.location, folder)):
        if begins_session(first := next(foreign.chunks(path), b"")) and not first.startswith(DATABASE) and first:
            by_folder.setdefault(path.parent, {})[str(path)] = AgentThread(_session_in(path), None)
    for folder, threads in by_folder.items():
        starters = _starters(folder / INDEX, cache)
        started = {path: AgentThread(thread.id, starters.get(thread.id)) for path, thread in threads.items()}
        for main, agents in families(started).items():
            files = FileStamps()
            for file in (main, *agents):
                if stat := stat_of(file):
                    files.add_stat(stat, Path(file).name)
            name = threads[main].id
            yield Source(main, agent.name, main, name, files.modified, files.size, files.stamp, tuple(agents))


def _session_in(path: Path) -> str:
    """Return the session's id: the name of a file may go on behind it, with the topic of a chat."""
    match = UUID.match(path.stem)
    return path.stem if match is None else match[0]


def _starters(index: Path, cache: StampCache) -> dict[str, str | None]:
    """Return the session that started each sub-agent, as the index says."""
    stat = stat_of(str(index))
    if stat is None:
        return {}
    stamp = f"starters:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}"
    return dict(cache.cached(str(index), stamp, partial(_read_index, index)))


def _read_index(index: Path) -> list[list[str]]:
    fields: dict[str, Any] = object_in((foreign.text(index, MOST_INDEX_BYTES) or "").encode())
    entries = {key: fitting(_Entry, value) for key, value in fields.items()}
    by_key = {key: entry.session for key, entry in entries.items()}
    return [
        [entry.session, starter]
        for entry in entries.values()
        if entry.session and (starter := by_key.get(entry.spawned_by or ""))
    ]
