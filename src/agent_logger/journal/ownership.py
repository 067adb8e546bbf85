"""Which part of a log a process may append to.

A part has one owner, which holds a lock on it until it closes the file or dies. A process that does not get the lock
begins a new part, so nobody waits and no two writers share a file: a line that one of them left torn would take the
other's next line with it.
"""

import errno
import itertools
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.files.line_files import first_entries
from agent_logger.files.parts import PartFile, parts_of
from agent_logger.model import records
from agent_logger.model.records import Kind, PartReason
from agent_logger.protocols.jsonl import JsonEntry

HEAD_LINES = 8
# Other writers may create parts of the same log at the same time; each try loses to one of them.
TRIES = 1000


class Claim(msgspec.Struct, frozen=True):
    """A part that is ours now. `reason` says why it was begun; `None` if it is an old one, which is appended to."""

    part: PartFile
    held: platform.Held
    reason: PartReason | None = None
    created: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the part has no line: it was begun just now, or its owner died before the first line."""
        return self.held.size() == 0


class SkippedParts(msgspec.Struct, frozen=True):
    """Parts up to this number are not to be taken, for a reason."""

    number: int
    reason: PartReason


NO_PARTS = SkippedParts(0, "full")


def claim(folder: Path, name: str, *, full_at: int, skipped: SkippedParts = NO_PARTS, top: Path | None = None) -> Claim:
    """Take the newest part if it is free, else a new one. Raises `OSError`.

    No folder below `top` may be a link; if `top` is not given, it is the log's folder.
    """
    top = top or folder
    part: PartFile = PartFile(folder, name)
    reason: PartReason | None = None
    for _ in range(TRIES):
        if held := _create(part, top):
            return Claim(part, held, reason, created=True)
        newest = _newest(folder, name, part)
        taken = _take_over(newest, full_at, top) if newest.number > skipped.number else skipped.reason
        if isinstance(taken, platform.Held):
            return Claim(newest, taken)
        part, reason = (newest.next(), taken) if taken else (newest, None)
    raise OSError(f"{part.path}: no part of this log can be written to")


def _create(part: PartFile, top: Path) -> platform.Held | None:
    """Create a part. `None` if it exists already, or another process locked it as soon as it existed."""
    if part.is_sealed():
        return None
    try:
        held = platform.open_file(part.path, create=True, top=top)
    except FileExistsError:
        _refuse_what_is_no_file(part.path)
        return None
    try:
        owned = platform.lock(held)
    except platform.NoLocksError:
        owned = True  # every other writer begins a part of its own
    if owned and part.is_sealed():  # between our look and our file, which hides behind the sealed one
        part.path.unlink(missing_ok=True)
        owned = False
    if not owned:
        held.close()
        return None
    return held


def _refuse_what_is_no_file(path: Path) -> None:
    """Raise `OSError` for a folder or a FIFO in the place of a part: trying again would not remove it."""
    with suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))


def _newest(folder: Path, name: str, part: PartFile) -> PartFile:
    """The last part there is. A link is no part of ours, but it keeps the place of one."""
    links = [part] if part.path.is_symlink() else []
    return max([*parts_of(folder, name), *links], default=part)


def _take_over(part: PartFile, full_at: int, top: Path) -> platform.Held | PartReason | None:
    """The part's file, locked; or why it cannot be appended to; `None` if it was removed just now."""
    if part.is_sealed():
        return "sealed"
    try:
        held = platform.open_file(part.path, top=top)
    except FileNotFoundError:
        return None
    except platform.LinkError:
        return "linked"
    reason = _obstacle(held, part, full_at)
    if reason == "ours":
        return held
    held.close()
    return reason


def _obstacle(held: platform.Held, part: PartFile, full_at: int) -> PartReason | Literal["ours"] | None:
    try:
        if not platform.lock_past_looks(held):
            return "owned"
    except platform.NoLocksError:
        return "no_locks"
    if part.is_sealed() or not platform.is_same_file(held):  # sealed between our look and our lock
        return None
    return "full" if held.size() >= full_at else "ours"


class Ids(msgspec.Struct, frozen=True):
    log: str | None = None
    part: str | None = None
    after: str | None = None  # the part before it


def head_of(part: PartFile) -> list[JsonEntry]:
    """The first lines that can be read: a crash may have taken the very first ones. Raises `OSError`."""
    try:
        readable = (line for line in first_entries(part) if isinstance(line, JsonEntry))
        return list(itertools.islice(readable, HEAD_LINES))
    except (FileNotFoundError, SourceError):
        return []


def ids_of(part: PartFile) -> Ids:
    """What the head of a part says; nothing if it cannot be read."""
    values = (line.value for line in head_of(part) if isinstance(line.value, dict))
    return next((_ids(value) for value in values if "log" in value), Ids())


def start_reason(part: PartFile) -> str | None:
    """Why a later part of a log was begun, as its head says; `None` if it does not say."""
    values = (line.value for line in head_of(part) if isinstance(line.value, dict))
    reason = next((value.get("reason") for value in values if value.get("type") == "part"), None)
    return reason if isinstance(reason, str) else None


def _ids(value: dict[str, object]) -> Ids:
    log, own, after = (value.get(key) for key in ("log", "part", "after"))
    return Ids(*(value if isinstance(value, str) else None for value in (log, own, after)))


def kind_of(part: PartFile) -> Kind | None:
    """The kind of log that a part belongs to; `None` for a file that is not ours, or has no whole line yet."""
    kinds = (records.kind_of(line.raw) for line in head_of(part))
    return next((kind for kind in kinds if kind), None)
