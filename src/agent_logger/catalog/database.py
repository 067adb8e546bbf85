"""A database of the catalog, as queries see it: SQLite in a home, or PostgreSQL on a server.

A statement that both engines accept is written once, in SQLite's SQL. PostgreSQL's connection translates what differs
(`postgres/dialect.py`); what PostgreSQL does in its own way is in `postgres/`. So NULLs are ordered explicitly, numbers
are compared where a condition is meant, and columns are qualified where `excluded` has the same ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from agent_logger.files.stored_text import storable

QUARTERS = "ledger_quarters"
Parameters = Sequence[Any] | Mapping[str, Any]
LedgerValues = tuple[Any, ...]  # a row of the ledger, as `refresh/families.py` makes it


class Rows(Protocol):
    """The rows of a statement."""

    @property
    def rowcount(self) -> int: ...
    @property
    def description(self) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """A connection. Every statement outside of a transaction is one of its own."""

    def execute(self, sql: str, parameters: Parameters = ..., /) -> Rows: ...
    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> object: ...

    @property
    def ledger_tables(self) -> Sequence[str]:
        """The ledger, and sums over it by the quarter of an hour, if they are kept."""

    def insert_ledger(self, rows: Iterable[LedgerValues], /) -> None: ...
    def transaction(self) -> AbstractContextManager[None]: ...


def transaction(database: Database) -> AbstractContextManager[None]:
    """Write all or nothing."""
    return database.transaction()


def upsert(table: str, columns: Iterable[str], key: str, changes: Mapping[str, str]) -> str:
    """Return SQL that inserts a row of named values, or updates the row with the same key. `changes`: what a column
    becomes then, where that is not simply the new value."""
    names = list(columns)
    updates = {**{name: f"excluded.{name}" for name in names if name != key}, **changes}
    return f"""
        INSERT INTO {table} ({", ".join(names)}) VALUES ({", ".join(f":{name}" for name in names)})
        ON CONFLICT ({key}) DO UPDATE SET {", ".join(f"{name} = {value}" for name, value in updates.items())}
    """


def replace_rows(table: str, columns: Sequence[str], key: int = 1) -> str:
    """Return SQL that inserts a row of values, or replaces the row with the same key. `key`: how many columns it has,
    which are the first."""
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns[key:])
    return f"""
        INSERT INTO {table} ({", ".join(columns)}) VALUES ({", ".join("?" * len(columns))})
        ON CONFLICT ({", ".join(columns[:key])}) DO UPDATE SET {updates}
    """


def json_list(values: Iterable[object]) -> str:
    """Pack any number of values into one parameter, for `IN (SELECT value FROM json_each(?))`; of numbers,
    `IN (SELECT value + 0 FROM json_each(?))`."""
    return msgspec.json.encode([storable(value) if isinstance(value, str) else value for value in values]).decode()
