"""Deletes what we wrote of a session: planned first, file by file, then carried out.

A name proves nothing: a folder that logs are written to may hold anybody's files. A file is ours if its content says
so, or if a record of ours names it:

- a part, plain or sealed: its head is a record of ours, and names the same log as the first part;
- a live file: it begins with an exchange in flight;
- a file of `<name>.bodies/`: a record names it, or the call it is named after;
- a file of `<session>/tool-results/` beside a transcript of ours: a line names it;
- a log below `<session>/`, as of a sub-agent: its header names the session.

Links are never ours, and a file that is put in the place of a planned one stays. A folder is deleted with the last file
of ours in it, if nothing else is in it.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.files.line_files import entries
from agent_logger.files.parts import PartFile, live_files_of, parts_in, parts_of
from agent_logger.journal.ownership import HEAD_LINES
from agent_logger.logs.hook_files import files_with
from agent_logger.logs.transcript.side_files import persisted_files
from agent_logger.model import records
from agent_logger.model.records import Kind, LiveMessage, LiveStart, SessionHeader
from agent_logger.protocols.jsonl import JsonEntry

CALL_CHARACTERS = 36  # of the id that a body may be named after


@dataclass(frozen=True, slots=True)
class OwnFile:
    path: Path
    size: int  # bytes on the disk
    # Device and inode: another file may have the name by the time the user has confirmed.
    place: tuple[int, int]

    def remove(self) -> None:
        """Delete the file. Raises `OSError`."""
        with suppress(FileNotFoundError, NotADirectoryError):
            status = os.lstat(self.path)
            if (status.st_dev, status.st_ino) == self.place:
                self.path.unlink()


@dataclass(slots=True)
class Removal:
    """The files to delete, in this order; and those with names like theirs that are not known to be ours, and stay."""

    files: list[OwnFile] = field(default_factory=list)
    strangers: list[Path] = field(default_factory=list)
    within: Path | None = None  # the folder that stays, even if those below it are deleted

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def add(self, path: Path, *, is_ours: bool) -> None:
        """Add a file to either list. A file that was deleted meanwhile goes into neither."""
        with suppress(FileNotFoundError):
            status = os.lstat(path)
            if is_ours and stat.S_ISREG(status.st_mode):
                self.files.append(OwnFile(path, status.st_size, (status.st_dev, status.st_ino)))
            else:
                self.strangers.append(path)

    def carry_out(self) -> None:
        """Delete the files, and the folders that are empty then. Raises `OSError`."""
        for file in self.files:
            file.remove()
        for folder in _emptied(self):
            with suppress(OSError):  # other files are in it
                folder.rmdir()


def _emptied(removal: Removal) -> list[Path]:
    """Return the folders that had files of ours, the innermost first."""
    if (within := removal.within) is None:
        return []
    folders = {folder for file in removal.files for folder in file.path.parents if within in folder.parents}
    return sorted(folders, key=lambda folder: -len(folder.parts))


def removal_of_session(log: PartFile) -> Removal:
    """Plan the removal of a log, and of what is beside it if it is a transcript."""
    removal = Removal(within=_checked(log).folder)
    parts, others = _own_parts(log)
    for path in _side_files(log, parts):
        removal.add(path, is_ours=True)
    if folder := _folder_of_transcript(log, parts):
        _add_folder(removal, folder, _session_in(parts))
    _add_log(removal, log, parts, others)
    return removal


def removal_of_log(log: PartFile) -> Removal:
    """Plan the removal of a log alone."""
    removal = Removal(within=_checked(log).folder)
    _add_log(removal, log, *_own_parts(log))
    return removal


def removal_of_hooks(folder: Path, tag: str) -> Removal:
    """Plan the removal of the hook events of one session on one day; the day's folder is deleted with the last of
    them."""
    removal = Removal(within=folder.parent)
    for path in files_with(folder, tag):
        removal.add(path, is_ours=_first_records(path, "hook") != [])
    return removal


def removal_of_copy(path: Path) -> Removal:
    """Plan the removal of a copy of an agent's file in the archive, where all files are ours, with those of its
    sub-agents."""
    removal = Removal(within=path.parent)
    below = path.parent / path.name.partition(".jsonl")[0]
    for file in _files_below(below) if below != path else ():
        removal.add(file, is_ours=True)
    removal.add(path, is_ours=True)
    return removal


def _checked(log: PartFile) -> PartFile:
    """Check the log's name. The caller has made it safe. It is checked once more all the same: a folder and the name
    `/` make the root of the file system."""
    if log.name in ("", ".", "..") or "/" in log.name:
        raise ValueError(f"{log.name!r} is not the name of a log")
    return log


# ---------------------------------------------------------------- a log


def _add_log(removal: Removal, log: PartFile, parts: list[Path], others: list[Path]) -> None:
    """Add the files that only the parts prove to be ours first, and the first part last: while it exists, the log can
    be found to be removed again."""
    _add_bodies(removal, log, parts)
    sessions = frozenset(session for path in parts[:1] for session in _head_of(path).sessions)
    begun: set[Path] = set()  # parts without a record yet, whose owner has written a live file
    for part, paths in live_files_of(log.folder, log.name).items():
        for path in sorted(paths):
            is_ours = _is_live_file(path, sessions)
            begun |= {part.path} if is_ours else set()
            removal.add(path, is_ours=is_ours)
    for path in reversed(others):
        removal.add(path, is_ours=path in begun and platform.size_of(path) == 0)
    for path in reversed(parts):
        removal.add(path, is_ours=True)


def _add_bodies(removal: Removal, log: PartFile, parts: list[Path]) -> None:
    if _is_folder(log.bodies):
        is_named = _names_of_bodies(log, parts)
        for path in _files_below(log.bodies):
            removal.add(path, is_ours=path.parent == log.bodies and is_named(path.name))


def _own_parts(log: PartFile) -> tuple[list[Path], list[Path]]:
    """Return the files that are parts of the log, the oldest first; and those that only have such a name."""
    paths = [path for part in parts_of(log.folder, log.name) for path in (part.path, part.sealed_path)]
    own: list[Path] = []
    others: list[Path] = []
    first: _Head | None = None
    for path in (path for path in paths if os.path.lexists(path)):
        head = _head_of(path)
        if head.kind and (first is None or head.is_of_same_log(first)):
            own.append(path)
            first = first or head
        else:
            others.append(path)
    return own, others


@dataclass(frozen=True, slots=True)
class _Head:
    kind: Kind | None  # none: it has no record of ours
    log: str | None
    sessions: frozenset[str]  # that its records name

    def is_of_same_log(self, first: "_Head") -> bool:
        """Whether both heads belong to the same log, by the log's id. Older logs have none, and a crash may have lost
        it: then by kind and session."""
        if self.log and first.log:
            return self.log == first.log
        return self.kind == first.kind and not self.sessions.isdisjoint(first.sessions)


def _head_of(path: Path) -> _Head:
    lines = _first_lines(path)
    kind = next((kind for line in lines if (kind := records.kind_of(line.raw))), None)
    values = [line.value for line in lines if isinstance(line.value, dict)]
    log = next((value["log"] for value in values if isinstance(value.get("log"), str)), None)
    sessions = (value.get(name) for value in values for name in ("session_id", "session"))
    return _Head(
        kind if kind in ("exchange", "wire", "transcript") else None,
        log,
        frozenset(session for session in sessions if isinstance(session, str)),
    )


def _first_lines(path: Path) -> list[JsonEntry]:
    """Return the first lines of a regular file that can be read."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return []
        return list(islice((line for line in entries(path) if isinstance(line, JsonEntry)), HEAD_LINES))
    except (OSError, SourceError):
        return []


def _first_records(path: Path, kind: Kind) -> list[records.AnyRecord]:
    """Return the known records among the first lines of a file."""
    first_records = []
    for line in _first_lines(path):
        with suppress(ValueError):
            first_records.append(records.decode(line.raw, kind))
    return [record for record in first_records if isinstance(record, records.Record)]


def _is_live_file(path: Path, sessions: frozenset[str]) -> bool:
    """Whether the file is a live file of these sessions; the file or the log may not name one yet."""
    records = [record for record in _first_records(path, "live") if isinstance(record, LiveStart | LiveMessage)]
    named = {record.session_id for record in records if isinstance(record, LiveStart) and record.session_id}
    return bool(records) and (not named or not sessions or not named.isdisjoint(sessions))


def _names_of_bodies(log: PartFile, parts: list[Path]) -> Callable[[str], bool]:
    """Return a check for which files of the bodies folder records name."""
    names: set[str] = set()
    calls: set[str] = set()
    for value in _values(parts):
        files = (value.get(name) for name in ("body_file", "messages_file", "file"))
        names.update(file for file in files if isinstance(file, str))
        if isinstance(call := value.get("call"), str) and len(call) == CALL_CHARACTERS:
            calls.add(call)
    return lambda name: f"{log.bodies.name}/{name}" in names or name[:CALL_CHARACTERS] in calls


def _values(parts: Iterable[Path]) -> Iterator[dict[str, object]]:
    for path in parts:
        with suppress(OSError, SourceError):
            for line in entries(path):
                if isinstance(line, JsonEntry) and isinstance(line.value, dict):
                    yield line.value


# ---------------------------------------------------------------- what is beside a transcript


def _folder_of_transcript(log: PartFile, parts: list[Path]) -> Path | None:
    folder = log.folder / log.name
    is_transcript = any(_head_of(path).kind == "transcript" for path in parts)
    return folder if is_transcript and _is_folder(folder) else None


def _session_in(parts: list[Path]) -> str | None:
    headers = (record for path in parts for record in _first_records(path, "transcript"))
    return next((record.id for record in headers if isinstance(record, SessionHeader)), None)


def _side_files(log: PartFile, parts: list[Path]) -> Iterator[Path]:
    folder = _folder_of_transcript(log, parts)
    named = {name for value in _values(parts) for name in persisted_files(value)} if folder else set()
    for name in sorted(named):
        path = (folder or log.folder) / name
        if _is_folder(path.parent) and os.path.lexists(path):
            yield path


def _add_folder(removal: Removal, folder: Path, session: str | None) -> None:
    """Add the logs below the folder that name the session; of the rest, what is not in the removal already stays."""
    below = list(_files_below(folder))
    for inner in sorted({path.parent for path in below}):
        for log in dict.fromkeys(PartFile(inner, part.name) for part in parts_in(inner)):
            parts, others = _own_parts(log)
            if session is not None and _session_in(parts) == session:
                _add_log(removal, log, parts, others)
    paths = {file.path for file in removal.files} | set(removal.strangers)
    for path in below:
        if path not in paths:
            removal.add(path, is_ours=False)


# ---------------------------------------------------------------- folders


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files, including links, which are not followed."""
    if not _is_folder(folder):
        return
    for inside, folders, names in os.walk(folder):
        links = [name for name in folders if Path(inside, name).is_symlink()]
        yield from (Path(inside, name) for name in sorted([*names, *links]))
