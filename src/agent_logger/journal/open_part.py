"""A part that this process appends to; its head says which log it belongs to."""

import os
from typing import TypedDict

from msgspec.structs import replace

from agent_logger import __version__
from agent_logger.clock import Clock
from agent_logger.files.append import Appender
from agent_logger.files.parts import PartFile
from agent_logger.home.part_origin import origin_of_new_part
from agent_logger.journal.bodies import keeps_its_type
from agent_logger.journal.ownership import Claim, Ids, ids_of
from agent_logger.model import records
from agent_logger.model.records import AnyRecord, Kind, Part, PartReason, Record, Recovered, Writer


class _Head(TypedDict):
    log: str
    part: str
    machine: str | None
    writer: Writer
    mac: str | None


class OpenPart(Appender):
    """A part that is ours until it is closed. Opening it mends a line that its last owner left torn. Raises
    `OSError`."""

    def __init__(self, claimed: Claim, kind: Kind, before: Ids, *, clock: Clock, started: str) -> None:
        """Open a part. `before` are the ids of the log and of the part that this process wrote to so far, if any."""
        super().__init__(claimed.held)
        self.file = claimed.part
        self._kind, self._clock, self._started = kind, clock, started
        self._lacks_ids = False
        self.ids = before
        try:
            if claimed.is_empty:
                self._introduce(claimed, before)
            else:
                self._adopt(before)
        except OSError:
            self.close()
            raise

    def append(self, line: bytes) -> None:
        super().append(line)
        self._lacks_ids = False

    def with_ids(self, record: AnyRecord) -> AnyRecord:
        """The record as it is to be written: the first one of a log carries the ids.

        A record that may not be changed, or that stands in every kind of log, gets a `part` record before it that
        carries them.
        """
        if not self._lacks_ids:
            return record
        if isinstance(record, Record) and _can_carry_ids(record):
            return replace(record, **self._head())
        self._append_part_record("verbatim", None)
        return record

    def _introduce(self, claimed: Claim, before: Ids) -> None:
        first = PartFile(self.file.folder, self.file.name)
        log = before.log or (ids_of(first).log if self.file != first else None) or self._clock.uuid7()
        self.ids = Ids(log, self._clock.uuid7())
        if self.file == first:
            self._lacks_ids = True
            return
        reason = claimed.reason or "owned"  # no reason: the creator of the part died before it wrote one
        self._append_part_record(reason, before.part or self._previous(reason))

    def _previous(self, reason: PartReason) -> str | None:
        """The part whose end this one begins at; `None` if somebody else is still writing to that."""
        if reason in ("owned", "no_locks", "linked"):
            return None
        return ids_of(PartFile(self.file.folder, self.file.name, self.file.number - 1)).part

    def _adopt(self, before: Ids) -> None:
        ids = ids_of(self.file)
        self.ids = Ids(ids.log or before.log or self._clock.uuid7(), ids.part or self._clock.uuid7())
        if torn := self.end_torn_line():
            self.append(records.encode(Recovered(ts=self._clock.now(), torn_bytes=torn)))
        self._lacks_ids = ids.log is None  # a crash took its head: the next record has it again

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
        log, part = self.ids.log or "", self.ids.part or ""
        machine, mac = origin_of_new_part(log, part)
        return _Head(
            log=log,
            part=part,
            machine=machine,
            writer=Writer(pid=os.getpid(), started=self._started, version=__version__),
            mac=mac,
        )


def _can_carry_ids(record: Record) -> bool:
    line = records.encode(record)
    return keeps_its_type(record, line) and records.kind_of(line) is not None
