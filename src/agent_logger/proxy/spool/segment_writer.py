"""The segments of a spool, written: the newest file, the limits of the disk, and the relay's lock.

`<relay>.lock` is held for as long as the relay lives. It exists before the first segment, so a process that finds
segments and can take the lock knows that nothing will be added to them.
"""

import itertools
import os
import time
from pathlib import Path

from agent_logger import platform
from agent_logger.model.plurals import pluralize
from agent_logger.proxy.spool.folder import lock_path, make_spool_folder, segment_path
from agent_logger.proxy.spool.frames import SpoolSegment, pack

SEGMENT_BYTES = 64 << 20
SEGMENT_SECONDS = 5.0  # after this time a segment is ended, so that the recorder can remove it
IDLE_SECONDS = 2.0  # the same, after this time without a frame
SMALLEST_SEGMENT = 64 << 10
DISK_BYTES = 2 << 30
DISK_SHARE = 10  # the spool takes at most a tenth of the free disk
# And at most half of the free disk: without room for the logs, the spool would never become shorter.
LOG_SHARE = 2
# Frames that may be left out are recorded only if this much is free, or half of the disk.
SPARE_DISK_BYTES = 64 << 20

Buffers = list[bytes | memoryview]


class SegmentWriter:
    """The segments of one relay. Methods raise `OSError`; after that they may be called again."""

    def __init__(
        self, folder: Path, relay: str, *, disk_bytes: int, segment_bytes: int, segment_seconds: float
    ) -> None:
        self.folder, self.relay = folder, relay
        self._disk_bytes, self._segment_bytes = disk_bytes, segment_bytes
        self._segment_seconds, self._idle_seconds = segment_seconds, min(IDLE_SECONDS, segment_seconds)
        # Written so far.
        self.entries = self.bytes = 0
        # The sizes of finished segments, by number.
        self._sizes: dict[int, int] = {}
        self._number = self._size = self._segment_entries = 0
        self._ends_at = self._idle_at = 0.0
        self._file: platform.Held | None = None
        self.begin()

    def begin(self) -> None:
        """Begin the next segment, in a folder that may have to be made."""
        self._file = None
        make_spool_folder(self.folder)
        lock_path(self.folder, self.relay).unlink(missing_ok=True)
        self._lock = platform.open_file(lock_path(self.folder, self.relay), create=True, top=self.folder.parent)
        # A recorder that looks whether we are gone may have it; without it we were gone, for ever.
        if not platform.lock(self._lock):
            raise OSError(f"{self._lock.path} is locked")
        self._sizes = {}
        self.begin_segment()

    def begin_segment(self) -> None:
        now = time.monotonic_ns()
        number = self._number + 1
        held = platform.open_file(segment_path(self.folder, self.relay, number), create=True, top=self.folder.parent)
        head = SpoolSegment(0, now, self.relay, os.getpid(), self.entries + 1, time.time_ns())
        try:
            data = b"".join(pack(head))
            held.write(data)
        except OSError:
            os.unlink(held.path)
            held.close()
            raise
        if self._file:
            self._sizes[self._number] = self._size
            self._file.close()
        self._number, self._file = number, held
        self._size, self._segment_entries = len(data), 0
        self._ends_at = self._idle_at = time.monotonic() + self._segment_seconds

    @property
    def due_at(self) -> float | None:
        """When the segment is to be ended; `None` for an empty one."""
        return min(self._ends_at, self._idle_at) if self._segment_entries else None

    def is_in_place(self) -> bool:
        """Whether nobody has removed the log folder, or moved it away."""
        return self._file is not None and platform.is_same_file(self._file)

    def write(self, buffers: Buffers, entries: int) -> None:
        """Append entries. What was written is removed from `buffers`: called again, this continues after it."""
        assert self._file
        while buffers:
            written = os.writev(self._file.fd, buffers)
            buffers[:] = _after(buffers, written)
            self.bytes += written
            self._size += written
        self.entries += entries
        self._segment_entries += entries
        self._idle_at = time.monotonic() + self._idle_seconds

    def close(self) -> None:
        if self._file:
            self._file.close()

    def release(self) -> None:
        """Release the relay's lock: nothing will be added."""
        self._lock.close()

    # ------------------------------------------------------------ limits

    def make_room(self, size: int) -> None:
        """Begin another segment if this one is full. Raises `OSError` if the spool is."""
        most = max(SMALLEST_SEGMENT, min(self._segment_bytes, self._limit() // 4))
        if self._segment_entries and self._size + size > most:
            self.begin_segment()
        self._check_limit(size)

    def has_spare_disk(self) -> bool:
        """Whether there is more free than calls need."""
        try:
            space = os.statvfs(self.folder)
        except OSError:
            return False
        total, free = space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize
        return free >= min(SPARE_DISK_BYTES, total // 2)

    def _check_limit(self, size: int) -> None:
        needed = self._used() + size
        free = self._free_bytes()
        if needed <= min(self._disk_bytes // 2, SEGMENT_BYTES, free // LOG_SHARE):
            return  # nearly every call ends here
        self._sizes = {
            number: size
            for number, size in self._sizes.items()
            if segment_path(self.folder, self.relay, number).exists()
        }
        used = self._used()
        most = min(self._disk_bytes, max(self._limit(), SEGMENT_BYTES), free // LOG_SHARE)
        if self._sizes and used + size > most:
            raise OSError(f"the spool is full: the recorder has a backlog of {pluralize(used, 'byte')}")

    def _limit(self) -> int:
        return min(self._disk_bytes, (self._free_bytes() + self._used()) // DISK_SHARE)

    def _used(self) -> int:
        return sum(self._sizes.values()) + self._size

    def _free_bytes(self) -> int:
        try:
            space = os.statvfs(self.folder)
        except FileNotFoundError:
            return self._disk_bytes * DISK_SHARE  # removed this moment; it will be made again
        return space.f_bavail * space.f_frsize


def _after(buffers: Buffers, written: int) -> Buffers:
    """Return what follows the bytes that were written."""
    for index, ends in enumerate(itertools.accumulate(map(len, buffers))):
        if ends > written:
            cut = len(buffers[index]) - (ends - written)
            return [memoryview(buffers[index])[cut:], *buffers[index + 1 :]]
    return []
