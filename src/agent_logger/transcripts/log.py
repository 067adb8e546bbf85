"""A transcript as a log: our header, then lines from outside, word for word.

`part`, `gap`, `recovered` and `large` records stand between them as in every log.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agent_logger.clock import CLOCK, Clock
from agent_logger.errors import SourceError
from agent_logger.files.line_files import read_at
from agent_logger.files.parts import PartFile, parts_in, parts_of
from agent_logger.journal.bodies import SPILL_BYTES
from agent_logger.journal.journal import PART_BYTES, Journal
from agent_logger.logs.reader import read_header, read_messages
from agent_logger.logs.transcript.lines import Message, message_of, record_of
from agent_logger.model import records
from agent_logger.model.records import SessionHeader, Unknown

TAIL_BYTES = 64 << 10  # of a part, to read the state of its session


class TranscriptLog:
    """A transcript that this process appends to. Its header is the first line, unless the disk failed at that
    moment."""

    def __init__(
        self, log: PartFile, header: SessionHeader, *, clock: Clock = CLOCK, part_bytes: int = PART_BYTES
    ) -> None:
        """Take the `header` for a log that has none yet. Nothing is read or written before the first message."""
        self.log = log
        self.journal = Journal(log.folder, log.name, "transcript", clock=clock, part_bytes=part_bytes)
        self._header: SessionHeader | None = header
        self._has_looked = False

    def append(self, message: Message) -> bool:
        """Append a message. `True` once it is safe if this process ends; `False` if it is lost, and counted."""
        self.begin()
        return self.journal.append(record_of(message))

    def offer(self, messages: Sequence[Message]) -> bool:
        """Append messages, for a caller that offers again those that are refused: all of them, or none if they are not
        many."""
        self.begin()
        lines = [record_of(message) for message in messages]
        if sum(len(records.encode(record)) for record in lines) <= SPILL_BYTES:
            return self.journal.offer(*lines)
        return all(self.journal.offer(record) for record in lines)

    def begin(self) -> None:
        """Write the header if the log has none, as the first message does."""
        if not self._has_looked:
            with suppress(OSError, SourceError):  # the next message checks again
                self._header = None if read_header(self.log) else self._header
                self._has_looked = True
        if self._header and self._has_looked and self.journal.offer(self._header):
            self._header = None


def latest_in(log: PartFile) -> list[Message]:
    """The last messages of a transcript, enough to know its state; all messages of a short one. Raises `OSError`."""
    paths = [part.existing_path() for part in parts_of(log.folder, log.name)]
    newest = max(paths, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None or newest.suffix == ".zst":
        return read_messages(log)
    size = newest.stat().st_size
    lines = read_at(newest, max(0, size - TAIL_BYTES), TAIL_BYTES).split(b"\n")[1:-1]  # whole ones
    latest = [message for line in lines if (message := message_of(Unknown(line)))]
    return latest if any("uuid" in message for message in latest) else read_messages(log)


def is_there(log: PartFile) -> bool:
    """Whether there is such a log. A link, or something that is not a file, does not count."""
    return any(path.is_file() and not path.is_symlink() for path in (log.path, log.sealed_path))


def logs_in(folder: Path) -> dict[PartFile, list[PartFile]]:
    """The logs of a folder: the first part of each, with all its parts. Empty if the folder is a link, which could lead
    anywhere."""
    logs: dict[PartFile, list[PartFile]] = {}
    for part in [] if folder.is_symlink() else parts_in(folder):
        if is_there(part):
            logs.setdefault(PartFile(folder, part.name), []).append(part)
    return logs


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a log changes: the names, sizes and inode change times of its files; no program can set the
    latter."""

    text: str
    modified_ms: int  # of the epoch

    @classmethod
    def of(cls, parts: Iterable[PartFile]) -> Self:
        """The stamp of a log's parts. Raises `OSError`."""
        paths = [part.existing_path() for part in parts]
        files = [(path.name, path.stat()) for path in paths]
        text = " ".join(f"{name}:{stat.st_size}:{stat.st_ctime_ns}:{stat.st_ino}" for name, stat in files)
        return cls(text, max(stat.st_mtime_ns for _, stat in files) // 1_000_000)


def folders_in(projects: Path) -> Iterator[Path]:
    """The folders of the projects, without links."""
    try:
        paths = sorted(projects.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (path for path in paths if path.is_dir() and not path.is_symlink() and path.name[0] != ".")
