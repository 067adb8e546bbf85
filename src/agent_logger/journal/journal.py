"""The journal: a log that loses nothing it acknowledged and never gets in the agent's way.

`append` returns `True` once the whole line was handed to the system in one write: from then on it
survives the end of this process, however it ends. The sync that also makes it survive a power cut
follows within a second, in `upkeep`, and nobody waits for it.

A disk that fails is not the agent's problem. No method here raises for it: what could not be written is
counted in `lost`, the journal tries again after a while, and when it succeeds the first line
it writes is a `gap` record that says how many records are missing and since when.
"""

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent_logger import platform
from agent_logger.clock import CLOCK, Clock
from agent_logger.files.append import append_once
from agent_logger.journal import live
from agent_logger.journal.bodies import spill
from agent_logger.journal.open_part import OpenPart
from agent_logger.journal.ownership import ANY, Beyond, Ids, claim
from agent_logger.journal.sync import UPKEEP
from agent_logger.model import records
from agent_logger.model.records import AnyRecord, ExchangeRecord, Gap, Kind, LiveMessage, LiveStart, Message

PART_BYTES = 64 << 20
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.1, 5.0
SPACE_CHECK_SECONDS = 10.0

log = logging.getLogger("agent_logger.store")
T = TypeVar("T")


@dataclass(slots=True)
class _Failure:
    """A time in which records are lost."""

    reason: str
    since: str
    started: float  # monotonic, as is the next
    retry_at: float
    delay: float = FIRST_RETRY_SECONDS
    lost: int = 0
    unsynced: int = 0


@dataclass(slots=True)
class _Dirty:
    """What the next sync has to do."""

    bodies: list[Path] = field(default_factory=list)
    folders: set[Path] = field(default_factory=set)  # with new names in them
    lines: dict[Path, int] = field(
        default_factory=dict
    )  # parts and live files, with how many records of each
    live: list[Path] = field(default_factory=list)  # to be removed once the records are safe

    def wrote(self, path: Path, count: int = 0) -> None:
        self.lines[path] = self.lines.get(path, 0) + count

    def __bool__(self) -> bool:
        return bool(self.bodies or self.folders or self.lines or self.live)


class _TooSoonError(OSError):
    """The disk failed a moment ago; it is left alone for a while."""


class Journal:
    """A log, `<folder>/<name>.jsonl` and its parts. Any thread may use it; so may a forked child."""

    def __init__(
        self,
        folder: Path,
        name: str,
        kind: Kind,
        *,
        clock: Clock = CLOCK,
        part_bytes: int = PART_BYTES,
        top: Path | None = None,
    ) -> None:
        """Make a journal. No folder below `top` may be a link; if `top` is not given, the log's own folder may be
        one."""
        self.folder, self.name, self.kind = folder, name, kind
        self._top = top or folder
        self.written = 0  # records acknowledged
        self.lost = 0  # records that could not be written
        self.low_space = False
        self._clock, self._part_bytes = clock, part_bytes
        self._started = clock.now()
        self._space_checked_at = -SPACE_CHECK_SECONDS
        self._ids = Ids()
        self._beyond = ANY
        self._gitignore_is_due = False
        self.after_fork()
        UPKEEP.register(self)

    def after_fork(self) -> None:
        """Reset the journal in a forked child: what was open is the parent's, and our next record begins a part of our
        own."""
        self._lock = threading.RLock()
        self._busy = self._recovering = False
        self._beside: Journal | None = None
        self._part: OpenPart | None = None
        self._live: live.LiveFile | None = None
        self._failure: _Failure | None = None
        self._live_fails = False  # so that it is said once
        self._dirty = _Dirty()
        self.pending = 0  # records acknowledged but not synced yet

    @property
    def failing(self) -> str | None:
        """Why records are being lost right now."""
        failure = self._failure
        return failure.reason if failure else None

    # ------------------------------------------------------------ what callers do; none of it raises OSError

    def open(self) -> bool:
        """Take the log over and mend what its last owner left, as the first `append` does."""
        with self._exclusive() as ours:
            return ours and self._attempt(self._opened)

    def append(self, record: AnyRecord) -> bool:
        """Write a record. `True` once it survives the end of this process; `False` if it is lost, and counted."""
        with self._exclusive() as ours:
            return self._append(record) if ours else self._append_beside(record)

    def offer(self, *offered: AnyRecord) -> bool:
        """Write records as `append` does, for a caller that keeps what is not taken and offers it again: what is not
        taken is not counted as lost.

        Several records are written at once, all or none; they must be short.
        """
        with self._exclusive() as ours:
            work = self._write if len(offered) == 1 else self._write_together
            taken = ours and self._attempt(lambda: work(*offered))
            self.written += len(offered) * taken
            return taken

    def place(self) -> tuple[Path, int] | None:
        """The part that is written to, and its size; `None` while the disk fails."""
        with self._exclusive() as ours:
            opened = ours and self._attempt(self._opened)
            return (self._part.path, self._part.size) if opened and self._part else None

    def adopt(self, file: Path, name: str) -> str | None:
        """Make a file of this file system a body of the log. Returns what records call it; `None` if it was not
        taken."""
        with self._exclusive() as ours:
            adopted = ours and self._attempt(lambda: self._adopt(file, name))
            return f"{self.name}.bodies/{name}" if adopted else None

    def needs(self, file: Path) -> None:
        """Sync this file, which is the caller's, before the next record, which names it."""
        with self._lock:
            self._dirty.bodies.append(file)
            self._dirty.folders |= {file.parent, file.parent.parent, self.folder}

    def begin(self, start: LiveStart) -> bool:
        """Begin an exchange: `add` its messages as they come, then `end` it with its record."""
        return self._write_live(lambda file: file.begin(start))

    def note(self, start: LiveStart) -> bool:
        """Write down what else is known now of the exchange in flight, or of the next one, whose input has come
        already."""
        return self._write_live(lambda file: file.note(start))

    def add(self, message: LiveMessage, *, counts: bool = False) -> bool:
        """Add a message to the live file. `counts`: no other file will have it, so it is counted as lost if it cannot
        be written."""
        added = self._write_live(lambda file: file.add(message))
        self.lost += counts and not added
        return added

    def end(self, exchange: ExchangeRecord) -> bool:
        """End the exchange in flight with its record. `False` if the record is lost; then the live file stays, for the
        next owner to complete."""
        with self._exclusive() as ours:
            if not ours:
                return self._append_beside(exchange)
            if not self._append(exchange):
                return False
            self._end_live()
            return True

    def end_large(self, exchange: ExchangeRecord, finished: Callable[[Message], Message | None]) -> bool:
        """End an exchange as `end` does, when only the live file has its messages: they are moved to a file of the
        log."""
        with self._exclusive() as ours:
            if not ours:
                return self._append_beside(exchange)
            named: list[ExchangeRecord] = []
            if not self._attempt(lambda: named.append(self._with_file(exchange, finished))):
                self.lost += 1
                return False
            if not self._append(named[0]):
                return False
            self._end_live()
            return True

    def _end_live(self) -> None:
        if self._live:
            with contextlib.suppress(OSError):  # then the next owner removes it
                self._dirty.live += filter(None, [self._live.end()])

    def withdraw(self) -> None:
        """Drop the exchange in flight: it continues in another log, which has it already. Waits for a sync: it is
        rare."""
        with self._exclusive() as ours:
            if ours and self._live:
                with contextlib.suppress(OSError):  # then it stands in both
                    self._dirty.live += filter(None, [self._live.end()])
                    UPKEEP.due(self)
        UPKEEP.finish()  # or the next owner would recover it; it may stand in the file of the exchange before it, too

    def rename(self, name: str) -> bool:
        """Give the log another name; if there is a log of that name already, append to that one.

        Only for a log without records: its exchange in flight moves along, in one step, and the empty part is removed.
        `False` if the log has records, or the disk fails: then it keeps its name.
        """
        with self._exclusive() as ours:
            return ours and self._attempt(lambda: self._rename(name)) and self.name == name

    def close(self) -> None:
        """Leave the log to its next owner. The upkeep does the last sync."""
        with self._exclusive() as ours:
            if ours:
                self.last_chance()
                self._close_part()
        if self._beside:
            self._beside.close()

    def last_chance(self) -> None:
        """Write down now what was lost, if anything was, without waiting until the disk is due for a retry."""
        with self._lock:
            if self._failure:
                self._failure.retry_at = self._clock.monotonic()
                self._attempt(lambda: None)

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[bool]:
        """Let one caller write at a time. Yields `False` to a signal handler that has interrupted a write."""
        with self._lock:
            if self._busy:
                yield False
                return
            self._busy = True
            try:
                yield True
            finally:
                self._busy = False

    def _append(self, record: AnyRecord) -> bool:
        if self._attempt(lambda: self._write(record)):
            self.written += 1
            return True
        self.lost += 1
        if self._failure:
            self._failure.lost += 1
        return False

    def _append_beside(self, record: AnyRecord) -> bool:
        """Append the record to a part of its own, because a signal handler has interrupted the writing of another
        line."""
        if self._beside is None:
            self._beside = Journal(
                self.folder,
                self.name,
                self.kind,
                clock=self._clock,
                part_bytes=self._part_bytes,
                top=self._top,
            )
        return self._beside.append(record)

    # ------------------------------------------------------------ writing

    def _write(self, record: AnyRecord) -> None:
        part = self._opened()
        spilled = spill(part.introduced(record), f"{self.name}.bodies", self._free_body_name)
        if part.size and part.size + len(spilled.line) >= self._part_bytes:
            beyond = Beyond(part.file.number, "full")
            part = self._with_descriptors(lambda: self._start_part(beyond))
        if spilled.name:
            with self._new_body(spilled.name) as held:
                held.write(spilled.data)
        part.append(spilled.line)
        self._dirty.wrote(part.path, 1)
        self.pending += 1
        UPKEEP.due(self)

    def _write_together(self, first: AnyRecord, *others: AnyRecord) -> None:
        part = self._opened()
        lines = b"\n".join(map(records.encode, [part.introduced(first), *others]))
        if part.size and part.size + len(lines) >= self._part_bytes:
            beyond = Beyond(part.file.number, "full")
            part = self._with_descriptors(lambda: self._start_part(beyond))
        part.append(lines)
        self._dirty.wrote(part.path, 1 + len(others))
        self.pending += 1 + len(others)
        UPKEEP.due(self)

    def _write_live(self, write: Callable[[live.LiveFile], None]) -> bool:
        """Write to the live file. A failure is no loss yet: the exchange's record may still be written."""
        with self._exclusive() as ours:
            if not ours:
                return False
            try:
                part = self._opened()
                file = self._live = self._live or live.LiveFile(part.file)
                self._with_descriptors(lambda: write(file))
            except OSError as error:
                if not self._live_fails:
                    log.warning("%s: the exchange in flight is not on disk: %s", self._where(), error)
                self._live_fails = True
                return False
            self._live_fails = False
            self._dirty.wrote(file.path)
            self._dirty.folders.add(self.folder)
            UPKEEP.due(self)
            return True

    def _free_body_name(self, name: str) -> str:
        if not (self._bodies() / name).exists():
            return name
        return f"{Path(name).stem}-{self._clock.uuid7()}{Path(name).suffix}"

    @contextlib.contextmanager
    def _new_body(self, name: str) -> Iterator[platform.Held]:
        platform.make_folder(self._bodies(), self._top)
        held = self._with_descriptors(
            lambda: platform.open_file(self._bodies() / name, create=True, top=self._top)
        )
        try:
            yield held
        except OSError:
            os.unlink(held.path)
            raise
        finally:
            held.close()
        self._dirty.bodies.append(held.path)
        self._dirty.folders |= {held.path.parent, self.folder}

    def _with_file(
        self, exchange: ExchangeRecord, finished: Callable[[Message], Message | None]
    ) -> ExchangeRecord:
        """Move the messages of an exchange to a file, one by one: all of them may be more than memory holds."""
        self._opened()
        lines = live.messages(self._live.path, exchange.id) if self._live else iter(())
        name = self._free_body_name(f"{exchange.exchange}.jsonl")
        with self._new_body(name) as held:
            for message in lines:
                if (done := finished(message)) is not None:
                    held.write(msgspec.json.encode(done) + b"\n")
            size = held.size()
        return replace(exchange, messages_file=f"{self.name}.bodies/{name}", file_bytes=size)

    def _adopt(self, file: Path, name: str) -> None:
        platform.make_folder(self._bodies(), self._top)
        platform.move_file(file, self._bodies() / name, self._top)
        self._dirty.bodies.append(self._bodies() / name)
        self._dirty.folders |= {self._bodies(), self.folder}
        UPKEEP.due(self)

    def _bodies(self) -> Path:
        return self.folder / f"{self.name}.bodies"

    # ------------------------------------------------------------ parts

    def _opened(self) -> OpenPart:
        # Once after each upkeep: to look at every record would take a quarter of its time.
        if self._part and not self._dirty and self._part.is_removed():
            self._close_part()
        part = self._part or self._with_descriptors(lambda: self._start_part(self._beyond))
        UPKEEP.used(self)
        return part

    def _start_part(self, beyond: Beyond) -> OpenPart:
        self._gitignore_is_due |= platform.make_folder(self.folder, self._top)
        self._write_gitignore()
        claimed = claim(self.folder, self.name, full_at=self._part_bytes, beyond=beyond, top=self._top)
        if self._live:  # before the old part is let go: without an owner its live file were an orphan
            self._live.follow(claimed.part)
            self._dirty.wrote(self._live.path)  # what is due for it goes by its name
        self._close_part()
        part = OpenPart(claimed, self.kind, self._ids, clock=self._clock, started=self._started)
        self._part, self._ids = part, part.ids
        self._dirty.folders.add(self.folder)
        self._dirty.wrote(part.path)
        UPKEEP.due(self)
        if (part.file.number > 1 or not claimed.created) and not self._recovering:
            self._recover(part)
        return self._part

    def _rename(self, name: str) -> None:
        old, before = self._opened(), (self.name, self._ids)
        if old.size:
            return
        self.name, self._ids = name, Ids()
        try:
            self._with_descriptors(lambda: self._start_part(ANY))
        except OSError:
            if self._part is old:
                self.name, self._ids = before
            raise
        _remove([old.path])

    def _recover(self, part: OpenPart) -> None:
        """Write what the live files of dead owners hold. That may fill the part and begin another."""
        in_flight = self._live.path if self._live and self._live.in_flight else None
        self._recovering = True
        try:
            self._dirty.live += live.recover(part.file, self._write, in_flight=in_flight)
        except OSError:
            self._close_part()  # so that the next one to open it tries again
            raise
        finally:
            self._recovering = False

    def _close_part(self) -> None:
        if self._part:
            self._part.close()
            self._part = None
        if self._live:
            self._live.close()
        UPKEEP.closed(self)

    def _with_descriptors(self, work: Callable[[], T]) -> T:
        """Close other journals' files when the process has no descriptor left for this one's."""
        while True:
            try:
                return work()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not UPKEEP.release_one(self):
                    raise

    # ------------------------------------------------------------ a failing disk

    def _attempt(self, work: Callable[[], object]) -> bool:
        try:
            if self._failure:
                self._end_failure(self._failure)
            work()
        except _TooSoonError:
            return False
        except OSError as error:
            self._fail(error)
            return False
        return True

    def _fail(self, error: OSError, *, unsynced: int = 0) -> None:
        now = self._clock.monotonic()
        if self._failure is None:
            log.warning("%s: cannot write (%s); records are lost until it can", self._where(), error.strerror)
            self._failure = _Failure(str(error.strerror), self._clock.now(), now, now + FIRST_RETRY_SECONDS)
        else:
            self._failure.delay = min(2 * self._failure.delay, LAST_RETRY_SECONDS)
            self._failure.retry_at = now + self._failure.delay
        self._failure.unsynced += unsynced
        UPKEEP.due(self)

    def _end_failure(self, failure: _Failure) -> None:
        """Write a record of what is missing. Raises while the disk still fails."""
        now = self._clock.monotonic()
        if now < failure.retry_at:
            raise _TooSoonError
        if failure.lost or failure.unsynced:
            self._write(
                Gap(
                    ts=self._clock.now(),
                    lost=failure.lost,
                    since=failure.since,
                    seconds=round(now - failure.started, 3),
                    reason=failure.reason,
                    unsynced=failure.unsynced,
                )
            )
        self._failure = None

    # ------------------------------------------------------------ upkeep, in a thread of its own

    def upkeep(self) -> bool:
        with self._lock:
            dirty, self._dirty = self._dirty, _Dirty()
            held = {path: self._duplicate(path) for path in dirty.lines}
        # In this order: a line that is on the disk must not name a body that is not.
        synced = [self._sync_file(path, 0, None) for path in dirty.bodies]
        _sync_folders(dirty.folders)
        synced += [self._sync_file(path, count, held[path]) for path, count in dirty.lines.items()]
        if all(synced):
            _remove(dirty.live)
        with self._exclusive() as ours:
            if not all(synced):
                self._dirty.live += dirty.live
            if ours and self._failure:
                self._attempt(lambda: None)
            if ours and self._part and not self._part.is_in_place():
                self._close_part()  # somebody removed the log: the next record begins a new one
        self._write_gitignore()
        self._watch_space()
        return bool(self._dirty or self._failure)

    def _duplicate(self, path: Path) -> platform.Held | None:
        """Open the very file that was written: by the time of the sync, its name may be another file's."""
        for writer in (self._part, self._live):
            if writer and writer.path == path:
                with contextlib.suppress(OSError):
                    return writer.duplicate()
        return None

    def _sync_file(self, path: Path, count: int, held: platform.Held | None) -> bool:
        try:
            held = held or platform.open_file(path)
        except FileNotFoundError:
            self._settle(count)  # sealed or removed
            return True
        except OSError:
            with self._lock:
                self._dirty.wrote(path, count)  # no descriptor left: next time
            return False
        try:
            platform.sync(held.fd)
        except OSError as error:
            self._sync_failed(path, count, error)
            return False
        finally:
            held.close()
            self._settle(count)
        return True

    def _settle(self, count: int) -> None:
        with self._lock:
            self.pending -= count

    def _sync_failed(self, path: Path, count: int, error: OSError) -> None:
        """Stop trusting a file whose sync failed, and begin a new part.

        The system may have dropped what it could not write, and the next sync would not report that.
        """
        with self._lock:
            if self._part and self._part.path == path:
                self._beyond = Beyond(self._part.file.number, "sync_failed")
                self._close_part()
            since = self._dirty.lines.pop(path, 0)  # these came while it was failing
            self.pending -= since
            self._fail(error, unsynced=count + since)
            if self._failure:
                self._failure.retry_at = self._clock.monotonic()  # a new part may well take lines

    def release(self) -> bool:
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._busy:  # in this thread, by one whom a signal handler has interrupted
                return False
            had_part = self._part is not None
            self._close_part()
            return had_part
        finally:
            self._lock.release()

    def _watch_space(self) -> None:
        now = self._clock.monotonic()
        if now - self._space_checked_at < SPACE_CHECK_SECONDS:
            return
        self._space_checked_at = now
        with contextlib.suppress(OSError):
            low = platform.is_low_on_space(self.folder)
            if low and not self.low_space:
                log.warning("%s: the disk is almost full; records will be lost when it is", self._where())
            self.low_space = low

    def _write_gitignore(self) -> None:
        """Write a `.gitignore` into a folder that we created: logs are nobody's source code."""
        if not self._gitignore_is_due:
            return
        with contextlib.suppress(OSError):  # else next time
            append_once(self.folder / ".gitignore", b"*", self._top)
            self._gitignore_is_due = False

    def _where(self) -> Path:
        return self.folder / f"{self.name}.jsonl"


def _sync_folders(folders: set[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # some file systems cannot; the files themselves are synced
            platform.sync_folder(folder)


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # its exchange is in the log: the next owner sees that, too
            os.unlink(path)
