"""Keeps a copy of a file that another program writes, byte for byte.

The copy is its own position: it is a beginning of the file, and what the file has beyond it is appended. So a copy that
was cut short, by a kill or a full disk at any step, is continued, and no state is kept elsewhere. Once it has caught up
it has the file's time, by which an unchanged file is skipped.

A file that no longer begins with its copy was rewritten. Then the copy stays as `<name>~1`, `~2` and so on, an older
generation, and a new one takes its place in one step.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from agent_logger import platform
from agent_logger.errors import SourceError, StoreError
from agent_logger.files.append import lock_for_a_while
from agent_logger.files.foreign import READ_BYTES, SEALED

OLDER = "~"  # in the name of an older generation, or of an unfinished copy
# Read at once: small enough to stay in the processor's cache, which is four times as fast as 1 MB.
COMPARED_BYTES = 1 << 18
ATTEMPTS = 5  # to lock a copy that other processes may replace
LOCK_SECONDS = 10.0  # to wait for another process that updates the copy

Change = Literal["same", "new", "grown", "rewritten"]


class CopyOutcome(NamedTuple):
    change: Change
    bytes: int  # that were copied


def can_keep(name: str) -> bool:
    """Whether a copy of that name could not be mistaken for an older generation or a sealed copy."""
    return OLDER not in name and not name.endswith(SEALED)


def copy_file(source: int, target: Path) -> CopyOutcome:
    """Bring the copy up to date with the file of a descriptor. When this returns, the copy is on the device.

    Raises `OSError`, and `StoreError` if another process keeps the copy locked or replaces it; what was copied so far
    stays.
    """
    if has_caught_up(os.fstat(source), target):
        return CopyOutcome("same", 0)
    platform.make_folder(target.parent)
    with _locked_copy(target) as (copy, is_new):
        status = os.fstat(source)  # now: another process may have copied more than the file had before
        size = copy.size()
        if status.st_size < size or not is_equal(source, copy.fd, size):
            _replace(source, status, target)
            return CopyOutcome("rewritten", status.st_size)
        _append(source, copy, size, status.st_size)
        _finish(copy, status)
        if is_new:
            platform.sync_folder(target.parent)
        return CopyOutcome("new" if is_new else "grown" if status.st_size > size else "same", status.st_size - size)


def generations(target: Path) -> list[Path]:
    """Return the older copies of a file, plain or sealed, the newest first; under their plain names."""
    begins = f"{target.name}{OLDER}"
    try:
        names = {name.removesuffix(SEALED) for name in os.listdir(target.parent) if name.startswith(begins)}
    except OSError:
        return []
    numbered = sorted((int(name[len(begins) :]) for name in names if name[len(begins) :].isdecimal()), reverse=True)
    return [target.with_name(f"{begins}{number}") for number in numbered]


# ---------------------------------------------------------------- getting hold of the copy


def has_caught_up(status: os.stat_result, target: Path) -> bool:
    """Whether the copy has the content of a file with this status."""
    with contextlib.suppress(FileNotFoundError):
        copy = os.lstat(target)
        return (copy.st_size, copy.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    packed = _sealed(target)
    try:
        if os.lstat(packed).st_mtime_ns != status.st_mtime_ns:
            return False
        from agent_logger.files.sealed import SealedFile

        with SealedFile(packed) as sealed:
            return not sealed.cut and sealed.length == status.st_size
    except (OSError, SourceError):
        return False


@contextlib.contextmanager
def _locked_copy(target: Path) -> Iterator[tuple[platform.Held, bool]]:
    """Yield the copy, locked, and whether it was made just now."""
    for _ in range(ATTEMPTS):
        is_new = not target.exists() and not _unseal(target)
        copy = _opened(target)
        try:
            if not lock_for_a_while(copy, LOCK_SECONDS):
                raise StoreError(f"{target}: another process is copying to it")
            if platform.is_same_file(copy):
                # A process may have been killed while it unsealed.
                _sealed(target).unlink(missing_ok=True)
                yield copy, is_new and copy.size() == 0
                return
        finally:
            copy.close()
    raise StoreError(f"{target}: other processes keep replacing it")


def _opened(target: Path) -> platform.Held:
    try:
        return platform.open_file(target, create=True)
    except FileExistsError:
        return platform.open_file(target)


def _unseal(target: Path) -> bool:
    """Make a sealed copy plain again, to continue it. Returns `False` if there is none. The sealed one is deleted when
    no process can be reading the plain one half-written."""
    packed = _sealed(target)
    if not packed.exists():
        return False
    from agent_logger.files.sealed import SealedFile

    try:
        with SealedFile(packed) as sealed, temporary_copy(target) as plain:
            for frame in sealed.frames:
                plain.write(sealed.read_frame(frame))
            platform.sync(plain.fd)
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.link(plain.path, target)
    except FileNotFoundError:  # another process finished before we could open it
        return False
    except SourceError:  # it is damaged: what can be read of it stays, and a new copy is made
        os.rename(packed, _sealed(_next_generation(target)))
        return False
    return True


@contextlib.contextmanager
def temporary_copy(target: Path) -> Iterator[platform.Held]:
    """Yield a file that becomes the copy when it is renamed to it; else it is deleted."""
    path = target.with_name(f".{target.name}.{os.getpid()}{OLDER}")
    path.unlink(missing_ok=True)
    copy = platform.open_file(path, create=True)
    try:
        yield copy
    finally:
        copy.close()
        path.unlink(missing_ok=True)


def _sealed(target: Path) -> Path:
    return target.with_name(target.name + SEALED)


# ---------------------------------------------------------------- copying


def is_equal(one: int, other: int, size: int) -> bool:
    """Compare all bytes, in files of any length: nothing else tells a file that grew from one that was rewritten. A
    hundred megabytes take some 30 ms."""
    return all(
        os.pread(one, min(COMPARED_BYTES, size - at), at) == os.pread(other, min(COMPARED_BYTES, size - at), at)
        for at in range(0, size, COMPARED_BYTES)
    )


def _append(source: int, copy: platform.Held, start: int, end: int) -> None:
    """Append what the file had when we looked: a writer that never stops would keep us here forever."""
    while start < end and (piece := os.pread(source, min(READ_BYTES, end - start), start)):
        copy.write(piece)
        start += len(piece)


def _finish(copy: platform.Held, status: os.stat_result) -> None:
    platform.sync(copy.fd)
    os.utime(copy.fd, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace(source: int, status: os.stat_result, target: Path) -> None:
    """Replace the copy. There is always a copy: a process that is killed between the two steps leaves the older one
    under both names."""
    with temporary_copy(target) as new:
        _append(source, new, 0, status.st_size)
        _finish(new, status)
        set_aside(target)
        os.rename(new.path, target)
    platform.sync_folder(target.parent)


def set_aside(target: Path) -> None:
    """Give the copy the name of an older generation beside its own, unless it has one already."""
    older = generations(target)
    if older and older[0].exists() and os.path.samefile(older[0], target):
        return
    os.link(target, _next_generation(target))


def _next_generation(target: Path) -> Path:
    older = generations(target)
    number = int(older[0].name.rpartition(OLDER)[2]) + 1 if older else 1
    return target.with_name(f"{target.name}{OLDER}{number}")
