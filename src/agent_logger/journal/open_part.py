"""A part that this process appends to; its head says which log it belongs to."""

import os
from pathlib import Path
from typing import TypedDict

from msgspec.structs import replace

from agent_logger import __version__, platform
from agent_logger.clock import Clock
from agent_logger.files.append import Appender
from agent_logger.files.parts import PartFile
from agent_logger.journal.bodies import keeps_its_type
from agent_logger.journal.ownership import Claim, Ids, ids_of
from agent_logger.model import records
from agent_logger.model.records import AnyRecord, Kind, Part, PartReason, Record, Recovered, Writer


class _Head(TypedDict):
    log: str
    part: str
    machine: str
    writer: Writer


class OpenPart:
    """A part that is ours until it is closed. Opening it mends a line that its last owner left torn. Raises
    `OSError`."""

    def __init__(self, claimed: Claim, kind: Kind, before: Ids, *, clock: Clock, started: str) -> None:
        """Open a part. `before` are the ids of the log and of the part that this process wrote to so far, if any."""
        self.file = claimed.part
        self._kind, self._clock, self._started = kind, clock, started
        self._appender = Appender(claimed.held)
        self._says_nothing_yet = False
        self.ids = before
        try:
            if claimed.is_empty:
                self._introduce(claimed, before)
            else:
                self._adopt(before)
        except OSError:
            self.close()
            raise

    @property
    def path(self) -> Path:
        return self._appender.path

    @property
    def size(self) -> int:
        return self._appender.size

    def append(self, line: bytes) -> None:
        self._appender.append(line)
        self._says_nothing_yet = False

    def introduced(self, record: AnyRecord) -> AnyRecord:
        """The record as it is to be written: the first one of a log carries the ids.

        A record that may not be changed, or that stands in every kind of log, gets a `part` record before it that
        carries them.
        """
        if not self._says_nothing_yet:
            return record
        if isinstance(record, Record) and _tells_its_log(record):
            return replace(record, **self._head())
        self._append_part_record("verbatim", None)
        return record

    def is_in_place(self) -> bool:
        """Whether nobody has removed or replaced the file."""
        return self._appender.is_in_place()

    def is_removed(self) -> bool:
        """Whether the file was removed: a quick check, which misses a file that was replaced or moved away."""
        return self._appender.is_removed()

    def duplicate(self) -> platform.Held:
        return self._appender.duplicate()

    def close(self) -> None:
        self._appender.close()

    def _introduce(self, claimed: Claim, before: Ids) -> None:
        first = PartFile(self.file.folder, self.file.name)
        log = before.log or (ids_of(first).log if self.file != first else None) or self._clock.uuid7()
        self.ids = Ids(log, self._clock.uuid7())
        if self.file == first:
            self._says_nothing_yet = True
            return
        reason = claimed.reason or "owned"  # none: its creator died before it could say
        self._append_part_record(reason, before.part or self._previous(reason))

    def _previous(self, reason: PartReason) -> str | None:
        """The part whose end this one begins at; `None` if somebody else is still writing to that."""
        if reason in ("owned", "no_locks", "linked"):
            return None
        return ids_of(PartFile(self.file.folder, self.file.name, self.file.number - 1)).part

    def _adopt(self, before: Ids) -> None:
        ids = ids_of(self.file)
        self.ids = Ids(ids.log or before.log or self._clock.uuid7(), ids.part or self._clock.uuid7())
        if torn := self._appender.end_torn_line():
            self.append(records.encode(Recovered(ts=self._clock.now(), torn_bytes=torn)))
        self._says_nothing_yet = ids.log is None  # a crash took its head: the next record says it again

    def _append_part_record(self, reason: PartReason, after: str | None) -> None:
        record = Part(
            ts=self._clock.now(),
            kind=self._kind,
            number=self.file.number,
            reason=reason,
            after=after,
            **self._head(),
        )
        self.append(records.encode(record))

    def _head(self) -> _Head:
        return _Head(
            log=self.ids.log or "",
            part=self.ids.part or "",
            machine=platform.machine(),
            writer=Writer(pid=os.getpid(), started=self._started, version=__version__),
        )


def _tells_its_log(record: Record) -> bool:
    line = records.encode(record)
    return keeps_its_type(record, line) and records.kind_of(line) is not None
