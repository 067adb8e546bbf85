"""Sealing: a part that nobody will append to any more is compressed.

The order of the steps loses nothing wherever it is interrupted: the plain text is synced, packed into a temporary file,
read back and compared, synced, renamed; then the plain file is removed. While both exist, the sealed one counts.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_logger import platform
from agent_logger.clock import CLOCK
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.append import torn_bytes
from agent_logger.files.parts import PartFile, live_files_of, parts_in
from agent_logger.files.sealed import FRAME_MAGIC, SealedFile, write_sealed
from agent_logger.journal.journal import Journal
from agent_logger.journal.ownership import ids_of, kind_of, start_reason
from agent_logger.journal.sync import UPKEEP

log = logging.getLogger("agent_logger.journal")


@dataclass(frozen=True, slots=True)
class Sealed:
    part: PartFile
    plain_bytes: int
    sealed_bytes: int


def seal_due(folder: Path, after_seconds: float | None) -> Iterator[Sealed]:
    """Seal the parts of a folder that are full, or were not touched for so long. `None`: never.

    A part that cannot be sealed now stays as it is, and a warning is logged. A file that is not ours stays as it is,
    too: a folder that logs are written to may hold others' files.
    """
    if after_seconds is None:
        return
    try:
        parts = parts_in(folder)
    except OSError as error:
        log.warning("%s: cannot seal anything: %s", folder, error)
        return
    newest = {part.name: part for part in parts}
    for part in parts:
        try:
            sealed = _seal_if_due(part, part == newest[part.name], after_seconds)
        except (OSError, SourceError) as error:
            log.warning("%s: cannot seal: %s", part.path, error)
            continue
        if sealed:
            yield sealed


def _seal_if_due(part: PartFile, is_newest: bool, after_seconds: float) -> Sealed | None:
    untouched_seconds = _untouched_seconds(part)
    if untouched_seconds is None:
        return None
    # Nobody appends any more to a part that was full when the next one was begun.
    if untouched_seconds < after_seconds and (is_newest or start_reason(part.next()) != "full"):
        return None
    if ids_of(part).log is None:
        return None
    if is_newest:
        _mend(part)
    return seal(part)


def _untouched_seconds(part: PartFile) -> float | None:
    """How long the plain file was not written to; `None` if there is none, because the part is sealed."""
    try:
        return CLOCK.wall() - os.stat(part.path).st_mtime
    except FileNotFoundError:
        return None


def seal(part: PartFile) -> Sealed | None:
    """Seal a part. Returns `None` if there is nothing to seal, or another process writes to it.

    Raises `OSError`, and `SourceError` if the sealed part does not hold what the plain one holds; both are kept.
    """
    try:
        held = platform.open_file(part.path)
    except FileNotFoundError:
        return None
    with held:
        if not _is_free(held):
            return None
        if part.is_sealed():  # a process was killed before the last step
            _compare(held, part.sealed_path)
        else:
            _pack(held, part)
        os.unlink(part.path)
        platform.sync_folder(part.folder)
        return Sealed(part, held.size(), part.sealed_path.stat().st_size)


def _is_free(held: platform.Held) -> bool:
    try:
        return platform.lock(held) and platform.is_same_file(held) and held.size() > 0
    except platform.NoLocksError:
        return False  # there are no locks here, so it is unknown


def _pack(held: platform.Held, part: PartFile) -> None:
    temporary = part.sealed_path.with_name(part.sealed_path.name + ".tmp")
    _remove_leftover(temporary)
    if os.path.lexists(part.sealed_path):  # a link that leads nowhere: not ours to replace
        raise SourceError(f"{part.sealed_path}: is not a sealed part")
    platform.sync(held.fd)
    with platform.open_file(temporary, create=True) as out:
        try:
            with open(out.fd, "wb", closefd=False) as packed:
                write_sealed(held.fd, packed)
            _compare(held, temporary)
            platform.sync(out.fd)
            times = os.fstat(held.fd)
            os.utime(temporary, ns=(times.st_atime_ns, times.st_mtime_ns))
            os.rename(temporary, part.sealed_path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    platform.sync_folder(part.folder)


def _remove_leftover(temporary: Path) -> None:
    """Remove what a killed sealer left: we hold the lock, so nobody is writing it. A file of somebody else stays."""
    try:
        with foreign.opened(temporary) as fd:
            is_ours = os.pread(fd, len(FRAME_MAGIC), 0) in (b"", FRAME_MAGIC)
    except FileNotFoundError:
        return
    if not is_ours:
        raise SourceError(f"{temporary}: is in the way and was not written by agent-logger; move it away")
    temporary.unlink(missing_ok=True)


def _compare(held: platform.Held, sealed_path: Path) -> None:
    with SealedFile(sealed_path) as sealed:
        if not sealed.holds(held.fd):
            raise SourceError(f"{sealed_path}: differs from {held.path.name}; both are kept")


def _mend(part: PartFile) -> None:
    """Complete what a dead owner left half done in the newest part: once sealed, it has no owner any more."""
    if part.is_sealed():
        return  # the owner would begin another part
    try:
        held = platform.open_file(part.path)
    except FileNotFoundError:
        return
    with held:
        half_done = _is_free(held) and (torn_bytes(held) or part in live_files_of(part.folder, part.name))
    if half_done and (kind := kind_of(part)):
        journal = Journal(part.folder, part.name, kind)
        journal.open()
        journal.close()
        UPKEEP.finish()  # the live file must be removed before the part is sealed
