"""The files of a log that a process writes to: a part, the live file of the exchange in flight, bodies.

Methods raise `OSError`, and one thread at a time may call them: `Journal` is for everybody else.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_logger import platform
from agent_logger.clock import Clock
from agent_logger.files.append import append_once
from agent_logger.files.parts import PartFile
from agent_logger.journal import live
from agent_logger.journal.bodies import spill
from agent_logger.journal.open_part import OpenPart
from agent_logger.journal.ownership import NO_PARTS, Ids, SkippedParts, claim
from agent_logger.journal.unsynced import Unsynced
from agent_logger.model import records
from agent_logger.model.records import AnyRecord, ExchangeRecord, Kind, Message


class BodyFolder:
    """The folder beside a log for bodies that are too large for a line. Methods raise `OSError`."""

    def __init__(self, folder: Path, log_name: str, *, clock: Clock, top: Path) -> None:
        # The name of the folder in records.
        self.name = f"{log_name}.bodies"
        self._path, self._clock, self._top = folder / self.name, clock, top

    def free_name(self, name: str) -> str:
        """Return a name that no file has: the given one if it is free."""
        if not (self._path / name).exists():
            return name
        return f"{Path(name).stem}-{self._clock.uuid7()}{Path(name).suffix}"

    @contextmanager
    def create(self, name: str) -> Iterator[platform.Held]:
        platform.make_folder(self._path, self._top)
        with platform.open_file(self._path / name, create=True, top=self._top) as held:
            try:
                yield held
            except OSError:
                os.unlink(held.path)
                raise

    def adopt(self, file: Path, name: str) -> Path:
        """Move a file of the same file system into the folder."""
        platform.make_folder(self._path, self._top)
        platform.move_file(file, self._path / name, self._top)
        return self._path / name


class LogWriter:
    def __init__(self, folder: Path, name: str, kind: Kind, *, clock: Clock, part_bytes: int, top: Path) -> None:
        self.folder, self.kind, self.part_bytes, self.top = folder, kind, part_bytes, top
        self._clock, self._started = clock, clock.now()
        self._ids, self._skipped = Ids(), NO_PARTS
        self._gitignore_is_due = False
        self.full_parts = 0  # parts that were full when we began the next one
        self._set_name(name)
        self.after_fork()

    def after_fork(self) -> None:
        """Forget the open files, which are the parent's."""
        self.part: OpenPart | None = None
        self._live: live.LiveFile | None = None
        self._recovering = False
        self.unsynced = Unsynced()
        # Records that were written and are not synced yet, those included that are being synced.
        self.pending = 0

    def _set_name(self, name: str) -> None:
        self.name = name
        self._bodies = BodyFolder(self.folder, name, clock=self._clock, top=self.top)

    @property
    def path(self) -> Path:
        return PartFile(self.folder, self.name).path

    # ------------------------------------------------------------ records

    def write(self, record: AnyRecord) -> None:
        part = self.open()
        spilled = spill(part.with_ids(record), self._bodies.name, self._bodies.free_name)
        part = self._with_room(part, spilled.line_bytes)
        if spilled.name:
            with self._bodies.create(spilled.name) as held:
                held.write(spilled.data)
            self.unsynced.add_body(held.path)
        self._append(part, spilled.line, 1)

    def write_together(self, first: AnyRecord, *others: AnyRecord) -> None:
        """Write short records at once: all or none."""
        part = self.open()
        lines = b"\n".join(map(records.encode, [part.with_ids(first), *others]))
        self._append(self._with_room(part, len(lines)), lines, 1 + len(others))

    def _append(self, part: OpenPart, lines: bytes, count: int) -> None:
        part.append(lines)
        self.unsynced.add_lines(part.path, count)
        self.pending += count

    def _with_room(self, part: OpenPart, size: int) -> OpenPart:
        if part.size and part.size + size >= self.part_bytes:
            return self._start_part(SkippedParts(part.file.number, "full"))
        return part

    def adopt(self, file: Path, name: str) -> None:
        """Make a file of this file system a body of the log."""
        self.unsynced.add_body(self._bodies.adopt(file, name))

    def body_name(self, name: str) -> str:
        """Return the name of a body in records."""
        return f"{self._bodies.name}/{name}"

    # ------------------------------------------------------------ the exchange in flight

    def write_live(self, write: Callable[[live.LiveFile], None]) -> None:
        part = self.open()
        self._live = self._live or live.LiveFile(part.file)
        write(self._live)
        self.unsynced.add_lines(self._live.path)
        self.unsynced.folders.add(self.folder)

    def end_live(self) -> None:
        """End the exchange in flight. Its file is removed after the next sync, or by the next owner of the log."""
        if self._live:
            with suppress(OSError):
                self.unsynced.retired += filter(None, [self._live.end()])

    def move_messages(self, exchange: ExchangeRecord, finished: Callable[[Message], Message | None]) -> ExchangeRecord:
        """Move the messages of an exchange to a body, one by one: all of them may be more than memory holds."""
        self.open()
        messages = live.messages(self._live.path, exchange.id) if self._live else iter(())
        name = self._bodies.free_name(f"{exchange.exchange}.jsonl")
        with self._bodies.create(name) as held:
            for message in messages:
                if (done := finished(message)) is not None:
                    held.write(msgspec.json.encode(done) + b"\n")
            size = held.size()
        self.unsynced.add_body(held.path)
        return replace(exchange, messages_file=self.body_name(name), file_bytes=size)

    # ------------------------------------------------------------ parts

    def open(self) -> OpenPart:
        """Return the part to write to. The first call takes the log over, and repairs the traces of its last owner."""
        # Once after each sync: to look at every record would take a quarter of its time.
        if self.part and not self.unsynced and self.part.is_removed():
            self.close()
        return self.part or self._start_part(self._skipped)

    def _start_part(self, skipped: SkippedParts) -> OpenPart:
        self._gitignore_is_due |= platform.make_folder(self.folder, self.top)
        self.write_gitignore()
        claimed = claim(self.folder, self.name, full_at=self.part_bytes, skipped=skipped, top=self.top)
        self.full_parts += claimed.reason == "full"
        # The live file moves before the old part is closed: a live file whose part has no owner is an orphan.
        if self._live:
            self._live.follow(claimed.part)
            # A sync finds the live file by its new name.
            self.unsynced.add_lines(self._live.path)
        self.close()
        part = OpenPart(claimed, self.kind, self._ids, clock=self._clock, started=self._started)
        self.part, self._ids = part, part.ids
        self.unsynced.folders.add(self.folder)
        self.unsynced.add_lines(part.path)
        if (part.file.number > 1 or not claimed.created) and not self._recovering:
            self._recover(part)
        return self.part

    def _recover(self, part: OpenPart) -> None:
        """Write the exchanges in live files of dead owners. That may fill the part and begin another."""
        in_flight = self._live.path if self._live and self._live.in_flight else None
        self._recovering = True
        try:
            self.unsynced.retired += live.recover(part.file, self.write, in_flight=in_flight)
        except OSError:
            self.close()  # the next writer that opens the log tries again
            raise
        finally:
            self._recovering = False

    def rename(self, name: str) -> None:
        """Give the log another name, unless it has records. Its exchange in flight moves along."""
        old, old_name, old_ids = self.open(), self.name, self._ids
        if old.size or old_name == name:
            return
        self._set_name(name)
        self._ids = Ids()
        try:
            self._start_part(NO_PARTS)
        finally:
            if self.part is old:
                self._set_name(old_name)
                self._ids = old_ids
            else:
                with suppress(OSError):
                    os.unlink(old.path)

    def close(self) -> None:
        """Close the open files. The next record opens them again."""
        if self.part:
            self.part.close()
            self.part = None
        if self._live:
            self._live.close()

    # ------------------------------------------------------------ the sync

    def take_unsynced(self) -> tuple[Unsynced, dict[Path, platform.Held | None]]:
        """Return the work of the next sync, with its open files: at the sync, other files may have their names."""
        work, self.unsynced = self.unsynced, Unsynced()
        return work, {path: self._duplicate(path) for path in work.lines}

    def _duplicate(self, path: Path) -> platform.Held | None:
        for writer in (self.part, self._live):
            if writer and writer.path == path:
                with suppress(OSError):
                    return writer.duplicate()
        return None

    def abandon(self, path: Path) -> int:
        """Never write again to a file whose sync failed. Returns how many records were written to it since.

        The system may have dropped what it could not write, and the next sync would not report that.
        """
        if self.part and self.part.path == path:
            self._skipped = SkippedParts(self.part.file.number, "sync_failed")
            self.close()
        return self.unsynced.lines.pop(path, 0)

    def write_gitignore(self) -> None:
        """Write a `.gitignore` into a folder that we created: logs are nobody's source code."""
        if not self._gitignore_is_due:
            return
        with suppress(OSError):  # the next call tries again
            append_once(self.folder / ".gitignore", b"*", self.top)
            self._gitignore_is_due = False
