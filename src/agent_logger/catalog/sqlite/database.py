"""Opens the catalog's files, whatever state they are in.

They hold nothing that could not be derived again, so a file that is damaged, from another program or of an older
version is replaced by a new file. It is never changed in place: a program of that version which has it open continues
with the file that it has, and notices at its next query that the path leads to another one. Where no file can be
written (no permission, a full disk, a file of a newer version), the database is in memory for as long as the command
runs: slower, but correct.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from agent_logger import platform
from agent_logger.catalog.database import LedgerValues
from agent_logger.catalog.ledger.rows import NEVER
from agent_logger.catalog.sqlite.schema import Schema
from agent_logger.files.stored_text import hashed

WAIT_SECONDS = 10.0  # time to wait for another process that is writing, which is never long
PAGE_CACHE_KB = 16_000


# The errors that show that a file has other bytes than were written: names that are not text, even in SQLite's
# messages, and values that cannot be decoded.
DAMAGED = (sqlite3.Error, UnicodeDecodeError, msgspec.DecodeError)


_INSERT_ROW = f"""
    INSERT INTO ledger VALUES (?, ?, nullif(?, {NEVER}), ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, {NEVER}),
        ?, ?, nullif(?, ''), ?)
"""


class SqliteDatabase(sqlite3.Connection):
    """A database of the catalog in a file, or in memory."""

    inode: int = 0  # 0: it is in memory
    ledger_tables = ("ledger",)
    version: int = 0  # the version of the tables when the file was opened; 0: it had none

    def insert_ledger(self, rows: Iterable[LedgerValues]) -> None:
        self.executemany(_INSERT_ROW, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing, while no other process writes."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")


def prepare(database: SqliteDatabase) -> None:
    """Add the functions that queries use."""
    database.create_function("folded", 1, lambda text: (text or "").lower(), deterministic=True)
    database.create_function("hashed", 1, lambda text: text and hashed(text), deterministic=True)


class UnusableError(Exception):
    """The error that no database can be opened at a path. The message says why."""


def open_database(path: Path, schema: Schema) -> SqliteDatabase:
    """Open the file, or a new one in place of one that is damaged or older. Raises `UnusableError`."""
    try:
        platform.make_folder(path.parent)
        with _folder_lock(path.parent, shared=True):
            database = _open_current(path, schema)
        return database or _replace(path, schema)
    except (OSError, sqlite3.Error) as error:
        raise UnusableError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def open_in_memory(schema: Schema) -> SqliteDatabase:
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=SqliteDatabase)
    _create_tables(database, schema)
    return database


def discard(database: SqliteDatabase, path: Path) -> bool:
    """Close a damaged database and remove its file, unless another process has put a new one there by now. Returns
    whether the path does not lead to it any more."""
    database.close()
    with suppress(OSError, UnusableError), _folder_lock(path.parent):
        if is_file(database) and is_same_file(database, path):
            remove(path)
    return not is_same_file(database, path)


def remove(path: Path) -> None:
    """Remove the file, and those that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")


def is_same_file(database: SqliteDatabase, path: Path) -> bool:
    """Whether the path still leads to the open file: what is written to a deleted file is lost."""
    if not is_file(database):
        return True
    try:
        return os.stat(path).st_ino == database.inode
    except OSError:
        return False


def is_file(database: SqliteDatabase) -> bool:
    """Whether the database is a file, and not in memory alone."""
    return bool(database.inode)


def is_damage(error: Exception) -> bool:
    """Whether an error of `DAMAGED` says that the file's content is wrong, and not that the disk is full or the like.

    Unexpected tables are another program's, or those of an unreleased version.
    """
    return not isinstance(error, sqlite3.OperationalError) or any(reason in str(error) for reason in _DAMAGE)


_DAMAGE = ("already exists", "no such table", "no such column", "malformed", "Could not decode")


# ---------------------------------------------------------------- inside


def _open_current(path: Path, schema: Schema) -> SqliteDatabase | None:
    """Open the file as it is. Returns None if there is no file, or one that is damaged or older. Raises `UnusableError`
    for a newer one."""
    try:
        database = _connect(path)
    except (OSError, sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not path.exists() or (not isinstance(error, OSError) and is_damage(error)):
            return None
        raise
    if database.version == schema.version:
        return database
    database.close()
    if database.version > schema.version:
        raise UnusableError(f"{path} was written by a newer version of agent-logger; update agent-logger")
    return None


def _replace(path: Path, schema: Schema) -> SqliteDatabase:
    """Make a new file. One process does so at a time; the others take what the first has made."""
    with _folder_lock(path.parent):
        if database := _open_current(path, schema):
            return database
        remove(path)
        platform.open_file(path, create=True).close()
        database = _connect(path)
        with _closing_on_error(database):
            database.execute("PRAGMA journal_mode = WAL")
            _create_tables(database, schema)
        return database


@contextmanager
def _folder_lock(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the folder's lock: exclusive while a file is replaced, shared while one is opened; both take milliseconds.

    SQLite finds the log beside a file (`-wal`) by its name: a process that opened a file which is removed at this
    moment would take the log of the new one for its own. Raises `UnusableError`, `OSError`.
    """
    held = platform.Held(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), folder)
    try:
        if not _lock(held, shared):
            raise UnusableError(f"{folder} is locked by another process")
        yield
    finally:
        held.close()


def _lock(held: platform.Held, shared: bool) -> bool:
    give_up = time.monotonic() + WAIT_SECONDS
    try:
        while not (locked := platform.lock(held, shared=shared)) and time.monotonic() < give_up:
            time.sleep(0.002)
    except (platform.NoLocksError, OSError):  # folders have no locks on some network disks: do not wait
        return True
    return locked


def _connect(path: Path) -> SqliteDatabase:
    database = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode=rw",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=SqliteDatabase,
    )
    with _closing_on_error(database):
        database.inode = path.stat().st_ino
        database.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KB}")
        # A power cut loses the last changes, which are made again.
        database.execute("PRAGMA synchronous = NORMAL")
        (database.version,) = database.execute("PRAGMA user_version").fetchone()
    return database


@contextmanager
def _closing_on_error(database: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise


def _create_tables(database: SqliteDatabase, schema: Schema) -> None:
    database.executescript(f"BEGIN; {schema.sql} PRAGMA user_version = {schema.version}; COMMIT;")
