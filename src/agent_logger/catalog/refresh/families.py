"""Turns what witnesses reported into sessions and the ledger, in the database.

The ledger is a function of all responses; but copies of a response are only in sessions that have something in common.
So sessions are grouped into families, and a change derives the rows of its family again, and no others. Families that
something new connects become one.
"""

import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from agent_logger.agents.claude_code.transcript.beginning import Beginning
from agent_logger.agents.claude_code.transcript.tree import Lineage, Relatives
from agent_logger.agents.claude_code.transcript.turns import is_unique
from agent_logger.catalog.database import json_list
from agent_logger.catalog.discovery.reader import (
    NO_SESSION,
    ResponseBatch,
    packed,
    packed_totals,
    unpacked,
    unpacked_totals,
)
from agent_logger.catalog.ledger.ledger import (
    NOBODY,
    RESULT,
    Ledger,
    joined_by_of,
    nano_usd_of,
    reported_usd_of,
    shared_key,
)
from agent_logger.catalog.ledger.models import AnswerModel, SessionModels, models_of
from agent_logger.catalog.ledger.rows import (
    NEVER,
    NOT_REPORTED,
    WITNESS_SETS,
    LedgerEntry,
    LedgerPlace,
    micros_of,
    time_of,
)
from agent_logger.catalog.ledger.totals import Sum
from agent_logger.catalog.ledger.unlisted import has_unlisted_calls
from agent_logger.catalog.refresh.refresh import REMOVED
from agent_logger.files.sources import Source
from agent_logger.files.stored_text import hashed, storable
from agent_logger.model.not_itemised import in_flight_until
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import MAIN, SIDE, SYNTHETIC

LONGEST_SUMMARY = 500  # characters


class SourceReading(msgspec.Struct):
    """A source as it was found, and what it reported; or why it could not be read."""

    source: Source
    batch: ResponseBatch
    damage: str | None = None


def update_families(
    database: sqlite3.Connection, read: Sequence[SourceReading], gone: Sequence[str] = ()
) -> None:
    """Store what was read, and forget what is gone (its keys). Call it within a transaction."""
    changed = json_list([*gone, *(reading.source.key for reading in read)])
    of_changed = "FROM sources WHERE key IN (SELECT value FROM json_each(?))"
    dirty = {name for (name,) in database.execute(f"SELECT session {of_changed}", (changed,))}
    forgotten = (json_list(gone),)
    if gone:
        had = database.execute(
            f"SELECT DISTINCT source FROM summaries WHERE source IN (SELECT id {of_changed})", forgotten
        )
        _reset_details(database, [source for (source,) in had.fetchall()])
    for table in ("response_keys", "source_responses", "summaries") if gone else ():
        database.execute(f"DELETE FROM {table} WHERE source IN (SELECT id {of_changed})", forgotten)
    database.execute("DELETE FROM sources WHERE key IN (SELECT value FROM json_each(?))", forgotten)
    fresh = {
        reading.source.key: _Responses(reading.batch.responses, reading.batch.totals) for reading in read
    }
    numbers = [(_store_source(database, reading), fresh[reading.source.key].keys) for reading in read]
    for (source, _), reading in zip(numbers, read, strict=True):
        _store_summaries(database, source, reading.batch)
    known_by = sorted((key, source) for source, keys in numbers for key in keys)
    database.executemany(
        "INSERT OR IGNORE INTO response_keys VALUES (?, ?)", known_by
    )  # sorted, as they are in the file
    dirty |= {reading.batch.session for reading in read}
    dirty |= _sessions_with_keys(database, {key for source in fresh.values() for key in source.keys})
    dirty |= _relatives(database, read)
    _derive(database, _with_families(database, dirty), fresh)


def derive_all(database: sqlite3.Connection) -> None:
    """Derive everything again from what is stored, as after a new price list."""
    query = "SELECT family FROM sessions UNION SELECT session FROM sources WHERE session LIKE ? ORDER BY 1"
    names = [name for (name,) in database.execute(query, (f"{NO_SESSION}%",))]
    for start in range(0, len(names), 200):
        _derive(database, _with_families(database, set(names[start : start + 200])), {})


def derive_overdue(database: sqlite3.Connection) -> None:
    """Derive sessions again that have a request which was in flight, and has no answer by now."""
    due = "FROM sources WHERE in_flight_until < ?"
    now = (time.time(),)
    sessions = {name for (name,) in database.execute(f"SELECT session {due}", now)}
    _derive(database, _with_families(database, sessions), {})
    database.execute(f"UPDATE sources SET in_flight_until = NULL WHERE id IN (SELECT id {due})", now)


class _Responses:
    """What a source reported, with the keys to find it by."""

    def __init__(self, responses: list[ModelResponse], totals: Sequence[ReportedTotal]) -> None:
        self.responses, self.totals = responses, totals
        self.keys = [hashed(key) for response in responses if (key := shared_key(response))]


def _store_source(database: sqlite3.Connection, reading: SourceReading) -> int:
    """Store a source. Returns its number."""
    found_source, batch = reading.source, reading.batch
    values = (
        storable(found_source.key),
        storable(found_source.path),
        found_source.agent,
        storable(found_source.name),
        None if found_source.others is None else json_list(found_source.others),
        storable(batch.session),
        batch.parent and storable(batch.parent),
        batch.witnesses,
        found_source.size,
        found_source.modified,
        found_source.stamp,
        reading.damage,
        *_times(batch.beginning),
        max(filter(None, (in_flight_until(total.total) for total in batch.totals)), default=None),
    )
    source: int = database.execute(_UPSERT_SOURCE, values).fetchone()[0]
    position = msgspec.json.encode(batch.position) if batch.position else None
    database.execute(
        "INSERT OR REPLACE INTO source_responses VALUES (?, ?, ?, ?)",
        (source, position, batch.data or packed(batch.responses), packed_totals(batch.totals)),
    )
    return source


def _store_summaries(database: sqlite3.Connection, source: int, batch: ResponseBatch) -> None:
    """Store summaries. Each may describe a session beside this one, which may have been read before and must then be
    read again."""
    stored = dict(database.execute("SELECT leaf, text FROM summaries WHERE source = ?", (source,)))
    new = {storable(leaf): storable(hidden(text)[:LONGEST_SUMMARY]) for leaf, text in batch.summaries.items()}
    if batch.is_rest:
        new = {**stored, **new}
    if new == stored:
        return
    database.execute("DELETE FROM summaries WHERE source = ?", (source,))
    database.executemany(
        "INSERT INTO summaries VALUES (?, ?, ?)", [(leaf, source, text) for leaf, text in new.items()]
    )
    _reset_details(database, [source])


def _reset_details(database: sqlite3.Connection, sources: Iterable[int]) -> None:
    """Mark the sessions in the same folders to be read again: their titles may change."""
    database.execute(
        """
        UPDATE sessions SET details_stamp = NULL, details_position = NULL WHERE id IN (
            SELECT session FROM sources WHERE folder IN (
                SELECT folder FROM sources WHERE id IN (SELECT value FROM json_each(?))
            )
        )
        """,
        (json_list(sources),),
    )


_UPSERT_SOURCE = """
    INSERT INTO sources (key, path, agent, name, other_paths, session, parent, witnesses, size, modified, stamp,
        read_error, first_write, responses_before_own_line, in_flight_until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET other_paths = excluded.other_paths, session = excluded.session,
        parent = excluded.parent, witnesses = excluded.witnesses, size = excluded.size, modified = excluded.modified,
        stamp = excluded.stamp, read_error = excluded.read_error, first_write = excluded.first_write,
        responses_before_own_line = excluded.responses_before_own_line, in_flight_until = excluded.in_flight_until
    RETURNING id
"""


def _times(beginning: Beginning | None) -> tuple[int | None, int | None]:
    if beginning is None:
        return None, None
    written = micros_of(beginning.first_written)
    return None if written == NEVER else written, beginning.own_line_after


def beginning_of(parent: str | None, first_written: int | None, own_line_after: int | None) -> Beginning:
    """Build a beginning from the columns of a source."""
    written = None if first_written is None else time_of(first_written)
    return Beginning(forked_from=parent, first_written=written, own_line_after=own_line_after)


def _sessions_with_keys(database: sqlite3.Connection, keys: Collection[int]) -> set[str]:
    """Return sessions that have a response with one of these keys."""
    rows = database.execute(
        """
        SELECT DISTINCT session FROM sources WHERE id IN (
            SELECT source FROM json_each(?) JOIN response_keys ON response_keys.key = value
        )
        """,
        (json_list(keys),),
    )
    return {name for (name,) in rows}


def _relatives(database: sqlite3.Connection, read: Sequence[SourceReading]) -> set[str]:
    """Return the sessions that these name as their parents, and those that name these."""
    rows = database.execute(
        f"SELECT {_PARENT} FROM sources own WHERE key IN (SELECT value FROM json_each(?)) AND parent IS NOT NULL",
        (json_list(reading.source.key for reading in read),),
    )
    names = json_list({reading.batch.session for reading in read} | {reading.source.name for reading in read})
    forks = database.execute(
        "SELECT session FROM sources WHERE parent IN (SELECT value FROM json_each(?))", (names,)
    )
    return {name for (name,) in (*rows, *forks)}


# A branch of a wire log names the log beside it, whose session may have another name.
_PARENT = """
    coalesce(
        (SELECT log.session FROM sources log
            WHERE log.name = own.parent AND log.agent IS NULL AND log.folder = own.folder AND own.agent IS NULL),
        own.parent
    )
"""


def _with_families(database: sqlite3.Connection, sessions: set[str]) -> set[str]:
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


@dataclass(slots=True)
class _Source:
    agent: str | None
    parent: str | None
    witnesses: int
    size: int
    modified: float
    stamp: str
    billed: _Responses
    beginning: Beginning

    @property
    def responses(self) -> list[ModelResponse]:
        return self.billed.responses


class _Row(NamedTuple):
    """A response as the ledger has it, and its place."""

    place: LedgerPlace
    entry: LedgerEntry
    nano_usd: int | str


@dataclass(slots=True)
class _SessionSources:
    """A session while its sources are gathered, and the ledger's rows that are its own."""

    sources: list[_Source] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)

    @property
    def best(self) -> _Source:
        """The best source: the agent's own file, which has all threads. Of two copies of it, the one that was written
        first."""
        if len(self.sources) == 1:  # as in nearly all of many thousand sessions
            return self.sources[0]
        return min(
            self.sources,
            key=lambda source: (
                source.agent is None,
                -len(source.responses),
                micros_of(source.beginning.first_written),
            ),
        )


def _derive(database: sqlite3.Connection, names: set[str], fresh: Mapping[str, _Responses]) -> None:
    """Derive the rows of whole families again. `fresh`: what is known of sources without a query."""
    gathered: dict[str, _SessionSources] = {}
    for session, source in _sources(database, names, fresh):
        gathered.setdefault(session, _SessionSources()).sources.append(source)
    families = _find_families(gathered)
    descent = _Descent(gathered, families)
    parents = descent.parents
    ledger = Ledger(descent.places)
    for source in (source for group in gathered.values() for source in group.sources):
        ledger.add(source.responses)
        ledger.add_totals(source.billed.totals)
    first, places = _Origins(gathered, parents), ledger.places()
    for entry in ledger.entries(lambda entry: first.place_of(entry, places[entry.place]).session):
        place = places[entry.place] if entry.joined == RESULT else first.place_of(entry, places[entry.place])
        gathered[place.session].rows.append(_Row(place, entry, nano_usd_of(entry)))
    _replace_rows(database, names, [row for group in gathered.values() for row in group.rows])
    gone = (json_list(names - gathered.keys()),)
    for table, column in (("sessions", "id"), ("ledger_places", "session"), ("response_tools", "session")):
        database.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", gone)
    sizes = Counter(families.values())
    sessions = (
        _session_values(
            name,
            group,
            families[name],
            parents.get(name),
            descent.places.get(name, 0),
            _count_inherited(group) if sizes[families[name]] > 1 else 0,
        )
        for name, group in gathered.items()
        if not name.startswith(NO_SESSION)
    )
    database.executemany(_UPSERT_SESSION, sessions)


def _sources(
    database: sqlite3.Connection, names: set[str], fresh: Mapping[str, _Responses]
) -> Iterable[tuple[str, _Source]]:
    rows = database.execute(
        f"""
        SELECT session, key, agent, {_PARENT}, witnesses, size, modified, stamp, responses, totals, first_write,
            responses_before_own_line
        FROM sources own JOIN source_responses ON source = own.id
        WHERE session IN (SELECT value FROM json_each(?)) AND read_error IS NOT ? ORDER BY key
        """,
        (json_list(names), REMOVED),
    )
    for session, key, agent, parent, witnesses, size, modified, stamp, data, totals, *times in rows:
        responses = fresh.get(key) or _Responses(unpacked(data), unpacked_totals(totals))
        beginning = beginning_of(None, *times)
        yield session, _Source(agent, parent, witnesses, size, modified, stamp, responses, beginning)


def _replace_rows(database: sqlite3.Connection, sessions: set[str], rows: Sequence[_Row]) -> None:
    database.execute(
        """
        DELETE FROM ledger WHERE place IN (
            SELECT id FROM ledger_places WHERE session IN (SELECT value FROM json_each(?))
        )
        """,
        (json_list(sessions),),
    )
    places = _row_ids(database, "ledger_places", {row.place for row in rows})
    kinds = _row_ids(database, "model_tiers", {row.entry.kind for row in rows})
    database.executemany(
        _INSERT_ROW,
        [(places[row.place], kinds[row.entry.kind], *_ledger_values(row)) for row in rows],
    )


def _row_ids(
    database: sqlite3.Connection, table: str, rows: Iterable[tuple[str | None, ...]]
) -> dict[tuple[str | None, ...], int]:
    """Return the numbers of these rows; those that do not exist yet get one."""
    columns = COLUMNS[table]
    same = " AND ".join(f"{column} IS ?" for column in columns)
    into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) RETURNING id"
    numbers: dict[tuple[str | None, ...], int] = {}
    for values in sorted(rows, key=str):
        storable_values = [value and storable(value) for value in values]
        row = database.execute(f"SELECT id FROM {table} WHERE {same}", storable_values).fetchone()
        numbers[values] = (row or database.execute(into, storable_values).fetchone())[0]
    return numbers


COLUMNS = {
    "ledger_places": ("session", "project", "agent", "thread"),
    "model_tiers": ("vendor", "model", "tier"),
}


def _find_families(gathered: Mapping[str, _SessionSources]) -> dict[str, str]:
    """Return the family of each session: the least name of those that it is connected with, directly or not. Sessions
    are connected if they have a response in common, or one names the other as its parent."""
    above = {name: name for name in gathered}

    def top(name: str) -> str:
        while above[name] != name:
            above[name] = name = above[above[name]]
        return name

    def join(name: str, other: str) -> None:
        one, two = top(name), top(other)
        above[max(one, two)] = min(one, two)

    first: dict[int, str] = {}
    for name, group in gathered.items():
        for source in group.sources:
            if source.parent and source.parent in gathered:
                join(name, source.parent)
            for key in source.billed.keys:
                if (other := first.setdefault(key, name)) != name:
                    join(name, other)
    return {name: top(name) for name in gathered}


class _Descent:
    """The parent of each forked session, and the place of each in its family, parents first."""

    def __init__(self, gathered: Mapping[str, _SessionSources], families: Mapping[str, str]) -> None:
        self.parents: dict[str, str] = {}
        self.places: dict[str, int] = {}
        members: dict[str, list[str]] = {}
        for name, family in families.items():
            members.setdefault(family, []).append(name)
        for names in members.values():
            if len(names) > 1 or any(source.parent for source in gathered[names[0]].sources):
                relatives = Relatives(_lineage(name, gathered[name]) for name in names)
                parents = relatives.parents()
                self.parents |= parents
                self.places |= {name: place for place, name in enumerate(relatives.in_order(parents))}


class _Origins:
    """Where a response occurred first: copies may keep its time, so that the ledger cannot tell, but a fork has what
    its parent had."""

    def __init__(self, gathered: Mapping[str, _SessionSources], parents: Mapping[str, str]) -> None:
        self._parents = parents
        related = set(parents) | set(parents.values())
        self._keys_by_session = {
            name: _response_keys(group) for name, group in gathered.items() if name in related
        }

    def place_of(self, entry: LedgerEntry, place: LedgerPlace) -> LedgerPlace:
        session = place.session
        if session not in self._parents:
            return place
        key, sessions = _response_key(entry.message_id, entry.at), {session}
        while (
            (parent := self._parents.get(session))
            and parent not in sessions
            and key in self._keys_by_session.get(parent, ())
        ):
            session = parent
            sessions.add(session)
        return place if session == place.session else place._replace(session=session)


def _response_keys(group: _SessionSources) -> set[str | int]:
    return {
        _response_key(row.message_id, micros_of(row.at))
        for source in group.sources
        for row in source.responses
    }


def _response_key(message_id: str | None, at: int) -> str | int:
    return at if message_id is None else message_id


def _lineage(name: str, group: _SessionSources) -> Lineage:
    best = group.best
    main = [row for row in best.responses if row.thread == MAIN]
    return Lineage(
        session=name,
        message_ids=list(
            dict.fromkeys(row.message_id for row in main if row.message_id and is_unique(row.message_id))
        ),
        began=min((row.at for row in main if row.at), default=None),
        forked_from=_named_parent(name, (source for source in group.sources if source.agent)),
        recorded_parent=_named_parent(name, (source for source in group.sources if source.agent is None)),
        first_written=best.beginning.first_written,
        own_line_after=best.beginning.own_line_after,
        responses=len(main),
        ended=max((row.at for row in main if row.at), default=None),
    )


def _named_parent(name: str, sources: Iterable[_Source]) -> str | None:
    """Return the parent that the source names which began first: there may be several logs of ours."""
    named = [source for source in sources if source.parent and source.parent != name]
    return min(named, key=_first_response).parent if named else None


def _first_response(source: _Source) -> tuple[int, str]:
    return min(
        (micros_of(response.at) for response in source.responses if response.at), default=micros_of(None)
    ), source.stamp


# ---------------------------------------------------------------- values


def _ledger_values(row: _Row) -> tuple[object, ...]:
    """Return the row's values with as few `None` as possible, and no `bool`: each takes as long to bind as five
    numbers."""
    _, entry, nano_usd = row
    unpriced = isinstance(nano_usd, str)
    return (
        entry.at,
        entry.message_id and storable(entry.message_id),
        *(entry.tokens or NO_USAGE),
        None if unpriced else nano_usd,
        nano_usd if unpriced else "",
        entry.reported,
        entry.witnesses,
        entry.copies,
        joined_by_of(entry) or "",
        0 if entry.final else 1,
    )


NO_USAGE = (None, None, None, None, None)
_INSERT_ROW = f"""
    INSERT INTO ledger VALUES (?, ?, nullif(?, {NEVER}), ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, {NOT_REPORTED}),
        ?, ?, nullif(?, ''), ?)
"""


def _session_values(
    name: str, group: _SessionSources, family: str, parent: str | None, place: int, inherited_turns: int
) -> tuple[object, ...]:
    summed = Sum()
    for _, entry, nano_usd in group.rows:
        reported, is_response = reported_usd_of(entry), entry.copies > 0
        summed.count(entry.tokens, nano_usd, reported, not entry.final, is_response=is_response)
    total = summed.total()
    times = [row.at for source in group.sources for row in source.responses if row.at]
    modified = max(source.modified for source in group.sources)
    started, ended = (micros_of(min(times)), micros_of(max(times))) if times else (None, None)
    models = _models(group)
    return (
        name,
        family,
        _agent(group),
        storable(_project(group) or "") or None,
        json_list(models.all),
        json_list(models.aside),
        started,
        ended,
        ended if ended is not None else round(modified * 1e6),
        total.responses,
        *total.usage.counts,
        total.cost.nano_usd,
        total.unpriced,
        total.cost.reason,
        total.reported_cost_usd,
        *_context(group),
        _witnesses(group),
        parent,
        place,
        inherited_turns,
        _has_unlisted_calls(group),
        modified,
        sum(source.size for source in group.sources),
        hashlib.sha256("\n".join(sorted(source.stamp for source in group.sources)).encode()).hexdigest()[:32],
    )


_SAME_DESCENT = "inherited_turns = excluded.inherited_turns AND parent IS excluded.parent"
_UPSERT_SESSION = f"""
    INSERT INTO sessions (id, family, agent, response_project, models, side_models, first_response, last_response,
        last_active, responses, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
        cache_write_1h_tokens, nano_usd, unpriced_responses, unpriced_reason, reported_cost_usd, context_tokens,
        peak_context_tokens, witnesses, parent, family_position, inherited_turns, has_unlisted_calls, modified, size,
        stamp)
    VALUES ({", ".join("?" * 29)})
    ON CONFLICT (id) DO UPDATE SET family = excluded.family, agent = coalesce(excluded.agent, agent),
        response_project = excluded.response_project, models = excluded.models, side_models = excluded.side_models,
        first_response = excluded.first_response, last_response = excluded.last_response,
        last_active = CASE WHEN details_stamp IS excluded.stamp THEN coalesce(ended, excluded.last_active)
            ELSE max(coalesce(ended, excluded.last_active), excluded.last_active) END,
        responses = excluded.responses, input_tokens = excluded.input_tokens,
        output_tokens = excluded.output_tokens, cache_read_tokens = excluded.cache_read_tokens,
        cache_write_tokens = excluded.cache_write_tokens, cache_write_1h_tokens = excluded.cache_write_1h_tokens,
        nano_usd = excluded.nano_usd, unpriced_responses = excluded.unpriced_responses,
        unpriced_reason = excluded.unpriced_reason, reported_cost_usd = excluded.reported_cost_usd,
        context_tokens = excluded.context_tokens, peak_context_tokens = excluded.peak_context_tokens,
        witnesses = excluded.witnesses, details_stamp = iif({_SAME_DESCENT}, details_stamp, NULL),
        details_position = iif({_SAME_DESCENT}, details_position, NULL), parent = excluded.parent,
        family_position = excluded.family_position, inherited_turns = excluded.inherited_turns,
        has_unlisted_calls = excluded.has_unlisted_calls, modified = excluded.modified, size = excluded.size,
        stamp = excluded.stamp
"""


def _count_inherited(group: _SessionSources) -> int:
    """Return how many responses of the main thread, as the best witness has it, count in another session."""
    counted = {_response_key(entry.message_id, entry.at) for _, entry, _ in group.rows}
    main = {_response_key(row.message_id, micros_of(row.at)) for row in group.best.responses if _is_main(row)}
    return len(main - counted)


def _has_unlisted_calls(gathered: _SessionSources) -> int:
    totals = (batch_total.total for source in gathered.sources for batch_total in source.billed.totals)
    return int(has_unlisted_calls(_agent(gathered), WITNESS_SETS[_witnesses(gathered)], totals))


def _is_main(row: ModelResponse) -> bool:
    return row.thread == MAIN and row.model != SYNTHETIC


def _agent(group: _SessionSources) -> str | None:
    names = [source.agent for source in group.sources if source.agent]
    names += [row.agent for source in group.sources for row in source.responses if row.agent not in NOBODY]
    return min(names[:1], default=None)


def _project(group: _SessionSources) -> str | None:
    projects = (
        row.project for source in (group.best, *group.sources) for row in source.responses if row.project
    )
    return next(projects, None)


def _models(group: _SessionSources) -> SessionModels:
    """Return the models of the session's own responses; where all are a parent's, of those."""
    if only := _only_model(group.rows):
        return SessionModels([only], [])
    rows = [
        (entry.at, AnswerModel(entry.kind.model, place.thread, entry.tokens is not None))
        for place, entry, _ in group.rows
    ]
    if not rows:
        rows = [
            (micros_of(row.at), AnswerModel(row.model, row.thread, row.usage is not None))
            for source in group.sources
            for row in source.responses
        ]
    rows.sort(key=lambda row: (row[0] == NEVER, row[0], row[1].model or ""))
    return models_of(answer for _, answer in rows)


def _only_model(rows: Sequence[_Row]) -> str | None:
    """Return the model that gave all of these answers, none of them outside the conversation; `None` if there is no
    such model."""
    models = {entry.kind.model if place.thread != SIDE else None for place, entry, _ in rows}
    only = models.pop() if len(models) == 1 else None
    return None if only == SYNTHETIC else only


def _context(group: _SessionSources) -> tuple[int | None, int | None]:
    sizes = [row.usage.context_tokens for row in group.best.responses if row.thread == MAIN and row.usage]
    return (sizes[-1], max(sizes)) if sizes else (None, None)


def _witnesses(group: _SessionSources) -> int:
    bits = 0
    for source in group.sources:
        bits |= source.witnesses
    return bits
