"""Reads a copy of a foreign database, where the database cannot be opened in place; leaves out what is damaged.

In a copy SQLite may apply the log, roll back what a killed process began, and ignore locks. The files of the copy lose
their names as soon as they are open, so nothing of it is left behind, however we end. The latest copies stay open,
because the sessions of a database are read one after the other.
"""

import os
import sqlite3
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from agent_logger.agents.databases.log_frames import LogFrames, prepare
from agent_logger.agents.databases.opening import DatabaseLook, DatabaseSchema, ForeignDatabase, connect
from agent_logger.agents.databases.salvage import salvaged
from agent_logger.files import foreign
from agent_logger.model.plurals import pluralize

T = TypeVar("T")

MOST_SNAPSHOTS = 2
TRIES = 3  # of copying a database that is being written to
_lock = threading.Lock()


class _Snapshot(NamedTuple):
    """A copy that is open."""

    connection: sqlite3.Connection
    damage: tuple[str, ...] = ()
    is_refused: bool = False  # SQLite does not read it as it is


_snapshots: OrderedDict[tuple[int, Path, DatabaseLook], _Snapshot] = OrderedDict()


def read_snapshot(path: Path, schema: DatabaseSchema, work: Callable[[ForeignDatabase], T]) -> T:
    """Return what `work` returns for a copy of the database. Raises `SourceError`, `sqlite3.Error`, `OSError`."""
    with _lock:
        files = DatabaseLook.at(path)
        key = (os.getpid(), path, files)  # a connection must not be used after a fork
        if key not in _snapshots:
            _keep(key, _copied(path, files))
        _snapshots.move_to_end(key)
        snapshot = _snapshots[key]
        if not snapshot.is_refused:
            try:
                return _work(snapshot, path, schema, work)
            except sqlite3.Error as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
                    raise
        connection, damage = salvaged(snapshot.connection, schema, path)
        _keep(key, _Snapshot(connection, snapshot.damage + damage))
        return _work(_snapshots[key], path, schema, work)


def _work(snapshot: _Snapshot, path: Path, schema: DatabaseSchema, work: Callable[[ForeignDatabase], T]) -> T:
    return work(ForeignDatabase(snapshot.connection, path, schema, snapshot.damage))


def _keep(key: tuple[int, Path, DatabaseLook], snapshot: _Snapshot) -> None:
    """Keep a copy open, and close those that it replaces."""
    for other in [other for other in _snapshots if other[:2] == key[:2]]:
        _snapshots.pop(other).connection.close()
    _snapshots[key] = snapshot
    while len(_snapshots) > MOST_SNAPSHOTS:
        (process, *_), oldest = _snapshots.popitem(last=False)
        if process == os.getpid():
            oldest.connection.close()


def _copied(path: Path, files: DatabaseLook) -> _Snapshot:
    with tempfile.TemporaryDirectory(prefix="agent-logger-") as folder:  # 0700
        copy = Path(folder, "copy.db")
        for _ in range(TRIES):
            for suffix in ("", "-journal", "-wal"):
                _copy_file(f"{path}{suffix}", f"{copy}{suffix}")
            before, files = files, DatabaseLook.at(path)
            if before[:3] == files[:3]:
                break
        log = prepare(copy)
        connection = connect(copy, "mode=rw")
        try:
            is_refused = not _is_readable(connection)
            return _Snapshot(connection, _damage_of(log, _applied_frames(connection)), is_refused)
        except BaseException:
            connection.close()
            raise


def _copy_file(path: str, to: str) -> None:
    """Copy a file, if it exists. A copy that was made before is replaced."""
    with suppress(FileNotFoundError):
        os.unlink(to)
    with suppress(FileNotFoundError), foreign.opened(path) as fd, open(to, "xb") as target:
        target.writelines(foreign.pieces(fd))


def _is_readable(connection: sqlite3.Connection) -> bool:
    """Open the files of a copy. A database that SQLite refuses, as one that was cut, is opened for `salvaged`."""
    query = "SELECT count(*) FROM sqlite_master"
    try:
        connection.execute(query).fetchone()
    except sqlite3.DatabaseError:
        connection.execute("PRAGMA writable_schema = ON")
        with suppress(sqlite3.DatabaseError):
            connection.execute(query).fetchone()
        return False
    return True


def _applied_frames(connection: sqlite3.Connection) -> int:
    with suppress(sqlite3.DatabaseError):
        _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return max(int(frames), 0)
    return 0


def _damage_of(log: LogFrames, applied: int) -> tuple[str, ...]:
    if log.last_change > applied:
        return (f"{pluralize(log.last_change - applied, 'page')} at the end of the log cannot be read",)
    return ("the log is damaged, or cut within a page",) if log.is_damaged else ()
