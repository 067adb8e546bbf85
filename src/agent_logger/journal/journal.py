"""The journal: a log that loses no acknowledged record and never gets in the agent's way.

`append` returns `True` when the system has taken the whole line in one write. From then on the record survives the end
of this process, however it ends. A sync within the next second, in `upkeep`, also makes it survive a power cut; no
caller waits for it.

A failing disk is not the agent's problem: no method here raises for it. Records that could not be written are counted
in `lost`, and the journal tries again after a while. The first line after that is a `gap` record, which says how many
records are missing, and since when.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.clock import CLOCK, Clock
from agent_logger.files.parts import PartFile
from agent_logger.journal.live import LiveFile
from agent_logger.journal.log_writer import LogWriter
from agent_logger.journal.sync import UPKEEP
from agent_logger.journal.unsynced import FileSync, sync
from agent_logger.model.records import AnyRecord, ExchangeRecord, Gap, Kind, LiveMessage, LiveStart, Message

PART_BYTES = 16 << 20
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.1, 5.0
SPACE_CHECK_SECONDS = 10.0

log = logging.getLogger("agent_logger.journal")


class Outage(msgspec.Struct):
    """A time in which the disk fails: when to try again, and what to report once it works. `now` is monotonic
    throughout."""

    reason: str
    since: str
    started: float
    retry_at: float = 0.0
    delay: float = FIRST_RETRY_SECONDS
    lost: int = 0
    unsynced: int = 0

    def __post_init__(self) -> None:
        self.retry_at = self.started + self.delay

    def extend(self, now: float) -> None:
        """Wait twice as long as the last time: the disk has failed again."""
        self.delay = min(2 * self.delay, LAST_RETRY_SECONDS)
        self.retry_at = now + self.delay

    def gap(self, ts: str, now: float) -> Gap | None:
        """Return the record of what is missing; `None` if nothing is."""
        if not self.lost and not self.unsynced:
            return None
        return Gap(
            ts=ts,
            lost=self.lost,
            since=self.since,
            seconds=round(now - self.started, 3),
            reason=self.reason,
            unsynced=self.unsynced,
        )


class SpaceWatch:
    """A warning before the disk is full."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._check_at = clock.monotonic()
        self._is_low = False

    def check(self) -> None:
        """Log a warning when the disk becomes almost full. Does nothing if the last check was just now."""
        now = self._clock.monotonic()
        if now < self._check_at:
            return
        self._check_at = now + SPACE_CHECK_SECONDS
        with suppress(OSError):
            is_low = platform.is_low_on_space(self._folder)
            if is_low and not self._is_low:
                log.warning("%s: the disk is almost full; records will be lost when it is full", self._folder)
            self._is_low = is_low


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
        self._log = LogWriter(folder, name, kind, clock=clock, part_bytes=part_bytes, top=top or folder)
        self._clock, self._space = clock, SpaceWatch(folder, clock)
        self.written = 0  # records acknowledged
        self.lost = 0  # records that could not be written
        self._reset()
        UPKEEP.register(self)

    def _reset(self) -> None:
        self._lock, self._busy = threading.RLock(), False
        self._beside: Journal | None = None
        self._outage: Outage | None = None
        self._live_fails = False  # whether a failure to write it was logged
        self.error: OSError | None = None  # the last error of the disk

    def after_fork(self) -> None:
        """Reset the journal in a forked child: what was open is the parent's, and our next record begins a part of our
        own."""
        self._reset()
        self._log.after_fork()

    @property
    def folder(self) -> Path:
        return self._log.folder

    @property
    def name(self) -> str:
        return self._log.name

    @property
    def part(self) -> PartFile | None:
        """The part that is written to; `None` before the first record."""
        return self._log.part.file if self._log.part else None

    @property
    def full_parts(self) -> int:
        """How many parts were full when this journal began the next one."""
        return self._log.full_parts

    @property
    def pending(self) -> int:
        """How many records are acknowledged and not synced yet."""
        return self._log.pending

    @property
    def failing(self) -> str | None:
        """Why records are being lost right now."""
        outage = self._outage
        return outage.reason if outage else None

    # ------------------------------------------------------------ what callers do; none of it raises OSError

    def open(self) -> bool:
        """Take the log over and mend what its last owner left, as the first `append` does."""
        with self._exclusive() as ours:
            return ours and self._attempt(self._log.open)

    def append(self, record: AnyRecord) -> bool:
        """Write a record. `True` once it survives the end of this process; `False` if it is lost, and counted."""
        with self._exclusive() as ours:
            return self._append(record) if ours else self._append_beside(record)

    def offer(self, *offered: AnyRecord) -> bool:
        """Write records as `append` does, for a caller that keeps refused records and offers them again: they are not
        counted as lost.

        Several records are written at once, all or none; they must be short.
        """
        with self._exclusive() as ours:
            write = self._log.write if len(offered) == 1 else self._log.write_together
            taken = ours and self._attempt(lambda: write(*offered))
            self.written += len(offered) * taken
            return taken

    def place(self) -> tuple[Path, int] | None:
        """The part that is written to, and its size; `None` while the disk fails."""
        with self._exclusive() as ours:
            part = self._log.part if ours and self._attempt(self._log.open) else None
            return (part.path, part.size) if part else None

    def adopt(self, file: Path, name: str) -> str | None:
        """Make a file of this file system a body of the log. Returns its name in records; `None` if the disk refused
        it."""
        with self._exclusive() as ours:
            adopted = ours and self._attempt(lambda: self._log.adopt(file, name))
            return self._log.body_name(name) if adopted else None

    def needs(self, file: Path) -> None:
        """Sync this file, which is the caller's, before the next record, which names it."""
        with self._lock:
            self._log.unsynced.add_body(file)
            self._log.unsynced.folders.add(self.folder)

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

    def end(self, exchange: ExchangeRecord, finished: Callable[[Message], Message | None] | None = None) -> bool:
        """End the exchange in flight with its record. `False` if the record is lost; then the live file stays, for the
        next owner to complete.

        `finished`: only the live file has the messages. They are moved to a body of the log, each as this returns it.
        """
        with self._exclusive() as ours:
            if not ours:
                return self._append_beside(exchange)
            named = [exchange]
            if finished and not self._attempt(lambda: named.append(self._log.move_messages(exchange, finished))):
                self.lost += 1
                return False
            if not self._append(named[-1]):
                return False
            self._log.end_live()
            return True

    def withdraw(self) -> None:
        """Drop the exchange in flight: it continues in another log, which has it already. Waits for a sync: it is
        rare."""
        with self._exclusive() as ours:
            if ours:
                self._log.end_live()
                self._report()
        UPKEEP.finish()  # or the next owner would recover it; it may stand in the file of the exchange before it, too

    def rename(self, name: str) -> bool:
        """Give the log another name; if there is a log of that name already, append to that one.

        Only for a log without records: its exchange in flight moves along, in one step, and the empty part is removed.
        `False` if the log has records, or the disk fails: then it keeps its name.
        """
        with self._exclusive() as ours:
            return ours and self._attempt(lambda: self._log.rename(name)) and self.name == name

    def close(self) -> None:
        """Leave the log to its next owner. The upkeep does the last sync."""
        with self._exclusive() as ours:
            if ours:
                self.last_chance()
                self._close_files()
        if self._beside:
            self._beside.close()

    def last_chance(self) -> None:
        """Write the record of lost records now, if there are any, without waiting for the next attempt."""
        with self._lock:
            if self._outage:
                self._outage.retry_at = self._clock.monotonic()
                self._attempt(lambda: None)

    # ------------------------------------------------------------ one caller at a time

    @contextmanager
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
        if self._attempt(lambda: self._log.write(record)):
            self.written += 1
            return True
        self.lost += 1
        if self._outage:
            self._outage.lost += 1
        return False

    def _append_beside(self, record: AnyRecord) -> bool:
        """Append the record to a part of its own, because a signal handler has interrupted the writing of another
        line."""
        if self._beside is None:
            ours = self._log
            self._beside = Journal(
                ours.folder, ours.name, ours.kind, clock=self._clock, part_bytes=ours.part_bytes, top=ours.top
            )
        return self._beside.append(record)

    def _write_live(self, write: Callable[[LiveFile], None]) -> bool:
        """Write to the live file. A failure is no loss yet: the exchange's record may still be written."""
        with self._exclusive() as ours:
            if not ours:
                return False
            try:
                UPKEEP.with_descriptors(lambda: self._log.write_live(write), self)
            except OSError as error:
                self.error = error
                if not self._live_fails:
                    log.warning(
                        "%s: cannot write the exchange in flight to disk: %s", self._log.path, error.strerror or error
                    )
                self._live_fails = True
                return False
            finally:
                self._report()
            self._live_fails = False
            return True

    # ------------------------------------------------------------ a failing disk

    def _attempt(self, work: Callable[[], object]) -> bool:
        try:
            if self._outage:
                self._end_outage(self._outage)
            UPKEEP.with_descriptors(work, self)
        except _TooSoonError:
            return False
        except OSError as error:
            self._fail(error)
            return False
        finally:
            self._report()
        return True

    def _report(self) -> None:
        """Tell the upkeep what is open, and whether there is work for it."""
        if self._log.part:
            UPKEEP.used(self)
        else:
            UPKEEP.closed(self)
        if self._log.unsynced or self._outage:
            UPKEEP.due(self)

    def _fail(self, error: OSError) -> Outage:
        now, self.error = self._clock.monotonic(), error
        if self._outage is None:
            log.warning("%s: cannot write (%s); records are lost until this is fixed", self._log.path, error.strerror)
            self._outage = Outage(str(error.strerror), self._clock.now(), now)
        else:
            self._outage.extend(now)
        return self._outage

    def _end_outage(self, outage: Outage) -> None:
        """Write a record of what is missing. Raises while the disk still fails."""
        now = self._clock.monotonic()
        if now < outage.retry_at:
            raise _TooSoonError
        if gap := outage.gap(self._clock.now(), now):
            UPKEEP.with_descriptors(lambda: self._log.write(gap), self)
        self._outage = None

    # ------------------------------------------------------------ upkeep, in a thread of its own

    def upkeep(self) -> bool:
        with self._lock:
            work, opened = self._log.take_unsynced()
        synced = [self._settle(result) for result in sync(work, opened)]
        if all(synced):
            for path in work.retired:
                with suppress(OSError):  # the exchange is in the log, which the next owner sees, too
                    os.unlink(path)
        with self._exclusive() as ours:
            if not all(synced):
                self._log.unsynced.retired += work.retired
            if ours and self._outage:
                self._attempt(lambda: None)
            if ours and self._log.part and not self._log.part.is_in_place():
                self._close_files()  # somebody removed the log: the next record begins a new one
        self._log.write_gitignore()
        self._space.check()
        return bool(self._log.unsynced or self._outage)

    def _settle(self, file: FileSync) -> bool:
        """Note the result of a file's sync. Returns whether the file is synced."""
        with self._lock:
            if file.is_postponed:
                self._log.unsynced.add_lines(file.path, file.records)
                return False
            self._log.pending -= file.records
            if file.error:
                since = self._log.abandon(file.path)  # records that came while the sync was failing
                self._log.pending -= since
                outage = self._fail(file.error)
                outage.unsynced += file.records + since
                outage.retry_at = self._clock.monotonic()  # a new part may well take lines
            return file.error is None

    def release(self) -> bool:
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._busy:  # a signal handler has interrupted this thread at work
                return False
            had_part = self._log.part is not None
            self._close_files()
            return had_part
        finally:
            self._lock.release()

    def _close_files(self) -> None:
        self._log.close()
        UPKEEP.closed(self)
