"""Live files: what an exchange that is still in flight has so far, and what to do with orphans.

A live file's exchange is in the log when it has ended, and then the file goes away, but only after a
sync: until then a power cut could take the record and leave nothing. So a file may be there although
its exchange is in the log. The exchange's id shows that.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from agent_logger import platform
from agent_logger.clock import CLOCK
from agent_logger.errors import SourceError
from agent_logger.files.append import Appender
from agent_logger.files.line_files import entries, part_entries
from agent_logger.files.parts import PartFile, live_files_of, parts_of
from agent_logger.home.layout import safe_name
from agent_logger.journal.bodies import decode
from agent_logger.journal.live_exchanges import from_live
from agent_logger.model import records
from agent_logger.model.records import AnyRecord, ExchangeRecord, LiveMessage, LiveStart, Message, Unknown
from agent_logger.protocols.jsonl import JsonEntry


class LiveFile:
    """The exchange in flight of one journal. Its descriptor may be closed at any time and is opened again."""

    def __init__(self, part: PartFile) -> None:
        self._part = part
        self.path = part.live_path
        self._start: LiveStart | None = None
        self._start_is_written = False
        self._appender: Appender | None = None

    @property
    def in_flight(self) -> bool:
        return self._start is not None

    def begin(self, start: LiveStart) -> None:
        # An exchange that never ended keeps its file for the next owner.
        self.close()
        self.path = _free(self._part.live_path, start.id)
        self._start, self._start_is_written = start, False
        self._opened()

    def note(self, start: LiveStart) -> None:
        """Write further facts about the exchange in flight, or about the next one, which waits for its end."""
        if self._start and self._start.id == start.id:
            self._start = start
        self._opened().append(records.encode(start))

    def add(self, message: LiveMessage) -> None:
        self._opened().append(records.encode_line(message))

    def end(self) -> Path | None:
        """Returns the file to remove after the next sync, under a name that is not used again."""
        start, self._start = self._start, None
        self.close()
        return retire(self.path) if start else None

    def follow(self, part: PartFile) -> None:
        """Move to another part, which the journal writes to now: only the owner of a part has a live file there."""
        if part == self._part:
            return
        self.close()
        self._part, own = part, self.path
        if self._start:
            self.path = _free(part.live_path, self._start.id)
            with suppress(FileNotFoundError):  # another process took it for an orphan
                os.rename(own, self.path)

    def duplicate(self) -> platform.Held | None:
        return self._appender.duplicate() if self._appender else None

    def close(self) -> None:
        if self._appender:
            self._appender.close()
            self._appender = None

    def _opened(self) -> Appender:
        """The file, which begins with its exchange, however often it was closed or taken away meanwhile."""
        if self._appender is None:
            self._appender = self._open()
        if self._start and not self._start_is_written:
            self._appender.append(records.encode(self._start))
            self._start_is_written = True
        return self._appender

    def _open(self) -> Appender:
        try:
            return Appender(platform.open_file(self.path))
        except FileNotFoundError:
            self._start_is_written = False
            return Appender(platform.open_file(self.path, create=True))


def _free(path: Path, exchange_id: str) -> Path:
    """A path that is free. A file at `path` is an orphan, or about to be removed: not ours to write to."""
    return path.with_name(f"{path.name}.{safe_name(exchange_id)}") if path.exists() else path


def retire(path: Path) -> Path | None:
    """Make sure that nobody writes to a live file under its name any more. `None` if it is gone."""
    if not path.name.endswith(".live"):
        return path  # the file has a name of its own
    retired = path.with_name(f"{path.name}.{CLOCK.uuid7()}")
    try:
        os.rename(path, retired)
    except FileNotFoundError:
        return None
    return retired


def read_live(path: Path) -> list[ExchangeRecord]:
    """The exchanges of a live file. Nothing if it has just gone away: then they are in the log."""
    try:
        lines = [entry.raw for entry in entries(path) if isinstance(entry, JsonEntry)]
    except (FileNotFoundError, SourceError):
        return []
    return from_live(map(_decoded, lines))


def messages(path: Path, exchange_id: str | None) -> Iterator[Message]:
    """The messages of one exchange in a live file, one by one. Raises `OSError`."""
    for entry in entries(path):
        if isinstance(entry, JsonEntry):
            record = _decoded(entry.raw)
            if isinstance(record, LiveMessage) and record.id == exchange_id:
                yield record.message


def _decoded(line: bytes) -> AnyRecord:
    try:
        return records.decode(line, "live")
    except ValueError:
        return Unknown(line)


def recover(part: PartFile, write: Callable[[ExchangeRecord], None], *, in_flight: Path | None) -> list[Path]:
    """Write the exchanges of live files whose owner is gone. Returns the files to remove after the next sync.

    `part` is ours; the others are locked meanwhile, so that nobody else recovers them too. An exchange that is in the
    log already is not written again, nor is `in_flight`, which we are about to continue.
    """
    done: list[Path] = []
    for other, live_paths in live_files_of(part.folder, part.name).items():
        paths = [path for path in live_paths if path != in_flight]
        with _abandoned(other, own=part) as abandoned:
            if abandoned:
                logged = _logged(later for later in parts_of(part.folder, part.name) if later >= other)
                for exchange in _unfinished(paths, logged):
                    write(replace(exchange, end_reason="recovered"))
                done += filter(None, map(retire, paths))
    return done


Logged = dict[str | None, list[ExchangeRecord]]


def _unfinished(paths: list[Path], logged: Logged) -> list[ExchangeRecord]:
    """The exchanges that are in live files and not in the log."""
    exchanges = merged(exchange for path in sorted(paths) for exchange in read_live(path))
    rest = (_beyond(exchange, logged.get(exchange.id, [])) for exchange in exchanges)
    return sorted((exchange for exchange in rest if exchange), key=lambda exchange: exchange.exchange)


def _beyond(exchange: ExchangeRecord, logged: list[ExchangeRecord]) -> ExchangeRecord | None:
    """The exchange without the messages that were recovered before, when its writer seemed to be dead; `None` if none
    is left."""
    if any(map(_has_ended, logged)):
        return None
    logged_messages = [message for exchange in logged for message in exchange.messages]
    messages = [message for message in exchange.messages if message not in logged_messages]
    return replace(exchange, messages=messages) if messages or not logged else None


def _has_ended(exchange: ExchangeRecord) -> bool:
    """Whether its writer wrote the exchange, with all there is of it; else it is in flight, or was recovered in
    part."""
    return exchange.complete or exchange.end_reason not in (None, "recovered")


def merged(exchanges: Iterable[ExchangeRecord]) -> list[ExchangeRecord]:
    """Each exchange once: as it ended, or with all the messages the copies in flight have."""
    best: dict[object, ExchangeRecord] = {}
    for exchange in exchanges:
        key = exchange.id or id(exchange)
        earlier = best.get(key)
        if earlier is None or (_has_ended(exchange) and not _has_ended(earlier)):
            best[key] = exchange
        elif not _has_ended(earlier):
            more = [message for message in exchange.messages if message not in earlier.messages]
            best[key] = replace(earlier, messages=earlier.messages + more) if more else earlier
    return list(best.values())


def _logged(parts: Iterable[PartFile]) -> Logged:
    """The exchanges that are in the log whole: a power cut may have left a record and taken its messages."""
    exchanges: Logged = {}
    for part in parts:
        with suppress(FileNotFoundError):
            for line in part_entries(part):
                if exchange := _exchange(line, part.folder):
                    exchanges.setdefault(exchange.id, []).append(exchange)
    return exchanges


def _exchange(line: object, folder: Path) -> ExchangeRecord | None:
    if not isinstance(line, JsonEntry) or b'"exchange"' not in line.raw:
        return None
    try:
        record = decode(line.raw, "exchange", folder)
    except (ValueError, SourceError, OSError):
        return None
    if not isinstance(record, ExchangeRecord):
        return None
    # Of an exchange that has ended only the id matters.
    return replace(record, messages=[]) if _has_ended(record) else record


@contextmanager
def _abandoned(part: PartFile, own: PartFile) -> Iterator[bool]:
    """Yield whether nobody writes to a part; nobody will, within the `with`."""
    if part == own:
        yield True
        return
    try:
        held = platform.open_file(part.path)
    except FileNotFoundError:
        yield True  # sealed or removed
        return
    try:
        yield platform.lock(held)
    except platform.NoLocksError:
        yield False  # there are no locks here, so it is unknown
    finally:
        held.close()
