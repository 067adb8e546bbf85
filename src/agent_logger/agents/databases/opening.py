"""Opens SQLite databases of other programs, and looks at their files."""

import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from os import fsencode, lstat
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import stat_of

LONGEST_VALUE = 64 << 20  # bytes; longer values, like longer lines, are not read
WAIT_SECONDS = 1.0  # time to wait for a lock

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """What is known of the database of one program."""

    owner: str  # the program
    # The tables without which it is none of that program's, each with the columns that every version has.
    tables: Mapping[str, tuple[str, ...]]
    optional: tuple[str, ...] = ()  # further tables that are read
    documents: frozenset[str] = frozenset()  # columns of JSON, whose texts stay bytes


class ForeignDatabase:
    """An open database. `damage`: why rows are missing, where some cannot be read."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, schema: DatabaseSchema, damage: tuple[str, ...] = ()
    ) -> None:
        self._connection, self._schema, self.damage = connection, schema, damage
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.tables = {str(_text(name)) for (name,) in tables}
        if not self.tables.issuperset(schema.tables):
            raise SourceError(f"{path}: not a database of {schema.owner}")

    def rows(self, query: str, *values: Any) -> Iterator[Row]:
        """Yield rows with texts decoded, except those of documents."""
        cursor = self._connection.execute(query, values)
        names = [column[0] for column in cursor.description]
        texts = [name for name in names if name not in self._schema.documents]
        for values in cursor:
            row = dict(zip(names, values, strict=True))
            for name in texts:
                if type(value := row[name]) is bytes:
                    row[name] = value.decode("utf-8", "replace")
            yield row

    def columns(self, table: str) -> set[str]:
        cursor = self._connection.execute(f'SELECT * FROM "{table}" LIMIT 0')
        return {column[0] for column in cursor.description}

    def backup(self, to: Path) -> None:
        """Copy the whole database into an empty file."""
        with closing(sqlite3.connect(to)) as target:
            self._connection.backup(target)


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


class FileLook(NamedTuple):
    """How a file looks: what changes when it is written to."""

    inode: int
    size: int
    modified: int


class DatabaseLook(NamedTuple):
    """The files of a database, as they look now. The index of the log is left out: readers of the owner change it."""

    main: FileLook | None
    log: FileLook | None
    journal: FileLook | None
    mode: str | None  # how the database can be opened in place; None: not at all

    @classmethod
    def at(cls, path: Path) -> "DatabaseLook":
        """Look at the files. Raises `SourceError` if one is no regular file, and `FileNotFoundError` if neither the
        database nor its log exists."""
        main, log, journal = (_look(f"{path}{suffix}") for suffix in ("", "-wal", "-journal"))
        if main is None and log is None:
            lstat(path)
        return cls(main, log, journal, _mode(path, main, log, journal))

    @property
    def has_content(self) -> bool:
        return any(file.size for file in (self.main, self.log) if file)

    @property
    def is_read_unlocked(self) -> bool:
        return self.mode == IMMUTABLE


IMMUTABLE = "mode=ro&immutable=1"


def _mode(path: Path, main: FileLook | None, log: FileLook | None, journal: FileLook | None) -> str | None:
    if not main or not main.size:
        return None if log and log.size else IMMUTABLE if main else None
    if log and log.size:
        index = _look(f"{path}-shm")
        return "mode=ro&readonly_shm=1" if index and index.size else None
    return "mode=ro" if journal and journal.size and not _has_log_mode(path) else IMMUTABLE


def _has_log_mode(path: Path) -> bool:
    """Whether the database wants a write-ahead log: opening it for more than an immutable file creates one."""
    return next(foreign.chunks(path), b"")[18:20] != b"\1\1"


def _look(path: str) -> FileLook | None:
    status = stat_of(path)
    if status is None:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(f"{path}: not a regular file")
    return FileLook(status.st_ino, status.st_size, status.st_mtime_ns)


def connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(fsencode(path))}?{mode}", uri=True, timeout=WAIT_SECONDS, check_same_thread=False
    )
    connection.text_factory = bytes  # a text as it is stored, in whatever bytes
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    # Older versions of SQLite refuse a schema with JSON functions in an index, as Kilo's, unless they trust it. Reading
    # a schema calls no function, and what it says is not trusted in the queries that follow.
    connection.execute("PRAGMA trusted_schema = ON")
    with suppress(sqlite3.DatabaseError):
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection
