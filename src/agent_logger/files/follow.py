"""Reading a file further while somebody else is writing it.

A position says how far a file was read, and how to recognise the file: by its inode, and by hashes of its beginning and
of the end of what was read. What was read is skipped only if all of these are unchanged; else the file is another one,
or was rewritten, and is read from its beginning.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage, JsonEntry
from agent_logger.protocols.lines import LineSplitter

PREFIX_BYTES = 4096  # that a file is known by; lines of agents begin with ids and times
TAIL_BYTES = 512  # before the place where reading continues
ONCE_BYTES = 64 << 20  # that one `read` takes in, so that a long file does not fill the memory


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far a file was read, in a form that can be stored."""

    inode: int = 0
    offset: int = 0  # behind the newline of the last line that was read
    line: int = 1  # the number of the next
    size: int = 0  # of the file, when it was read
    prefix: str = ""  # SHA-256 of its beginning
    prefix_bytes: int = 0  # that the hash is of
    tail: str = ""  # SHA-256 of what stands before `offset`


class Follower:
    """A follower of one file, whatever happens to the file: it grows, is cut, replaced, renamed, deleted.

    `restarted` says, after a `read`, that the lines it returned begin at the start of the file, and that the lines
    returned before do not count.
    """

    def __init__(self, path: Path, position: Position | None = None) -> None:
        self.path = path
        self.position = position or Position()
        self.restarted = False
        self.gone = False  # the file was not there, or is none, at the last `read`
        self.behind = False  # there was more than one `read` takes in

    def read(self) -> list[JsonEntry | Damage]:
        """Return the lines that were completed since the last call. A line without its newline is still being written.

        Returns nothing while the file is gone or is no regular file; a file that comes back is recognised by its
        beginning.
        """
        self.restarted = self.behind = self.gone = False
        try:
            with foreign.opened(self.path) as fd:
                return self._read(fd)
        except (SourceError, OSError):
            self.gone = True
            return []

    def _read(self, fd: int) -> list[JsonEntry | Damage]:
        stat = os.fstat(fd)
        if self.position.inode and not _is_same(fd, self.position):
            self.position, self.restarted = Position(), True
        position = self.position
        splitter = LineSplitter(number=position.line, offset=position.offset)
        entries: list[JsonEntry | Damage] = []
        at, most = position.offset, position.offset + ONCE_BYTES
        end, number = position.offset, position.line
        while chunk := os.pread(fd, foreign.READ_BYTES, at):
            at += len(chunk)
            lines = splitter.feed(chunk)
            for line in lines:
                entries.extend(jsonl.decode(line))
            if lines:
                end, number = lines[-1].offset + lines[-1].length + 1, lines[-1].number + 1
            if at >= most and end > position.offset:
                self.behind = True
                break
        self.position = _advanced(self.position, fd, stat, end, number)
        return entries


class Rest:
    """The lines of a file after a position, as raw bytes: for a caller that wants speed and reads each line once.

    `restarted` says at once that the file is not the one the position belongs to, and is read from its beginning. When
    `chunks` is exhausted, `position` is where the next line will begin. Raises `SourceError`, `OSError`.
    """

    def __init__(self, path: Path, position: Position | None = None) -> None:
        self.position = position or Position()
        self._path = path
        self.restarted = False
        if self.position.inode:
            with foreign.opened(path) as fd:
                self.restarted = not _is_same(fd, self.position)
        if self.restarted:
            self.position = Position()

    def chunks(self) -> Iterator[bytes]:
        with foreign.opened(self._path) as fd:
            at = end = self.position.offset
            os.lseek(fd, at, os.SEEK_SET)
            for chunk in foreign.pieces(fd):
                if newline := chunk.rfind(b"\n") + 1:
                    end = at + newline
                at += len(chunk)
                yield chunk
            self.position = _advanced(self.position, fd, os.fstat(fd), end)


def position_at(path: Path, offset: int) -> Position:
    """The position of a reader that has read the file up to the line that begins at `offset`. Raises `SourceError`,
    `OSError`."""
    with foreign.opened(path) as fd:
        return _advanced(Position(), fd, os.fstat(fd), offset)


def _is_same(fd: int, position: Position) -> bool:
    """Whether the position is of this file. A renamed file keeps its inode; a copy put in its place has the same
    beginning, but is another file."""
    stat = os.fstat(fd)
    if stat.st_ino != position.inode or stat.st_size < position.offset:
        return False
    return _hash(fd, 0, position.prefix_bytes) == position.prefix and _tail(fd, position.offset) == position.tail


def _advanced(position: Position, fd: int, stat: os.stat_result, offset: int, line: int = 1) -> Position:
    """The position moved on to `offset`. The hash is of lines that were read, for what is being written may still
    change."""
    length = min(offset, PREFIX_BYTES)
    same = length == position.prefix_bytes and position.prefix
    unmoved = offset == position.offset and position.tail
    return Position(
        inode=stat.st_ino,
        offset=offset,
        line=line,
        size=stat.st_size,
        prefix=position.prefix if same else _hash(fd, 0, length),
        prefix_bytes=length,
        tail=position.tail if unmoved else _tail(fd, offset),
    )


def _tail(fd: int, offset: int) -> str:
    start = max(0, offset - TAIL_BYTES)
    return _hash(fd, start, offset - start)


def _hash(fd: int, start: int, length: int) -> str:
    return hashlib.sha256(os.pread(fd, length, start)).hexdigest()
