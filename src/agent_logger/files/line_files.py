"""Reading a file of lines, plain or sealed, ours or another program's.

A plain file that is gone may have been sealed since its path was determined; then the sealed one is read.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.foreign import SEALED
from agent_logger.files.parts import PartFile, open_regular
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage, JsonEntry, Torn
from agent_logger.protocols.lines import Line, LineSplitter

if TYPE_CHECKING:
    from agent_logger.files.sealed import SealedFile

READ_BYTES = 1 << 20


def entries(path: Path, *, in_pieces: bool = False) -> Iterator[JsonEntry | Damage | Torn]:
    """Everything in a file, in order. Memory is bounded by the longest line that is parsed.

    Offsets are those of the plain text. Raises `SourceError` for what is no regular file, and `OSError`.
    """
    if path.suffix != SEALED:
        try:
            yield from _plain_entries(path)
            return
        except FileNotFoundError as error:
            path = _sealed_meanwhile(path, error)
    yield from _sealed_entries(path, in_pieces)


def part_entries(part: PartFile) -> Iterator[JsonEntry | Damage | Torn]:
    """Everything in a part, plain or sealed."""
    return entries(part.existing_path())


def first_entries(part: PartFile) -> Iterator[JsonEntry | Damage | Torn]:
    """Everything in a part, for readers of its beginning: of a sealed part only as much is unpacked as is read. What
    precedes the damage in a damaged frame is there, too, and may be damaged itself."""
    return entries(part.existing_path(), in_pieces=True)


def _sealed_meanwhile(path: Path, error: FileNotFoundError) -> Path:
    """Return the sealed form of a file that is gone; raise the error if there is none."""
    sealed = path.with_name(path.name + SEALED)
    if not sealed.exists():
        raise error
    return sealed


def raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file as they are, without their newlines; last what follows the last newline.

    Raises `SourceError` for what has no lines, and `OSError`.
    """
    splitter = LineSplitter()
    for chunk in _chunks(path):
        yield from (line.data if line.data is not None else _too_long(line) for line in splitter.feed(chunk))
    if torn := splitter.torn():
        yield torn.data if torn.data is not None else _too_long(torn)


def whole_lines(part: PartFile) -> Iterator[bytes]:
    """The lines of a part of a log that end with a newline, without it: what follows is still being written, or was cut
    by a crash."""
    splitter = LineSplitter()
    for chunk in _chunks(part.existing_path()):
        yield from (line.data for line in splitter.feed(chunk) if line.data is not None)


def _chunks(path: Path) -> Iterator[bytes]:
    if path.suffix != SEALED:
        try:
            yield from _plain_chunks(path)
            return
        except FileNotFoundError as error:
            path = _sealed_meanwhile(path, error)
    with _sealed(path) as sealed:
        yield from (sealed.read_frame(frame) for frame in sealed.frames)


def _plain_chunks(path: Path) -> Iterator[bytes]:
    with foreign.opened(path) as fd:
        while chunk := os.read(fd, READ_BYTES):
            if chunk.startswith(b"SQLite format 3"):
                raise SourceError(f"{path}: a database, not a file of lines")
            yield chunk


def _too_long(line: Line) -> bytes:
    return b"(a line of %d bytes)" % line.length


def read_at(path: Path, offset: int, length: int) -> bytes:
    """A piece of the plain text of a file; shorter where the file ends."""
    if path.suffix != SEALED:
        try:
            with path.open("rb") as plain:
                plain.seek(offset)
                return plain.read(length)
        except FileNotFoundError as error:
            path = _sealed_meanwhile(path, error)
    with _sealed(path) as sealed:
        return sealed.read(offset, length)


def plain_size(path: Path) -> int:
    """How long the plain text of a file is; 0 if it is gone. Raises `SourceError` if it is damaged."""
    path = foreign.existing(path) or path
    if path.suffix != SEALED:
        return platform.size_of(path)
    with _sealed(path) as sealed:
        return sealed.length


def _sealed(path: Path) -> "SealedFile":
    from agent_logger.files.sealed import SealedFile  # every writer imports this module, and few read sealed files

    return SealedFile(path)


def _plain_entries(path: Path) -> Iterator[JsonEntry | Damage | Torn]:
    with open_regular(path) as file:
        foreign.work.files += 1
        splitter = LineSplitter()
        while chunk := os.read(file.fileno(), READ_BYTES):
            foreign.work.bytes += len(chunk)
            yield from _decoded(splitter, chunk)
        yield from _tail(splitter)


def _sealed_entries(path: Path, in_pieces: bool) -> Iterator[JsonEntry | Damage | Torn]:
    with _sealed(path) as sealed:
        foreign.work.files += 1
        splitter = LineSplitter()
        for frame in sealed.frames:
            try:
                for text in sealed.pieces(frame) if in_pieces else (sealed.read_frame(frame),):
                    foreign.work.bytes += len(text)
                    yield from _decoded(splitter, text)
            except SourceError:
                yield from _tail(splitter)
                yield Damage(splitter.number, frame.offset, frame.length, "a sealed frame is damaged")
                # Frames end with a line, so the next frame begins with one; how many lines were lost is unknown.
                splitter = LineSplitter(number=splitter.number + 1, offset=frame.offset + frame.length)
        yield from _tail(splitter)
        if sealed.cut:
            yield Damage(splitter.number, sealed.length, 0, "the end of the sealed file is missing")


def _decoded(splitter: LineSplitter, chunk: bytes) -> Iterator[JsonEntry | Damage]:
    for line in splitter.feed(chunk):
        yield from jsonl.decode(line)


def _tail(splitter: LineSplitter) -> Iterator[Torn]:
    if torn := splitter.torn():
        yield Torn(torn.number, torn.offset, torn.length)
