"""Derives sessions while other processes store sources and derive sessions, too.

A process that stores a source marks its session as due, in the same transaction. Whoever derives a session holds its
row in `session_work`, and those of its whole family, from before it reads the sources until it has written the rows. So
two processes never derive one family at once, and the one that stored last is seen by whoever derives last. A process
that is killed leaves its sessions due, and nothing of what it wrote.

Locks of several rows are waited for in the order of their names only, and by processes that hold no other; so they
cannot wait for each other. These locks are rows, not advisory locks, because a family may have thousands of sessions,
and the server has room for a few thousand advisory locks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from agent_logger.catalog.database import json_list
from agent_logger.catalog.details import store_lone_details
from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.refresh.changes import count_change
from agent_logger.catalog.refresh.families import PARENT, SourceReading, derive, with_families
from agent_logger.catalog.refresh.session_sources import BilledResponses

AT_ONCE = 256  # sessions


class _BusyError(Exception):
    """The error that another process holds some of these sessions."""

    def __init__(self, sessions: set[str]) -> None:
        super().__init__("in use")
        self.sessions = sessions


def mark_due(database: PostgresDatabase, sessions: Iterable[str]) -> None:
    """Mark sessions as due. Call it within a transaction, before their sources are changed."""
    database.connection.execute(
        """
        INSERT INTO session_work SELECT DISTINCT name COLLATE "C", true FROM json_items(%s) name ORDER BY 1
        ON CONFLICT (session) DO UPDATE SET is_due = true
        """,
        (json_list(sessions),),
    )


def derive_due(database: PostgresDatabase, read: Sequence[SourceReading] = ()) -> int:
    """Derive sessions that are due and that no other process holds; of these readings only, if they are given. Returns
    how many sessions were derived."""
    try:
        return database.retried(lambda: _derive_free(database, read))
    except _BusyError as error:
        return _derive_waiting(database, error.sessions, read)


def _derive_free(database: PostgresDatabase, read: Sequence[SourceReading]) -> int:
    names = _lock_due(database, {reading.batch.session for reading in read})
    new = names
    while new:
        new = _existing(database, _related(database, new) - names)
        if new != _lock(database, new, "SKIP LOCKED"):
            raise _BusyError(names | new)
        names = names | new
    _derive_locked(database, names, read)
    return len(names)


def _derive_waiting(database: PostgresDatabase, names: set[str], read: Sequence[SourceReading]) -> int:
    """Derive a family of which another process held a part. It may grow while this one waits."""
    while (family := database.retried(partial(_try_derive, database, names, read))) != names:
        names = family
    return len(names)


def _try_derive(database: PostgresDatabase, names: set[str], read: Sequence[SourceReading]) -> set[str]:
    """Derive these sessions if nobody else is related to them. Returns them with their relatives."""
    _lock(database, names)
    family = names
    while new := _existing(database, _related(database, family) - family):
        family = family | new
    if family == names and _any_due(database, names):
        _derive_locked(database, names, read)
    return family


def _derive_locked(database: PostgresDatabase, names: set[str], read: Sequence[SourceReading]) -> None:
    if not names:
        return
    current = _current(database, read)
    derive(
        database,
        names,
        {reading.source.key: BilledResponses(reading.batch.responses, reading.batch.totals) for reading in current},
    )
    alone = (reading.batch for reading in current if not reading.batch.repeated_id)
    details = ((batch.session, batch.details) for batch in alone)
    store_lone_details(database, [(name, stored) for name, stored in details if stored and name in names])
    given = (json_list(names),)
    database.execute(
        "UPDATE session_work SET is_due = false WHERE is_due AND session IN (SELECT value FROM json_each(?))", given
    )
    count_change(database)


def _current(database: PostgresDatabase, read: Sequence[SourceReading]) -> list[SourceReading]:
    """Return the readings that are in the database as they were read, not as another process read them later."""
    rows = database.execute(
        "SELECT key, stamp FROM sources WHERE key IN (SELECT value FROM json_each(?))",
        (json_list(reading.source.key for reading in read),),
    )
    stamps: Mapping[str, str] = dict(rows)
    return [reading for reading in read if stamps.get(reading.source.key) == reading.source.stamp]


# ---------------------------------------------------------------- locks


def _lock_due(database: PostgresDatabase, only: Collection[str]) -> set[str]:
    among = "AND session IN (SELECT value FROM json_each(?))" if only else ""
    rows = database.execute(
        f"""
        SELECT session FROM session_work WHERE is_due {among}
        ORDER BY session LIMIT {len(only) or AT_ONCE} FOR UPDATE SKIP LOCKED
        """,
        (json_list(only),) if only else (),
    )
    return {name for (name,) in rows}


def _lock(database: PostgresDatabase, sessions: Collection[str], otherwise: str = "") -> set[str]:
    """Lock the sessions in the order of their names. Returns those that were locked."""
    if not sessions:
        return set()
    rows = database.execute(
        f"""
        SELECT session FROM session_work WHERE session IN (SELECT value FROM json_each(?))
        ORDER BY session FOR UPDATE OF session_work {otherwise}
        """,
        (json_list(sessions),),
    )
    return {name for (name,) in rows}


def _existing(database: PostgresDatabase, sessions: Collection[str]) -> set[str]:
    """Return those of the sessions that have, or had, any source."""
    rows = database.execute(
        "SELECT session FROM session_work WHERE session IN (SELECT value FROM json_each(?))", (json_list(sessions),)
    )
    return {name for (name,) in rows}


def _any_due(database: PostgresDatabase, sessions: Collection[str]) -> bool:
    query = "SELECT 1 FROM session_work WHERE is_due AND session IN (SELECT value FROM json_each(?)) LIMIT 1"
    return database.execute(query, (json_list(sessions),)).fetchone() is not None


# ---------------------------------------------------------------- families


def _related(database: PostgresDatabase, sessions: set[str]) -> set[str]:
    """Return sessions that have something in common with one of these: a response, a parent, a family."""
    given = json_list(sessions)
    own = "SELECT id FROM sources WHERE session IN (SELECT value FROM json_each(?))"
    with_response = f"""
        SELECT session FROM sources WHERE id IN (
            SELECT copy.source FROM response_keys JOIN response_keys copy USING (key)
            WHERE response_keys.source IN ({own}) AND copy.source <> response_keys.source
        )
    """
    parents = (
        f"SELECT {PARENT} FROM sources own WHERE session IN (SELECT value FROM json_each(?)) AND parent IS NOT NULL"
    )
    forks = """
        SELECT session FROM sources WHERE parent IN (
            SELECT value FROM json_each(?) UNION
            SELECT name FROM sources WHERE session IN (SELECT value FROM json_each(?))
        )
    """
    found_sessions = {
        name
        for query in (with_response, parents, forks)
        for (name,) in database.execute(query, (given,) * query.count("?"))
    }
    return with_families(database, sessions | found_sessions)
