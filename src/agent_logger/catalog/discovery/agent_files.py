"""Of what there is to be read, the files of agents, where these keep them."""

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from agent_logger.agents.claude_code.files import is_id
from agent_logger.agents.folders import (
    HISTORY_FILE,
    agent_files,
    agent_folders,
    claude_roots,
    older_agent_files,
    place_of,
)
from agent_logger.agents.locations import AGENT_PLACES
from agent_logger.agents.threads import AgentThread, families
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import (
    HAVE_HISTORIES,
    NO_MAIN_FILE,
    FileStamps,
    Source,
    StampCache,
    entries_in,
    stamped,
    stat_of,
)
from agent_logger.model.ids import UUID

FIRST_BYTES = 1 << 16  # of a file, to see whose it is

_AGENT = re.compile(r"agent-[^/]+\.jsonl")
_CLAUDE, _CODEX, _GEMINI, _OPENCODE = "claude-code", "codex", "gemini-cli", "opencode"
_FOUND_OTHERWISE = (_CLAUDE, _CODEX, _GEMINI, _OPENCODE)


def agent_sessions(remembered: StampCache) -> Iterator[Source]:
    """What other agents have on this machine."""
    there = set()
    for source in _files_of_agents(remembered):
        if not source.main_missing:
            there.add((source.agent, source.name))
        yield source
    typed = list(_histories(remembered))
    there |= remembered.passed_over if typed else set()
    yield from (source for source in typed if (source.agent, source.name) not in there)


def _files_of_agents(remembered: StampCache) -> Iterator[Source]:
    for root in claude_roots():
        yield from _claude_sessions(str(root), remembered)
    yield from _codex_sessions(remembered)
    yield from _gemini_sessions()
    yield from _opencode_sessions(remembered)
    for place in AGENT_PLACES:
        if place.agent not in _FOUND_OTHERWISE:
            yield from _single_files(place.agent)


# ---------------------------------------------------------------- Claude Code


def _claude_sessions(root: str, remembered: StampCache) -> Iterator[Source]:
    yield from _claude_folder(f"{root}/sessions", entries_in(f"{root}/sessions"), remembered)
    projects = entries_in(f"{root}/projects")
    yield from _claude_folder(f"{root}/projects", projects, remembered)
    for project in projects:
        if project.is_dir(follow_symlinks=False):
            yield from _claude_folder(project.path, entries_in(project.path), remembered)


def _claude_folder(folder: str, entries: list[os.DirEntry[str]], remembered: StampCache) -> Iterator[Source]:
    mains: dict[str, os.DirEntry[str]] = {}
    folders: dict[str, str] = {}
    loose: list[os.DirEntry[str]] = []
    for entry in entries:
        name = entry.name
        if name.endswith(".jsonl"):
            stem = name[:-6]
            if is_id(stem):
                mains[stem] = entry
            elif _AGENT.fullmatch(name):
                loose.append(entry)
        elif name in mains or entry.is_dir(follow_symlinks=False):
            folders[name] = entry.path
    if "subagents" in folders:
        loose += [item for item in entries_in(folders["subagents"]) if _AGENT.fullmatch(item.name)]
    owned = _owned(loose, remembered) if loose else {}
    with_agents: dict[str, Source] = {}
    alone: dict[str, tuple[str, os.stat_result]] = {}
    for name, entry in mains.items():
        if name in folders or name in owned:
            if source := _with_agents(name, entry, folders.get(name), owned.get(name, ())):
                with_agents[name] = source
        elif stamp_and_stat := stamped(entry):
            alone[name] = stamp_and_stat
    left = list(_without_main(folder, [*folders, *filter(None, owned)], mains, folders, owned))
    stamps = [
        *(with_agent.stamp for with_agent in with_agents.values()),
        *(stamp for stamp, _ in alone.values()),
    ]
    stamps += [f"{source.name}/{source.stamp}" for source in left]
    if remembered.is_as_it_was(folder, stamps, _CLAUDE, [*with_agents, *alone]):
        return
    yield from with_agents.values()
    yield from left
    for name, (stamp, stat) in alone.items():
        path = f"{folder}/{name}.jsonl"
        yield Source(path, _CLAUDE, path, name, stat.st_mtime, stat.st_size, stamp, ())


def _without_main(
    folder: str,
    names: Iterable[str],
    mains: Container[str],
    folders: Mapping[str, str],
    owned: Mapping[str | None, list[os.DirEntry[str]]],
) -> Iterator[Source]:
    """Sessions whose main file was deleted, and the files of their sub-agents were not."""
    for name in dict.fromkeys(names):
        if name in mains or not is_id(name):
            continue
        files = FileStamps()
        below = _agents_below(folders[name]) if name in folders else []
        others = [entry.path for entry in (*below, *owned.get(name, ())) if files.add(entry, entry.name)]
        if others:
            path, stamp = f"{folder}/{name}.jsonl", NO_MAIN_FILE + files.stamp
            yield Source(path, _CLAUDE, path, name, files.modified, files.size, stamp, tuple(others))


def _with_agents(
    name: str, entry: os.DirEntry[str], folder: str | None, owned: Iterable[os.DirEntry[str]]
) -> Source | None:
    files = FileStamps()
    if not files.add(entry):
        return None
    agents = (*(_agents_below(folder) if folder else ()), *owned)
    others = [agent.path for agent in agents if files.add(agent, agent.name)]
    return Source(
        entry.path, _CLAUDE, entry.path, name, files.modified, files.size, files.stamp, tuple(others)
    )


def _agents_below(folder: str) -> list[os.DirEntry[str]]:
    agents = f"{folder}/subagents"
    entries = [entry for entry in entries_in(agents) if _AGENT.fullmatch(entry.name)]
    return [] if entries and os.path.islink(agents) else sorted(entries, key=lambda entry: entry.name)


def _owned(loose: list[os.DirEntry[str]], remembered: StampCache) -> dict[str | None, list[os.DirEntry[str]]]:
    """Agents that lie with those of other sessions, by the session that their first line names."""
    owned: dict[str | None, list[os.DirEntry[str]]] = {}
    for entry in sorted(loose, key=lambda loose_entry: loose_entry.path):
        if entry.is_file(follow_symlinks=False) and (stat := stat_of(entry.path)):
            owner = remembered.cached(entry.path, _beginning(stat), partial(_owner, entry.path))
            owned.setdefault(owner, []).append(entry)
    return owned


def _beginning(stat: os.stat_result) -> str:
    """What the first line of a file is known by: it may be cut, and another one written."""
    return f"{stat.st_ino}:{min(stat.st_size, FIRST_BYTES)}"


def _owner(path: str) -> str | None:
    from agent_logger.agents.claude_code.transcript.lines import (
        session_of_line,  # readers are not needed to look around
    )

    return session_of_line(next(foreign.chunks(Path(path)), b"")[:FIRST_BYTES].partition(b"\n")[0])


# ---------------------------------------------------------------- the others


def _codex_sessions(remembered: StampCache) -> Iterator[Source]:
    """Rollouts of sub-agents go with that of the thread that started them, however far down."""
    stats = {path: stat for path in map(str, agent_files(_CODEX)) if (stat := stat_of(path))}
    threads: dict[str, AgentThread] = {}
    for path, stat in stats.items():
        if ids := remembered.cached(path, _beginning(stat), partial(_codex_ids, path)):
            threads[path] = AgentThread(*ids)
    for path, agents in families(threads).items():
        files = FileStamps()
        for file in (path, *agents):
            files.add_stat(stats[file], os.path.basename(file))
        named = UUID.search(os.path.basename(path))
        name = named[0] if named else threads[path].id
        yield Source(path, _CODEX, path, name, files.modified, files.size, files.stamp, tuple(agents))


def _codex_ids(path: str) -> list[str | None] | None:
    from agent_logger.agents.openers import codex_meta

    meta = codex_meta(Path(path))
    return [meta.id, meta.spawned_by] if meta else None


def _gemini_sessions() -> Iterator[Source]:
    """Chats of sub-agents lie in a folder that is called as the session, and a chat's name ends as that begins."""
    folders: dict[str, list[tuple[str, list[os.DirEntry[str]]]]] = {}
    for path in map(str, agent_files(_GEMINI)):
        chats, name = os.path.split(path)
        if chats not in folders:
            below = [item for item in entries_in(chats) if item.is_dir(follow_symlinks=False)]
            folders[chats] = [
                (item.name, sorted(entries_in(item.path), key=lambda child: child.name)) for item in below
            ]
        stat = stat_of(path)
        if stat is None:
            continue
        files = FileStamps()
        files.add_stat(stat, "")
        for folder, entries in folders[chats]:
            if folder[:8] in name:
                for entry in entries:
                    files.add(entry)
        named = UUID.search(name)
        yield Source(
            path,
            _GEMINI,
            path,
            named[0] if named else name.rpartition(".")[0],
            files.modified,
            files.size,
            files.stamp,
        )


def _single_files(agent: str) -> Iterator[Source]:
    """Of an agent whose sessions are a file each, called by the id."""
    for path in map(str, agent_files(agent)):
        named = UUID.fullmatch(os.path.basename(path).rpartition(".")[0])
        if named and (stat := stat_of(path)):
            files = FileStamps()
            files.add_stat(stat, "")
            yield Source(path, agent, path, named[0], files.modified, files.size, files.stamp)


def _opencode_sessions(remembered: StampCache) -> Iterator[Source]:
    visited = set()
    for database in _opencode_databases(remembered):
        visited.add(database.name)
        yield database
    yield from _older_opencode_sessions(remembered, visited)


def _opencode_databases(remembered: StampCache) -> Iterator[Source]:
    """All in one database: while that is as it was, it is not opened; else each session has a stamp inside."""
    for path in agent_files(_OPENCODE):
        files = FileStamps()
        for name in (str(path), f"{path}-wal"):
            if stat := stat_of(name):
                files.add_stat(stat, "")
        for entry in remembered.cached(str(path), files.stamp, partial(_opencode_stamps, path)):
            name, modified, size, stamp = entry
            yield Source(f"{path}#{name}", _OPENCODE, str(path), name, modified, size, stamp)


def _opencode_stamps(path: Path) -> list[tuple[str, float, int, str]]:
    from agent_logger.agents.opencode import database

    try:
        return database.session_stamps(path)
    except (SourceError, OSError):
        return []


def _older_opencode_sessions(remembered: StampCache, ids: set[str]) -> Iterator[Source]:
    """In files. What is known was copied from there, and has gone on elsewhere since."""
    threads: dict[str, AgentThread] = {}
    for name, path in _older_opencode_files().items():
        if stat := stat_of(path):
            stamp = f"by:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}"
            (by,) = remembered.cached(path, stamp, partial(_opencode_parent, path))
            threads[path] = AgentThread(name, by)
    for path, agents in families(threads).items():
        name = threads[path].id
        if name not in ids:
            files = _opencode_files((path, *agents))
            yield Source(path, _OPENCODE, path, name, files.modified, files.size, files.stamp, tuple(agents))


def _older_opencode_files() -> dict[str, str]:
    """By session. One that lies there twice was taken over from an older version, too."""
    files: dict[str, str] = {}
    for path in older_agent_files(_OPENCODE):
        files.setdefault(path.stem, str(path))
    return files


def _opencode_parent(path: str) -> list[str | None]:
    from agent_logger.agents.opencode.older_files import started_by

    return [started_by(Path(path))]


def _opencode_files(paths: Iterable[str]) -> FileStamps:
    """With the messages, which are written once more when they have come to their end; parts are not looked at."""
    from agent_logger.agents.opencode.older_files import message_files

    files = FileStamps()
    for path in paths:
        for file in (path, *map(str, message_files(Path(path)))):
            if stat := stat_of(file):
                files.add_stat(stat, os.path.basename(file))
    return files


def _histories(remembered: StampCache) -> Iterator[Source]:
    """What was ever typed, also in sessions whose file is there."""
    for agent in HAVE_HISTORIES:
        for folder in agent_folders(place_of(agent)):
            path = f"{folder}/{HISTORY_FILE}"
            if stat := stat_of(path):
                files = FileStamps()
                files.add_stat(stat, "")
                for entry in remembered.cached(path, files.stamp, partial(_typed, path)):
                    name, modified, size = entry
                    yield Source(f"{path}#{name}", agent, path, name, modified, size, f"{modified}:{size}")


def _typed(path: str) -> list[tuple[str, float, int]]:
    from agent_logger.agents import deleted_sessions

    by_session = deleted_sessions.prompts_in(Path(path))
    return [
        (
            name,
            max((prompt.at.timestamp() for prompt in prompts if prompt.at), default=0.0),
            sum(len(prompt.text) for prompt in prompts),
        )
        for name, prompts in by_session.items()
    ]
