"""Removes a session: what we have written of it is deleted, and a tombstone says that it must not come back.

Files of agents are only ever read. They stay, and are not shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_logger import platform
from agent_logger.archive.sessions import copies_by_name
from agent_logger.catalog.source_queries import OwnLog
from agent_logger.errors import StoreError
from agent_logger.files.parts import PartFile, part_of, parts_of
from agent_logger.files.sources import Source
from agent_logger.home.facts import Tombstone, bury, tombstones
from agent_logger.logs.branches import lineage_of
from agent_logger.logs.hook_files import hooks_path
from agent_logger.logs.remove import Removal, removal_of_copy, removal_of_hooks, removal_of_session


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """A log of ours, the copy of an agent's file, or the events of hooks on one day."""

    session: str
    path: Path  # the first of a log; of hooks it stands for their files
    log: PartFile | None  # none for anything else
    removal: Removal  # every file of it, and what only looks like one

    @property
    def size(self) -> int:
        return self.removal.size

    @property
    def is_in_use(self) -> bool:
        return self.log is not None and _is_owned(self.log)


def own_files(home: Path, sources: Mapping[str, Sequence[Source]]) -> list[OwnFiles]:
    """Return our files of these sessions. `sources`: by session. A log without a file that is known to be ours is left
    out; so is what was imported, which is removed as one import."""
    agents = any(source.agent for session_sources in sources.values() for source in session_sources)
    copies = copies_by_name(home) if agents else {}
    by_path: dict[Path, OwnFiles] = {}
    for session, own_sources in sources.items():
        for source in (source for source in own_sources if not source.imported):
            paths = copies.get(source.name, ()) if source.agent else (Path(source.path),)
            for path in paths:
                log = PartFile(path.parent, source.name) if source.is_log else None
                by_path[path] = OwnFiles(session, path, log, _removal(home, path))
    return [own for own in by_path.values() if own.removal.files]


def remove_files(home: Path, sessions: Mapping[str, Sequence[str]], ours: Sequence[OwnFiles]) -> None:
    """Write the tombstones first, with what is to be deleted, then delete it: after a crash the next removal continues
    from them. `sessions`: the lasting names of each. Raises `StoreError` if one of the logs is being written to, and
    `OSError`."""
    paths: dict[str, list[Path]] = {name: [] for name in sessions}
    for files in ours:
        if files.is_in_use:
            raise StoreError(f"{files.path} is being written to; stop the recording first")
        paths[files.session].append(files.path)
    for session, (name, *others) in sessions.items():
        bury(home, name, paths[session])
        for other in others:
            bury(home, other, [])
    for stone in tombstones(home).values():
        _delete_buried(home, stone)


def _delete_buried(home: Path, stone: Tombstone) -> None:
    """Delete what a tombstone names, and note that it is done: a later file with one of these names is another."""
    paths = list(map(Path, stone.paths))
    if not paths or any(_is_owned(log) for path in paths if (log := _log_of(home, path))):
        return
    for path in paths:
        _removal(home, path).carry_out()
    bury(home, stone.session, [])


def _log_of(home: Path, path: Path) -> PartFile | None:
    ours_alone = (home / "archive", hooks_path(home))
    return None if any(folder in path.parents for folder in ours_alone) else part_of(path)


def _removal(home: Path, path: Path) -> Removal:
    if log := _log_of(home, path):
        return removal_of_session(log)
    if hooks_path(home) in path.parents:
        return removal_of_hooks(path.parent, path.name)
    return removal_of_copy(path)


def _is_owned(log: PartFile) -> bool:
    """Whether a process has it open to append to."""
    return any(platform.is_locked(part.path) for part in parts_of(log.folder, log.name))


# ---------------------------------------------------------------- branches


def branches_of(sessions: Iterable[str], logs: Sequence[OwnLog]) -> dict[str, str]:
    """Return the sessions that are read with calls of these, each with the one of them it continues from; and likewise
    those forked from them. A branch has nothing of its parent's: without the parent's log it would lose its beginning.
    `logs`: those of all sessions."""
    own: dict[str, set[Path]] = {}
    for log in logs:
        own.setdefault(log.session, set()).add(log.path)
    lineages = [(log.session, _lineage(log.path)) for log in logs if log.is_forked]
    parent_of: dict[str, str] = {}
    waiting = list(dict.fromkeys(sessions))
    ids = set(waiting)
    while waiting:
        parent = waiting.pop()
        for session, lineage in lineages:
            if session not in ids and not lineage.isdisjoint(own.get(parent, ())):
                parent_of[session] = parent
                ids.add(session)
                waiting.append(session)
    return parent_of


def _lineage(path: Path) -> set[Path]:
    try:
        return {path.with_name(f"{name}.jsonl") for name, _ in lineage_of(path.parent, path.stem)} - {path}
    except OSError:
        return set()
