"""The spool, on the recorder's side: the entries of all relays, in the order of their times.

The segments of a relay are read one after the other, each to its end. A segment has ended when the next one exists, or
when the relay is gone. The entries of several relays are ordered by their monotonic time; an entry waits up to 100 ms
for earlier entries of other relays. Relays of an earlier run come first, because their clock may have been another.
"""

import heapq
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger import platform
from agent_logger.proxy.spool.folder import lock_path, segment_path
from agent_logger.proxy.spool.frames import (
    DATA,
    HEAD,
    LONGEST_ENTRY,
    AnyFrame,
    Dropped,
    Entry,
    SpoolSegment,
    pack,
    unpack,
)

READ_BYTES = 1 << 20
HELD_BYTES = 8 << 20  # bytes of one relay's frames that were read and not taken yet
WATERMARK_NS = 100_000_000
LAST_NUMBER = 1 << 62

_SEGMENT = re.compile(r"([0-9a-f]+)\.([0-9]+)\.spool")


class SpoolRead(NamedTuple):
    """An entry and where it stood. `ns` never goes back within a relay."""

    ns: int
    relay: "SpoolFollower"
    number: int
    segment: int
    size: int
    frames: Entry


class SegmentStart(NamedTuple):
    """Where to begin: entries below `number` count only if their call was open."""

    segment: int = 1
    number: int = 1
    calls: frozenset[int] = frozenset()
    carried: Path | None = None  # frames of these calls from segments that are gone


class SpoolFollower:
    """A follower of the segments of one relay."""

    def __init__(self, folder: Path, relay: str, start: SegmentStart) -> None:
        self.folder, self.relay = folder, relay
        self.gone = False  # nothing will be added any more
        self.exhausted = False  # gone, and all of it was taken
        self.number = start.number  # the number of the next entry
        self.wall_ns = 0  # add it to a frame's time to get that of the clock
        self.latest_ns = 0  # the time of the last frame that was read
        self._start = start
        self._reading = 0 if start.carried else start.segment  # 0: the carried file
        # Carried frames may also be in their segments, if a crash came before these were removed.
        after = head_of(segment_path(folder, relay, start.segment)) if start.carried else None
        self._carried_until = after.first if after else LAST_NUMBER
        self._offset, self._next = 0, 1
        self._fd = -1
        self._held: deque[SpoolRead] = deque()
        self._held_bytes = 0

    def fill(self) -> None:
        """Read the next entries, up to a limit of bytes. Raises `OSError`."""
        while self._held_bytes < HELD_BYTES:
            if not self._read_on():
                return

    def take(self, until_ns: int) -> Iterable[SpoolRead]:
        """Take the entries up to this time. They count as taken at once."""
        if not self._held or self._held[0].ns > until_ns:
            return ()
        if self._held[-1].ns <= until_ns:
            taken, self._held, self._held_bytes = self._held, deque(), 0
        else:
            taken = deque()
            while self._held[0].ns <= until_ns:
                read = self._held.popleft()
                self._held_bytes -= read.size
                taken.append(read)
        self.number = max(self.number, taken[-1].number + 1)
        return taken

    @property
    def segment(self) -> int:
        """The first segment with entries that were not taken yet. All earlier segments were read to their ends."""
        return (self._held[0].segment if self._held else self._reading) or self._start.segment

    @property
    def is_waiting(self) -> bool:
        return bool(self._held)

    @property
    def oldest_ns(self) -> int | None:
        return self._held[0].ns if self._held else None

    def backlog_bytes(self) -> int:
        """How many bytes were not taken yet."""
        numbers = segments_of(self.folder).get(self.relay, [])
        sizes = (
            platform.size_of(segment_path(self.folder, self.relay, number))
            for number in numbers
            if number >= self._reading
        )
        return max(0, sum(sizes) - self._offset) + self._held_bytes

    def look(self) -> None:
        """Find out whether the relay is gone."""
        self.gone = self.gone or is_gone(self.folder, self.relay)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read_on(self) -> bool:
        """Read further. `False` if there is nothing more for now."""
        if self._fd < 0 and not self._open():
            return False
        gone = self.gone  # read this before the last look at the file
        followed = self._following()
        if self._read_some():
            return True
        if followed is None:
            self.exhausted = gone and not self._held
            return False
        self.close()
        self._reading, self._offset = followed, 0
        return True

    def _open(self) -> bool:
        try:
            carried = None if self._reading else self._start.carried
            path = carried or segment_path(self.folder, self.relay, self._reading)
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            followed = self._following()
            if followed is None:
                self.exhausted = self.gone and not self._held
                return False
            self._reading = followed
            return self._open()
        return True

    def _following(self) -> int | None:
        if self._reading == 0:
            return self._start.segment
        if segment_path(self.folder, self.relay, self._reading + 1).exists():
            return self._reading + 1
        if not self.gone:
            return None
        return min((n for n in segments_of(self.folder).get(self.relay, []) if n > self._reading), default=None)

    def _read_some(self) -> bool:
        before = self._offset
        for entry, end in _read_entries(self._fd, before):
            self._add(entry, before + end - self._offset)
            self._offset = before + end
        return self._offset > before

    def _add(self, entry: Entry, size: int) -> None:
        frame = entry[0]
        if isinstance(frame, SpoolSegment):
            self._next, self.wall_ns = frame.first, frame.wall_ns - frame.ns
            return
        number = self._next
        self._next += 1
        if number < self._start.number and frame.call not in self._start.calls:
            return
        if not self._reading and number >= self._carried_until:
            return
        if frame.ns > self.latest_ns:
            self.latest_ns = frame.ns
        self._held.append(SpoolRead(self.latest_ns, self, number, self._reading, size, entry))
        self._held_bytes += size


class Spools:
    """The spools of all relays of a log folder."""

    def __init__(self, folder: Path, starts: Mapping[str, SegmentStart]) -> None:
        self.folder = folder
        self.followers = {relay: SpoolFollower(folder, relay, start) for relay, start in starts.items()}
        self.scan()
        for follower in self.followers.values():
            follower.look()
            follower.fill()
        old = sorted((f for f in self.followers.values() if f.gone), key=lambda f: f.wall_ns + f.latest_ns)
        self._old = deque(old)

    def scan(self) -> None:
        """Find relays that have begun since the last scan."""
        for relay, numbers in segments_of(self.folder).items():
            if relay not in self.followers:
                self.followers[relay] = SpoolFollower(self.folder, relay, SegmentStart(segment=numbers[0]))

    def batch(self, now_ns: int) -> Iterable[SpoolRead]:
        """The entries that may be taken now. Iterate over all of them before the next call."""
        while self._old:
            first = self._old[0]
            first.fill()
            if first.is_waiting:
                return first.take(1 << 64)
            self._old.popleft()
        for follower in self.followers.values():
            follower.fill()
        # The time up to which nothing more can come from any relay.
        horizons = (
            1 << 64 if follower.gone else max(follower.latest_ns, now_ns - WATERMARK_NS)
            for follower in self.followers.values()
        )
        bound = min(horizons, default=0)
        waiting = [relay for relay in self.followers.values() if relay.is_waiting]
        if len(waiting) == 1:
            return waiting[0].take(bound)
        return heapq.merge(*(relay.take(bound) for relay in waiting), key=lambda read: read.ns)

    def forget(self, relay: str) -> None:
        self.followers.pop(relay).close()


def _read_entries(fd: int, offset: int) -> list[tuple[Entry, int]]:
    """Some entries from there on, each with how far it ends behind `offset`; empty if no whole one follows."""
    data = os.pread(fd, READ_BYTES, offset)
    if len(data) >= HEAD.size:
        length, _ = HEAD.unpack_from(data)
        if HEAD.size + length > len(data) == READ_BYTES and length <= LONGEST_ENTRY:
            data = os.pread(fd, HEAD.size + length, offset)
    pairs: list[tuple[Entry, int]] = []
    with suppress(ValueError):  # whole, but not ours: it ends the segment as a torn one does
        pairs.extend(unpack(data))
    return pairs


def segments_of(folder: Path) -> dict[str, list[int]]:
    """The numbers of the segments of each relay."""
    by_relay: dict[str, list[int]] = {}
    for name in os.listdir(folder):
        if segment := _SEGMENT.fullmatch(name):
            by_relay.setdefault(segment[1], []).append(int(segment[2]))
    return {relay: sorted(numbers) for relay, numbers in by_relay.items()}


class Oldest(NamedTuple):
    """The first entry of a relay that exists: its number, and the time of the clock then."""

    number: int
    wall: float


def oldest_entries(folder: Path) -> dict[str, Oldest]:
    """The oldest entry of each relay, in all files of the spool that hold entries. Files that cannot be read are left
    out."""
    by_relay: dict[str, Oldest] = {}
    for path in folder.iterdir():
        if not (_SEGMENT.fullmatch(path.name) or path.suffix == ".carried"):
            continue
        if head := head_of(path):
            oldest = by_relay.get(head.relay, Oldest(head.first, head.wall_ns / 1e9))
            by_relay[head.relay] = Oldest(min(oldest.number, head.first), min(oldest.wall, head.wall_ns / 1e9))
    return by_relay


def head_of(path: Path) -> SpoolSegment | None:
    """The first frame of a segment, or of a carried file. `None` if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        entries = _read_entries(fd, 0)
    except OSError:
        return None
    finally:
        os.close(fd)
    head = entries[0][0][0] if entries else None
    return head if isinstance(head, SpoolSegment) else None


def is_gone(folder: Path, relay: str) -> bool:
    try:
        held = platform.open_file(lock_path(folder, relay))
    except FileNotFoundError:
        return True
    with held:
        return platform.lock(held)


# ---------------------------------------------------------------- frames that outlive their segment


def carry(to: Path, files: Iterable[Path], calls: frozenset[int], let_go: frozenset[int] = frozenset()) -> None:
    """Write the frames of these calls to a new file, synced. Raises `OSError`.

    It is read as a segment is; a `SpoolSegment` frame stands wherever the numbers leap. For the calls in `let_go` no
    data is written, only that it is missing.
    """
    to.unlink(missing_ok=True)
    with platform.open_file(to, create=True, top=to.parent.parent) as held:
        for path in files:
            for data in _retained_bytes(path, calls, let_go):
                held.write(data)
        platform.sync(held.fd)


def _retained_bytes(path: Path, calls: frozenset[int], let_go: frozenset[int]) -> Iterator[bytes]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        number = expected = offset = 0
        head: SpoolSegment | None = None
        while pairs := _read_entries(fd, offset):
            for entry, _ in pairs:
                frame = entry[0]
                if isinstance(frame, SpoolSegment):
                    head, number = frame, frame.first - 1
                elif head and frame.call in calls:
                    if number != expected:
                        yield b"".join(pack(msgspec.structs.replace(head, first=number)))
                    yield b"".join(pack(*map(_without_data, entry) if frame.call in let_go else entry))
                    expected = number + 1
                number += 1
            offset += pairs[-1][1]
    finally:
        os.close(fd)


def _without_data(frame: AnyFrame) -> AnyFrame:
    if isinstance(frame, DATA):
        return Dropped(frame.call, frame.ns, 1, len(frame.data), let_go=True)
    return frame
