"""Reads what is left in a damaged database: every row that SQLite can reach, table by table.

A table is a tree, ordered by the numbers of its rows. Where a page of it cannot be read, the next number behind that
page is looked for.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_logger.agents.databases.opening import DatabaseSchema
from agent_logger.errors import SourceError
from agent_logger.model.plurals import pluralize

MOST_GAPS = 10_000
LEAST, MOST = -(1 << 63), (1 << 63) - 1
INDEXED = ("id", "session_id")

Values = tuple[Any, ...]


class StoredText(bytes):
    """A text as it is stored, in whatever bytes: told apart from a blob."""


def salvaged(
    damaged: sqlite3.Connection, schema: DatabaseSchema, path: Path
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Return a database of ours with the rows that can be read, and what could not. Raises `SourceError` if none of
    the tables is there."""
    damaged.text_factory = StoredText
    walks = [_TableWalk(damaged, table) for table in (*schema.tables, *schema.optional)]
    if not any(walk.columns for walk in walks):
        raise SourceError(f"{path}: not a database of {schema.owner}, or too damaged to be recognised as one")
    target = sqlite3.connect("", check_same_thread=False)  # a file without a name
    target.text_factory = bytes
    for walk in walks:
        walk.complete(schema.tables.get(walk.table, ()))
        if walk.columns:
            _fill(target, walk)
    return target, tuple(walk.damage for walk in walks if walk.damage)


def _fill(target: sqlite3.Connection, walk: "_TableWalk") -> None:
    columns = ", ".join(map(_quoted, walk.columns))
    table = _quoted(walk.table)
    target.execute(f"CREATE TABLE {table} ({columns})")
    for values in walk.rows():
        places = ", ".join("CAST(? AS TEXT)" if isinstance(value, StoredText) else "?" for value in values)
        target.execute(f"INSERT INTO {table} VALUES ({places})", values)
    for column in INDEXED:
        if column in walk.columns:
            target.execute(f"CREATE INDEX {_quoted(f'{walk.table}_{column}')} ON {table} ({_quoted(column)})")
    target.commit()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _TableWalk:
    """A walk over a damaged table."""

    def __init__(self, database: sqlite3.Connection, table: str) -> None:
        self._database, self.table = database, table
        self.columns: list[str] = []
        self._gaps = 0
        self._is_missing = False
        with suppress(sqlite3.Error):
            described = database.execute(f"SELECT * FROM {_quoted(table)} LIMIT 0").description
            self.columns = [column[0] for column in described]

    def complete(self, columns: Sequence[str]) -> None:
        """Read a table that is missing as an empty one with these columns."""
        if columns and not self.columns:
            self.columns, self._is_missing = list(columns), True

    @property
    def damage(self) -> str | None:
        if self._is_missing:
            return f"the table {self.table} cannot be read"
        return f"{pluralize(self._gaps, 'place')} in the table {self.table} cannot be read" if self._gaps else None

    def rows(self) -> Iterator[Values]:
        start: int | None = None if self._is_missing else LEAST
        while start is not None:
            try:
                for number, *values in self._from(start):
                    if number < start:
                        break  # the tree is out of order, and may lead in a circle
                    yield tuple(values)
                    start = number + 1
                else:
                    return
            except sqlite3.Error:
                pass
            # The cursor reads one row ahead, and drops a row whose successor cannot be read.
            if (row := self._row_at(start)) and row[0] >= start:
                number, *values = row
                yield tuple(values)
                start = number + 1
            else:
                self._gaps += 1
                start = self._behind(start) if self._gaps < MOST_GAPS else None

    def _from(self, number: int, limit: int = -1) -> sqlite3.Cursor:
        columns = ", ".join(map(_quoted, self.columns))
        query = (
            f"SELECT rowid, {columns} FROM {_quoted(self.table)} NOT INDEXED WHERE rowid >= ? ORDER BY rowid LIMIT ?"
        )
        return self._database.execute(query, (number, limit))

    def _row_at(self, number: int) -> Values | None:
        """Return the first row from a number on; None if there is none, or it cannot be read."""
        try:
            row: Values | None = self._from(number, 1).fetchone()
        except sqlite3.Error:
            return None
        return row

    def _behind(self, bad: int) -> int | None:
        """Return the first number behind the damage that begins at `bad`; None if nothing behind it can be read."""
        step = 1
        while not self._is_readable(min(bad + step, MOST)):
            if bad + step >= MOST:
                return None
            step *= 2
        low, high = bad + step // 2, min(bad + step, MOST)  # the first cannot be read, or is `bad`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_readable(middle) else (middle, high)
        return high

    def _is_readable(self, number: int) -> bool:
        try:
            self._from(number, 1).fetchone()
        except sqlite3.Error:
            return False
        return True
