"""Reads every byte of a file, to report whether all of it can be read."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.foreign import SEALED
from agent_logger.files.line_files import entries
from agent_logger.files.parts import part_of
from agent_logger.journal.bodies import decode
from agent_logger.model import records
from agent_logger.model.records import Gap, Kind, Recovered
from agent_logger.protocols.jsonl import Damage, JsonEntry, Torn


class BadPlace(msgspec.Struct, frozen=True):
    line: int
    offset: int  # in the plain text, also of a sealed file
    length: int
    reason: str


class FileReport(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    bytes: int  # on disk
    records: int
    torn_bytes: int  # after the last newline: being written, or cut by a crash; not an error
    mended: int  # damage by a crash or a full disk that the log itself explains
    lost: int  # records that the log says could not be written
    damage: list[BadPlace]


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    files: list[FileReport]
    records: int
    bytes: int
    torn: int
    mended: int
    lost: int
    damage: int


def summary(files: list[FileReport]) -> LogReport:
    return LogReport(
        files=files,
        records=sum(file.records for file in files),
        bytes=sum(file.bytes for file in files),
        torn=sum(file.torn_bytes > 0 for file in files),
        mended=sum(file.mended for file in files),
        lost=sum(file.lost for file in files),
        damage=sum(len(file.damage) for file in files),
    )


def log_files(path: Path) -> Iterator[Path]:
    """Yield the file itself, or the log files below a folder, ours and other agents'. Links are not followed, and of a
    file that is being sealed there is only one."""
    if not path.is_dir():
        yield path
        return
    for folder, names, files in os.walk(path):
        # The spool belongs to the proxy, and is not a log yet.
        names[:] = sorted(name for name in names if name != ".spool")
        for name in sorted(set(files).difference(name.removesuffix(SEALED) for name in files if name.endswith(SEALED))):
            log_path = Path(folder) / name
            if part_of(log_path) and log_path.is_file() and not log_path.is_symlink():
                yield log_path


def verify_file(path: Path) -> FileReport:
    """Check a file. Raises nothing for what is in the file, nor for a file that cannot be read: that is damage."""
    check = FileCheck(path)
    try:
        for item in entries(path):
            check.see(item)
    except SourceError as error:
        check.bad(Damage(0, 0, 0, str(error).removeprefix(f"{path}: ")))
    except OSError as error:
        check.bad(Damage(0, 0, 0, f"cannot be read: {error.strerror}"))
    return check.report()


class FileCheck:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._kind: Kind | None = None
        self._records = self._torn_bytes = self._mended = self._lost = 0
        self._damage: list[Damage] = []

    def see(self, item: JsonEntry | Damage | Torn) -> None:
        match item:
            case Torn():
                self._torn_bytes = item.length
            case Damage():
                self.bad(item)
            case JsonEntry():
                self._see_entry(item)

    def bad(self, damage: Damage) -> None:
        self._damage.append(damage)

    def _see_entry(self, entry: JsonEntry) -> None:
        if not isinstance(entry.value, dict):
            return self.bad(Damage(entry.line, entry.offset, len(entry.raw), "JSON, but not an object"))
        self._kind = self._kind or records.kind_of(entry.raw)
        kind: Kind | None = self._kind or ("transcript" if "v" in entry.value else None)
        try:
            record = decode(entry.raw, kind, self._path.parent) if kind else None
        except (ValueError, SourceError, OSError) as error:
            return self.bad(Damage(entry.line, entry.offset, len(entry.raw), str(error)))
        self._records += 1
        if isinstance(record, Gap | Recovered):
            self._account_for(entry)
            self._lost += record.lost if isinstance(record, Gap) else 0
        return None

    def _account_for(self, entry: JsonEntry) -> None:
        """Take back the damage of the line before such a record: the line was cut, and the record says so."""
        if self._damage and self._damage[-1].line == entry.line - 1:
            self._damage.pop()
            self._mended += 1

    @property
    def last_damaged(self) -> int:
        """The number of the last damaged line; 0 for none."""
        return self._damage[-1].line if self._damage else 0

    def report(self) -> FileReport:
        return FileReport(
            path=str(self._path),
            bytes=platform.size_of(foreign.existing(self._path) or self._path),
            records=self._records,
            torn_bytes=self._torn_bytes,
            mended=self._mended,
            lost=self._lost,
            damage=[BadPlace(damage.line, damage.offset, damage.length, damage.reason) for damage in self._damage],
        )
