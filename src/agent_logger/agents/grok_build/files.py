"""The files of Grok Build: a folder per session. A sub-agent has a session of its own; only the folder of the session
that started it says so."""

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.grok_build.documents import DOCUMENTS, META, UPDATES
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_below, entries_in, stat_of_copy

SUBAGENTS = "subagents"
MOST_META_BYTES = 1 << 20
MOST_DOCUMENT_BYTES = 64 << 20
MOST_AGENTS = 10_000  # sub-agents of one session
_ENDS_LOCK = ".lock"


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. The folder of a session has its id as its name."""
    paths = list(map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()))
    started_by = {
        child: os.path.basename(os.path.dirname(path))
        for path in paths
        for child in _children(os.path.dirname(path), cache)
    }
    threads = {path: _thread(path, started_by) for path in paths}
    for path, agents in families(threads).items():
        stat, name = stat_of_copy(path), threads[path].id
        if stat is None or name in skip:
            continue
        stamps = FileStamps()
        stamps.add_stat(stat, "")
        for entry in _entries(os.path.dirname(path)):
            stamps.add(entry, entry.name)
        others = [file for updates in agents for file in _all_files(os.path.dirname(updates))]
        others += _metas(os.path.dirname(path))
        for other in others:
            if other_stat := stat_of_copy(other):
                stamps.add_stat(other_stat, os.path.basename(other))
        yield Source(path, agent.name, path, name, stamps.modified, stamps.size, stamps.stamp, tuple(others))


def _thread(path: str, started_by: Mapping[str, str]) -> AgentThread:
    name = os.path.basename(os.path.dirname(path))
    return AgentThread(name, started_by.get(name))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Return what describes the session, besides its main file."""
    return sorted((entry for entry in entries_in(folder) if _plain_name(entry) in DOCUMENTS), key=_plain_name)


def _plain_name(entry: os.DirEntry[str]) -> str:
    return entry.name.removesuffix(foreign.SEALED)


def _all_files(folder: str) -> list[str]:
    """Return the files of a sub-agent's session, so that all of them are archived with the session that started it."""
    paths: list[str] = []
    for inside, folders, names in os.walk(folder):  # follows no link
        folders.sort()
        plain = (name.removesuffix(foreign.SEALED) for name in sorted(names) if not name.endswith(_ENDS_LOCK))
        paths += [os.path.join(inside, name) for name in plain]
    return paths


def _metas(folder: str) -> list[str]:
    """Return the files that describe the sub-agents of a session."""
    started = sorted(entry.path for entry in entries_below(os.path.join(folder, SUBAGENTS)))[:MOST_AGENTS]
    paths = (os.path.join(agent, META) for agent in started)
    return [path for path in paths if foreign.existing(Path(path))]


class _Meta(msgspec.Struct):
    child_session_id: str = ""


def _children(folder: str, cache: StampCache) -> Iterator[str]:
    """Yield the ids of the sessions of a session's sub-agents."""
    for path in _metas(folder):
        stat = stat_of_copy(path)
        stamp = f"{stat.st_ino}:{stat.st_size}" if stat else ""
        child = str(cache.cached(path, stamp, partial(_child_in, path)))
        if child == os.path.basename(child) and child not in ("", ".", ".."):  # anything else is no name of a folder
            yield child


def _child_in(path: str) -> str:
    try:
        meta = msgspec.json.decode(foreign.text(Path(path), MOST_META_BYTES) or "", type=_Meta)
    except (ValueError, RecursionError):
        meta = _Meta()
    return meta.child_session_id or os.path.basename(os.path.dirname(path))


# ---------------------------------------------------------------- opening


def open_session(source: Source) -> SourceFiles:
    """Open a session. Names of files start at the folder of the project, because that of the session is its id."""
    path = Path(source.path)
    project = path.parent.parent
    if path.name != UPDATES:  # a copy somewhere else
        return SourceFiles(source_file(path.parent, path.name))
    others = source.others if source.others is not None else _files_of_agents(path.parent)
    names = [os.path.relpath(other, project) for other in others if os.path.basename(other) in (UPDATES, META)]
    main = os.path.relpath(path, project)
    return SourceFiles(
        source_file(project, main), [source_file(project, name) for name in names], partial(_text, project)
    )


def _files_of_agents(folder: Path) -> list[str]:
    """Return the files of a session's sub-agents, at any depth. They may have worked in other projects."""
    paths: list[str] = []
    visited, todo = {folder.name}, [folder]
    for session in todo:  # grows meanwhile
        paths += _metas(str(session))
        for child in _children(str(session), StampCache()):
            places = [session.parent, *sorted(session.parent.parent.glob("*/"))]
            place = next((place / child for place in places if foreign.existing(place / child / UPDATES)), None)
            if place and child not in visited:
                visited.add(child)
                todo.append(place)
                paths.append(str(place / UPDATES))
    return paths


def _text(project: Path, name: str) -> str | None:
    """Read a document of a session by its name. Names come from the reader alone."""
    parts = PurePosixPath(name).parts
    if parts[-1:] and parts[-1] in DOCUMENTS and len(parts) >= 2:
        return foreign.text(project / name, MOST_DOCUMENT_BYTES)
    return None


# ---------------------------------------------------------------- how a file begins


def begins_session(first: bytes) -> bool:
    return first.startswith(b'{"timestamp":') and b'"method":' in first


def recognises(first: bytes) -> bool:
    line = first.split(b"\n", 1)[0]
    return begins_session(first) and b'"params":{"sessionId":' in line and b'"sessionUpdate":' in line
