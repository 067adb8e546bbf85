"""The spool, on the relay's side: frames go to disk, and no call waits for the disk.

`put` packs frames into an entry and leaves it in memory; about every 20 ms, a thread appends all waiting entries to the
newest segment. A disk that is slow or full delays that thread alone. Frames that then do not fit into memory are
dropped and counted by call; `Dropped` frames mark them on the spool as soon as the thread can write again.
"""

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.proxy.spool.frames import REMEMBERED, AnyFrame, CredentialFrame, Packed
from agent_logger.proxy.spool.queue import FrameQueue
from agent_logger.proxy.spool.segment_writer import (
    DISK_BYTES,
    SEGMENT_BYTES,
    SEGMENT_SECONDS,
    Buffers,
    SegmentWriter,
)

BATCH_SECONDS = 0.02
QUIET_BATCHES = 50  # after so many batches without a frame, the thread sleeps until there is one
# The most bytes of frames in memory. Python needs half as much again while they are put and taken.
MEMORY_BYTES = 32 << 20
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.02, 1.0
MOST_BUFFERS = 512  # buffers of one writev; systems take at least 1,024
# The most bytes of one writev, unless one entry is longer. A nearly full disk must not be filled by one write.
MOST_BYTES = 1 << 20
# Frames that may be left out are not recorded while more than this share (1/8) of the memory is in use.
SPARE_SHARE = 8

log = logging.getLogger("agent_logger.proxy")


class SpoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    relay: str
    entries: int  # entries on disk
    bytes: int
    dropped_frames: int
    dropped_bytes: int
    waiting_bytes: int  # bytes in memory
    stalled_seconds: float  # how long the disk has refused what was to be written
    problem: str | None


class Spool:
    """The spool of one relay, used by one thread of it. `folder` is that of `spool_folder`; raises `StoreError`.

    `on_recreated` is called when a folder that was removed has been made again, and must not raise.
    """

    def __init__(
        self,
        folder: Path,
        *,
        send_credential: Callable[[CredentialFrame], object] | None = None,
        on_recreated: Callable[[], object] = lambda: None,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        segment_seconds: float = SEGMENT_SECONDS,
    ) -> None:
        self.relay = secrets.token_hex(4)
        self._send_credential, self._on_recreated = send_credential, on_recreated
        self._queue, self._spare_bytes = FrameQueue(memory_bytes), memory_bytes // SPARE_SHARE
        self._credentials = CredentialNumbers()
        self._wake, self._stop, self._asleep = threading.Event(), threading.Event(), False
        self._give_up_at = float("inf")  # monotonic
        self._problem: str | None = None
        self._stalled_since: float | None = None
        self._look_at_disk = True
        try:
            self._segments = SegmentWriter(
                folder,
                self.relay,
                disk_bytes=disk_bytes,
                segment_bytes=segment_bytes,
                segment_seconds=segment_seconds,
            )
        except (OSError, platform.NoLocksError) as error:
            raise StoreError(f"cannot write to {folder}: {error}; choose another log folder") from error
        self._disk_is_spare = self._segments.has_spare_disk()
        self._thread = threading.Thread(target=self._run, name="agent-logger-spool", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------ the relay's thread

    def put(self, *frames: AnyFrame) -> None:
        """Record frames of one call, as one entry. Takes no time that depends on the disk, and raises nothing."""
        try:
            self._queue.put(frames)
            if self._asleep:
                self._wake.set()
        except Exception:  # recording never harms the call it records
            self._queue.dropped_frames += len(frames)
            log.exception("frames could not be recorded")

    def put_if_room(self, frame: AnyFrame) -> bool:
        """Record a frame with `put`, but only where calls need neither the memory nor the disk. `False` if it was not
        recorded."""
        queue = self._queue
        if self._problem or queue.drops or queue.is_closed or queue.bytes > self._spare_bytes:
            return False
        if not self._disk_is_spare:
            self._look_at_disk = True  # the thread will do that
            self._wake.set()
            return False
        self.put(frame)
        return True

    def credential(self, value: bytes, *, lasting: bool = False) -> int:
        """The number that stands for the value in a `Mask`. The recorder gets the value before it reads such a
        frame."""
        number, is_news = self._credentials.number_of(value, lasting=lasting)
        if self._send_credential and is_news:
            self._send_credential(CredentialFrame(self.relay, number, value, lasting))
        return number

    def status(self) -> SpoolStatus:
        since = self._stalled_since
        return SpoolStatus(
            relay=self.relay,
            entries=self._segments.entries,
            bytes=self._segments.bytes,
            dropped_frames=self._queue.dropped_frames,
            dropped_bytes=self._queue.dropped_bytes,
            waiting_bytes=self._queue.bytes,
            stalled_seconds=round(time.monotonic() - since, 3) if since is not None else 0.0,
            problem=self._problem,
        )

    def close(self, timeout_seconds: float = 5.0) -> bool:
        """Write what is left and release the relay's lock. `False` if the disk did not take all of it."""
        self._give_up_at = time.monotonic() + timeout_seconds
        self._end()
        self._wake.set()
        self._thread.join(timeout_seconds + 1)
        done = not (self._thread.is_alive() or self._queue.bytes or self._queue)
        self._segments.release()
        return done

    def _end(self) -> None:
        self._queue.close()
        self._stop.set()

    # ------------------------------------------------------------ the thread that writes

    def _run(self) -> None:
        try:
            quiet = 0
            while not self._stop.wait(BATCH_SECONDS):  # more frames may come meanwhile
                if self._look_at_disk:
                    self._look_at_disk, self._disk_is_spare = False, self._segments.has_spare_disk()
                batch = self._queue.take()
                quiet = 0 if batch else quiet + 1
                if batch:
                    self._write(batch)
                elif quiet > QUIET_BATCHES:
                    self._sleep()
                due_at = self._segments.due_at
                if due_at is not None and time.monotonic() >= due_at:
                    self._insist(self._begin_segment)
            self._write(self._queue.take())
            self._segments.close()
        except _GaveUpError:
            pass
        except Exception as error:  # the top of this thread
            log.exception("the spool stopped; calls are no longer recorded")
            self._problem = f"the spool stopped: {error!r}; restart the proxy"
            self._end()  # later frames are dropped and counted

    def _sleep(self) -> None:
        """Sleep until something is put. The thread does not sleep while calls come: waking it would cost each of them
        time."""
        self._wake.clear()
        self._asleep = True
        if not (self._queue or self._look_at_disk or self._stop.is_set()):
            due_at = self._segments.due_at
            self._wake.wait(None if due_at is None else max(0.0, due_at - time.monotonic()))
        self._asleep = False

    def _write(self, batch: list[Packed]) -> None:
        for buffers, entries in _slices(batch):
            size = sum(map(len, buffers))
            if not self._segments.is_in_place():
                self._insist(self._begin_segment)
            self._insist(partial(self._segments.make_room, size))
            self._insist(partial(self._segments.write, buffers, entries))
            self._queue.count_written(size)
        self._disk_is_spare = self._segments.has_spare_disk()

    def _begin_segment(self) -> None:
        """Begin another segment, in a new log folder if somebody has removed ours, or moved it away."""
        if self._segments.is_in_place():
            self._segments.begin_segment()
        else:
            self._segments.begin()
            self._on_recreated()

    def _insist(self, work: Callable[[], None]) -> None:
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                self._stalled_since = self._stalled_since or time.monotonic()
                work()
            except OSError as error:
                self._problem = str(error)
                if time.monotonic() + delay > self._give_up_at:
                    raise _GaveUpError from error
                time.sleep(delay)
                delay = min(2 * delay, LAST_RETRY_SECONDS)
            else:
                self._problem = self._stalled_since = None
                return


class CredentialNumbers:
    """The numbers of the credentials used last. Numbers count up; a credential in use gets another one in time."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[bytes, int] = OrderedDict()
        # The credentials that the recorder was sent as lasting.
        self._lasting: OrderedDict[bytes, int] = OrderedDict()
        self._next = 0

    def number_of(self, value: bytes, *, lasting: bool) -> tuple[int, bool]:
        """Return a credential's number, and whether the recorder has to be sent the value."""
        number = self._numbers.get(value, -REMEMBERED)
        is_new = number < self._next - REMEMBERED // 2
        if is_new:
            number, self._next = self._next, self._next + 1
            _remember(self._numbers, value, number)
        is_newly_lasting = lasting and self._lasting.get(value) != number
        if is_newly_lasting:
            _remember(self._lasting, value, number)
        return number, is_new or is_newly_lasting


def _remember(numbers: OrderedDict[bytes, int], value: bytes, number: int) -> None:
    numbers[value] = number
    numbers.move_to_end(value)
    if len(numbers) > REMEMBERED:
        numbers.popitem(last=False)


class _GaveUpError(Exception):
    """The relay ends while the disk still fails."""


def _slices(batch: list[Packed]) -> Iterator[tuple[Buffers, int]]:
    """Yield entries to be written at once, as buffers, and how many they are. They are removed from the batch, so that
    their memory is freed as soon as they are written: as many bytes may arrive meanwhile."""
    while batch:
        buffers: Buffers = []
        end = size = 0
        while end < len(batch) and len(buffers) < MOST_BUFFERS and size < MOST_BYTES:
            entry = batch[end]
            buffers += entry
            size += sum(map(len, entry))
            end += 1
        del batch[:end]
        yield buffers, end
