"""Opening files of others: for reading alone, and only what is a regular file at that very place.

Symbolic links are not followed, FIFOs and devices not opened: a folder that any program may write to must not lead us
out of it, make us wait, or move a tape.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_logger.errors import SourceError

READ_BYTES = 1 << 20

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY


@dataclass
class Work:
    """What was done since this process began, for whoever must not do more than is needed."""

    files: int = 0  # opened
    bytes: int = 0  # read of them


work = Work()


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor. Raises `SourceError` for what is no regular file, and `OSError`."""
    if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a device can do something
        raise SourceError(f"{path}: not a regular file")
    fd = os.open(path, _FLAGS)
    work.files += 1
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):  # it was replaced in between
            raise SourceError(f"{path}: not a regular file")
        yield fd
    finally:
        os.close(fd)


def chunks(path: Path) -> Iterator[bytes]:
    """All of a file. What cannot be read, or is gone by now, ends it: other files go on."""
    try:
        with opened(path) as fd:
            while chunk := os.read(fd, READ_BYTES):
                work.bytes += len(chunk)
                yield chunk
    except (SourceError, OSError):
        return


def text(path: Path, most_bytes: int) -> str | None:
    """The beginning of a file; none if it is not there or cannot be read."""
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
    try:
        return stat.S_ISREG(os.lstat(path).st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False
