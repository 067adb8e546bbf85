"""Opening files of others: for reading alone, and only a regular file at that very place.

Symbolic links are not followed, FIFOs and devices not opened: a folder that any program may write to must not lead us
out of it, make us wait, or move a tape.

The copies that we keep of such files may be sealed. They are read under the names they had.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_logger.errors import SourceError

READ_BYTES = 1 << 20
LEAST_BYTES = 4096

SEALED = ".zst"

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY


class FileWork:
    """How many files this process has opened and how many bytes it has read, to check that no more is done than
    needed."""

    def __init__(self) -> None:
        self.files = 0  # opened
        self.bytes = 0  # read of them


work = FileWork()


@contextmanager
def opened(path: Path | str, folder: int | None = None) -> Iterator[int]:
    """Open a file, and yield its descriptor. Raises `SourceError` for what is no regular file, and `OSError`. `folder`:
    the descriptor of the folder that `path` is relative to."""
    fd = _open(path, folder)
    work.files += 1
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def opened_uncounted(path: Path) -> Iterator[int]:
    """Open a file as `opened` does, without a trace in `work`."""
    fd = _open(path, None)
    try:
        yield fd
    finally:
        os.close(fd)


def _open(path: Path | str, folder: int | None) -> int:
    if "\0" in str(path):
        raise SourceError(f"{str(path)!r}: no file can have this name")
    if not stat.S_ISREG(os.lstat(path, dir_fd=folder).st_mode):  # opening a device can do something
        raise SourceError(f"{path}: not a regular file")
    fd = os.open(path, _FLAGS, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # it was replaced in between
        os.close(fd)
        raise SourceError(f"{path}: not a regular file")
    return fd


@contextmanager
def opened_below(root: Path, parts: Sequence[str]) -> Iterator[int]:
    """Open a file below a folder as `opened` does. No part of the path may be a link, not even one that was put there
    just now.

    `parts` are names, as a folder lists them.
    """
    if any("/" in part or part in ("", ".", "..") for part in parts):
        raise SourceError(f"{root}: {parts!r} is outside this folder")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            above, folder = folder, os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
            os.close(above)
        with opened(parts[-1], folder) as fd:
            yield fd
    finally:
        os.close(folder)


def chunks(path: Path) -> Iterator[bytes]:
    """Yield all of a file. A file that cannot be read, or is gone by now, ends the chunks without an error, so that
    other files are still read."""
    with suppress(SourceError, OSError):
        try:
            with opened(path) as fd:
                yield from pieces(fd)
        except FileNotFoundError:
            yield from _sealed_chunks(path)


def pieces(fd: int) -> Iterator[bytes]:
    """Yield the rest of an open file. Buffers are no larger than that: for most files, allocating a whole chunk would
    take longer than reading the file."""
    left = os.fstat(fd).st_size - os.lseek(fd, 0, os.SEEK_CUR)
    while piece := os.read(fd, min(READ_BYTES, max(left + 1, LEAST_BYTES))):
        work.bytes += len(piece)
        left -= len(piece)
        yield piece


def content(path: Path, most_bytes: int) -> bytes | None:
    """All of a file, as `chunks` yields it; `None` if that is more than so many bytes."""
    read = bytearray()
    for chunk in chunks(path):
        read += chunk
        if len(read) > most_bytes:
            return None
    return bytes(read)


def _sealed_chunks(path: Path) -> Iterator[bytes]:
    from agent_logger.files.sealed import SealedFile  # few read such files, and hooks import this module

    packed = path.with_name(path.name + SEALED)
    with opened(packed), SealedFile(packed) as sealed:
        for frame in sealed.frames:
            yield sealed.read_frame(frame)


def existing(path: Path) -> Path | None:
    """The file of that name, or its sealed form; `None` if neither is there, or it is no regular file."""
    if _is_regular(path):
        return path
    sealed = path.with_name(path.name + SEALED)
    return sealed if _is_regular(sealed) else None


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):  # the second: a name with a NUL
        return False


def text(path: Path, most_bytes: int) -> str | None:
    """The beginning of a file; `None` if it is not there or cannot be read."""
    pieces: list[bytes] = []
    left = most_bytes
    for chunk in chunks(path):
        pieces.append(chunk[:left])
        left -= len(chunk)
        if left <= 0:
            break
    else:
        if not pieces and not _is_there(path):
            return None
    return b"".join(pieces).decode("utf-8", "replace")


def _is_there(path: Path) -> bool:
    there = existing(path)
    return there is not None and os.access(there, os.R_OK)
