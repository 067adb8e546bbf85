"""The steps that make the tables in PostgreSQL, and change those of an older version.

A step that was released is never changed: its name is noted in the database once it is done, with all that it made, in
one transaction. There is no way back. Processes that start together take turns; only the first one has something to do.
"""

from typing import LiteralString, NamedTuple

from psycopg import errors

from agent_logger.catalog.postgres.connection import SCHEMA, PostgresDatabase
from agent_logger.catalog.postgres.tables import ENDS, INHERITED, NAMES, QUARTERS, SOURCES, TABLES, TEXTS
from agent_logger.errors import StoreError

LOCK = 0x61676C6F67  # the number of the advisory lock


class Migration(NamedTuple):
    name: str
    sql: str


STEPS = (
    Migration("1 tables", TABLES),
    Migration("2 search index", TEXTS),
    Migration("3 quarters", QUARTERS),
    Migration("4 sessions of logs, ids that repeat, machines of imports", SOURCES),
    Migration("5 ends of sessions", ENDS),
    Migration("6 names", NAMES),
    Migration("7 what counts in other sessions", INHERITED),
)


def migrate(database: PostgresDatabase, steps: "tuple[Migration, ...]" = STEPS) -> None:
    """Do the steps that are missing. Raises `StoreError` if the database is newer than this program, or its user may
    not change it."""
    if not _missing(database, steps):
        return
    connection = database.connection
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            if not _exists(database):
                connection.execute(_SCHEMA)
            for step in _missing(database, steps):
                connection.execute(step.sql.encode())
                connection.execute("INSERT INTO migrations (name) VALUES (%s)", (step.name,))
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the database {database.name} needs new tables, and its user may not make them"
            f" ({error.diag.message_primary}); index once as the owner"
        ) from None


def check(database: PostgresDatabase, steps: "tuple[Migration, ...]" = STEPS) -> None:
    """Raise `StoreError` unless the tables are those of this program."""
    if not _exists(database):
        raise StoreError(f"the database {database.name} has no catalog: nothing was indexed into it yet")
    if missing := _missing(database, steps):
        raise StoreError(
            f"the catalog in {database.name} is older than this program (it lacks {missing[0].name!r}); index with this"
            " version first"
        )


_SCHEMA: LiteralString = f"""
    CREATE SCHEMA IF NOT EXISTS {SCHEMA};
    CREATE TABLE {SCHEMA}.migrations (name text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())
"""


def _exists(database: PostgresDatabase) -> bool:
    # By a query of the catalogs: what a function such as to_regclass tells may be older than what others committed.
    query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'migrations'"
    return database.connection.execute(query, (SCHEMA,)).fetchone() is not None


def _missing(database: PostgresDatabase, steps: tuple[Migration, ...]) -> list[Migration]:
    """Return the steps that are still to do. Raises `StoreError` if others were done."""
    if not _exists(database):
        return list(steps)
    done = {name for (name,) in database.connection.execute(f"SELECT name FROM {SCHEMA}.migrations")}
    if newer := done - {step.name for step in steps}:
        raise StoreError(
            f"the catalog in {database.name} was written by a newer version of agent-logger ({min(newer)!r}); update"
            " agent-logger"
        )
    return [step for step in steps if step.name not in done]
