"""The hub's own database, `hub.db` in its folder: people, devices, tokens, and who read what.

It holds what cannot be derived again, so a change is on the disk before the call returns. Several processes may have it
open: `hub serve`, and the commands that change people.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.hub import statements

FILE = "hub.db"
WAIT_SECONDS = 10.0  # time to wait for another process that is writing
# The record of who read what only grows. Whoever owns the file can still rewrite it; a defect of ours cannot.
APPEND_ONLY = tuple(
    f"CREATE TRIGGER IF NOT EXISTS audit_no_{change.lower()} BEFORE {change} ON audit "
    "BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END"
    for change in ("DELETE", "UPDATE")
)


class HubDatabase:
    """A connection for each thread. `tables` are statements that create more tables, `IF NOT EXISTS`."""

    def __init__(self, folder: Path, tables: Sequence[str] = ()) -> None:
        self.path = folder / FILE
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        try:
            platform.make_folder(folder)
            if not self.path.exists():
                platform.open_file(self.path, create=True).close()
            with self.transaction():
                for statement in (*statements.TABLES, *APPEND_ONLY, *tables):
                    self.execute(statement)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot open {self.path}: {getattr(error, 'strerror', None) or error}") from error

    def execute(self, statement: str, parameters: Iterable[object] = ()) -> int:
        """Run a statement; it is on the disk afterwards, unless a transaction is open. Returns the number of rows that
        it changed."""
        return self._connection().execute(statement, tuple(parameters)).rowcount

    def rows(self, statement: str, parameters: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        return self._connection().execute(statement, tuple(parameters)).fetchall()

    def row(self, statement: str, parameters: Iterable[object] = ()) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._connection().execute(statement, tuple(parameters)).fetchone()
        return row

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing, while no other process writes."""
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def version(self) -> int:
        """Return a number that changes when another connection has changed something."""
        (number,) = self._connection().execute("PRAGMA data_version").fetchone()
        return int(number)

    def forget_deleted(self) -> None:
        """Remove from the file what was deleted, as far as other connections allow it now."""
        self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
        self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")  # what was withdrawn is not to be left in unused pages
            self._local.connection = connection
            with self._lock:
                self._connections.append(connection)
        return connection
