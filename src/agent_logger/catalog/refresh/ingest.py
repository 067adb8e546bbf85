"""Reads changed files for what was billed, and adds it to the ledger, some files at a time."""

from collections.abc import Container, Iterable, Iterator, Sequence

import msgspec

from agent_logger.agents.databases.reading import databases_kept_open
from agent_logger.catalog.database import Database, transaction
from agent_logger.catalog.details import store_lone_details
from agent_logger.catalog.discovery.reader import ResponseBatch, read_batch
from agent_logger.catalog.ledger.rows import BIT
from agent_logger.catalog.ledger.stored_responses import decode_responses, decode_totals
from agent_logger.catalog.refresh.changes import REMOVED, Progress, count_change
from agent_logger.catalog.refresh.families import SourceReading, beginning_of, update_families
from agent_logger.catalog.refresh.same_ids import removed_name
from agent_logger.errors import SourceError
from agent_logger.files.follow import Position
from agent_logger.files.sources import Source
from agent_logger.files.stored_text import storable
from agent_logger.home.homes import RemovedSessions

FIRST_READ, MOST_READ = 256, 4096  # sources that are stored at once
MOST_RESPONSES = 20_000  # responses of these sources

_position = msgspec.json.Decoder(Position).decode


@databases_kept_open()
def ingest(
    database: Database,
    changed: Sequence[Source],
    stored: Container[str],
    removed: RemovedSessions,
    progress: Progress | None,
) -> int:
    """Read what has changed and store it. `stored`: keys of sources that the catalog has. Returns the number of
    portions."""
    portions = 0
    total, done = sum(source.size for source in changed), 0
    read = (read_source(database, source, removed, is_stored=storable(source.key) in stored) for source in changed)
    for batch in _batches(read):
        with transaction(database):
            update_families(database, batch)
            details = (
                (reading.batch.session, reading.batch.details) for reading in batch if not reading.batch.repeated_id
            )
            store_lone_details(database, [(name, read) for name, read in details if read])
            count_change(database)
        portions += 1
        done += sum(reading.source.size for reading in batch)
        if progress:
            progress(done, total)
    return portions


def read_source(database: Database, source: Source, removed: RemovedSessions, *, is_stored: bool) -> SourceReading:
    """Read a source; what is new in it, if the catalog has it and that can be told."""
    try:
        reading = SourceReading(source, read_batch(source, _load_batch(database, source) if is_stored else None))
    except (SourceError, OSError) as error:
        nothing = ResponseBatch(source.name, None, BIT["transcript"] if source.agent else 0, [])
        reading = SourceReading(source, nothing, str(error))
    return _drop_removed(removed, reading)


def _drop_removed(removed: RemovedSessions, reading: SourceReading) -> SourceReading:
    """Replace a reading by an empty one if the source turns out to be of a session that was removed."""
    batch, home = reading.batch, reading.source.home
    name = batch.session if removed.has(home, batch.session) else None
    if name is None and batch.repeated_id:
        name = removed_name(removed.by_home.get(home, ()), batch.repeated_id, batch.responses)
    if name is None:
        return reading
    return SourceReading(reading.source, ResponseBatch(name, None, 0, []), REMOVED)


def _load_batch(database: Database, source: Source) -> ResponseBatch | None:
    row = database.execute(
        """
        SELECT stamp, session, parent, witnesses, responses, position, totals, first_write,
            responses_before_own_line
        FROM sources JOIN source_responses ON source = sources.id WHERE key = ? AND position IS NOT NULL
        """,
        (storable(source.key),),
    ).fetchone()
    if row is None or _is_written_over(source.stamp, row[0]):
        return None
    _, session, parent, witnesses, responses, position, totals, *times = row
    responses_before, counted = decode_responses(responses), decode_totals(totals)
    beginning = beginning_of(parent, *times)
    return ResponseBatch(
        session, parent, witnesses, responses_before, _position(position), beginning=beginning, totals=counted
    )


def _is_written_over(stamp: str, before: str) -> bool:
    """Whether the main file was written to and has the size that it had: nothing was appended to it."""
    now, then = (text.partition(";")[0].split(":") for text in (stamp, before))
    return now[:2] == then[:2] and now != then


def _batches(read: Iterable[SourceReading]) -> Iterator[list[SourceReading]]:
    """Yield batches, each twice as large as the one before: thousands of sources may be one family, which every batch
    derives as a whole."""
    batch: list[SourceReading] = []
    count, most = 0, FIRST_READ
    for reading in read:
        batch.append(reading)
        count += len(reading.batch.responses)
        if len(batch) >= most or count >= MOST_RESPONSES:
            yield batch
            batch, count, most = [], 0, min(2 * most, MOST_READ)
    if batch:
        yield batch
