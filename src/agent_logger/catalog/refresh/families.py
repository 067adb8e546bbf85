"""Turns what witnesses reported into sessions and the ledger, in the database.

The ledger is a function of all responses; but copies of a response are only in sessions that have something in common.
So sessions are grouped into families, and a change derives the rows of its family again, and no others. Families that
something new connects become one.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from agent_logger.agents.claude_code.transcript.beginning import Beginning
from agent_logger.archive.imported import machine_of
from agent_logger.catalog.database import Database, json_list, replace_rows, upsert
from agent_logger.catalog.discovery.reader import NO_SESSION, ResponseBatch
from agent_logger.catalog.ledger.ledger import Ledger, shared_key
from agent_logger.catalog.ledger.rows import BITS, NEVER, LedgerRow, micros_of, place_of, time_of
from agent_logger.catalog.ledger.stored_responses import (
    decode_responses,
    decode_totals,
    encode_responses,
    encode_totals,
)
from agent_logger.catalog.refresh.changes import REMOVED, unread_stamp
from agent_logger.catalog.refresh.descent import Descent, ResponseOrigins, families_of
from agent_logger.catalog.refresh.same_ids import tell_apart
from agent_logger.catalog.refresh.session_rows import SESSION_CHANGES, inherited_hash, keys_of, session_columns
from agent_logger.catalog.refresh.session_sources import BilledResponses, BilledSource, SessionSources
from agent_logger.catalog.session_details import micros_or_none
from agent_logger.files.sources import Source
from agent_logger.files.stored_text import hashed, storable
from agent_logger.home.homes import FROM_IMPORT
from agent_logger.model.not_itemised import in_flight_until
from agent_logger.model.redaction.redactor import hidden

LONGEST_SUMMARY = 500  # characters


class SourceReading(msgspec.Struct):
    """A source as it was found, and what it reported; or why it could not be read."""

    source: Source
    batch: ResponseBatch
    damage: str | None = None


def update_families(database: Database, read: Sequence[SourceReading], gone: Sequence[str] = ()) -> None:
    """Store what was read, and forget what is gone (its keys). Call it within a transaction."""
    changed = json_list([*gone, *(reading.source.key for reading in read)])
    of_changed = "FROM sources WHERE key IN (SELECT value FROM json_each(?))"
    dirty = {name for (name,) in database.execute(f"SELECT session {of_changed}", (changed,))}
    if gone:
        dirty |= forget_sources(database, gone)
    fresh = {reading.source.key: BilledResponses(reading.batch.responses, reading.batch.totals) for reading in read}
    dirty |= store_sources(database, read, fresh)
    dirty |= {reading.batch.session for reading in read}
    dirty |= _sessions_with_keys(database, {key for source in fresh.values() for key in source.keys})
    dirty |= _relatives(database, read)
    derive(database, with_families(database, dirty), fresh)


def forget_sources(database: Database, keys: Iterable[str]) -> set[str]:
    """Forget sources. Returns sessions that have other sources for that."""
    given, of_keys = (json_list(keys),), "FROM sources WHERE key IN (SELECT value FROM json_each(?))"
    had = database.execute(f"SELECT DISTINCT source FROM summaries WHERE source IN (SELECT id {of_keys})", given)
    _reset_details(database, [source for (source,) in had.fetchall()])
    for table in ("response_keys", "source_responses", "summaries", "damage_counts"):
        database.execute(f"DELETE FROM {table} WHERE source IN (SELECT id {of_keys})", given)
    repeated = database.execute(f"SELECT DISTINCT repeated_id {of_keys}", given).fetchall()
    database.execute(f"DELETE {of_keys}", given)
    return tell_apart(database, (name for (name,) in repeated))


def store_sources(database: Database, read: Sequence[SourceReading], billed: Mapping[str, BilledResponses]) -> set[str]:
    """Store what was read. `billed`: the same by key. Returns sessions that have other sources for that."""
    given = (json_list(storable(reading.source.key) for reading in read),)
    query = "SELECT DISTINCT repeated_id FROM sources WHERE key IN (SELECT value FROM json_each(?))"
    before = database.execute(query, given).fetchall()
    numbers = [(_store_source(database, reading), billed[reading.source.key].keys) for reading in read]
    for (source, _), reading in zip(numbers, read, strict=True):
        _store_summaries(database, source, reading.batch)
    # Sorted, as they are in the file.
    known_by = sorted((key, source) for source, keys in numbers for key in keys)
    database.executemany("INSERT INTO response_keys VALUES (?, ?) ON CONFLICT DO NOTHING", known_by)
    return tell_apart(database, [*(name for (name,) in before), *(reading.batch.repeated_id for reading in read)])


def derive_all(database: Database) -> None:
    """Derive everything again from what is stored, as after a new price list."""
    query = "SELECT family FROM sessions UNION SELECT session FROM sources WHERE session LIKE ? ORDER BY 1"
    names = [name for (name,) in database.execute(query, (f"{NO_SESSION}%",))]
    for start in range(0, len(names), 200):
        derive(database, with_families(database, set(names[start : start + 200])), {})


def derive_overdue(database: Database) -> None:
    """Derive sessions again that have a request which was in flight, and has no answer by now."""
    due = "FROM sources WHERE in_flight_until < ?"
    now = (time.time(),)
    sessions = {name for (name,) in database.execute(f"SELECT session {due}", now)}
    derive(database, with_families(database, sessions), {})
    database.execute(f"UPDATE sources SET in_flight_until = NULL WHERE id IN (SELECT id {due})", now)


def _store_source(database: Database, reading: SourceReading) -> int:
    """Store a source. Returns its number."""
    source, batch = reading.source, reading.batch
    columns = {
        "key": storable(source.key),
        "path": storable(source.path),
        "agent": source.agent,
        "home": source.home,
        "machine": _machine_of(source),
        "imported": source.imported,
        "name": storable(source.name),
        "other_paths": None if source.others is None else json_list(source.others),
        "session": storable(batch.session),
        "parent": batch.parent and storable(batch.parent),
        "repeated_id": batch.repeated_id,
        "possible_agents": json_list(sorted(batch.possible_agents)) if batch.possible_agents else None,
        "witnesses": batch.witnesses,
        "size": source.size,
        "modified": source.modified,
        "stamp": source.stamp,
        "read_error": reading.damage,
        # No lock is tried in another home: nobody can tell whether a program on its machine has the log open.
        "closed_stamp": source.stamp if source.home else None,
        **_times(batch.beginning),
        "in_flight_until": max(filter(None, (in_flight_until(total.total) for total in batch.totals)), default=None),
    }
    unchanged = {name: f"sources.{name}" for name in ("path", "agent", "home", "name")}
    query = upsert(
        "sources", columns, "key", unchanged | {"closed_stamp": "coalesce(excluded.closed_stamp, sources.closed_stamp)"}
    )
    number: int = database.execute(f"{query} RETURNING id", columns).fetchone()[0]
    position = msgspec.json.encode(batch.position) if batch.position else None
    database.execute(
        replace_rows("source_responses", ("source", "position", "responses", "totals")),
        (number, position, batch.data or encode_responses(batch.responses), encode_totals(batch.totals)),
    )
    return number


def _machine_of(source: Source) -> str:
    """Return the key of the machine that a source is from."""
    if source.imported is None:
        return source.home
    return FROM_IMPORT + storable(machine_of(Path(source.path)) or "")


def _store_summaries(database: Database, source: int, batch: ResponseBatch) -> None:
    """Store summaries. Each may describe a session beside this one, which may have been read before and must then be
    read again."""
    stored = dict(database.execute("SELECT leaf, text FROM summaries WHERE source = ?", (source,)))
    new = {storable(leaf): storable(hidden(text)[:LONGEST_SUMMARY]) for leaf, text in batch.summaries.items()}
    if batch.is_rest:
        new = {**stored, **new}
    if new == stored:
        return
    database.execute("DELETE FROM summaries WHERE source = ?", (source,))
    database.executemany("INSERT INTO summaries VALUES (?, ?, ?)", [(leaf, source, text) for leaf, text in new.items()])
    _reset_details(database, [source])


def _reset_details(database: Database, sources: Iterable[int]) -> None:
    """Mark the sessions in the same folders to be read again: their titles may change."""
    database.execute(
        """
        UPDATE sessions SET details_stamp = ?, details_position = NULL WHERE id IN (
            SELECT session FROM sources WHERE folder IN (
                SELECT folder FROM sources WHERE id IN (SELECT value + 0 FROM json_each(?))
            )
        )
        """,
        (unread_stamp(), json_list(sources)),
    )


def _times(beginning: Beginning | None) -> dict[str, int | None]:
    """Return the columns of a source that say how its file begins."""
    return {
        "first_write": micros_or_none(beginning.first_written) if beginning else None,
        "responses_before_own_line": beginning.own_line_after if beginning else None,
    }


def beginning_of(parent: str | None, first_written: int | None, own_line_after: int | None) -> Beginning:
    """Build a beginning from the columns of a source."""
    written = None if first_written is None else time_of(first_written)
    return Beginning(forked_from=parent, first_written=written, own_line_after=own_line_after)


def _sessions_with_keys(database: Database, keys: Collection[int]) -> set[str]:
    """Return sessions that have a response with one of these keys."""
    rows = database.execute(
        """
        SELECT DISTINCT session FROM sources WHERE id IN (
            SELECT source FROM json_each(?) JOIN response_keys ON response_keys.key = value + 0
        )
        """,
        (json_list(keys),),
    )
    return {name for (name,) in rows}


def _relatives(database: Database, read: Sequence[SourceReading]) -> set[str]:
    """Return the sessions that these name as their parents, and those that name these."""
    rows = database.execute(
        f"SELECT {PARENT} FROM sources own WHERE key IN (SELECT value FROM json_each(?)) AND parent IS NOT NULL",
        (json_list(reading.source.key for reading in read),),
    )
    names = json_list({reading.batch.session for reading in read} | {reading.source.name for reading in read})
    forks = database.execute("SELECT session FROM sources WHERE parent IN (SELECT value FROM json_each(?))", (names,))
    return {name for (name,) in (*rows, *forks)}


# A branch of a wire log names the log beside it, whose session may have another name.
PARENT = """
    coalesce(
        (SELECT log.session FROM sources log
            WHERE log.name = own.parent AND log.agent IS NULL AND log.folder = own.folder AND own.agent IS NULL),
        own.parent
    )
"""


def with_families(database: Database, sessions: set[str]) -> set[str]:
    """Return these sessions, and all that have something in common with one of them."""
    rows = database.execute(
        """
        SELECT id FROM sessions WHERE family IN (
            SELECT family FROM sessions WHERE id IN (SELECT value FROM json_each(?))
        )
        """,
        (json_list(sessions),),
    )
    return sessions | {name for (name,) in rows}


# ---------------------------------------------------------------- deriving


def derive(database: Database, names: set[str], fresh: Mapping[str, BilledResponses]) -> None:
    """Derive the rows of whole families again. `fresh`: what is known of sources without a query."""
    gathered: dict[str, SessionSources] = {}
    for session, source in _sources(database, names, fresh):
        gathered.setdefault(session, SessionSources()).sources.append(source)
    has_imports = _drop_outranked(gathered)
    families = families_of(gathered)
    descent = Descent(gathered, families)
    parents = descent.parents
    ledger = Ledger(descent.places)
    sources = [source for group in gathered.values() for source in group.sources]
    for billed in _counted_once(sources) if has_imports else (source.billed for source in sources):
        ledger.add(billed.responses)
        ledger.add_totals(billed.totals)
    for row in ledger.rows(ResponseOrigins(gathered, parents).session_of):
        gathered[row.session].rows.append(row)
    _replace_rows(database, names, [row for group in gathered.values() for row in group.rows])
    gone = (json_list(names - gathered.keys()),)
    for table, column in (("sessions", "id"), ("ledger_places", "session"), ("response_tools", "session")):
        database.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", gone)
    sizes = Counter(families.values())
    counted = set(keys_of(row for name, group in gathered.items() if sizes[families[name]] > 1 for row in group.rows))
    sessions = [
        session_columns(
            name,
            group,
            families[name],
            parents.get(name),
            descent.places.get(name, 0),
            inherited_hash(group, counted) if sizes[families[name]] > 1 else 0,
        )
        for name, group in sorted(gathered.items())  # processes lock rows in one order
        if not name.startswith(NO_SESSION)
    ]
    if sessions:
        database.executemany(upsert("sessions", sessions[0], "id", SESSION_CHANGES), sessions)


def _drop_outranked(gathered: Mapping[str, SessionSources]) -> bool:
    """Drop what was imported of sessions that this machine has. Returns whether any source was imported."""
    has_imports = False
    for group in gathered.values():
        if any(source.is_imported for source in group.sources):
            has_imports = True
            group.sources = [source for source in group.sources if not source.is_imported] or group.sources
    return has_imports


def _counted_once(sources: Sequence[BilledSource]) -> Iterator[BilledResponses]:
    """Yield what counts: of imported sources only responses that no source of this machine has, so that an import,
    which may say anything, changes nothing in the sums of this machine's sessions. A client's total, of which a part
    counts elsewhere, is left out."""
    own_keys = {key for source in sources if not source.is_imported for key in source.billed.keys}
    for source in sources:
        if not source.is_imported or own_keys.isdisjoint(source.billed.keys):
            yield source.billed
            continue
        responses = [row for row in source.responses if (key := shared_key(row)) is None or hashed(key) not in own_keys]
        yield BilledResponses(responses, ())


def _sources(
    database: Database, names: set[str], fresh: Mapping[str, BilledResponses]
) -> Iterable[tuple[str, BilledSource]]:
    rows = database.execute(
        f"""
        SELECT session, repeated_id, machine, key, agent, imported, {PARENT}, witnesses, size, modified, stamp,
            responses, totals, first_write, responses_before_own_line
        FROM sources own JOIN source_responses ON source = own.id
        WHERE session IN (SELECT value FROM json_each(?)) AND read_error IS NOT ? ORDER BY key
        """,
        (json_list(names), REMOVED),
    )
    for session, repeated_id, machine, key, *facts in rows:
        agent, imported, parent, witnesses, size, modified, stamp, data, totals, *times = facts
        responses = fresh.get(key) or BilledResponses(decode_responses(data), decode_totals(totals))
        if repeated_id not in (None, session):
            responses = responses.in_session(session)
        if machine:
            responses = responses.in_home(machine)
        beginning = beginning_of(None, *times)
        is_imported = imported is not None
        yield session, BilledSource(agent, is_imported, parent, witnesses, size, modified, stamp, responses, beginning)


def _replace_rows(database: Database, sessions: set[str], rows: Sequence[LedgerRow]) -> None:
    given = (json_list(sessions),)
    for table in database.ledger_tables:
        database.execute(
            f"""
            DELETE FROM {table} WHERE place IN (
                SELECT id FROM ledger_places WHERE session IN (SELECT value FROM json_each(?))
            )
            """,
            given,
        )
    places, models = list(map(place_of, rows)), list(map(_model_tier, rows))
    place_ids = _row_ids(database, "ledger_places", places)
    model_ids = _row_ids(database, "model_tiers", models)
    database.insert_ledger(
        [
            (place_ids[place], model_ids[model], *_ledger_values(row))
            for row, place, model in zip(rows, places, models, strict=True)
        ]
    )


_model_tier: Callable[[LedgerRow], tuple[str, str | None, str | None]] = attrgetter("family", "model", "tier")


def _row_ids(
    database: Database, table: str, rows: Iterable[tuple[str | None, ...]]
) -> dict[tuple[str | None, ...], int]:
    """Return the numbers of these rows; those that do not exist yet get one."""
    columns = COLUMNS[table]
    same = f"{columns[0]} = ? AND " + " AND ".join(f"{column} IS ?" for column in columns[1:])
    query = f"SELECT id FROM {table} WHERE {same}"
    into = f"""
        INSERT INTO {table} ({", ".join(columns)}) VALUES ({", ".join("?" * len(columns))})
        ON CONFLICT DO NOTHING RETURNING id
    """
    numbers: dict[tuple[str | None, ...], int] = {}
    for values in sorted(set(rows), key=str):
        storable_values = [value and storable(value) for value in values]
        for statement in (query, into, query):  # another process may add it in between
            if row := database.execute(statement, storable_values).fetchone():
                numbers[values] = row[0]
                break
    return numbers


COLUMNS = {
    "ledger_places": ("session", "project", "agent", "thread", "home"),
    "model_tiers": ("vendor", "model", "tier"),
}


# ---------------------------------------------------------------- values


def _ledger_values(row: LedgerRow) -> tuple[object, ...]:
    """Return the row's values with as few `None` as possible, and no `bool`: each takes as long to bind as five
    numbers."""
    usage, unpriced = row.usage, isinstance(row.nano_usd, str)
    return (
        micros_of(row.at),
        row.message_id and storable(row.message_id),
        *(usage.counts if usage else NO_TOKENS),
        None if unpriced else row.nano_usd,
        row.nano_usd if unpriced else "",
        NEVER if row.reported_cost_usd is None else row.reported_cost_usd,
        BITS[row.witnesses],
        row.copies,
        row.joined_by or "",
        0 if row.final else 1,
    )


NO_TOKENS = (None, None, None, None, None)
