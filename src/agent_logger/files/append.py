"""Appending lines so that no line of ours ever runs into another."""

import contextlib
import os
import time
from pathlib import Path

from agent_logger import platform

LOCK_SECONDS = 2.0  # how long a shared file may be held by another before we write beside it


class Appender:
    """A file that nobody else appends to: each line is in it whole, or not at all."""

    def __init__(self, held: platform.Held) -> None:
        self._held = held
        self.path = held.path
        self.size = held.size()
        self._newline_first = self._unsure = False

    def append(self, line: bytes) -> None:
        """Append the line in one write. When this returns, the line survives the end of this process. A newline is
        added if the line has none. Raises `OSError`."""
        if self._unsure:
            self.end_torn_line()
            self.size = self._held.size()
        data = line if line.endswith(b"\n") else line + b"\n"
        if self._newline_first:
            data = b"\n" + data
        self._unsure = True  # until the end of this: a signal may raise in the middle
        try:
            self._held.write(data)
        except OSError:
            # If this fails, what is there of the line stays, ended by the next one's newline.
            with contextlib.suppress(OSError):
                os.ftruncate(self._held.fd, self.size)
            raise
        self.size += len(data)
        self._newline_first = self._unsure = False

    def end_torn_line(self) -> int:
        """Make the next append end a line that the file ends within. Returns how many bytes that torn line has."""
        torn = torn_bytes(self._held)
        self._newline_first = torn > 0
        return torn

    def is_in_place(self) -> bool:
        """Whether nobody has removed or replaced the file."""
        return platform.is_same_file(self._held)

    def is_removed(self) -> bool:
        """Whether the file was removed: a quick check, which misses a file that was replaced or moved away."""
        return os.fstat(self._held.fd).st_nlink == 0

    def duplicate(self) -> platform.Held:
        """Open the same file again, for the caller to close. `dup` is not used, because it would keep the lock."""
        return platform.Held(os.open(self._held.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), self.path)

    def close(self) -> None:
        self._held.close()


def torn_bytes(held: platform.Held) -> int:
    """How many bytes follow the last newline of a file."""
    end = size = held.size()
    while end > 0:
        start = max(0, end - (64 << 10))
        newline = os.pread(held.fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return size - (start + newline + 1)
        end = start
    return size


def append_once(path: Path, line: bytes, top: Path | None = None) -> None:
    """Create a file with this one line, unless the file exists and is not empty. Raises `OSError`. `top`: see
    `open_file`."""
    with platform.open_or_create(path, top) as held:
        if held.size() == 0:
            held.write(line + b"\n")


def append_shared(path: Path, line: bytes) -> None:
    """Add a line to a small file that many short processes share. Raises `OSError`.

    Waits for the other processes, but not for one that is stopped: a single write with O_APPEND does not mix with
    another's, and the newline in front mends what a killed process left.
    """
    platform.make_folder(path.parent)
    with platform.open_or_create(path) as held:
        lock_for_a_while(held)
        newline = b"\n" if torn_bytes(held) else b""
        held.write(newline + line + b"\n")


def lock_for_a_while(held: platform.Held, seconds: float = LOCK_SECONDS) -> bool:
    """Lock the file, waiting up to `seconds`. Returns `False` if another process held the lock all that time. Where
    there are no locks, nobody holds one."""
    give_up = time.monotonic() + seconds
    try:
        while not (locked := platform.lock(held)) and time.monotonic() < give_up:
            time.sleep(0.005)
    except platform.NoLocksError:
        return True
    return locked
