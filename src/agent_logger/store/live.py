"""Live files: what an exchange that is still in flight has so far, and what to do with orphans.

A live file's exchange is in the log when it has ended, and then the file goes away, but only after a
sync: until then a power cut could take the record and leave nothing. So a file may be there although
its exchange is in the log. The exchange's id tells.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_logger import records
from agent_logger.errors import SourceError
from agent_logger.formats.exchange_log import from_live
from agent_logger.records import AnyRecord, Exchange, LiveMessage, LiveStart, Unknown
from agent_logger.store import platform
from agent_logger.store.append import Appender
from agent_logger.store.files import entries, part_entries
from agent_logger.store.parts import PartFile, live_files_of, parts_of
from agent_logger.wire.jsonl import Entry


class LiveFile:
    """The exchange in flight of one journal. Its descriptor may be closed at any time and is opened again."""

    def __init__(self, part: PartFile) -> None:
        self.path = part.live_path
        self._start: LiveStart | None = None
        self._appender: Appender | None = None

    @property
    def in_flight(self) -> bool:
        return self._start is not None

    def begin(self, start: LiveStart) -> None:
        self._open().append(records.encode(start))
        self._start = start

    def add(self, message: LiveMessage) -> None:
        self._open().append(records.encode(message))

    def end(self) -> Path | None:
        """Returns the file to remove after the next sync, under a name that is not used again."""
        start, self._start = self._start, None
        self.close()
        if start is None or not self.path.exists():
            return None
        retired = self.path.with_name(f"{self.path.name}.{start.id}")
        os.rename(self.path, retired)
        return retired

    def follow(self, part: PartFile) -> None:
        """The journal writes to another part now, and only the owner of a part has a live file there."""
        own, wanted = self.path, part.live_path
        if wanted == own:
            return
        self.close()
        if self._start and wanted.exists():  # an orphan, which is not ours to overwrite
            wanted = wanted.with_name(f"{wanted.name}.{self._start.id}")
        if self._start and own.exists():
            os.rename(own, wanted)
        self.path = wanted

    def close(self) -> None:
        if self._appender:
            self._appender.close()
            self._appender = None

    def _open(self) -> Appender:
        if self._appender is None:
            self._appender = self._reopened()
        return self._appender

    def _reopened(self) -> Appender:
        try:
            return Appender(platform.open_file(self.path))
        except FileNotFoundError:
            pass
        appender = Appender(platform.open_file(self.path, create=True))
        if self._start:  # taken away while it was closed: what follows must still have a beginning
            appender.append(records.encode(self._start))
        return appender


def read_live(path: Path) -> list[Exchange]:
    """The exchanges of a live file. Nothing if it has just gone away: then they are in the log."""
    try:
        lines = [entry.raw for entry in entries(path) if isinstance(entry, Entry)]
    except (FileNotFoundError, SourceError):
        return []
    return from_live(map(_decoded, lines))


def _decoded(line: bytes) -> AnyRecord:
    try:
        return records.decode(line, "live")
    except msgspec.MsgspecError:
        return Unknown(line)


def recover(part: PartFile, write: Callable[[Exchange], None], *, in_flight: Path | None) -> list[Path]:
    """Write what live files hold whose owner is gone; returns the files to remove after the next sync.

    `part` is ours; the others are held meanwhile, so that nobody else recovers them too. An exchange that
    is in the log already is not written again, nor is `in_flight`, which we are about to go on with.
    """
    done: list[Path] = []
    for other, found in live_files_of(part.folder, part.name).items():
        paths = [path for path in found if path != in_flight]
        with _abandoned(other, own=part) as abandoned:
            if abandoned:
                logged = _exchange_ids(it for it in parts_of(part.folder, part.name) if it >= other)
                for exchange in _unfinished(paths, logged):
                    write(replace(exchange, end_reason="recovered"))
                done += paths
    return done


def _unfinished(paths: list[Path], logged: set[str]) -> list[Exchange]:
    found = {it.id: it for path in sorted(paths) for it in read_live(path) if it.id not in logged}
    return sorted(found.values(), key=lambda it: it.exchange)


def _exchange_ids(parts: Iterable[PartFile]) -> set[str]:
    found: set[str] = set()
    for part in parts:
        with suppress(FileNotFoundError):
            found |= _ids_in(part_entries(part))
    return found


def _ids_in(lines: Iterable[object]) -> set[str]:
    values = (line.value for line in lines if isinstance(line, Entry))
    return {value["id"] for value in values if isinstance(value, dict) and isinstance(value.get("id"), str)}


@contextmanager
def _abandoned(part: PartFile, own: PartFile) -> Iterator[bool]:
    """Whether nobody writes to a part; nobody will, within the `with`."""
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
        yield False  # nobody can tell
    finally:
        held.close()
