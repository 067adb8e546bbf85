"""The first pass: what is new or changed is read for what was billed, and goes into the ledger.

What is unchanged by its stamp is not opened; what has grown is read incrementally where its reader can.
"""

import time
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from agent_logger.agents.registry import id_and_mark
from agent_logger.catalog.database import Database, json_list, replace_rows, transaction
from agent_logger.catalog.discovery.all_sources import find_sources
from agent_logger.catalog.discovery.own_logs import is_only_sealed
from agent_logger.catalog.refresh.changes import REMOVED, Progress, changes, count_change, store_property
from agent_logger.files import foreign
from agent_logger.files.sources import Source, StampCache
from agent_logger.files.stored_text import hashed, restored, storable
from agent_logger.home.homes import Homes, RemovedSessions
from agent_logger.model.prices import price_date


class RefreshReport(NamedTuple):
    """The result of a refresh: how many sources there are, and how many it read."""

    sources: int  # sources that exist
    changed: int  # sources that were read
    removed: int
    files_opened: int
    bytes_read: int
    unsealed_since: float  # the earliest time that an unsealed part of a log was last written to


def refresh(database: Database, homes: Homes, progress: Progress | None = None) -> RefreshReport:
    """Take in what has changed. What was removed does not come back, whichever witness still has it."""
    before = (foreign.work.files, foreign.work.bytes)
    scan = SourceScan(database, homes)
    written = _store_known_changes(database, scan)
    if scan.changed:
        from agent_logger.catalog.refresh.ingest import ingest  # the readers are not needed before

        written += ingest(database, scan.changed, scan.stored, scan.removed, progress)
    _store_folder_hashes(database, scan, written)
    _update_prices(database)
    _count_overdue(database)
    return report(database, scan, before)


def report(database: Database, scan: "SourceScan", before: tuple[int, int]) -> RefreshReport:
    """Return what a refresh did. `before`: how many files and bytes had been read when it began."""
    return RefreshReport(
        sources=database.execute("SELECT count(*) FROM sources").fetchone()[0],
        changed=len(scan.changed),
        removed=len(scan.gone),
        files_opened=foreign.work.files - before[0],
        bytes_read=foreign.work.bytes - before[1],
        unsealed_since=scan.cache.unsealed_since,
    )


class SourceScan:
    """The sources that exist, compared with what is known of them."""

    def __init__(self, database: Database, homes: Homes) -> None:
        self.removed = RemovedSessions(homes)
        self.changes = changes(database)  # changes before we looked
        self.folder_hashes = _load_folder_hashes(database, self.removed)
        rows = database.execute("SELECT path, stamp, value FROM stamp_cache")
        stamps = {path: (stamp, values) for path, stamp, values in rows}
        self.cache = StampCache(stamps, self.folder_hashes)
        there = {
            storable(source.key): source
            for source in find_sources(homes, self.cache)
            if not self.removed.has(source.home, source.name)
        }
        self.stored = state_by_key = source_states(database, self.cache.unchanged)
        changed = [source for key, source in there.items() if is_changed(source, state_by_key.get(key), self.removed)]
        self.lookups: list[Source] = []  # unchanged sources that are read again
        if any(source.agent for source in changed):
            from agent_logger.catalog.refresh.lookups import logs_to_look_up  # the readers are not needed before

            self.lookups = logs_to_look_up(database, changed)
        if any(map(id_and_mark, chain(*self.removed.by_home.values()))):
            from agent_logger.catalog.refresh.same_ids import sources_of_removed

            chosen_keys = {source.key for source in (*changed, *self.lookups)}
            removed_sources = (there[key] for key in sources_of_removed(database, self.removed) if key in there)
            self.lookups += [source for source in removed_sources if source.key not in chosen_keys]
        changed += self.lookups
        self.changed = sorted(changed, key=lambda source: -source.modified)
        self.sealed = [
            source
            for key, source in there.items()
            if _is_only_sealed(source, state_by_key.get(key)) and source not in changed
        ]
        self.gone = [key for key in state_by_key if key not in there]


# Facts about a log are true of its sealed form, too, except for the names of files with damaged lines.
STORE_SEALED = """
    UPDATE sources SET stamp = ?1, size = ?2,
        closed_stamp = CASE WHEN closed_stamp = stamp THEN ?1 ELSE closed_stamp END,
        damage_stamp = CASE WHEN damage_stamp = stamp AND damaged_lines = 0 THEN ?1 ELSE damage_stamp END
    WHERE key = ?3
"""


def _store_known_changes(database: Database, scan: SourceScan) -> int:
    """Store what is known without opening a file. Returns how many changes that was."""
    if not (scan.gone or scan.sealed or scan.cache.new):
        return 0
    with transaction(database):
        rows = ((storable(path), *values) for path, values in scan.cache.new.items())
        database.executemany(replace_rows("stamp_cache", ("path", "stamp", "value")), rows)
        for source in scan.sealed:
            database.execute(STORE_SEALED, (source.stamp, source.size, storable(source.key)))
        if scan.gone:
            from agent_logger.catalog.refresh.families import update_families

            update_families(database, [], scan.gone)
            database.execute("DELETE FROM folder_hashes")  # a deleted folder may be restored as it was
        count_change(database)
    return 1


class StoredSource(NamedTuple):
    stamp: str
    damage: str | None
    session: str


def source_states(database: Database, unchanged: Sequence[str]) -> dict[str, StoredSource]:
    """Return the states of sources by key, except for those in folders that look unchanged."""
    rows = database.execute(
        """
        SELECT key, stamp, read_error, session FROM sources WHERE folder IN (
            SELECT folder FROM (SELECT DISTINCT folder FROM sources) folders
            WHERE folder NOT IN (SELECT value || '/' FROM json_each(?))
        )
        """,
        (json_list(unchanged),),
    )
    return {key: StoredSource(*row) for key, *row in rows}


def _is_only_sealed(source: Source, before: StoredSource | None) -> bool:
    """Whether a log of ours has the same content in sealed form: nothing of it must be read again."""
    return (
        before is not None
        and source.agent is None
        and before.stamp != source.stamp
        and is_only_sealed(source.stamp, before.stamp)
    )


def is_changed(source: Source, before: StoredSource | None, removed: RemovedSessions) -> bool:
    """Whether a source must be read. What could not be read may be readable now; what was removed since must be
    forgotten."""
    if before is None or (before.stamp != source.stamp and not _is_only_sealed(source, before)):
        return True
    return before.damage != REMOVED if removed.has(source.home, before.session) else before.damage is not None


def stored_price_date(database: Database) -> str | None:
    """Return the date of the price list that all costs come from; none if there are no costs yet."""
    row = database.execute("SELECT value FROM properties WHERE name = 'price_date'").fetchone()
    return row[0] if row else None


def _update_prices(database: Database) -> None:
    """Derive the ledger again if the price list has changed: all its costs come from one price list."""
    stored = stored_price_date(database)
    if stored == price_date():
        return
    with transaction(database):
        if stored:
            from agent_logger.catalog.refresh.families import derive_all

            derive_all(database)
        store_property(database, "price_date", price_date())
        count_change(database)


def _count_overdue(database: Database) -> None:
    query = "SELECT 1 FROM sources WHERE in_flight_until < ? LIMIT 1"
    if database.execute(query, (time.time(),)).fetchone():
        from agent_logger.catalog.refresh.families import derive_overdue

        with transaction(database):
            derive_overdue(database)
            count_change(database)


# ---------------------------------------------------------------- folders that look as they did


def _load_folder_hashes(database: Database, removed: RemovedSessions) -> dict[str, str]:
    """Return the folder hashes; none after a session was removed: all that shows it must be found."""
    row = database.execute("SELECT value FROM properties WHERE name = 'tombstones'").fetchone()
    if (row[0] if row else "") != _hash_names(removed):
        return {}
    return {restored(path): value for path, value in database.execute("SELECT path, hash FROM folder_hashes")}


def _hash_names(removed: RemovedSessions) -> str:
    names = "/".join(removed.names)
    return str(hashed(names)) if names else ""


def _store_folder_hashes(database: Database, scan: SourceScan, written: int) -> None:
    """Store the hashes, once all that is in these folders was taken in, and if no other process wrote meanwhile: one
    that looked before us may have stored what it saw then. A folder with a file that cannot be read is looked at every
    time."""
    if scan.cache.looks == scan.folder_hashes:
        return
    query = "SELECT DISTINCT folder FROM sources WHERE read_error IS NOT NULL AND read_error <> ?"
    unread = {restored(folder) for (folder,) in database.execute(query, (REMOVED,))}
    hashes = {folder: value for folder, value in scan.cache.looks.items() if f"{folder}/" not in unread}
    if hashes == scan.folder_hashes:
        return
    with transaction(database):
        if changes(database) == scan.changes + written:
            database.execute("DELETE FROM folder_hashes")
            rows = ((storable(folder), value) for folder, value in hashes.items())
            database.executemany("INSERT INTO folder_hashes VALUES (?, ?)", rows)
            store_property(database, "tombstones", _hash_names(scan.removed))
