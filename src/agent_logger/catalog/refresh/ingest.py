"""What has changed is read for what was billed, and goes into the ledger, some files at a time."""

import sqlite3
from collections.abc import Container, Iterable, Iterator, Sequence

import msgspec

from agent_logger.catalog.database import storable, writing
from agent_logger.catalog.discovery.reader import Told, told_by, unpacked, unpacked_totals
from agent_logger.catalog.discovery.source import Found
from agent_logger.catalog.ledger.rows import BIT
from agent_logger.catalog.refresh.families import Read, beginning_of, post
from agent_logger.catalog.refresh.refresh import REMOVED, Progress, count_change
from agent_logger.errors import SourceError
from agent_logger.files.follow import Position

FIRST_READ, MOST_READ = 256, 4096  # sources that are taken in at once
MOST_RESPONSES = 20_000  # of them

_position = msgspec.json.Decoder(Position).decode


def take_in(
    database: sqlite3.Connection,
    changed: Sequence[Found],
    known: Container[str],
    removed: frozenset[str],
    progress: Progress | None,
) -> int:
    """`known`: the keys of those that are there already. In how many portions."""
    portions = 0
    total, done = sum(it.size for it in changed), 0
    read = (_read(it, _before(database, it) if storable(it.key) in known else None) for it in changed)
    for batch in _batches(_without(removed, it) for it in read):
        with writing(database):
            post(database, batch)
            count_change(database)
        portions += 1
        done += sum(it.found.size for it in batch)
        if progress:
            progress(done, total)
    return portions


def _read(it: Found, before: Told | None) -> Read:
    try:
        return Read(it, told_by(it, before))
    except (SourceError, OSError) as error:
        nothing = Told(it.name, None, BIT["transcript"] if it.agent else 0, [])
        return Read(it, nothing, str(error))


def _without(removed: frozenset[str], it: Read) -> Read:
    """Nothing, of a log that turns out to be of a session that was removed."""
    if it.told.session not in removed:
        return it
    return Read(it.found, Told(it.told.session, None, 0, []), REMOVED)


def _before(database: sqlite3.Connection, it: Found) -> Told | None:
    row = database.execute(
        """
        SELECT stamp, session, parent, witnesses, responses, position, totals, first_written, own_line_after
        FROM sources JOIN told ON told.source = sources.id WHERE key = ? AND position IS NOT NULL
        """,
        (storable(it.key),),
    ).fetchone()
    if row is None or _is_written_over(it.stamp, row[0]):
        return None
    _, session, parent, witnesses, responses, position, totals, *times = row
    known, counted = unpacked(responses), unpacked_totals(totals)
    beginning = beginning_of(parent, *times)
    return Told(session, parent, witnesses, known, _position(position), beginning=beginning, totals=counted)


def _is_written_over(stamp: str, before: str) -> bool:
    """Whether the main file was written to and has the size that it had: nothing was appended to it."""
    now, then = (it.partition(";")[0].split(":") for it in (stamp, before))
    return now[:2] == then[:2] and now != then


def _batches(read: Iterable[Read]) -> Iterator[list[Read]]:
    """Each twice as many as the one before: thousands may be one family, which every batch derives as a whole."""
    batch: list[Read] = []
    count, most = 0, FIRST_READ
    for it in read:
        batch.append(it)
        count += len(it.told.responses)
        if len(batch) >= most or count >= MOST_RESPONSES:
            yield batch
            batch, count, most = [], 0, min(2 * most, MOST_READ)
    if batch:
        yield batch
