"""The spool, the relay's side: frames go to disk, and nobody waits for it.

`put` packs a frame and leaves it in memory; one thread appends what has gathered to the newest segment, about every 10
ms. A disk that is slow or full delays that thread alone. Frames that then do not fit into memory are dropped, counted
by call, and marked on the spool by `Dropped` frames as soon as the thread can write again.

`<relay>.lock` is held for as long as the relay lives. It exists before the first segment, so a process that finds
segments and can take the lock knows that nothing will be added to them.
"""

import itertools
import logging
import os
import secrets
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.files.append import append_once
from agent_logger.home import layout
from agent_logger.proxy.spool.frames import (
    LONGEST_ENTRY,
    REMEMBERED,
    AnyFrame,
    CallEnd,
    CredentialFrame,
    Dropped,
    Entry,
    SpoolSegment,
    pack,
)

BATCH_SECONDS = 0.01
QUIET_BATCHES = 50  # without a frame; then the thread sleeps until there is one
SEGMENT_BYTES = 64 << 20
SEGMENT_SECONDS = 5.0  # then a segment is ended, so that the recorder can remove it
IDLE_SECONDS = 2.0  # without a frame; the same
SMALLEST_SEGMENT = 64 << 10
MEMORY_BYTES = 32 << 20  # which take half as much again while they come and go
DISK_BYTES = 2 << 30
DISK_SHARE = 10  # at most a tenth of the disk that is free
LOG_SHARE = 2  # and half of what is left: without room for the logs the spool would never become shorter
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.02, 1.0
MOST_BUFFERS = 512  # for one writev; systems take 1,024 at least
MOST_BYTES = (
    256 << 10
)  # the same, unless one entry is longer: what is on a disk that is nearly full must be little
SPARE_SHARE = 8  # of the memory: what may be left out is, while more waits than this part of it
SPARE_DISK_BYTES = 64 << 20  # the same while less is free than this, or than half of the disk
MOST_DROPPED_CALLS = 10_000  # beyond them `Dropped` does not tell calls apart

log = logging.getLogger("agent_logger.proxy")


def spool_folder(log_dir: Path) -> Path:
    return log_dir / ".spool"


# For a log folder that was there before us: it may hold others' files, so each of our own is named.
_OURS = b"""\
# What agent-logger writes here. This file is its own, too; change it as you like.
/.gitignore
/.spool/
/sessions.db*
/refused.jsonl*
/refused.p[0-9]*
/refused.bodies/
/unattributed.jsonl*
/unattributed.p[0-9]*
/*/unattributed*
/*/[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]-*
"""


def _make_folder(folder: Path) -> None:
    log_dir = folder.parent
    layout.make_log_folder(log_dir)
    _hide_from_git(log_dir / ".gitignore")
    platform.make_folder(folder, log_dir)
    append_once(folder / ".gitignore", b"*", log_dir)


def _hide_from_git(path: Path) -> None:
    """Write a `.gitignore`, unless one exists: that one is ours, or the user's, and stays as it is."""
    try:
        held = platform.open_file(path, create=True)
    except FileExistsError:
        return
    try:
        held.write(_OURS)
    except OSError:
        path.unlink()
        raise
    finally:
        held.close()


def segment_path(folder: Path, relay: str, number: int) -> Path:
    return folder / f"{relay}.{number}.spool"


def lock_path(folder: Path, relay: str) -> Path:
    return folder / f"{relay}.lock"


class SpoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    relay: str
    entries: int  # on disk
    bytes: int
    dropped_frames: int
    dropped_bytes: int
    waiting_bytes: int  # in memory
    stalled_seconds: float  # for which the disk has not taken anything, though there was something
    problem: str | None


class _Drops:
    """The frames of one call that were dropped. Its end is kept: without it the recorder would wait for ever."""

    __slots__ = ("bytes", "end", "frames")

    def __init__(self) -> None:
        self.frames = self.bytes = 0
        self.end: CallEnd | None = None


class Spool:
    """The spool of one relay, used by one thread of it. `folder` is that of `spool_folder`; raises `StoreError`.

    `begun_anew` is called when a folder that was removed has been made again, and must not raise.
    """

    def __init__(
        self,
        folder: Path,
        *,
        tell: Callable[[CredentialFrame], object] | None = None,
        begun_anew: Callable[[], object] = lambda: None,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        segment_seconds: float = SEGMENT_SECONDS,
    ) -> None:
        self.relay = secrets.token_hex(4)
        self.folder = folder
        self.dropped_frames = self.dropped_bytes = 0
        self._tell, self._begun_anew = tell, begun_anew
        self._memory_bytes, self._disk_bytes = memory_bytes, disk_bytes
        self._segment_bytes, self._segment_seconds = segment_bytes, segment_seconds
        self._idle_seconds = min(IDLE_SECONDS, segment_seconds)
        self._credentials: OrderedDict[bytes, int] = OrderedDict()  # those asked for last, by index
        self._lasting: OrderedDict[bytes, int] = OrderedDict()  # those of them that were sent as lasting
        self._indexes = 0
        self._handover = threading.Lock()  # held for a few statements, never while something is written
        self._waiting: list[bytes] = []  # head, body, head, body
        self._waiting_bytes = 0  # of these and of those being written
        self._drops: dict[int, _Drops] = {}
        self._wake, self._stop, self._asleep = threading.Event(), threading.Event(), False
        self._give_up_at = float("inf")  # monotonic
        self._entries = self._bytes = 0  # written
        self._problem: str | None = None
        self._disk_is_spare, self._look_at_disk = False, True
        self._stalled_since: float | None = None
        self._sizes: dict[int, int] = {}  # of our finished segments, by number
        self._segment = self._segment_size = self._segment_entries = 0
        self._segment_file: platform.Held | None = None
        try:
            self._begin(1)
            self._disk_is_spare = self._has_spare_disk()
        except (OSError, platform.NoLocksError) as error:
            raise StoreError(f"cannot write to {folder}: {error}; choose another log folder") from error
        self._thread = threading.Thread(target=self._run, name="agent-logger-spool", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------ the relay's thread

    def put(self, *frames: AnyFrame) -> None:
        """Record frames of one call, as one entry. Takes no time that depends on the disk, and raises nothing."""
        try:
            head, body = pack(*frames)
            size = len(head) + len(body)
            with self._handover:
                full = self._waiting_bytes + size > self._memory_bytes
                if self._drops:
                    frames, head, body = self._without_end(frames, head, body)
                    size = len(head) + len(body)
                if not frames:
                    pass
                elif full or size > LONGEST_ENTRY or self._stop.is_set():
                    self._drop(frames, size)
                else:
                    self._waiting += (head, body)
                    self._waiting_bytes += size
            if self._asleep:
                self._wake.set()
        except Exception:  # recording never harms the call it records
            self.dropped_frames += len(frames)
            log.exception("frames could not be recorded")

    def put_if_room(self, frame: AnyFrame) -> bool:
        """Record a frame with `put`, but only where calls need neither the memory nor the disk. `False` if it was not
        recorded."""
        spare = not (self._problem or self._drops or self._stop.is_set())
        if not spare or self._waiting_bytes > self._memory_bytes // SPARE_SHARE:
            return False
        if not self._disk_is_spare:
            self._look_at_disk = True  # the thread will
            self._wake.set()
            return False
        self.put(frame)
        return True

    def credential(self, value: bytes, *, lasting: bool = False) -> int:
        """The number that stands for the value in a `Mask`. The recorder gets the value before it reads such a
        frame."""
        index = self._credentials.get(value, -REMEMBERED)
        is_new = index < self._indexes - REMEMBERED // 2
        if is_new:
            self._credentials.pop(value, None)  # to the end, if it is there
            index = self._credentials[value] = self._indexes
            self._indexes += 1
            if len(self._credentials) > REMEMBERED:
                self._credentials.popitem(last=False)
        is_news = lasting and self._lasting.get(value) != index
        if is_news:
            self._lasting[value] = index
            if len(self._lasting) > REMEMBERED:
                self._lasting.popitem(last=False)
        if self._tell and (is_new or is_news):
            self._tell(CredentialFrame(self.relay, index, value, lasting))
        return index

    def status(self) -> SpoolStatus:
        since = self._stalled_since
        return SpoolStatus(
            relay=self.relay,
            entries=self._entries,
            bytes=self._bytes,
            dropped_frames=self.dropped_frames,
            dropped_bytes=self.dropped_bytes,
            waiting_bytes=self._waiting_bytes,
            stalled_seconds=round(time.monotonic() - since, 3) if since is not None else 0.0,
            problem=self._problem,
        )

    def close(self, timeout_seconds: float = 5.0) -> bool:
        """Write what is left and release the relay's lock. `False` if the disk did not take all of it."""
        self._give_up_at = time.monotonic() + timeout_seconds
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout_seconds + 1)
        done = not (self._thread.is_alive() or self._waiting_bytes or self._drops)
        self._lock.close()
        return done

    def _without_end(self, frames: Entry, head: bytes, body: bytes) -> tuple[Entry, bytes, bytes]:
        """Hold back the end of a call that lacks frames: the recorder must read first that they are missing."""
        last, call = frames[-1], frames[0].call
        if not isinstance(last, CallEnd) or not (call in self._drops or 0 in self._drops):
            return frames, head, body
        self._drops.setdefault(call, _Drops()).end = last
        return frames[:-1], *(pack(*frames[:-1]) if frames[1:] else (b"", b""))

    def _drop(self, frames: Entry, size: int) -> None:
        call = frames[0].call
        key = call if call in self._drops or len(self._drops) < MOST_DROPPED_CALLS else 0
        drops = self._drops.setdefault(key, _Drops())
        lost, last = len(frames), frames[-1]
        if isinstance(last, CallEnd) and key:
            drops.end = last
            lost -= 1
        if lost:
            drops.frames += lost
            drops.bytes += size
            self.dropped_frames += lost
            self.dropped_bytes += size

    # ------------------------------------------------------------ the thread that writes

    def _run(self) -> None:
        try:
            quiet = 0
            while not self._stop.wait(BATCH_SECONDS):  # for more to come
                if self._look_at_disk:
                    self._look_at_disk, self._disk_is_spare = False, self._has_spare_disk()
                batch = self._take()
                quiet = 0 if batch else quiet + 1
                if batch:
                    self._write(batch)
                    self._idle_at = time.monotonic() + self._idle_seconds
                elif quiet > QUIET_BATCHES:
                    self._sleep()
                if self._segment_entries and time.monotonic() >= min(self._segment_ends_at, self._idle_at):
                    self._insist(lambda: self._begin_segment(self._segment + 1))
            self._write(self._take())
            if self._segment_file:
                self._segment_file.close()
        except _GaveUpError:
            pass
        except Exception as error:  # the top of this thread
            log.exception("the spool stopped; calls are no longer recorded")
            self._problem = f"the spool stopped: {error!r}; restart the proxy"
            self._stop.set()  # what comes is dropped, and counted

    def _sleep(self) -> None:
        """Sleep until something is put. The thread does not sleep while calls come: waking it would cost each of them
        time."""
        self._wake.clear()
        self._asleep = True
        if not (self._waiting or self._drops or self._look_at_disk or self._stop.is_set()):
            due_at = min(self._segment_ends_at, self._idle_at)
            self._wake.wait(max(0.0, due_at - time.monotonic()) if self._segment_entries else None)
        self._asleep = False

    def _take(self) -> list[bytes]:
        with self._handover:
            batch, self._waiting = self._waiting, []
            drops, self._drops = self._drops, {}
            now = time.monotonic_ns()
            for call, dropped in drops.items():
                marks: list[AnyFrame] = []
                if dropped.frames:
                    marks.append(Dropped(call, now, dropped.frames, dropped.bytes))
                if dropped.end:
                    marks.append(dropped.end)
                for mark in marks:
                    packed = pack(mark)
                    batch += packed
                    self._waiting_bytes += len(packed[0]) + len(packed[1])
        return batch

    def _write(self, batch: list[bytes]) -> None:
        for buffers in _slices(batch):
            size = sum(map(len, buffers))
            self._stay()
            self._make_room(size)
            self._insist_on(buffers)
            self._entries += len(buffers) // 2
            self._segment_entries += len(buffers) // 2
            self._bytes += size
            self._segment_size += size
            with self._handover:
                self._waiting_bytes -= size
        self._disk_is_spare = self._has_spare_disk()

    def _begin(self, segment: int) -> None:
        """Begin a segment, in a folder that may have to be made."""
        _make_folder(self.folder)
        lock_path(self.folder, self.relay).unlink(missing_ok=True)
        self._lock = platform.open_file(
            lock_path(self.folder, self.relay), create=True, top=self.folder.parent
        )
        # A recorder that looks whether we are gone may have it; without it we were gone, for ever.
        if not platform.lock(self._lock):
            raise OSError(f"{self._lock.path} is locked")
        self._sizes = {}
        self._begin_segment(segment)

    def _stay(self) -> None:
        """Begin a new log folder if somebody has removed it, or moved it away."""
        if self._segment_file and not platform.is_same_file(self._segment_file):
            self._segment_file = None
            self._insist(lambda: self._begin(self._segment + 1))
            self._begun_anew()

    def _make_room(self, size: int) -> None:
        limit = self._limit()
        most = max(SMALLEST_SEGMENT, min(self._segment_bytes, limit // 4))
        if self._segment_entries and self._segment_size + size > most:
            self._insist(lambda: self._begin_segment(self._segment + 1))
        self._insist(lambda: self._check_limit(size))

    def _has_spare_disk(self) -> bool:
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
            return  # so it is nearly always
        self._sizes = {
            number: size
            for number, size in self._sizes.items()
            if segment_path(self.folder, self.relay, number).exists()
        }
        used = self._used()
        most = min(self._disk_bytes, max(self._limit(), SEGMENT_BYTES), free // LOG_SHARE)
        if self._sizes and used + size > most:
            raise OSError(f"the spool is full: {used:,} bytes wait for the recorder")

    def _limit(self) -> int:
        return min(self._disk_bytes, (self._free_bytes() + self._used()) // DISK_SHARE)

    def _used(self) -> int:
        return sum(self._sizes.values()) + self._segment_size

    def _free_bytes(self) -> int:
        try:
            space = os.statvfs(self.folder)
        except FileNotFoundError:
            return self._disk_bytes * DISK_SHARE  # removed this moment; it will be made again
        return space.f_bavail * space.f_frsize

    def _begin_segment(self, number: int) -> None:
        now = time.monotonic_ns()
        held = platform.open_file(
            segment_path(self.folder, self.relay, number), create=True, top=self.folder.parent
        )
        head = SpoolSegment(0, now, self.relay, os.getpid(), self._entries + 1, time.time_ns())
        try:
            data = b"".join(pack(head))
            held.write(data)
        except OSError:
            os.unlink(held.path)
            held.close()
            raise
        if self._segment_file:
            self._sizes[self._segment] = self._segment_size
            self._segment_file.close()
        self._segment, self._segment_file = number, held
        self._segment_size, self._segment_entries = len(data), 0
        self._segment_ends_at = time.monotonic() + self._segment_seconds
        self._idle_at = self._segment_ends_at

    def _insist_on(self, buffers: list[bytes]) -> None:
        """Write all buffers. A write that was cut short is continued where it ended, however long that takes."""
        left: list[bytes | memoryview] = list(buffers)
        assert self._segment_file
        fd = self._segment_file.fd

        def write() -> None:
            nonlocal left
            while left:
                left = _behind(left, os.writev(fd, left))

        self._insist(write)

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


class _GaveUpError(Exception):
    """The relay ends while the disk still fails."""


def _slices(batch: list[bytes]) -> Iterator[list[bytes]]:
    """Yield entries, head and body together, to be written at once. They are removed from the batch, so that what is
    written is freed: as much again may come meanwhile."""
    while batch:
        end = size = 0
        while end < min(len(batch), MOST_BUFFERS) and size < MOST_BYTES:
            size += len(batch[end]) + len(batch[end + 1])
            end += 2
        buffers = batch[:end]
        del batch[:end]
        yield buffers


def _behind(buffers: list[bytes | memoryview], written: int) -> list[bytes | memoryview]:
    for index, ends in enumerate(itertools.accumulate(map(len, buffers))):
        if ends > written:
            cut = len(buffers[index]) - (ends - written)
            return [memoryview(buffers[index])[cut:], *buffers[index + 1 :]]
    return []


# ---------------------------------------------------------------- one proxy per log folder


class _Holder(msgspec.Struct, frozen=True):
    pid: int
    port: int | None = None


class Owner:
    """The ownership of a log folder by the proxy that records to it."""

    def __init__(self, held: platform.Held) -> None:
        self._held = held
        self._port: int | None = None
        self._staying = threading.Lock()
        self._say()

    def listening(self, port: int) -> None:
        self._port = port
        self._say()

    def stay(self) -> None:
        """Take the folder over again if it was removed or moved away; make it if there is none in its place.

        Raises `OSError`.
        """
        with self._staying:
            if platform.is_same_file(self._held):
                return
            _make_folder(self._held.path.parent)
            held = platform.open_file(self._held.path, create=True, top=self._held.path.parent.parent)
            if not platform.lock(held):  # another proxy was quicker, and it is theirs
                held.close()
                return
            self._held.close()
            self._held = held
            self._say()

    def _say(self) -> None:
        os.ftruncate(self._held.fd, 0)
        self._held.write(msgspec.json.encode(_Holder(os.getpid(), self._port)))

    def close(self) -> None:
        self._held.close()


def own(log_dir: Path, folders: Sequence[str] = ()) -> Owner:
    """Become the one proxy of a log folder. Raises `StoreError`, which names the proxy that owns it.

    `folders`: those that will be written to. The log folder may be a link, for the user chose it; these may not: a
    repository can contain such links.
    """
    layout.prepare_log_folder(log_dir)
    folder = spool_folder(log_dir)
    for link in _links(log_dir, [folder.name, *folders]):
        raise StoreError(f"{link} is a symbolic link; remove it, or choose another log folder")
    for path in _special_files(folder):
        raise StoreError(f"{path} is not a regular file; remove it, or choose another log folder")
    path = folder / "owner"
    try:
        _make_folder(folder)
        try:
            held = platform.open_file(path, create=True, top=log_dir)
        except FileExistsError:
            held = platform.open_file(path, top=log_dir)
        if platform.lock(held):
            return Owner(held)
        holder = msgspec.json.decode(os.pread(held.fd, 1000, 0), type=_Holder)
    except platform.NoLocksError:
        raise StoreError(f"{log_dir} is on a file system without locks; choose another folder") from None
    except msgspec.MsgspecError:
        holder = _Holder(0)
    except OSError as error:
        raise StoreError(f"cannot use {folder}: {error.strerror}; choose another folder") from error
    where = f"on port {holder.port}" if holder.port else "on no port yet"
    raise StoreError(
        f"{log_dir} is recorded to by process {holder.pid} {where}; use that one, or another folder"
    )


def _special_files(folder: Path) -> list[Path]:
    """FIFOs, sockets and devices among the files of the spool: a reader of one may wait for ever."""
    if not folder.is_dir():
        return []
    modes = {path: os.lstat(path).st_mode for path in sorted(folder.iterdir())}
    return [
        path
        for path, mode in modes.items()
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
    ]


def _links(log_dir: Path, folders: Sequence[str]) -> Iterator[Path]:
    """Yield our folders that are links, and the bodies folders in them that are."""
    for folder in (log_dir / name for name in folders):
        if folder.is_symlink():
            yield folder
        elif folder.is_dir():
            with os.scandir(folder) as inner:
                yield from (
                    Path(entry.path)
                    for entry in inner
                    if entry.name.endswith(".bodies") and entry.is_symlink()
                )
