"""How many damaged places a file has, as `verify` counts them. Of a file that has grown, only what is new is read.

A line that does not pass the quick check is checked as `verify` does it.
"""

import os
from pathlib import Path
from zlib import crc32

import msgspec

from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.journal import bodies
from agent_logger.logs.verify import FileCheck, verify_file
from agent_logger.model import records
from agent_logger.model.records import Gap, Kind, Recovered, Unknown
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage, JsonEntry, is_utf8
from agent_logger.protocols.lines import Line, LineSplitter

TAIL_BYTES = 64
MOST_DIGITS = 4300  # digits of a number that Python reads
_AS_DIGITS = bytes(ord("0") if chr(byte) in "0123456789" else ord(" ") for byte in range(256))
_skim = msgspec.json.Decoder(msgspec.Raw).decode  # checks everything without building objects


class DamageCount(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted, and where to continue."""

    stamp: str  # inode, size and time
    places: int
    offset: int = 0  # after the last whole line
    line: int = 1  # the number of the next one
    kind: Kind | None = None  # of the log, once a line has said so
    last: int = 0  # of the log, once a line has named it
    # A checksum of the last bytes before the offset, because another file may have the inode by now.
    tail: int = 0


def count_damage(path: Path, before: DamageCount | None = None) -> DamageCount:
    """Count the damaged places. Raises `SourceError` for anything but a regular file, and `OSError`."""
    if path.suffix == foreign.SEALED:
        stamp = _stamp(os.stat(path))
        if before and before.stamp == stamp:
            return before
        return DamageCount(stamp=stamp, places=len(verify_file(path).damage))
    with foreign.opened(path) as fd:
        status = os.fstat(fd)
        if before and before.stamp == _stamp(status):
            return before
        if not (before and _has_only_grown(before, status) and before.tail == _tail(fd, before.offset)):
            before = None
        counter = _Counter(path, before)
        os.lseek(fd, counter.offset, os.SEEK_SET)
        while chunk := os.read(fd, foreign.READ_BYTES):
            foreign.work.bytes += len(chunk)
            counter.feed(chunk)
        return counter.count(_stamp(status), _tail(fd, counter.offset))


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def _has_only_grown(before: DamageCount, status: os.stat_result) -> bool:
    inode, size, _ = map(int, before.stamp.split(":"))
    return inode == status.st_ino and size < status.st_size


def _has_long_number(data: bytes) -> bool:
    """Whether there is a long number, or a text that looks like one."""
    return len(data) > MOST_DIGITS and b"0" * MOST_DIGITS in data.translate(_AS_DIGITS)


def _tail(fd: int, offset: int) -> int:
    start = max(0, offset - TAIL_BYTES)
    return crc32(os.pread(fd, offset - start, start))


class _Counter(FileCheck):
    def __init__(self, path: Path, before: DamageCount | None) -> None:
        super().__init__(path)
        before = before or DamageCount(stamp="", places=0)
        self._places, self._kind, self.offset = before.places, before.kind, before.offset
        self._splitter = LineSplitter(number=before.line, offset=self.offset)
        if before.last:
            self._damage = [Damage(before.last, 0, 0, "")]

    def feed(self, chunk: bytes) -> None:
        for line in self._splitter.feed(chunk):
            self.offset = line.offset + line.length + 1
            if not self._is_good(line):
                for item in jsonl.decode(line):
                    self.see(item)

    def count(self, stamp: str, tail: int) -> DamageCount:
        return DamageCount(
            stamp=stamp,
            places=self._places,
            offset=self.offset,
            line=self._splitter.number,
            kind=self._kind,
            last=self.last_damaged,
            tail=tail,
        )

    def bad(self, damage: Damage) -> None:
        self._places += 1
        self._damage = [damage]

    def _account_for(self, entry: JsonEntry) -> None:
        before = len(self._damage)
        super()._account_for(entry)
        self._places -= before - len(self._damage)

    def _is_good(self, line: Line) -> bool:
        """Whether a line is good. `False` also if the quick check cannot say."""
        data = line.data
        if not data or data[0] != ord("{") or (b'"v"' in data and self._kind is None) or not is_utf8(data):
            return False
        try:
            if self._kind is None:
                _skim(data)
                return not _has_long_number(data) and records.kind_of(data) is None
            if b".bodies/" in data:
                record = bodies.decode(data, self._kind, self._path.parent)
            else:
                record = records.decode(data, self._kind)
        except (ValueError, RecursionError, SourceError, OSError):
            return False
        return not isinstance(record, Gap | Recovered | Unknown)
