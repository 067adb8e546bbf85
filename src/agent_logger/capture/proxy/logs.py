"""The logs that the recorder appends to, and how a record gets into one of them once, whatever crashed.

Before a log is first appended to after a checkpoint, its part and size go into `touched.jsonl`. Whoever starts after a
crash reads the spool from the checkpoint on again, and knows from these tails which records are
there already.
"""

import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger.capture.proxy.frames import RequestHead
from agent_logger.errors import SourceError
from agent_logger.records import Record
from agent_logger.store import platform
from agent_logger.store.clock import timestamp
from agent_logger.store.files import read_at
from agent_logger.store.journal import Journal
from agent_logger.store.layout import safe_name
from agent_logger.store.parts import PartFile, part_of, parts_in, parts_of
from agent_logger.wire.lines import LineSplitter

MOST_JOURNALS = 512
MOST_SESSIONS = 4096  # connections whose session is known
READ_BYTES = 4 << 20
SHORT_BYTES = 32 << 10  # a record up to this is not written alone
WAITING_BYTES = 1 << 20

Insist = Callable[[Callable[[], bool]], None]  # again and again until it is true; raises to give up


class LogName(NamedTuple):
    """A log by its folder within the log folder (`""`: that itself) and its name."""

    folder: str
    name: str


class Touched(msgspec.Struct, frozen=True):
    part: str  # its path within the log folder
    size: int
    checkpoint: int  # the number of the one it was written after


class Seen(msgspec.Struct):
    """What there is of a record that was written after the checkpoint."""

    type: str
    call: str | None = None
    seq: int | None = None
    frame: str | None = None
    reason: str | None = None
    file: str | None = None


@dataclass(slots=True)
class Found:
    """The records in the tails. Those of a call by (call, type)."""

    calls: dict[tuple[str, str], tuple[LogName, int]] = field(default_factory=dict)
    frames: dict[str, int] = field(default_factory=dict)  # by relay: the last one that was used
    gaps: set[str] = field(default_factory=set)
    last: dict[LogName, int] = field(default_factory=dict)  # highest number of a call


class Logs:
    """`insist` is asked to do what the disk may refuse."""

    def __init__(self, log_dir: Path, spool: Path, insist: Insist) -> None:
        self.log_dir = log_dir
        self.written = 0
        self.checkpoint = 0  # number of the one that was begun last
        self._insist = insist
        self._waiting: dict[LogName, list[Record]] = {}
        self._waiting_bytes = 0
        self._journals: OrderedDict[LogName, Journal] = OrderedDict()
        self._touched: set[LogName] = set()  # since that checkpoint
        self._path = spool / "touched.jsonl"
        self._lines: list[Touched] = []  # as they stand in the file
        self._file: platform.Held | None = None

    def append(self, log: LogName, record: Record, size: int = 0) -> None:
        """`size`: about how many bytes it has. Short ones wait for `flush`, and are written with others."""
        waiting = self._waiting.get(log)
        if waiting is None:
            waiting = self._waiting[log] = []
        waiting.append(record)
        self._waiting_bytes += size
        if size > SHORT_BYTES:
            self._write(log, last_alone=True)
        elif self._waiting_bytes > WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits; none of it is written before."""
        for log in list(self._waiting):
            self._write(log)
        self._waiting_bytes = 0

    def _write(self, log: LogName, *, last_alone: bool = False) -> None:
        records = self._waiting.pop(log)
        journal = self._touch(log)
        alone = [records.pop()] if last_alone else []
        if records:
            self._insist(lambda: journal.offer(*records))
        if alone:
            self._insist(lambda: journal.offer(*alone))
        self.written += len(records) + len(alone)

    def adopt(self, log: LogName, file: Path, name: str) -> str:
        journal = self._touch(log)
        named: list[str] = []

        def move() -> bool:
            named.extend(filter(None, [journal.adopt(file, name)]))
            return bool(named)

        self._insist(move)
        return named[0]

    def begin_session(self, provider: str, wall_ns: int) -> LogName:
        """A name that no log has yet."""
        stamp = timestamp(wall_ns / 1e9)
        start = f"{stamp[:10].replace('-', '')}-{stamp[11:19].replace(':', '')}"
        while True:
            log = LogName(provider, f"{start}-{secrets.token_hex(2)}")
            if not parts_of(self.log_dir / log.folder, log.name):
                break
        self._write_touched(log, PartFile(self.log_dir / log.folder, log.name).path, 0)
        return log

    def failing(self) -> str | None:
        return next((journal.failing for journal in self._journals.values() if journal.failing), None)

    def unsynced(self) -> int:
        return sum(journal.pending for journal in self._journals.values())

    def close(self) -> None:
        for journal in self._journals.values():
            journal.close()

    # ------------------------------------------------------------ what was touched

    def begin_checkpoint(self) -> None:
        """What is touched from now on belongs to the next."""
        self.checkpoint += 1
        self._touched.clear()

    def end_checkpoint(self) -> None:
        """It is on disk: what was touched before it need not be known any more. Raises `OSError`."""
        kept = [line for line in self._lines if line.checkpoint >= self.checkpoint]
        temporary = self._path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        held = platform.open_file(temporary, create=True)
        held.write(b"".join(msgspec.json.encode(line) + b"\n" for line in kept))
        os.replace(temporary, self._path)
        held.path = self._path
        if self._file:
            self._file.close()
        self._lines, self._file = kept, held

    def _touch(self, log: LogName) -> Journal:
        journal = self._journals.get(log)
        if journal is None:
            journal = self._journals[log] = Journal(self.log_dir / log.folder, log.name, "wire")
            self._forget_oldest()
        self._journals.move_to_end(log)
        if log not in self._touched:
            places: list[tuple[Path, int]] = []

            def look() -> bool:
                places.extend(filter(None, [journal.place()]))
                return bool(places)

            self._insist(look)
            self._write_touched(log, *places[0])
        return journal

    def _write_touched(self, log: LogName, part: Path, size: int) -> None:
        line = Touched(str(part.relative_to(self.log_dir)), size, self.checkpoint)

        def write() -> bool:
            try:
                self._file = self._file or _open(self._path)
                self._file.write(msgspec.json.encode(line) + b"\n")
            except OSError:
                return False
            return True

        self._insist(write)
        self._lines.append(line)
        self._touched.add(log)

    def _forget_oldest(self) -> None:
        for log, journal in list(self._journals.items())[: max(0, len(self._journals) - MOST_JOURNALS)]:
            if not journal.pending and not journal.failing:
                journal.close()
                del self._journals[log]

    # ------------------------------------------------------------ after a crash

    def recover(self, *, changed_since: float | None = None) -> Found:
        """Read the tails. With a time, also all parts changed since: after a power cut what is on disk may be
        newer than what says so."""
        self._lines = list(_touched_lines(self._path))
        self.checkpoint = max((line.checkpoint for line in self._lines), default=0)
        starts: dict[PartFile, int] = {}
        for line in self._lines:
            if part := part_of(self.log_dir / line.part):
                starts[part] = min(line.size, starts.get(part, line.size))
        if changed_since is not None:
            starts |= dict.fromkeys(_changed(self.log_dir, changed_since), 0)
        found = Found()
        for start, size in starts.items():
            parts = [part for part in parts_of(start.folder, start.name) if part.number >= start.number]
            lines = [self._read_tail(part, size if part == start else 0, found) for part in parts]
            if size == 0 and parts == [PartFile(start.folder, start.name)] and lines == [0]:
                start.path.unlink(missing_ok=True)  # begun, and no call is in it: another will be begun
        return found

    def _read_tail(self, part: PartFile, offset: int, found: Found) -> int:
        """How many records there are beside the one that begins a session."""
        folder = "" if part.folder == self.log_dir else part.folder.name
        log, count = LogName(folder, part.name), 0
        for line in _tail(part, offset):
            seen = _seen(line, part.folder)
            count += seen is None or seen.type not in ("session_start", "recovered")
            if seen and seen.call and seen.seq is not None:
                found.calls[seen.call, seen.type] = log, seen.seq
                found.last[log] = max(seen.seq, found.last.get(log, 0))
                relay, _, number = (seen.frame or "").partition(":")
                if number.isdecimal():
                    found.frames[relay] = max(int(number), found.frames.get(relay, 0))
            elif seen and seen.type == "gap" and seen.reason:
                found.gaps.add(seen.reason)
        return count


def _open(path: Path) -> platform.Held:
    try:
        return platform.open_file(path)
    except FileNotFoundError:
        return platform.open_file(path, create=True)


def _touched_lines(path: Path) -> Iterator[Touched]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=Touched)
        except msgspec.MsgspecError:  # the crash cut it: what it announces was not written
            continue


def _changed(log_dir: Path, since: float) -> Iterator[PartFile]:
    folders = [log_dir, *(path for path in log_dir.iterdir() if path.is_dir() and path.name[0] != ".")]
    for folder in folders:
        for part in parts_in(folder):
            if part.path.exists() and part.path.stat().st_mtime >= since:
                yield part


def _tail(part: PartFile, offset: int) -> Iterator[bytes]:
    path = part.existing_path()
    if path == part.path and path.stat().st_size < offset:
        offset = 0  # another file of that name
    splitter = LineSplitter()
    while data := read_at(path, offset, READ_BYTES):
        offset += len(data)
        for line in splitter.feed(data):
            if line.data is not None:
                yield line.data


def _seen(line: bytes, folder: Path) -> Seen | None:
    try:
        seen = _decode(line)
        if seen.type == "large" and seen.file:
            seen = _decode((folder / seen.file).read_bytes())
    except (msgspec.MsgspecError, OSError, SourceError):
        return None
    return seen


_decode = msgspec.json.Decoder(Seen).decode


def last_seq(log_dir: Path, log: LogName) -> int:
    """The highest number of a call in the newest part that has one."""
    for part in reversed(parts_of(log_dir / log.folder, log.name)):
        numbers = [seen.seq for line in _tail(part, 0) if (seen := _seen(line, part.folder)) and seen.seq]
        if numbers:
            return max(numbers)
    return 0


# ---------------------------------------------------------------- which log


class Filing:
    """Which session a call belongs to, until tracking says it better: that of its connection.

    A connection has one from its first call to a model on.
    """

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self.sessions: OrderedDict[tuple[str, int], LogName] = OrderedDict()
        self.upstreams: dict[LogName, str] = {}
        self.numbers: dict[LogName, int] = {}  # of the last call

    def log_of(self, relay: str, head: RequestHead, *, wall_ns: int) -> tuple[LogName, bool]:
        """And whether it begins with this call."""
        connection = relay, head.connection
        if log := self.sessions.get(connection):
            self.sessions.move_to_end(connection)
            return log, False
        provider = safe_name(head.provider)
        if not is_tracked(head):
            return LogName(provider, "unattributed"), False
        log = self._logs.begin_session(provider, wall_ns)
        self.join(connection, log, head.upstream)
        return log, True

    def join(self, connection: tuple[str, int], log: LogName, upstream: str) -> None:
        self.sessions[connection] = log
        self.upstreams.setdefault(log, upstream)
        if len(self.sessions) > MOST_SESSIONS:
            _, gone = self.sessions.popitem(last=False)
            self.upstreams.pop(gone, None)
            self.numbers.pop(gone, None)

    def forget(self, relay: str) -> None:
        """It is gone: none of its connections will bring another call."""
        for connection in [key for key in self.sessions if key[0] == relay]:
            log = self.sessions.pop(connection)
            self.upstreams.pop(log, None)
            self.numbers.pop(log, None)

    def next_number(self, log: LogName) -> int:
        known = self.numbers.get(log)
        if known is None:
            known = last_seq(self._logs.log_dir, log)
        self.numbers[log] = known + 1
        return known + 1


_TRACKED = ("/v1/messages", "/chat/completions", "/responses", ":generateContent", ":streamGenerateContent")


def is_tracked(head: RequestHead) -> bool:
    path = head.path.partition(b"?")[0].decode("latin-1")
    return path.endswith(_TRACKED) and (head.websocket or head.head.startswith(b"POST "))
