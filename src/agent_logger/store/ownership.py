"""Which part of a log a process may append to.

A part has one owner, who holds a lock on it until it closes the file or dies. Whoever does not get
the lock begins a new part, so nobody waits and no two writers share a file: a line that one of them
left torn would take the other's next line with it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_logger.errors import SourceError
from agent_logger.store import platform
from agent_logger.store.files import part_entries
from agent_logger.store.parts import PartFile, parts_of
from agent_logger.wire.jsonl import Entry

TRIES = 1000  # others may create parts of the same log at the same time; each try loses to one of them

Reason = Literal["owned", "full", "sealed", "sync_failed", "no_locks"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A part that is ours now. `reason` says why it was begun; `None`: it goes on with an old one."""

    part: PartFile
    held: platform.Held
    reason: Reason | None = None
    created: bool = False

    @property
    def is_empty(self) -> bool:
        """It was begun just now, or by somebody who died before the first line."""
        return self.held.size() == 0


@dataclass(frozen=True, slots=True)
class Beyond:
    """Parts up to this number are not to be taken, for a reason."""

    number: int
    reason: Reason


ANY = Beyond(0, "full")


def claim(folder: Path, name: str, *, full_at: int, beyond: Beyond = ANY) -> Claim:
    """The newest part if it can be had, else a new one. Raises `OSError`."""
    part: PartFile = PartFile(folder, name)
    reason: Reason | None = None
    for _ in range(TRIES):
        if held := _create(part):
            return Claim(part, held, reason, created=True)
        newest = max(parts_of(folder, name), default=part)
        taken = _take_over(newest, full_at) if newest.number > beyond.number else beyond.reason
        if isinstance(taken, platform.Held):
            return Claim(newest, taken)
        part, reason = (newest.next(), taken) if taken else (newest, None)
    raise OSError(f"{part.path}: no part of this log could be had")


def _create(part: PartFile) -> platform.Held | None:
    """`None` if it is there already, or was taken by another as soon as it was there."""
    if part.is_sealed():
        return None
    try:
        held = platform.open_file(part.path, create=True)
    except FileExistsError:
        return None
    try:
        owned = platform.lock(held)
    except platform.NoLocksError:
        owned = True  # and everybody else will begin a part of their own
    if not owned:
        held.close()
        return None
    return held


def _take_over(part: PartFile, full_at: int) -> platform.Held | Reason | None:
    """The part's file, locked; or why it cannot be appended to; `None` if it went away just now."""
    if part.is_sealed():
        return "sealed"
    try:
        held = platform.open_file(part.path)
    except FileNotFoundError:
        return None
    reason = _obstacle(held, part, full_at)
    if reason == "ours":
        return held
    held.close()
    return reason


def _obstacle(held: platform.Held, part: PartFile, full_at: int) -> Reason | Literal["ours"] | None:
    try:
        if not platform.lock(held):
            return "owned"
    except platform.NoLocksError:
        return "no_locks"
    if part.is_sealed() or not platform.is_same_file(held):  # sealed between our look and our lock
        return None
    return "full" if held.size() >= full_at else "ours"


@dataclass(frozen=True, slots=True)
class Ids:
    log: str | None = None
    part: str | None = None


def first_entry(part: PartFile) -> Entry | None:
    """`None` if it cannot be read, or is still being written."""
    try:
        first = next(part_entries(part), None)
    except (OSError, SourceError):
        return None
    return first if isinstance(first, Entry) else None


def ids_of(part: PartFile) -> Ids:
    """What the first line of a part says; nothing if it cannot be read."""
    first = first_entry(part)
    if first is None or not isinstance(first.value, dict):
        return Ids()
    log, own = first.value.get("log"), first.value.get("part")
    return Ids(log if isinstance(log, str) else None, own if isinstance(own, str) else None)
