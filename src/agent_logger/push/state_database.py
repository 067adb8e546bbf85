"""What a sender remembers, in `<home>/push/state.db`. Each change is on the disk when the call returns."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.push.state import ObjectState, StatedSession

FILE = "state.db"
WAIT_SECONDS = 10.0
TABLES = """
CREATE TABLE IF NOT EXISTS sessions (name TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (name TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS numbers (number INTEGER NOT NULL);
"""

S = TypeVar("S", StatedSession, ObjectState)


class StateDatabase:
    """Raises `StoreError` if it cannot be opened, and `sqlite3.Error` later."""

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        try:
            platform.make_folder(folder)
            if not path.exists():
                platform.open_file(path, create=True).close()
            self._database = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(TABLES)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"cannot use {path}: {error}; if it is damaged, delete it: what was pushed is pushed again"
            ) from error

    @property
    def is_new(self) -> bool:
        """Whether no number was given yet."""
        return self._database.execute("SELECT 1 FROM numbers").fetchone() is None

    def session(self, name: str) -> StatedSession | None:
        return self._get("sessions", name, StatedSession)

    def sessions(self) -> Iterable[tuple[str, StatedSession]]:
        rows = self._database.execute("SELECT name, state FROM sessions").fetchall()
        return [(name, msgspec.json.decode(state, type=StatedSession)) for name, state in rows]

    def put_session(self, name: str, state: StatedSession) -> None:
        self._put("sessions", name, state)

    def object(self, name: str) -> ObjectState | None:
        return self._get("objects", name, ObjectState)

    def put_object(self, name: str, state: ObjectState) -> None:
        self._put("objects", name, state)

    def next_number(self, above: int = 0) -> int:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            row = self._database.execute("SELECT max(number) FROM numbers").fetchone()
            number = max(row[0] or 0, above) + 1
            self._database.execute("DELETE FROM numbers")
            self._database.execute("INSERT INTO numbers VALUES (?)", (number,))
        return number

    def close(self) -> None:
        self._database.close()

    def _get(self, table: str, name: str, kind: type[S]) -> S | None:
        row = self._database.execute(f"SELECT state FROM {table} WHERE name = ?", (name,)).fetchone()
        return msgspec.json.decode(row[0], type=kind) if row else None

    def _put(self, table: str, name: str, state: StatedSession | ObjectState) -> None:
        self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (name, msgspec.json.encode(state)))
