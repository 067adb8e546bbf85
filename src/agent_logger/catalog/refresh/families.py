"""Turns what witnesses reported into sessions and the ledger, in the database.

The ledger is a function of all responses; but copies of a response are only in sessions that have something in common.
So sessions are grouped into families, and a change derives the rows of its family again, and no others. Families that
something new connects become one.
"""

import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_

import msgspec
from msgspec.structs import asdict, replace

from agent_logger.agents.claude_code.transcript.beginning import Beginning
from agent_logger.agents.claude_code.transcript.tree import Lineage, Relatives
from agent_logger.agents.claude_code.transcript.turns import is_unique
from agent_logger.catalog.database import json_list, upsert
from agent_logger.catalog.discovery.reader import NO_SESSION, ResponseBatch
from agent_logger.catalog.ledger.ledger import NOBODY, Ledger, shared_key
from agent_logger.catalog.ledger.models import AnswerModel, SessionModels, models_of
from agent_logger.catalog.ledger.rows import BITS, NEVER, WITNESS_SETS, LedgerRow, micros_of, place_of, time_of
from agent_logger.catalog.ledger.stored_responses import (
    decode_responses,
    decode_totals,
    encode_responses,
    encode_totals,
)
from agent_logger.catalog.ledger.totals import total
from agent_logger.catalog.ledger.unlisted import has_unlisted_calls
from agent_logger.catalog.refresh.changes import REMOVED
from agent_logger.catalog.session_details import micros_or_none
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


def update_families(database: sqlite3.Connection, read: Sequence[SourceReading], gone: Sequence[str] = ()) -> None:
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
    fresh = {reading.source.key: _Responses(reading.batch.responses, reading.batch.totals) for reading in read}
    numbers = [(_store_source(database, reading), fresh[reading.source.key].keys) for reading in read]
    for (source, _), reading in zip(numbers, read, strict=True):
        _store_summaries(database, source, reading.batch)
    # Sorted, as they are in the file.
    known_by = sorted((key, source) for source, keys in numbers for key in keys)
    database.executemany("INSERT OR IGNORE INTO response_keys VALUES (?, ?)", known_by)
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

    def in_home(self, home: str) -> "_Responses":
        """Return the same as what another home has."""
        return _Responses(
            [replace(response, home=home) for response in self.responses],
            [replace(total, home=home) for total in self.totals],
        )


def _store_source(database: sqlite3.Connection, reading: SourceReading) -> int:
    """Store a source. Returns its number."""
    source, batch = reading.source, reading.batch
    columns = {
        "key": storable(source.key),
        "path": storable(source.path),
        "agent": source.agent,
        "home": source.home,
        "imported": source.imported,
        "name": storable(source.name),
        "other_paths": None if source.others is None else json_list(source.others),
        "session": storable(batch.session),
        "parent": batch.parent and storable(batch.parent),
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
    unchanged = {name: name for name in ("path", "agent", "home", "name")}
    query = upsert(
        "sources", columns, "key", unchanged | {"closed_stamp": "coalesce(excluded.closed_stamp, closed_stamp)"}
    )
    number: int = database.execute(f"{query} RETURNING id", columns).fetchone()[0]
    position = msgspec.json.encode(batch.position) if batch.position else None
    database.execute(
        "INSERT OR REPLACE INTO source_responses VALUES (?, ?, ?, ?)",
        (number, position, batch.data or encode_responses(batch.responses), encode_totals(batch.totals)),
    )
    return number


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
    database.executemany("INSERT INTO summaries VALUES (?, ?, ?)", [(leaf, source, text) for leaf, text in new.items()])
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
    forks = database.execute("SELECT session FROM sources WHERE parent IN (SELECT value FROM json_each(?))", (names,))
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
    is_imported: bool
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


@dataclass(slots=True)
class _SessionSources:
    """A session while its sources are gathered, and the ledger's rows that are its own."""

    sources: list[_Source] = field(default_factory=list)
    rows: list[LedgerRow] = field(default_factory=list)

    @property
    def is_imported(self) -> bool:
        return all(source.is_imported for source in self.sources)

    @property
    def best(self) -> _Source:
        """The best source: the agent's own file, which has all threads. Of two copies of it, the one that was written
        first."""
        if len(self.sources) == 1:  # nearly all of many thousand sessions
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
    has_imports = _drop_outranked(gathered)
    families = _find_families(gathered)
    descent = _Descent(gathered, families)
    parents = descent.parents
    ledger = Ledger(descent.places)
    sources = [source for group in gathered.values() for source in group.sources]
    for billed in _counted_once(sources) if has_imports else (source.billed for source in sources):
        ledger.add(billed.responses)
        ledger.add_totals(billed.totals)
    for row in ledger.rows(_Origins(gathered, parents).session_of):
        gathered[row.session].rows.append(row)
    _replace_rows(database, names, [row for group in gathered.values() for row in group.rows])
    gone = (json_list(names - gathered.keys()),)
    for table, column in (("sessions", "id"), ("ledger_places", "session"), ("response_tools", "session")):
        database.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", gone)
    sizes = Counter(families.values())
    sessions = [
        _session_columns(
            name,
            group,
            families[name],
            parents.get(name),
            descent.places.get(name, 0),
            _count_inherited(group) if sizes[families[name]] > 1 else 0,
        )
        for name, group in gathered.items()
        if not name.startswith(NO_SESSION)
    ]
    if sessions:
        database.executemany(upsert("sessions", sessions[0], "id", _SESSION_CHANGES), sessions)


def _drop_outranked(gathered: Mapping[str, _SessionSources]) -> bool:
    """Drop what was imported of sessions that this machine has. Returns whether any source was imported."""
    has_imports = False
    for group in gathered.values():
        if any(source.is_imported for source in group.sources):
            has_imports = True
            group.sources = [source for source in group.sources if not source.is_imported] or group.sources
    return has_imports


def _counted_once(sources: Sequence[_Source]) -> Iterator[_Responses]:
    """Yield what counts: of imported sources only responses that no source of this machine has, so that an import,
    which may say anything, changes nothing in the sums of this machine's sessions. A client's total, of which a part
    counts elsewhere, is left out."""
    own_keys = {key for source in sources if not source.is_imported for key in source.billed.keys}
    for source in sources:
        if not source.is_imported or own_keys.isdisjoint(source.billed.keys):
            yield source.billed
            continue
        responses = [row for row in source.responses if (key := shared_key(row)) is None or hashed(key) not in own_keys]
        yield _Responses(responses, ())


def _sources(
    database: sqlite3.Connection, names: set[str], fresh: Mapping[str, _Responses]
) -> Iterable[tuple[str, _Source]]:
    rows = database.execute(
        f"""
        SELECT session, home, key, agent, imported, {_PARENT}, witnesses, size, modified, stamp, responses,
            totals, first_write, responses_before_own_line
        FROM sources own JOIN source_responses ON source = own.id
        WHERE session IN (SELECT value FROM json_each(?)) AND read_error IS NOT ? ORDER BY key
        """,
        (json_list(names), REMOVED),
    )
    for session, home, key, agent, imported, parent, witnesses, size, modified, stamp, data, totals, *times in rows:
        responses = fresh.get(key) or _Responses(decode_responses(data), decode_totals(totals))
        if home:
            responses = responses.in_home(home)
        beginning = beginning_of(None, *times)
        is_imported = imported is not None
        yield session, _Source(agent, is_imported, parent, witnesses, size, modified, stamp, responses, beginning)


def _replace_rows(database: sqlite3.Connection, sessions: set[str], rows: Sequence[LedgerRow]) -> None:
    database.execute(
        """
        DELETE FROM ledger WHERE place IN (
            SELECT id FROM ledger_places WHERE session IN (SELECT value FROM json_each(?))
        )
        """,
        (json_list(sessions),),
    )
    places = _row_ids(database, "ledger_places", map(place_of, rows))
    models = _row_ids(database, "model_tiers", map(_model_tier, rows))
    database.executemany(
        _INSERT_ROW,
        [(places[place_of(row)], models[_model_tier(row)], *_ledger_values(row)) for row in rows],
    )


def _model_tier(row: LedgerRow) -> tuple[str, str | None, str | None]:
    return row.family, row.model, row.tier


def _row_ids(
    database: sqlite3.Connection, table: str, rows: Iterable[tuple[str | None, ...]]
) -> dict[tuple[str | None, ...], int]:
    """Return the numbers of these rows; those that do not exist yet get one."""
    columns = COLUMNS[table]
    same = " AND ".join(f"{column} IS ?" for column in columns)
    into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) RETURNING id"
    numbers: dict[tuple[str | None, ...], int] = {}
    for values in sorted(set(rows), key=str):
        storable_values = [value and storable(value) for value in values]
        row = database.execute(f"SELECT id FROM {table} WHERE {same}", storable_values).fetchone()
        numbers[values] = (row or database.execute(into, storable_values).fetchone())[0]
    return numbers


COLUMNS = {
    "ledger_places": ("session", "project", "agent", "thread", "home"),
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
                self._add_family(gathered, names)

    def _add_family(self, gathered: Mapping[str, _SessionSources], names: Sequence[str]) -> None:
        """Add a family. What was imported comes last, and changes nothing for the others."""
        own = [name for name in names if not gathered[name].is_imported]
        places: dict[str, int] = {}
        for members in [own, names] if len(own) < len(names) else [names]:
            relatives = Relatives(_lineage(name, gathered[name]) for name in members)
            parents = relatives.parents()
            new = [name for name in relatives.in_order(parents) if name not in places]
            places |= {name: place for place, name in enumerate(new, len(places))}
            self.parents |= {name: parents[name] for name in new if name in parents}
        self.places |= places


class _Origins:
    """Where a response occurred first: copies may keep its time, so that the ledger cannot tell, but a fork has what
    its parent had."""

    def __init__(self, gathered: Mapping[str, _SessionSources], parents: Mapping[str, str]) -> None:
        self._parents = parents
        related = set(parents) | set(parents.values())
        self._keys_by_session = {
            name: {_response_key(row) for source in group.sources for row in source.responses}
            for name, group in gathered.items()
            if name in related
        }

    def session_of(self, response: ModelResponse) -> str:
        session = response.session
        if session not in self._parents:
            return session
        key, sessions = _response_key(response), {session}
        while (
            (parent := self._parents.get(session))
            and parent not in sessions
            and key in self._keys_by_session.get(parent, ())
        ):
            session = parent
            sessions.add(session)
        return session


def _response_key(response: ModelResponse) -> str | datetime | None:
    return response.at if response.message_id is None else response.message_id


def _lineage(name: str, group: _SessionSources) -> Lineage:
    best = group.best
    main = [row for row in best.responses if row.thread == MAIN]
    return Lineage(
        session=name,
        message_ids=list(dict.fromkeys(row.message_id for row in main if row.message_id and is_unique(row.message_id))),
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


def _ledger_values(row: LedgerRow) -> tuple[object, ...]:
    """Return the row's values with as few `None` as possible, and no `bool`: each takes as long to bind as five
    numbers."""
    unpriced = isinstance(row.nano_usd, str)
    return (
        micros_of(row.at),
        row.message_id and storable(row.message_id),
        *(row.tokens or NO_TOKENS),
        None if unpriced else row.nano_usd,
        row.nano_usd if unpriced else "",
        NEVER if row.reported_cost_usd is None else row.reported_cost_usd,
        BITS[row.witnesses],
        row.copies,
        row.joined_by or "",
        0 if row.final else 1,
    )


NO_TOKENS = (None, None, None, None, None)
_INSERT_ROW = f"""
    INSERT INTO ledger VALUES (?, ?, nullif(?, {NEVER}), ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, {NEVER}),
        ?, ?, nullif(?, ''), ?)
"""


def _session_columns(
    name: str, group: _SessionSources, family: str, parent: str | None, place: int, inherited_turns: int
) -> dict[str, object]:
    billed = total(group.rows)
    times = [row.at for source in group.sources for row in source.responses if row.at]
    modified = max(source.modified for source in group.sources)
    started, ended = (micros_of(min(times)), micros_of(max(times))) if times else (None, None)
    models = _models(group)
    context, peak = _context(group)
    stamps = "\n".join(sorted(source.stamp for source in group.sources))
    return {
        "id": name,
        "family": family,
        "agent": _agent(group),
        "response_project": storable(_project(group) or "") or None,
        "models": json_list(models.all),
        "side_models": json_list(models.aside),
        "first_response": started,
        "last_response": ended,
        "last_active": ended if ended is not None else round(modified * 1e6),
        "responses": billed.responses,
        **asdict(billed.usage),
        "nano_usd": billed.cost.nano_usd,
        "unpriced_responses": billed.unpriced,
        "unpriced_reason": billed.cost.reason,
        "reported_cost_usd": billed.reported_cost_usd,
        "context_tokens": context,
        "peak_context_tokens": peak,
        "witnesses": _witnesses(group),
        "parent": parent,
        "family_position": place,
        "inherited_turns": inherited_turns,
        "has_unlisted_calls": _has_unlisted_calls(group),
        "modified": modified,
        "size": sum(source.size for source in group.sources),
        "stamp": hashlib.sha256(stamps.encode()).hexdigest()[:32],
    }


_SAME_DESCENT = "inherited_turns = excluded.inherited_turns AND parent IS excluded.parent"
_SESSION_CHANGES = {
    "agent": "coalesce(excluded.agent, agent)",
    "last_active": """CASE WHEN details_stamp IS excluded.stamp THEN coalesce(ended, excluded.last_active)
        ELSE max(coalesce(ended, excluded.last_active), excluded.last_active) END""",
    "details_stamp": f"iif({_SAME_DESCENT}, details_stamp, NULL)",
    "details_position": f"iif({_SAME_DESCENT}, details_position, NULL)",
}


def _count_inherited(group: _SessionSources) -> int:
    """Return how many responses of the main thread, as the best witness has it, count in another session."""
    counted = set(map(_response_key, group.rows))
    own = (row for row in group.best.responses if row.thread == MAIN and row.model != SYNTHETIC)
    main = set(map(_response_key, own))
    return len(main - counted)


def _has_unlisted_calls(gathered: _SessionSources) -> int:
    totals = (batch_total.total for source in gathered.sources for batch_total in source.billed.totals)
    return int(has_unlisted_calls(_agent(gathered), WITNESS_SETS[_witnesses(gathered)], totals))


def _agent(group: _SessionSources) -> str | None:
    names = [source.agent for source in group.sources if source.agent]
    names += [row.agent for source in group.sources for row in source.responses if row.agent not in NOBODY]
    return min(names[:1], default=None)


def _project(group: _SessionSources) -> str | None:
    projects = (row.project for source in (group.best, *group.sources) for row in source.responses if row.project)
    return next(projects, None)


def _models(group: _SessionSources) -> SessionModels:
    """Return the models of the session's own responses; where all are a parent's, of those."""
    if only := _only_model(group.rows):
        return SessionModels([only], [])
    rows: Iterable[ModelResponse] = group.rows
    if not rows:
        rows = (row for source in group.sources for row in source.responses)
    in_order = sorted(rows, key=lambda row: (row.at is None, micros_of(row.at), row.model or ""))
    return models_of(AnswerModel(row.model, row.thread, row.usage is not None) for row in in_order)


def _only_model(rows: Sequence[LedgerRow]) -> str | None:
    """Return the model that gave all of these answers, none of them outside the conversation; `None` if there is no
    such model."""
    models = {row.model if row.thread != SIDE else None for row in rows}
    only = models.pop() if len(models) == 1 else None
    return None if only == SYNTHETIC else only


def _context(group: _SessionSources) -> tuple[int | None, int | None]:
    sizes = [row.usage.context_tokens for row in group.best.responses if row.thread == MAIN and row.usage]
    return (sizes[-1], max(sizes)) if sizes else (None, None)


def _witnesses(group: _SessionSources) -> int:
    return reduce(or_, (source.witnesses for source in group.sources))
