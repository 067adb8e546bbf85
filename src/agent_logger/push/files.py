"""The files of sessions as objects: what is in them, without keys."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agent_logger.archive.layout import FOLDER_FILE, MOST_PATH_BYTES, archive_path, folder_of
from agent_logger.archive.witness_files import WitnessFile, files_of_log, witness_files
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sealed import SealedFile
from agent_logger.files.sources import Source
from agent_logger.home.homes import LOG_FOLDERS
from agent_logger.home.small_files import read_small_file
from agent_logger.protocols.json_text import decode
from agent_logger.push.protocol import Form, object_id
from agent_logger.push.sender import Content, RedactedPiece, RewrittenError
from agent_logger.views.hidden_files import redacted_chunks, redacted_lines, redaction_rules

PIECE_BYTES = 1 << 20  # of a file that are read and sent at once, at least a line
PREFIX_BYTES = 4096  # by which a file is known
TAIL_BYTES = 512
IN_MEMORY_BYTES = 8 << 20
ROWS = "rows"  # the folder of what is from databases


class Place(NamedTuple):
    """Where a file is in the home that the hub has of this machine."""

    parts: tuple[str, ...]
    origin: str = ""


def place_of(home: Path, file: WitnessFile) -> Place:
    """Return the place of a file, as it would be in this home if it were archived."""
    kind, *rest = file.parts
    if kind == "hooks":
        return Place(file.parts)
    if kind == "logs":
        return Place(_inside(home, file.path) or ("logs", *rest))
    if file.path is None:
        return Place(("archive", rest[0], ROWS, rest[-1]), ROWS)
    if inside := _archived(home, file.path):
        return inside
    agent, root = rest[0], file.root or file.path.parent
    folder = folder_of(home, agent, root)
    return Place(("archive", agent, folder.copies.name, *file.path.relative_to(root).parts), str(root))


def _inside(home: Path, path: Path | None) -> tuple[str, ...] | None:
    if path is None or not path.is_relative_to(home):
        return None
    parts = path.relative_to(home).parts
    return parts if parts[0] in LOG_FOLDERS else None


def _archived(home: Path, path: Path) -> Place | None:
    """Return the place of a file that is in our archive."""
    archive = archive_path(home)
    if not path.is_relative_to(archive):
        return None
    agent, folder, *rest = path.relative_to(archive).parts
    origin = os.fsdecode(read_small_file(archive / agent / folder / FOLDER_FILE, MOST_PATH_BYTES))
    return Place(("archive", agent, folder, *rest), origin) if rest and origin else None


def files_of(source: Source) -> Iterator[WitnessFile]:
    """Yield the files that a source alone has. Raises `SourceError`, `OSError`."""
    if source.is_log:
        path = Path(source.path)
        files: Iterable[WitnessFile] = files_of_log(path.parent, source.name)
    else:
        files = witness_files(source)
    yield from (file for file in files if not file.parts[-1].endswith(".live"))


class OutgoingFile:
    """A file of a session, or the rows of one in a database."""

    level = "contents"

    def __init__(self, key: bytes, home: Path, file: WitnessFile, stamp: str) -> None:
        self._file = file
        self.place, self.origin = place_of(home, file)
        self.id = object_id(key, ("file", *self.place))
        self.form: Form = "lines" if file.is_of_lines and file.path else "whole"
        self.rules = redaction_rules()
        there = foreign.existing(file.path) if file.path else None
        self.modified = os.lstat(there).st_mtime if there else float(file.modified)
        self.version = "" if self.form == "lines" else _version(file, stamp)

    def piece(self, start: int, tail: str, end: int | None) -> RedactedPiece | None:
        assert self._file.path
        with _opened(self._file.path) as (read, size):
            if size < start or size < (end or 0) or (start and _tail(read, start) != tail):
                raise RewrittenError
            stop = _end_of_lines(read, start, size) if end is None else end
            if stop == start:
                return None
            data = read(start, stop - start)
            if len(data) != stop - start:
                raise RewrittenError
            return RedactedPiece(redacted_lines(data), stop, _tail(read, stop))

    def content(self) -> Content:
        return SpooledContent(redacted_chunks(self._file.chunks(), is_of_lines=self._file.is_of_lines))


def _version(file: WitnessFile, stamp: str) -> str:
    there = foreign.existing(file.path) if file.path else None
    if there is None:
        return stamp
    status = os.lstat(there)
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


Read = Callable[[int, int], bytes]


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Read, int]]:
    """Yield a function that reads the plain text, and its length. A file that is gone has none."""
    there = foreign.existing(path)
    if there is None:
        raise SourceError(f"{path}: the file is gone")
    if there != path:
        with SealedFile(there) as sealed:
            yield sealed.read, sealed.length
        return
    with foreign.opened(path) as fd:
        yield (lambda offset, length: os.pread(fd, length, offset)), os.fstat(fd).st_size


def _tail(read: Read, at: int) -> str:
    """Return what a file is recognised by that was read up to here."""
    digest = hashlib.sha256(read(0, min(at, PREFIX_BYTES)))
    begin = max(0, at - TAIL_BYTES)
    digest.update(read(begin, at - begin))
    return digest.hexdigest()[:32]


def _end_of_lines(read: Read, start: int, size: int) -> int:
    """Return where the next lines end: after `PIECE_BYTES`, or one line. A last line without a newline is one if it is
    JSON; else it is being written."""
    length = PIECE_BYTES
    while True:
        data = read(start, min(length, size - start))
        if newline := data.rfind(b"\n") + 1:
            return start + newline
        if start + len(data) >= size:
            return size if _is_json(data) else start
        length *= 2


def _is_json(data: bytes) -> bool:
    try:
        return data.lstrip().startswith(b"{") and decode(data) is not None
    except (ValueError, RecursionError):
        return False


class SpooledContent:
    """What does not grow, put aside in memory, or in a file that nobody else sees."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        # `close` closes it.
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
            self._file.write(chunk)
        self.length, self.sha256 = self._file.tell(), digest.hexdigest()

    def read(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)

    def close(self) -> None:
        self._file.close()
