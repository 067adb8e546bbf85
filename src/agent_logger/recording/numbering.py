"""The numbers of exchanges in a log that several loggers write, each to a part of its own."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from agent_logger.errors import AgentLoggerError
from agent_logger.files.line_files import raw_lines
from agent_logger.files.parts import PartFile
from agent_logger.journal.journal import Journal
from agent_logger.model.records import ExchangeRecord, LiveStart, tag


class OthersNumbers:
    """The highest number that another logger has given to an exchange of this log. Of a part that has grown, only the
    new lines are read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._read: dict[Path, int] = {}  # by part: up to which byte
        self._highest = 0

    def highest(self) -> int:
        first, own = PartFile(self._journal.folder, self._journal.name), self._journal.part
        newest = first.newest().number
        if newest > 1:  # else all of the log is ours
            self._highest = max([self._highest, *self._new_numbers(first, newest, own.number if own else 0)])
        return self._highest

    def _new_numbers(self, first: PartFile, newest: int, own: int) -> Iterator[int]:
        for number in range(1, newest + 1):
            if number != own:
                part = PartFile(first.folder, first.name, number)
                # The live file first: an exchange that ends meanwhile is then in the part.
                yield from _numbers(_lines_from(part.live_path, 0))
                yield from _numbers(self._new_lines(part))

    def _new_lines(self, part: PartFile) -> list[bytes]:
        path, offset = part.existing_path(), self._read.get(part.existing_path(), 0)
        lines = _lines_from(path, offset) if path == part.path else _sealed_lines(path) if not offset else []
        self._read[path] = offset + sum(len(line) + 1 for line in lines)
        return lines


def _lines_from(path: Path, offset: int) -> list[bytes]:
    """Return the whole lines of a file from an offset on; none if it has just been sealed or removed."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            file.seek(offset)
            return file.read().split(b"\n")[:-1]
    except OSError:
        return []


def _sealed_lines(path: Path) -> list[bytes]:
    try:
        return list(raw_lines(path))
    except (OSError, AgentLoggerError):
        return []


class _Head(msgspec.Struct):
    type: str = ""
    exchange: int = 0


_TYPES = {tag(ExchangeRecord), tag(LiveStart)}
_head = msgspec.json.Decoder(_Head).decode


def _numbers(lines: Iterable[bytes]) -> Iterator[int]:
    for line in lines:
        try:
            head = _head(line)
        except (ValueError, RecursionError):  # damaged
            continue
        if head.type in _TYPES:
            yield head.exchange
