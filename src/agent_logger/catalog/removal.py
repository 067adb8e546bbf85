"""Getting rid of a session: what we have written of it is deleted, and a tombstone says that it does not come back.

Files of agents are only ever read. They stay, and are not shown.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_logger.catalog.found import Found
from agent_logger.errors import StoreError
from agent_logger.store import platform
from agent_logger.store.archived import copies_by_name
from agent_logger.store.facts import Tombstone, bury, tombstones
from agent_logger.store.hook_files import hooks_path
from agent_logger.store.parts import PartFile, part_of, parts_of
from agent_logger.store.remove import remove_folder, remove_hooks, remove_session


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """A log of ours, the copy of an agent's file, or what hooks were told on one day."""

    session: str
    path: Path  # the first of a log; of hooks it stands for their files
    size: int
    log: PartFile | None  # none for anything else

    @property
    def is_in_use(self) -> bool:
        return self.log is not None and _is_owned(self.log)


def own_files(home: Path, sources: Mapping[str, Sequence[Found]]) -> list[OwnFiles]:
    """`sources`: by session."""
    agents = any(it.agent for told in sources.values() for it in told)
    copies = copies_by_name(home) if agents else {}
    found: dict[Path, OwnFiles] = {}
    for session, told in sources.items():
        for it in told:
            path = Path(it.path)
            if it.agent is None:
                log = None if it.is_of_hooks else PartFile(path.parent, it.name)
                found[path] = OwnFiles(session, path, it.size, log)
            for copy in copies.get(it.name, ()) if it.agent else ():
                found[copy] = OwnFiles(session, copy, platform.size_of(copy), None)
    return list(found.values())


def remove_files(home: Path, sessions: Sequence[str], ours: Sequence[OwnFiles]) -> None:
    """The tombstones first, with what is to be deleted: after a crash the next removal goes on from them. Raises
    `StoreError` if one of them is being written to, and `OSError`."""
    paths: dict[str, list[Path]] = {it: [] for it in sessions}
    for it in ours:
        if it.is_in_use:
            raise StoreError(f"{it.path} is being written to; stop the recording first")
        paths[it.session].append(it.path)
    for session in sessions:
        bury(home, session, paths[session])
    for stone in tombstones(home).values():
        _dig(home, stone)


def _dig(home: Path, stone: Tombstone) -> None:
    """Delete what a tombstone names, and say that it is done: what has one of these names later is another's."""
    paths = list(map(Path, stone.paths))
    if not paths or any(_is_owned(log) for path in paths if (log := _log_of(home, path))):
        return
    for path in paths:
        _remove(home, path)
    bury(home, stone.session, [])


def _log_of(home: Path, path: Path) -> PartFile | None:
    ours_alone = (home / "archive", hooks_path(home))
    return None if any(it in path.parents for it in ours_alone) else part_of(path)


def _remove(home: Path, path: Path) -> None:
    if log := _log_of(home, path):
        remove_session(log)
    elif hooks_path(home) in path.parents:
        remove_hooks(path.parent, path.name)
    else:
        path.unlink(missing_ok=True)
        remove_folder(path.parent, path.name.partition(".jsonl")[0])  # of sub-agents


def _is_owned(log: PartFile) -> bool:
    """Whether a process has it open to append to."""
    for part in parts_of(log.folder, log.name):
        with suppress(OSError, platform.NoLocksError):
            held = platform.open_file(part.path)
            try:
                if not platform.lock(held):
                    return True
            finally:
                held.close()
    return False
