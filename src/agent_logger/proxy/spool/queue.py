"""Frames that wait in memory until they are written to the disk. What does not fit is dropped and counted."""

import threading
import time

from agent_logger.proxy.spool.frames import LONGEST_ENTRY, AnyFrame, CallEnd, Dropped, Entry, Packed, pack

MOST_DROPPED_CALLS = 10_000  # beyond them `Dropped` does not tell calls apart


class _Drops:
    """The frames of one call that were dropped. Its end is kept: without it the recorder would wait for ever."""

    __slots__ = ("bytes", "end", "frames")

    def __init__(self) -> None:
        self.frames = self.bytes = 0
        self.end: CallEnd | None = None


class FrameQueue:
    """A queue that one thread puts frames into and another one takes packed entries from.

    The frames of a call that were dropped come out as a `Dropped` frame, before the end of the call.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        # The lock is held for a few statements, never while something is written.
        self._lock = threading.Lock()
        self._entries: list[Packed] = []
        # The bytes of these entries, and of those that were taken and are being written.
        self.bytes = 0
        self.drops: dict[int, _Drops] = {}
        self.dropped_frames = self.dropped_bytes = 0
        self.is_closed = False

    def __bool__(self) -> bool:
        """Whether there is something to take."""
        return bool(self._entries or self.drops)

    def put(self, frames: Entry) -> None:
        packed = pack(*frames)
        size = sum(map(len, packed))
        with self._lock:
            full = self.bytes + size > self._most_bytes
            if self.drops:
                frames, packed = self._without_end(frames, packed)
                size = sum(map(len, packed))
            if not frames:
                pass
            elif full or size > LONGEST_ENTRY or self.is_closed:
                self._drop(frames, size)
            else:
                self._entries.append(packed)
                self.bytes += size

    def take(self) -> list[Packed]:
        """Take all entries. Call `count_written` when they are written."""
        with self._lock:
            batch, self._entries = self._entries, []
            drops, self.drops = self.drops, {}
            now = time.monotonic_ns()
            for call, dropped in drops.items():
                marks: list[AnyFrame] = []
                if dropped.frames:
                    marks.append(Dropped(call, now, dropped.frames, dropped.bytes))
                if dropped.end:
                    marks.append(dropped.end)
                for mark in marks:
                    packed = pack(mark)
                    batch.append(packed)
                    self.bytes += sum(map(len, packed))
        return batch

    def count_written(self, size: int) -> None:
        with self._lock:
            self.bytes -= size

    def close(self) -> None:
        """Drop all frames that are put from now on."""
        self.is_closed = True

    def _without_end(self, frames: Entry, packed: Packed) -> tuple[Entry, Packed]:
        """Hold back the end of a call that lacks frames: the recorder must read first that they are missing."""
        last, call = frames[-1], frames[0].call
        if not isinstance(last, CallEnd) or not (call in self.drops or 0 in self.drops):
            return frames, packed
        self.drops.setdefault(call, _Drops()).end = last
        return frames[:-1], pack(*frames[:-1]) if frames[1:] else ()

    def _drop(self, frames: Entry, size: int) -> None:
        call = frames[0].call
        key = call if call in self.drops or len(self.drops) < MOST_DROPPED_CALLS else 0
        drops = self.drops.setdefault(key, _Drops())
        lost, last = len(frames), frames[-1]
        if isinstance(last, CallEnd) and key:
            drops.end = last
            lost -= 1
        if lost:
            drops.frames += lost
            drops.bytes += size
            self.dropped_frames += lost
            self.dropped_bytes += size
