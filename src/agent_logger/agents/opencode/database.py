"""Reads opencode's database without touching it: no byte of it, and no file beside it, is written.

It is SQLite with a write-ahead log, and that log may hold most of the data: a reader that opens the database as
immutable sees less, and one that only asks for read access creates files beside it. So the files that exist decide how
it is opened:

- no log: as immutable;
- a log and its index: read-only, the index too. opencode may continue to write meanwhile;
- a log without its index (a backup): a copy in a folder of ours, because SQLite would have to create the index.

Connections are short, one per session: a writer does not wait for us.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.protocols.jsonl import Damage, JsonEntry

WAIT_SECONDS = 1.0  # for a lock
MOST_SESSIONS = 10_000  # that one session may have started
LONGEST_VALUE = 64 << 20  # bytes; longer values, like longer lines, are not read
TABLES = ("session", "message", "part")

Row = dict[str, Any]


def session_ids(path: Path) -> list[str]:
    """Return the sessions that no other session started, the newest first. Raises `SourceError`,
    `FileNotFoundError`."""
    with _opened(path) as database:
        return _roots(
            list(_rows(database, "SELECT id, parent_id FROM session ORDER BY time_created DESC, id"))
        )


def _roots(rows: list[Row]) -> list[str]:
    ids = {row["id"] for row in rows}
    return [row["id"] for row in rows if row["id"] and row["parent_id"] not in ids]


def session_stamps(path: Path) -> list[tuple[str, float, int, str]]:
    """Return the same ids, each with when it was last changed, its size, and a stamp that changes when anything of it
    does, or of what it started. Raises `SourceError`, `FileNotFoundError`."""
    count = """
        SELECT session_id AS id, max(time_updated) AS updated, count(*) AS count, sum(length(data)) AS size
        FROM {} GROUP BY session_id
    """
    with _opened(path) as database:
        rows = list(_rows(database, "SELECT id, parent_id, time_updated AS updated FROM session"))
        rows_by_session: dict[str, list[Row]] = {}
        for table in ("message", "part"):
            for row in _rows(database, count.format(table)):
                rows_by_session.setdefault(row["id"], []).append(row)
        return [
            _stamp(name, [name, *_started_by(database, name)], rows, rows_by_session) for name in _roots(rows)
        ]


def _stamp(
    name: str, tree: list[str], rows: list[Row], rows_by_session: dict[str, list[Row]]
) -> tuple[str, float, int, str]:
    own = [row for row in rows if row["id"] in tree] + [
        row for session_id in tree for row in rows_by_session.get(session_id, ())
    ]
    times = [row["updated"] for row in own if isinstance(row["updated"], int)]
    stamp = ";".join(f"{row['id']}:{row['updated']}:{row.get('count')}:{row.get('size')}" for row in own)
    return name, max(times, default=0) / 1000, sum(row.get("size") or 0 for row in own), stamp


def source_of(path: Path, session: str) -> SourceFiles:
    """Return a session with those that it started. Rows are read when they are iterated over; what fails then is
    `Damage`."""
    with _opened(path) as database:
        started = _started_by(database, session)
    files = [File(session_id, _Entries(path, session_id)) for session_id in (session, *started)]
    return SourceFiles(files[0], files[1:])


def _started_by(database: sqlite3.Connection, session: str) -> list[str]:
    sessions = [session]
    for parent in sessions:  # grows meanwhile
        children = _rows(
            database, "SELECT id FROM session WHERE parent_id = ? ORDER BY time_created, id", parent
        )
        sessions.extend(row["id"] for row in children if row["id"] and row["id"] not in sessions)
        if len(sessions) > MOST_SESSIONS:
            break
    return sessions[1 : MOST_SESSIONS + 1]


class _Entries:
    """The rows of a session, read again each time: itself, its messages, their parts. Each row has its `table`."""

    def __init__(self, path: Path, session: str) -> None:
        self._path, self._session = path, session

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        try:
            with _opened(self._path) as database:
                for number, row in enumerate(_session_rows(database, self._session), 1):
                    data = row.get("data")
                    yield JsonEntry(number, 0, row, data if isinstance(data, bytes) else b"")
        except (SourceError, OSError) as error:
            yield Damage(1, 0, 0, str(error))


def _session_rows(database: sqlite3.Connection, session: str) -> Iterator[Row]:
    for row in _rows(database, "SELECT * FROM session WHERE id = ?", session):
        yield {**row, "table": "session", "forked_from": _parent_of_fork(database, row)}
    columns = "id, time_created, data"
    messages = f"SELECT {columns} FROM message WHERE session_id = ? ORDER BY time_created, id"
    for row in _rows(database, messages, session):
        yield {**row, "table": "message"}
    parts = f"SELECT {columns}, message_id FROM part WHERE session_id = ? ORDER BY id"
    for row in _rows(database, parts, session):
        yield {**row, "table": "part"}


def _parent_of_fork(database: sqlite3.Connection, row: Row) -> str | None:
    """Find the parent of a fork. A fork is a copy under new ids, and nothing names its parent; but the messages keep
    their times. Of several sessions with the last message, the parent is the one that did not copy it itself."""
    session, created = row.get("id"), row.get("time_created")
    if not isinstance(created, int):
        return None
    copied = "SELECT max(time_created) AS time FROM message WHERE session_id = ? AND time_created < ?"
    last = next((fork_row["time"] for fork_row in _rows(database, copied, session, created)), None)
    if last is None:
        return None
    same = """
        SELECT session.id FROM message JOIN session ON session.id = message.session_id
        WHERE message.time_created = ? AND session.id <> ? AND session.time_created < ?
        ORDER BY message.time_created < session.time_created, session.time_created DESC LIMIT 1
    """
    return next((parent_row["id"] for parent_row in _rows(database, same, last, session, created)), None)


def _rows(database: sqlite3.Connection, query: str, *values: Any) -> Iterator[Row]:
    """Yield rows with texts decoded, but `data` as bytes. Raises `SourceError`."""
    try:
        cursor = database.execute(query, values)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield {name: _value(name, value) for name, value in zip(names, row, strict=True)}
    except (sqlite3.Error, OverflowError) as error:
        raise SourceError(f"opencode's database: {error}") from error


def _value(name: str, value: Any) -> Any:
    if isinstance(value, bytes) and name != "data":
        return value.decode("utf-8", "replace")
    return value


def copy(path: Path, to: Path) -> None:
    """Copy the whole database as it is now, its log included, into an empty file. Raises `SourceError`, `OSError`."""
    with _opened(path) as database:
        try:
            with closing(sqlite3.connect(to)) as target:
                database.backup(target)
        except sqlite3.Error as error:
            raise SourceError(f"{path}: {error}") from error


# ---------------------------------------------------------------- opening


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database. Raises `SourceError` if it is not one of opencode's, `FileNotFoundError` if it does not
    exist."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise SourceError(f"{path}: not a regular file")
    wal, index = _size(path, "-wal"), _size(path, "-shm")
    if wal and not index:
        with _copied(path) as copy, _connected(copy, "mode=ro") as database:
            yield database
        return
    how = "mode=ro&readonly_shm=1" if wal else "mode=ro" if _size(path, "-journal") else "mode=ro&immutable=1"
    with _connected(path, how) as database:
        yield database


@contextmanager
def _connected(path: Path, how: str) -> Iterator[sqlite3.Connection]:
    try:
        database = sqlite3.connect(f"file:{quote(os.fsencode(path))}?{how}", uri=True, timeout=WAIT_SECONDS)
    except sqlite3.Error as error:
        raise SourceError(f"{path}: {error}") from error
    try:
        database.text_factory = bytes  # any bytes may be in a text
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        _check(database, path)
        yield database
    finally:
        database.close()


def _check(database: sqlite3.Connection, path: Path) -> None:
    try:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise SourceError(f"{path}: {error}") from error
    if not {table.encode() for table in TABLES} <= tables:
        raise SourceError(f"{path}: not a database of opencode's")


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="agent-logger-") as folder:  # 0700
        copy = Path(folder, "opencode.db")
        try:
            shutil.copyfile(path, copy)
            shutil.copyfile(f"{path}-wal", f"{copy}-wal")
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from error
        yield copy


def _size(path: Path, suffix: str) -> int:
    with suppress(OSError):
        return os.lstat(f"{path}{suffix}").st_size
    return 0
