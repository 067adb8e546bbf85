"""Takes changes in files into the database, beside other processes that do the same over the same files.

What has changed becomes rows of `source_work`. A process takes some of them, reads the files, and stores what they
have, in one transaction: if it is killed, the next process takes them. Then it derives the sessions of what it stored.
"""

import time
from collections.abc import Iterable

import msgspec

from agent_logger.agents.databases.reading import databases_kept_open
from agent_logger.catalog.database import json_list, replace_rows
from agent_logger.catalog.discovery.reader import ResponseBatch
from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.families import derive_due, mark_due
from agent_logger.catalog.refresh.changes import Progress, count_change, store_property
from agent_logger.catalog.refresh.damage import AT_ONCE as DAMAGE_AT_ONCE
from agent_logger.catalog.refresh.damage import count_in
from agent_logger.catalog.refresh.families import SourceReading, forget_sources, store_sources
from agent_logger.catalog.refresh.ingest import read_source
from agent_logger.catalog.refresh.refresh import (
    STORE_SEALED,
    RefreshReport,
    SourceScan,
    StoredSource,
    is_changed,
    report,
    stored_price_date,
)
from agent_logger.catalog.refresh.session_sources import BilledResponses
from agent_logger.catalog.source_queries import SOURCE, source_of
from agent_logger.files import foreign
from agent_logger.files.sources import Source
from agent_logger.files.stored_text import restored, storable
from agent_logger.home.homes import Homes, RemovedSessions
from agent_logger.model.prices import price_date

SCAN_LOCK = 0x61676C6F68  # the number of the advisory lock of whoever looks at all files
SAME_IDS_LOCK = 0x61676C6F69  # the number of that of whoever stores sources with ids that repeat
AT_ONCE = 128  # sources that are read and stored together
MOST_BYTES = 64 << 20  # of these sources
LONGEST_NAME = 2500  # bytes of a path or an id; an index of PostgreSQL takes hardly more

_decode = msgspec.json.Decoder(Source).decode


def refresh(database: PostgresDatabase, homes: Homes, progress: Progress | None = None) -> RefreshReport:
    """Take in what has changed in the files of these homes. All processes that write to a database look at the same
    homes: what is in none of them is forgotten."""
    before = (foreign.work.files, foreign.work.bytes)
    scan = _look(database, homes)
    total, done = sum(source.size for source in scan.changed), 0
    while (read := database.retried(lambda: _store_some(database, scan.removed))) is not None:
        derive_due(database, read)
        done += sum(reading.source.size for reading in read)
        if progress:
            progress(min(done, total), total)
    _mark_overdue(database)
    while derive_due(database):
        pass
    return report(database, scan, before)


def _look(database: PostgresDatabase, homes: Homes) -> SourceScan:
    """Look at all files, one process at a time, and note which are to be read. Forget what is gone, unless it was found
    by another process meanwhile."""
    connection = database.connection
    connection.execute("SELECT pg_advisory_lock(%s)", (SCAN_LOCK,))
    try:
        known_keys = {key for (key,) in database.execute("SELECT key FROM sources")}
        scan = SourceScan(database, homes)
        gone = known_keys.intersection(scan.gone)
        database.retried(lambda: _store_scan(database, scan, gone))
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", (SCAN_LOCK,))
    return scan


def _store_scan(database: PostgresDatabase, scan: SourceScan, gone: Iterable[str]) -> None:
    if gone := sorted(gone):
        mark_due(database, _sessions_of(database, gone))
        mark_due(database, forget_sources(database, gone))
    rows = ((storable(path), *values) for path, values in sorted(scan.cache.new.items()))
    database.executemany(replace_rows("stamp_cache", ("path", "stamp", "value")), list(rows))
    for source in scan.sealed:
        database.execute(STORE_SEALED, (source.stamp, source.size, storable(source.key)))
    # So that whoever takes the work sees that they must be read.
    looked_up = (json_list(source.key for source in scan.lookups),)
    database.execute("UPDATE sources SET stamp = '' WHERE key IN (SELECT value FROM json_each(?))", looked_up)
    _add_work(database, scan.changed)
    if stored_price_date(database) != price_date():
        database.execute("UPDATE session_work SET is_due = true WHERE NOT is_due")
        store_property(database, "price_date", price_date())
    if gone or scan.sealed:
        count_change(database)


def _add_work(database: PostgresDatabase, changed: Iterable[Source]) -> None:
    """Note which sources are to be read; a source that a process is reading now is left to it."""
    with database.connection.cursor() as cursor:
        cursor.execute(
            """
            CREATE TEMPORARY TABLE IF NOT EXISTS changed_sources (LIKE source_work) ON COMMIT DELETE ROWS
            """
        )
        with cursor.copy("COPY changed_sources FROM STDIN") as copy:
            for source in filter(_fits, changed):
                copy.write_row((storable(source.key), _encode(source), source.modified))
        cursor.execute(
            """
            UPDATE source_work SET source = new.source, modified = new.modified FROM changed_sources new
            WHERE source_work.key = new.key AND source_work.source <> new.source AND source_work.key IN (
                SELECT key FROM source_work JOIN changed_sources USING (key) FOR UPDATE OF source_work SKIP LOCKED
            )
            """
        )
        cursor.execute("INSERT INTO source_work SELECT * FROM changed_sources ORDER BY key ON CONFLICT DO NOTHING")
        # What is left of a killed process and need not be read any more: its file is gone, or was read since.
        cursor.execute(
            """
            DELETE FROM source_work WHERE key IN (
                SELECT key FROM source_work WHERE key NOT IN (SELECT key FROM changed_sources)
                FOR UPDATE SKIP LOCKED
            )
            """
        )


@databases_kept_open()
def _store_some(database: PostgresDatabase, removed: RemovedSessions) -> list[SourceReading] | None:
    """Read some sources that no other process reads, and store what they have; none if there are none."""
    sources = _take_work(database)
    if not sources:
        return None
    states = _states(database, [source.key for source in sources])
    read = [
        _fitting(read_source(database, source, removed, is_stored=storable(source.key) in states))
        for source in sources
        if is_changed(source, states.get(storable(source.key)), removed)
    ]
    mark_due(database, {*(reading.batch.session for reading in read), *(states[key].session for key in states)})
    billed = {reading.source.key: BilledResponses(reading.batch.responses, reading.batch.totals) for reading in read}
    # Nobody else tells the same ids apart meanwhile. What is damaged may have had such an id.
    if any(reading.batch.repeated_id or reading.damage for reading in read):
        database.connection.execute("SELECT pg_advisory_xact_lock(%s)", (SAME_IDS_LOCK,))
    mark_due(database, store_sources(database, read, billed))
    database.execute(
        "DELETE FROM source_work WHERE key IN (SELECT value FROM json_each(?))",
        (json_list(source.key for source in sources),),
    )
    return read


def _fits(source: Source) -> bool:
    return all(map(_is_short, (storable(source.key), storable(source.path), storable(source.name))))


def _fitting(reading: SourceReading) -> SourceReading:
    """Replace a reading by an empty one if a name in it cannot be indexed: other sources must not wait for it."""
    batch = reading.batch
    if all(map(_is_short, filter(None, (batch.session, batch.parent, *batch.summaries)))):
        return reading
    nothing = ResponseBatch(reading.source.name, None, batch.witnesses, [])
    return SourceReading(reading.source, nothing, "it has a name that is too long for the database")


def _is_short(name: str) -> bool:
    return len(name.encode(errors="backslashreplace")) <= LONGEST_NAME


def _take_work(database: PostgresDatabase) -> list[Source]:
    rows = database.execute(
        f"SELECT source FROM source_work ORDER BY modified DESC LIMIT {AT_ONCE} FOR UPDATE SKIP LOCKED"
    )
    sources: list[Source] = []
    for (source,) in rows:
        sources.append(_restored(_decode(source)))
        if sum(source.size for source in sources) > MOST_BYTES:
            break
    return sources


def _encode(source: Source) -> str:
    others = None if source.others is None else tuple(map(storable, source.others))
    stored = source._replace(
        key=storable(source.key), path=storable(source.path), name=storable(source.name), others=others
    )
    return msgspec.json.encode(stored).decode()


def _restored(source: Source) -> Source:
    others = None if source.others is None else tuple(map(restored, source.others))
    return source._replace(
        key=restored(source.key), path=restored(source.path), name=restored(source.name), others=others
    )


def _states(database: PostgresDatabase, keys: Iterable[str]) -> dict[str, StoredSource]:
    rows = database.execute(
        "SELECT key, stamp, read_error, session FROM sources WHERE key IN (SELECT value FROM json_each(?))",
        (json_list(keys),),
    )
    return {key: StoredSource(*row) for key, *row in rows}


def _sessions_of(database: PostgresDatabase, keys: Iterable[str]) -> list[str]:
    return [state.session for state in _states(database, keys).values()]


@databases_kept_open()
def count_damaged_lines(database: PostgresDatabase, sessions: Iterable[str] | None) -> None:
    """Count damaged lines of sources that have changed since the last count, and that no other process counts."""
    among = "" if sessions is None else "AND session IN (SELECT value FROM json_each(?))"
    query = f"""
        SELECT id, {SOURCE} FROM sources WHERE damage_stamp IS NOT stamp {among}
        ORDER BY id LIMIT {DAMAGE_AT_ONCE} FOR UPDATE SKIP LOCKED
    """
    given = () if sessions is None else (json_list(sessions),)

    def count_some() -> bool:
        rows = database.execute(query, given).fetchall()
        count_in(database, [(number, source_of(values)) for number, *values in rows])
        return bool(rows)

    while database.retried(count_some):
        pass


def _mark_overdue(database: PostgresDatabase) -> None:
    """Mark sessions as due that have a request which was in flight, and has no answer by now."""
    now = (time.time(),)
    with database.transaction():
        overdue = database.execute("SELECT session FROM sources WHERE in_flight_until < ?", now).fetchall()
        if overdue:
            mark_due(database, [name for (name,) in overdue])
            database.execute("UPDATE sources SET in_flight_until = NULL WHERE in_flight_until < ?", now)
