"""Reads SQLite databases of other programs without a trace: no byte of them is written, no file appears beside them.

A database with a write-ahead log may have most of its rows in that log. A reader that opens it as immutable does not
see them, and one that only asks for read access creates files beside it; of an empty database, SQLite even deletes the
log. So the files that exist decide how it is read:

- no log: in place, as immutable. If it was written to meanwhile, it is read again;
- a log and its index: in place, the index read-only too. The program may continue to write;
- a rollback journal: in place, read-only;
- a log without its index (a backup), a lock that nobody else may pass, a journal of a process that was killed, anything
  that SQLite refuses: from a copy, in which SQLite may write. What is damaged in the copy is left out, and said.

Connections are short, one per session: a writer does not wait for us. Whoever reads many sessions in a row may keep
immutable ones open (`databases_kept_open`): those take no lock.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from agent_logger.agents.databases.opening import DatabaseLook, DatabaseSchema, ForeignDatabase, connect
from agent_logger.agents.databases.snapshots import read_snapshot
from agent_logger.errors import SourceError

TRIES = 3  # of reading a database that is being written to
T = TypeVar("T")


class _OpenDatabase(NamedTuple):
    """A database that is kept open, and how its files looked when it was opened."""

    files: DatabaseLook
    connection: sqlite3.Connection
    database: ForeignDatabase


class _OpenDatabases(threading.local):
    """The databases that this thread keeps open, by path and owner; None: it keeps none."""

    by_path: dict[tuple[Path, str], _OpenDatabase] | None = None


_open = _OpenDatabases()


@contextmanager
def databases_kept_open() -> Iterator[None]:
    """Keep databases open that are read as immutable files, while they look the same: to open one takes longer than to
    read a short session."""
    if _open.by_path is not None:
        yield
        return
    _open.by_path = {}
    try:
        yield
    finally:
        for each in _open.by_path.values():
            each.connection.close()
        _open.by_path = None


def read_database(path: Path, schema: DatabaseSchema, work: Callable[[ForeignDatabase], T]) -> T:
    """Return what `work` returns for an open database; it may be called again if the database changed meanwhile. Raises
    `SourceError`, `FileNotFoundError`."""
    try:
        for _ in range(TRIES):
            files = DatabaseLook.at(path)
            if (mode := files.mode) is None:
                break
            try:
                with _opened(path, schema, files, mode) as database:
                    result = work(database)
            except sqlite3.Error as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
                    raise  # the query does not fit
                break
            if not files.is_read_unlocked or DatabaseLook.at(path) == files:
                return result
        return read_snapshot(path, schema, work)
    except (sqlite3.Error, OverflowError) as error:
        raise SourceError(f"{path}: {error}") from error


@contextmanager
def _opened(path: Path, schema: DatabaseSchema, files: DatabaseLook, mode: str) -> Iterator[ForeignDatabase]:
    if _open.by_path is None or not files.is_read_unlocked:
        with closing(connect(path, mode)) as connection:
            yield ForeignDatabase(connection, path, schema)
        return
    key = path, schema.owner
    before = _open.by_path.pop(key, None)
    if before and before.files != files:
        before.connection.close()
        before = None
    connection = before.connection if before else connect(path, mode)
    try:
        database = before.database if before else ForeignDatabase(connection, path, schema)
        yield database
    except BaseException:
        connection.close()
        raise
    _open.by_path[key] = _OpenDatabase(files, connection, database)
