"""Putting a session back into opencode's database: rows are added in one transaction, and none is changed."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from agent_logger.agents.opencode import database as opencode
from agent_logger.errors import SourceError, StoreError

WAIT_SECONDS = 5.0  # for opencode, which may be writing
KEYS = {"project": "id", "session": "id", "message": "session_id", "part": "session_id"}  # parents first


class DatabaseRows(NamedTuple):
    copy: Path
    database: Path
    sessions: list[str]  # the one that is meant first, then those that it started
    missing: dict[str, int]  # rows to be added, by table


def rows_of(copy: Path, session: str, database: Path) -> DatabaseRows:
    """What the database lacks of a session. Raises `SourceError`, also if the two have other columns."""
    source = opencode.source_of(copy, session)
    sessions = [file.name for file in (source.main, *source.others)]
    with _both(copy, database, "ro") as both:
        for table in KEYS:
            if _columns(both, "main", table) != _columns(both, "copy", table):
                raise SourceError(f"{database}: its version has other columns than that of the copy {copy}")
        missing = {table: _count(both, table, sessions) for table in KEYS}
    return DatabaseRows(copy, database, sessions, {table: count for table, count in missing.items() if count})


def add(rows: DatabaseRows) -> None:
    """All or none. Raises `StoreError`."""
    try:
        with _both(rows.copy, rows.database, "rw") as both, both:
            both.execute("BEGIN IMMEDIATE")
            for table in KEYS:
                names, values = _selection(table, rows.sessions)
                columns = ", ".join(f'"{name}"' for name in _columns(both, "main", table))
                both.execute(
                    f"INSERT OR IGNORE INTO main.{table} ({columns}) SELECT {columns} {names}", values
                )
    except SourceError as error:
        raise StoreError(f"nothing was added: {error}") from error


@contextmanager
def _both(copy: Path, database: Path, mode: str) -> Iterator[sqlite3.Connection]:
    try:
        with closing(_connected(database, mode)) as both:
            both.execute("ATTACH ? AS copy", (f"file:{quote(os.fsencode(copy))}?mode=ro&immutable=1",))
            yield both
    except sqlite3.Error as error:
        raise SourceError(f"{database}: {error}") from error


def _connected(database: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(database))}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=WAIT_SECONDS, isolation_level=None)


def _columns(both: sqlite3.Connection, schema: str, table: str) -> list[str]:
    return [row[1] for row in both.execute(f"PRAGMA {schema}.table_info({table})")]


def _selection(table: str, sessions: list[str]) -> tuple[str, list[str]]:
    marks = ", ".join("?" * len(sessions))
    if table == "project":
        which = f"id IN (SELECT project_id FROM copy.session WHERE id IN ({marks}))"
    else:
        which = f"{KEYS[table]} IN ({marks})"
    return f"FROM copy.{table} WHERE {which} AND id NOT IN (SELECT id FROM main.{table})", sessions


def _count(both: sqlite3.Connection, table: str, sessions: list[str]) -> int:
    columns, values = _selection(table, sessions)
    return int(both.execute(f"SELECT count(*) {columns}", values).fetchone()[0])
