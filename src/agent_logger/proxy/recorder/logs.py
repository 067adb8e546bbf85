"""The logs that the recorder appends to. A record is written to a log exactly once, also if the recorder crashes.

Short records wait in memory until the end of a batch, and are written together. Before a log is first appended to after
a checkpoint, the path and the size of its part are written to `touched.jsonl`, which is synced.

A recorder that starts after a crash reads the spool again, from the checkpoint on. The tails of the parts in
`touched.jsonl` have the records that are written already. This file may be lost; so the ends of all parts that were
written to recently are read, too, back to the records that the checkpoint covers. Every record names an entry of the
spool, in its field `frame`.
"""

import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.files.line_files import plain_size, read_at
from agent_logger.files.parts import PartFile, part_of, parts_in, parts_of
from agent_logger.journal.journal import Journal
from agent_logger.model.records import Record, decode
from agent_logger.protocols.lines import LineSplitter
from agent_logger.proxy.recorder.checkpoint import UncertainRecords

MOST_JOURNALS = 512
READ_BYTES = 4 << 20
LAST_ENTRY = 1 << 62
FIRST_STEP_BYTES = 64 << 10  # a part is read from its end towards its beginning, in growing steps
SHORT_BYTES = 32 << 10  # a record up to this size is not written alone
WAITING_BYTES = 1 << 20

T = TypeVar("T")
Insist = Callable[[Callable[[], bool]], None]  # repeats the call until it returns true; raises to give up


class LogName(NamedTuple):
    """A log by its folder within the log folder (`""`: that itself) and its name."""

    folder: str
    name: str


Learn = Callable[[LogName, Record], None]


class Touched(msgspec.Struct, frozen=True):
    part: str  # the path of the part within the log folder
    size: int
    checkpoint: int  # the number of the last checkpoint before this


class TailRecord(msgspec.Struct):
    """The fields that matter of a record that was written after the checkpoint."""

    type: str
    call: str | None = None
    seq: int | None = None
    frame: str | None = None
    reason: str | None = None
    file: str | None = None


@dataclass(slots=True)
class RecoveredCalls:
    """The records in the tails: `calls` by call and type."""

    calls: dict[tuple[str, str], tuple[LogName, int]] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)  # by relay: the last entry of the spool that a record names
    gaps: set[str] = field(default_factory=set)
    refusals: set[str] = field(default_factory=set)  # the entries that `refusals` records name
    rewrites: set[tuple[LogName, int]] = field(default_factory=set)
    last: dict[LogName, int] = field(default_factory=dict)  # highest number of a call

    def add_entry(self, entry: str) -> None:
        relay, _, number = entry.partition(":")
        if number.isdecimal():
            self.entries[relay] = max(int(number), self.entries.get(relay, 0))


class Logs:
    """The logs of a log folder. `insist` repeats a write that the disk refuses."""

    def __init__(self, log_dir: Path, spool: Path, insist: Insist) -> None:
        self.log_dir = log_dir
        self.written = 0
        self.full_parts = 0  # how many parts were full when the next one was begun
        self.checkpoint = 0  # the number of the checkpoint that was begun last
        self._insist = insist
        self._waiting: dict[LogName, list[Record]] = {}
        self._waiting_bytes = 0
        self._journals: OrderedDict[LogName, Journal] = OrderedDict()
        self._full_parts_of: dict[LogName, int] = {}  # those of each of these journals that were counted
        self._touched: set[LogName] = set()  # logs that were touched since that checkpoint
        self._written: set[LogName] = set()  # logs that were written to since that checkpoint
        self._begun: set[str] = set()  # names of logs that were begun since that checkpoint: some have no file yet
        self._path = spool / "touched.jsonl"
        self._lines: list[Touched] = []  # the content of the file
        self._file: platform.Held | None = None
        self._unsynced = False  # whether a part of it is not on the device
        self._name_is_synced = False

    def append(self, log: LogName, record: Record, size: int = 0) -> None:
        """Append a record. `size`: about how many bytes it has. A short record waits in memory until `flush`, and is
        written with others."""
        self._waiting.setdefault(log, []).append(record)
        self._waiting_bytes += size
        if size > SHORT_BYTES:
            self._write(log, last_alone=True)
        elif self._waiting_bytes > WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the records that wait. Their logs are noted as touched before any of them is written."""
        for log in self._waiting:
            self._touch(log)
        for log in list(self._waiting):
            self._write(log)
        self._waiting_bytes = 0

    def _write(self, log: LogName, *, last_alone: bool = False) -> None:
        records = self._waiting.pop(log)
        journal = self._touch(log)
        self._sync_touched()
        self._written.add(log)
        alone = [records.pop()] if last_alone else []
        if records:
            self._insist(lambda: journal.offer(*records))
        if alone:
            self._insist(lambda: journal.offer(*alone))
        self.written += len(records) + len(alone)
        self._count_full_parts(log, journal)

    def _count_full_parts(self, log: LogName, journal: Journal) -> None:
        self.full_parts += journal.full_parts - self._full_parts_of.get(log, 0)
        self._full_parts_of[log] = journal.full_parts

    def adopt(self, log: LogName, file: Path, name: str) -> str:
        journal = self._touch(log)
        self._sync_touched()
        self._written.add(log)
        return self._insist_on(lambda: journal.adopt(file, name))

    def begin_session(self, folder: str, ts: str) -> LogName:
        """Begin a log, with a name that no log has yet."""
        start = f"{ts[:10].replace('-', '')}-{ts[11:19].replace(':', '')}"
        return self._begin(LogName(folder, f"{start}-{secrets.token_hex(2)}") for _ in count())

    def begin_branch(self, folder: str, root: str, number: int) -> LogName:
        """Begin the log of a branch of a session: with this number, or a higher one."""
        return self._begin(LogName(folder, f"{root}_b{counter}") for counter in count(number))

    def _begin(self, names: Iterator[LogName]) -> LogName:
        log = next(candidate for candidate in names if not self._is_taken(candidate.name))
        self._begun.add(log.name)
        self._write_touched(log, PartFile(self.log_dir / log.folder, log.name).path, 0)
        return log

    def _is_taken(self, name: str) -> bool:
        """Whether any provider has a log of that name: a name stands for one session."""
        if name in self._begun:
            return True
        firsts = (PartFile(folder, name) for folder in inner_folders(self.log_dir))
        return any(first.path.exists() or first.is_sealed() for first in firsts)

    def failing(self) -> str | None:
        return next((journal.failing for journal in self._journals.values() if journal.failing), None)

    def close(self) -> None:
        for journal in self._journals.values():
            journal.close()

    # ------------------------------------------------------------ what was touched

    def begin_checkpoint(self) -> None:
        """Begin a checkpoint: what is touched from now on belongs to the next one.

        Logs that were written to since the last one will be written to again: they are touched together, for one sync.
        """
        self.checkpoint += 1
        written, self._written = self._written, set()
        self._touched.clear()
        self._begun.clear()
        places = [(log, self._journals[log].place()) for log in written if log in self._journals]
        touched = {log: self._touched_line(*place) for log, place in places if place}
        try:
            if touched:
                self._append_touched(touched.values())
        except OSError:  # each log will be touched alone
            return
        self._lines += touched.values()
        self._touched.update(touched)

    def end_checkpoint(self) -> None:
        """Forget what was touched before the checkpoint, which is on disk now. Raises `OSError`."""
        lines = [line for line in self._lines if line.checkpoint >= self.checkpoint]
        if self._file and lines == self._lines:
            return
        temporary = self._path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        held = platform.open_file(temporary, create=True, top=self.log_dir)
        held.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        if lines:
            platform.sync(held.fd)
        os.replace(temporary, self._path)
        held.path = self._path
        if self._file:
            self._file.close()
        self._lines, self._file = lines, held
        # Until the name is synced, a crash may bring the old file back, which names the same logs and more.
        self._unsynced = self._name_is_synced = False

    def _touch(self, log: LogName) -> Journal:
        journal = self._journals.get(log)
        if journal is None:
            folder = self.log_dir / log.folder
            journal = self._journals[log] = Journal(folder, log.name, "wire", top=self.log_dir)
            self._forget_oldest()
        self._journals.move_to_end(log)
        if log not in self._touched:
            self._write_touched(log, *self._insist_on(journal.place))
        return journal

    def _insist_on(self, work: Callable[[], T | None]) -> T:
        """Repeat work until it has a result."""
        results: list[T] = []

        def is_done() -> bool:
            with suppress(OSError):
                results.extend(result for result in [work()] if result is not None)
            return bool(results)

        self._insist(is_done)
        return results[0]

    def _write_touched(self, log: LogName, part: Path, size: int) -> None:
        line = self._touched_line(part, size)
        self._insist_on(lambda: self._append_touched([line]))
        self._lines.append(line)
        self._touched.add(log)

    def _touched_line(self, part: Path, size: int) -> Touched:
        return Touched(str(part.relative_to(self.log_dir)), size, self.checkpoint)

    def _append_touched(self, lines: Iterable[Touched]) -> bool:
        self._file = self._file or platform.open_or_create(self._path, self.log_dir)
        self._unsynced = True
        # There is a newline on both sides, so that a line which a full disk has cut does not damage the next one.
        self._file.write(b"\n" + b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        return True

    def _sync_touched(self) -> None:
        """Sync `touched.jsonl` before anything that it announces is appended: once for each log and checkpoint, and
        mostly for many logs at once."""
        if not self._unsynced:
            return

        def sync() -> bool:
            if self._file:
                platform.sync(self._file.fd)
            if not self._name_is_synced:
                platform.sync_folder(self._path.parent)
            return True

        self._insist_on(sync)
        self._unsynced, self._name_is_synced = False, True

    def _forget_oldest(self) -> None:
        beyond = max(0, len(self._journals) - MOST_JOURNALS)
        for log, journal in list(islice(self._journals.items(), beyond)):
            if not journal.pending and not journal.failing:
                journal.close()
                del self._journals[log]
                self._full_parts_of.pop(log, None)

    # ------------------------------------------------------------ after a crash

    def recover(self, learn: Learn, unsure: UncertainRecords | None = None) -> RecoveredCalls:
        """Read the tails; `learn` is called with each record."""
        self._lines = list(_touched_lines(self._path))
        self.checkpoint = max((line.checkpoint for line in self._lines), default=0)
        starts: dict[PartFile, int] = {}
        for line in self._lines:
            if part := part_of(self.log_dir / line.part):
                starts[part] = min(line.size, starts.get(part, line.size))
        begun = {part for part, size in starts.items() if size == 0}
        if unsure:
            for part in _changed(self.log_dir, unsure.since):
                with suppress(OSError, SourceError):  # damage; `verify` shows it
                    size = _covered(part, unsure.entries)
                    starts[part] = min(size, starts.get(part, size))
        recovered = RecoveredCalls()
        for start, size in starts.items():
            parts = [part for part in parts_of(start.folder, start.name) if part.number >= start.number]
            lines = [self._read_tail(part, size if part == start else 0, recovered) for part in parts]
            if start in begun and parts == [PartFile(start.folder, start.name)] and lines == [0]:
                start.path.unlink(missing_ok=True)  # the log has no call; another log will be begun
                continue
            for part in parts:
                self._learn_tail(part, size if part == start else 0, learn)
        return recovered

    def _learn_tail(self, part: PartFile, offset: int, learn: Learn) -> None:
        log = self._log_of(part)
        for line in _tail(part, offset):
            with suppress(ValueError, RecursionError):  # damage; `verify` shows it
                record = decode(line, "wire")
                if isinstance(record, Record):
                    learn(log, record)

    def _log_of(self, part: PartFile) -> LogName:
        return LogName("" if part.folder == self.log_dir else part.folder.name, part.name)

    def _read_tail(self, part: PartFile, offset: int, recovered: RecoveredCalls) -> int:
        """Read a tail. Returns how many records it has beside those that begin a session."""
        log, calls = self._log_of(part), 0
        for line in _tail(part, offset):
            record = _tail_record(line, part.folder)
            calls += record is None or record.type not in ("session_start", "fork", "rewrite", "recovered")
            if record and record.call and record.seq is not None:
                recovered.calls[record.call, record.type] = log, record.seq
                recovered.last[log] = max(record.seq, recovered.last.get(log, 0))
                recovered.add_entry(record.frame or "")
            elif record and record.type == "refusals" and record.frame:
                recovered.refusals.add(record.frame)
                recovered.add_entry(record.frame)
            elif record and record.type == "gap" and record.reason:
                recovered.gaps.add(record.reason)
            elif record and record.type == "rewrite" and record.seq is not None:
                recovered.rewrites.add((log, record.seq))
        return calls


def inner_folders(log_dir: Path) -> list[Path]:
    """The folders that may hold logs. Links are left out: nothing behind them is ours."""
    with os.scandir(log_dir) as inner:
        return [Path(entry.path) for entry in inner if entry.name[0] != "." and entry.is_dir(follow_symlinks=False)]


def _touched_lines(path: Path) -> Iterator[Touched]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=Touched)
        except ValueError:  # a crash cut the line: what it announces was not written
            continue


def _changed(log_dir: Path, since: float) -> Iterator[PartFile]:
    for folder in [log_dir, *inner_folders(log_dir)]:
        for part in parts_in(folder):
            if platform.modified_at(part.existing_path()) >= since:
                yield part


def _covered(part: PartFile, entries: Mapping[str, int]) -> int:
    """The offset up to which all records of a part come from entries before these. The part is read from its end."""
    path, step = part.existing_path(), FIRST_STEP_BYTES
    start = plain_size(path)
    while start > 0:
        end, start = start, max(0, start - step)
        step = min(2 * step, READ_BYTES)
        data = read_at(path, start, end - start)
        whole = data.find(b"\n") + 1 if start else 0  # the first bytes are the end of a line
        for line in data[whole:].split(b"\n")[:-1]:
            record = _tail_record(line, part.folder)
            relay, _, number = ((record and record.frame) or "").partition(":")
            if number.isdecimal():
                if int(number) < entries.get(relay, LAST_ENTRY):
                    return start + whole
                break  # the lines that follow are later
    return 0


def _tail(part: PartFile, offset: int) -> Iterator[bytes]:
    path = part.existing_path()
    if path == part.path and platform.size_of(path) < offset:
        offset = 0  # it is another file of that name
    splitter = LineSplitter()
    while data := read_at(path, offset, READ_BYTES):
        offset += len(data)
        for line in splitter.feed(data):
            if line.data is not None:
                yield line.data


def _tail_record(line: bytes, folder: Path) -> TailRecord | None:
    try:
        record = _decode(line)
        if record.type == "large" and record.file:
            record = _decode((folder / record.file).read_bytes())
    except (ValueError, OSError, SourceError):
        return None
    return record


_decode = msgspec.json.Decoder(TailRecord).decode


def last_seq(log_dir: Path, log: LogName) -> int:
    """The highest number of a call in the newest part that has one."""
    for part in reversed(parts_of(log_dir / log.folder, log.name)):
        numbers = [record.seq for line in _tail(part, 0) if (record := _tail_record(line, part.folder)) and record.seq]
        if numbers:
            return max(numbers)
    return 0
