"""Of what there is to be read, the copies that we keep of agents' files."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_logger.agents.claude_code.files import is_id
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_in, stamped, stat_of
from agent_logger.files.stored_text import hashed, restored, storable

if TYPE_CHECKING:
    from agent_logger.archive.layout import ArchiveFolder

_CLAUDE, _OPENCODE = "claude-code", "opencode"


def archived_sessions(
    home: Path, present: Iterable[tuple[str | None, str]], remembered: StampCache
) -> Iterator[Source]:
    """What we have kept of agents, and they have no more; each once."""
    if not (home / "archive").is_dir():
        return
    from agent_logger.archive.layout import folders

    excluded = remembered.passed_over.union(present)
    for folder in folders(home):
        for name, modified, *paths in _archived_entries(folder, remembered, excluded):
            copy, file, *others = map(restored, paths)
            if (folder.agent, name) not in excluded:
                excluded.add((folder.agent, name))
                files = FileStamps()
                for path in (copy, *others):
                    if stat := stat_of(path) or stat_of(path + foreign.SEALED):
                        files.add_stat(stat, "")
                key = f"{file}#{name}" if folder.agent == _OPENCODE else file
                other_names = (
                    None if folder.agent == _CLAUDE else tuple(others) or None
                )  # its reader looks for them
                yield Source(key, folder.agent, file, name, modified, files.size, files.stamp, other_names)


def _archived_entries(
    folder: "ArchiveFolder", remembered: StampCache, excluded: set[tuple[str | None, str]]
) -> Iterable[Any]:
    """Of each session its id and time, its copy as that lies there and under its plain name, and those of its
    sub-agents."""
    if folder.agent == _CLAUDE:
        return _kept_of_claude(str(folder.copies), remembered, excluded)
    archived: Iterable[Any] = remembered.cached(
        str(folder.copies), _stamp_below(folder.copies), partial(_read_kept, folder)
    )
    return archived


def _kept_of_claude(
    copies: str, remembered: StampCache, excluded: set[tuple[str | None, str]]
) -> Iterator[tuple[str | float, ...]]:
    """But for those that the client still has: of them the names say all that must be known."""
    for project in sorted(entries_in(f"{copies}/projects"), key=lambda entry: entry.name):
        entries = entries_in(project.path) if project.is_dir(follow_symlinks=False) else []
        gone = {
            session: (entry.path, *stamp_and_stat)
            for session, entry in _copies_in(entries).items()
            if (_CLAUDE, session) not in excluded and (stamp_and_stat := stamped(entry))
        }
        agents = _agents_of(gone, project.path, entries)
        looks = [stamp for _, stamp, _ in gone.values()]
        looks += [
            stamp_and_stat[0]
            for beside in agents.values()
            for entry in beside
            if (stamp_and_stat := stamped(entry))
        ]
        if remembered.is_as_it_was(project.path, looks, _CLAUDE, gone):
            excluded.update((_CLAUDE, session) for session in gone)
            continue
        for session, (path, _, stat) in gone.items():
            paths = (path, f"{project.path}/{session}.jsonl", *(agent.path for agent in agents[session]))
            yield session, stat.st_mtime, *map(storable, paths)


def _copies_in(entries: Iterable[os.DirEntry[str]]) -> dict[str, os.DirEntry[str]]:
    """By session. Where one is there plain and sealed, somebody was killed while sealing: the plain one counts."""
    by_name: dict[str, os.DirEntry[str]] = {}
    for entry in entries:
        file = entry.name.removesuffix(foreign.SEALED)
        session = file.removesuffix(".jsonl")
        if session != file and is_id(session) and (session not in by_name or file == entry.name):
            by_name[session] = entry
    return by_name


def _agents_of(
    sessions: Iterable[str], project: str, entries: Sequence[os.DirEntry[str]]
) -> dict[str, list[os.DirEntry[str]]]:
    """What may be of their sub-agents. Those that lie with the agents of other sessions are taken for everybody's: only
    older clients have such, and their copies hardly ever change."""
    folders = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
    beside = [*entries, *(entries_in(f"{project}/subagents") if "subagents" in folders else ())]
    loose = [entry for entry in beside if entry.name.startswith("agent-")]
    return {
        session: [*(entries_in(f"{project}/{session}/subagents") if session in folders else ()), *loose]
        for session in sessions
    }


def _read_kept(folder: "ArchiveFolder") -> list[tuple[str | float, ...]]:
    from agent_logger.archive.sessions import archived_in

    return [
        (
            session.id,
            session.modified,
            *(storable(str(path)) for path in (session.copy.path, session.file, *session.others)),
        )
        for session in archived_in(folder)
    ]


def _stamp_below(folder: Path) -> str:
    """Of all files in it, however far down."""
    files = FileStamps()
    for inside, inner, names in os.walk(folder):
        inner.sort()
        for name in sorted(names):
            if stat := stat_of(f"{inside}/{name}"):
                files.add_stat(stat, name)
    return str(hashed(files.stamp))
