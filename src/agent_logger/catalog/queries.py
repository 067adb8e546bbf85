"""Queries about the sessions in the catalog, as SQL. What a person typed is always a parameter, never a part of the
SQL."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from agent_logger.agents.registry import canonical_name, id_and_mark
from agent_logger.agents.running import noted_sessions, running_sessions
from agent_logger.catalog.database import Database, json_list
from agent_logger.catalog.ledger.rows import BIT, WITNESS_SETS, micros_of, time_of
from agent_logger.catalog.live.liveness import INTERRUPTED, SessionState, SourceState, is_live
from agent_logger.catalog.source_queries import COUNTING, OPEN_LOG, SOURCE, source_of
from agent_logger.catalog.summary import Filter, Ownership, SessionChoices, SessionHeading, SessionSummary
from agent_logger.files.sources import Source
from agent_logger.files.stored_text import storable
from agent_logger.model.not_itemised import AT_WORK_SECONDS
from agent_logger.model.prices import price_date
from agent_logger.model.session import Cost, Usage

Order = Literal["active", "started", "cost", "tokens", "turns", "exchanges", "duration", "errors"]
ORDERS: Mapping[Order, str] = {
    "active": "last_active DESC",
    "started": "coalesce(started, first_response) DESC NULLS LAST",
    "cost": "nano_usd DESC NULLS LAST",
    "tokens": "input_tokens + output_tokens + cache_read_tokens + cache_write_tokens DESC",
    "turns": "coalesce(turns, responses) DESC",
    "exchanges": "exchanges DESC",
    "duration": "active_seconds DESC NULLS LAST",
    "errors": "errors DESC, last_active DESC",
}
NEED_DETAILS = ("exchanges", "duration", "turns", "errors")  # orders
NO_MACHINES: Mapping[str, str] = {}
NO_PEOPLE: Mapping[str, str | None] = {}


def since(at: date) -> int:
    """Return the first moment of a day, or a moment; without a zone, on this machine."""
    time = at if isinstance(at, datetime) else datetime.combine(at, datetime.min.time())
    return micros_of(time if time.tzinfo else time.astimezone(UTC))


def until(at: date) -> int:
    """Return the first moment after a day, or a moment."""
    return since(at if isinstance(at, datetime) else at + timedelta(days=1))


def is_within(at: datetime | None, where: Filter) -> bool:
    """Whether a time is within the filter. Without a time, it is only if the filter has none."""
    if at is None:
        return where.since is None and where.until is None
    micros = micros_of(at)
    return (where.since is None or micros >= since(where.since)) and (
        where.until is None or micros < until(where.until)
    )


def overlaps(start: datetime, end: datetime, where: Filter) -> bool:
    """Whether any of these times is within the filter."""
    return (where.since is None or micros_of(end) >= since(where.since)) and (
        where.until is None or micros_of(start) < until(where.until)
    )


# ---------------------------------------------------------------- sessions


# Columns that come from the session's details where they are known, else from its responses.
PROJECT = "coalesce(project, response_project)"
STARTED = "coalesce(started, first_response)"
TURNS = "coalesce(turns, responses)"
ENDED = """
    max(coalesce(ended, last_response), coalesce(CASE WHEN details_stamp IS NOT stamp THEN last_response END, ended))
"""


def whole_or_part(exists: str, whole: str, part: str) -> str:
    """Return the condition for a name: a whole name means that one alone, as a pick list does; anything else is a part
    of names."""
    return f"CASE WHEN EXISTS ({exists}) THEN {whole} ELSE {part} END"


_PROJECT_TERM = whole_or_part(
    f"SELECT 1 FROM sessions WHERE {PROJECT} = ?", f"{PROJECT} = ?", f"instr(folded({PROJECT}), folded(?)) > 0"
)
_MODEL_TERM = whole_or_part(
    "SELECT 1 FROM model_tiers WHERE model = ?",
    "EXISTS (SELECT 1 FROM json_each(models) WHERE value = ?)",
    "EXISTS (SELECT 1 FROM json_each(models) WHERE instr(folded(value), folded(?)) > 0)",
)


def _where(database: Database, where: Filter) -> tuple[str, list[object]]:
    terms: list[tuple[str, object]] = [
        ("agent = ?", where.agent and canonical_name(where.agent)),
        (_PROJECT_TERM, where.project),
        (_MODEL_TERM, where.model),
        ("instr(folded(title), ?) > 0", where.title and where.title.lower()),
        (f"coalesce({ENDED}, {STARTED}) >= ?", where.since and since(where.since)),
        (f"{STARTED} < ?", where.until and until(where.until)),
        ("nano_usd >= ?", where.min_cost_usd and where.min_cost_usd * 1e9),
        ("witnesses & ? <> 0", where.witness and BIT.get(where.witness, 0)),
        (
            "id IN (SELECT session FROM sources WHERE machine IN (SELECT value FROM json_each(?)))",
            None if where.homes is None else json_list(where.homes),
        ),
        *owner_terms("sessions.id", where.owner),
    ]
    if where.sessions is not None:
        terms.append(("id IN (SELECT value FROM json_each(?))", json_list(where.sessions)))
    if where.live:
        terms.append(("id IN (SELECT value FROM json_each(?))", json_list(_live_sessions(database))))
    return where_clause(terms)


def owner_terms(column: str, owner: Ownership | None) -> Iterator[tuple[str, object]]:
    """Yield the terms that limit sessions, named by a column, to those of an owner."""
    if owner is None:
        return
    homes, shared = "SELECT value FROM json_each(?, '$.homes')", "SELECT value FROM json_each(?, '$.shared')"
    of_session = f"SELECT 1 FROM sources WHERE sources.session = {column} AND home"
    value = msgspec.json.encode(owner).decode()
    yield f"EXISTS ({of_session} IN ({homes}))", value
    yield f"(NOT EXISTS ({of_session} NOT IN ({homes})) OR {column} IN ({shared}))", value


def where_clause(terms: Iterable[tuple[str, object]]) -> tuple[str, list[object]]:
    """Return the conditions that have a value, as SQL, and the values for it: each `?` of a term stands for its
    value."""
    given = [(term, value) for term, value in terms if value is not None and value != ""]
    values = [
        storable(value) if isinstance(value, str) else value for term, value in given for _ in range(term.count("?"))
    ]
    return " AND ".join(term for term, _ in given) or "true", values


def session_ids(database: Database, conditions: Filter, order: Order, limit: int, offset: int) -> list[str]:
    where, values = _where(database, conditions)
    query = f"SELECT id FROM sessions WHERE {where} ORDER BY {ORDERS[order]}, id LIMIT ? OFFSET ?"
    return [name for (name,) in database.execute(query, [*values, limit, offset])]


def shared_sessions(database: Database, homes: Sequence[str]) -> list[str]:
    """Return the sessions that are in these homes, and in others too."""
    own = "SELECT value FROM json_each(?)"
    query = f"""
        SELECT DISTINCT session FROM sources WHERE home IN ({own}) AND session IN (
            SELECT session FROM sources WHERE home NOT IN ({own})
        )
    """
    return [session for (session,) in database.execute(query, [json_list(homes)] * 2)]


def matching_ids(database: Database, words: Sequence[str], limit: int, owner: Ownership | None = None) -> list[str]:
    """Return the sessions with all these words in the title, project or id, the one last active first."""
    text = f"folded(coalesce(title, '') || ' ' || coalesce({PROJECT}, '') || ' ' || id)"
    terms = ((f"instr({text}, folded(?)) > 0", word) for word in words)
    where, values = where_clause([*terms, *owner_terms("sessions.id", owner)])
    query = f"SELECT id FROM sessions WHERE {where} ORDER BY last_active DESC, id LIMIT ?"
    return [name for (name,) in database.execute(query, [*values, limit])]


def choices(database: Database, most: int, owner: Ownership | None = None) -> SessionChoices:
    """Return the values that sessions have, those of the session last active first."""
    where, values = where_clause(owner_terms("sessions.id", owner))
    kinds = {"agent": "combinations", "project": "combinations", "value": "combinations, json_each(models)"}
    newest = [
        f"""
        SELECT * FROM (
            SELECT '{column}', {column} AS name, max(last_active) AS last_active FROM {tables}
            WHERE {column} IS NOT NULL GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT ?
        ) AS newest
        """
        for column, tables in kinds.items()
    ]
    query = f"""
        WITH combinations AS MATERIALIZED (
            SELECT agent, {PROJECT} AS project, models, max(last_active) AS last_active FROM sessions WHERE {where}
            GROUP BY 1, 2, 3
        )
        {" UNION ALL ".join(newest)} ORDER BY 1, 3 DESC, 2
    """
    names: dict[str, list[str]] = {column: [] for column in kinds}
    for column, name, _ in database.execute(query, [*values, *[most] * len(kinds)]):
        names[column].append(name)
    agents, projects, models = map(tuple, names.values())
    return SessionChoices(agents=agents, projects=projects, models=models)


def count_sessions(database: Database, conditions: Filter) -> int:
    where, values = _where(database, conditions)
    (count,) = database.execute(f"SELECT count(*) FROM sessions WHERE {where}", values).fetchone()
    return int(count)


# Columns that a summary has under the same name.
_AS_IT_IS = (
    *("id", "agent", "title", "exchanges", "tool_calls", "errors", "active_seconds"),
    *("context_tokens", "peak_context_tokens", "inherited_exchanges"),
)
_SUMMARY = f"""
    SELECT {", ".join(_AS_IT_IS)}, {", ".join(Usage.__struct_fields__)}, {PROJECT} AS project, models, side_models,
        {TURNS} AS turns,
        {STARTED} AS started, {ENDED} AS ended, nano_usd, unpriced_responses, unpriced_reason,
        coalesce(reported_session_cost_usd, reported_cost_usd) AS reported_cost_usd, witnesses, parent, modified,
        in_flight, is_over, ending, has_unlisted_calls
    FROM sessions WHERE id IN (SELECT value FROM json_each(?))
"""


def summaries(
    database: Database,
    ids: Sequence[str],
    machines: Mapping[str, str] = NO_MACHINES,
    people: Mapping[str, str | None] = NO_PEOPLE,
) -> list[SessionSummary]:
    """Return the summaries in this order; sessions that do not exist are left out. `machines` and `people`: names by
    their keys."""
    given = (json_list(ids),)
    sources: dict[str, list[Source]] = {}
    states: dict[str, list[SourceState]] = {}
    names: dict[str, set[str]] = {}
    damaged: dict[str, int] = {}
    query = f"""
        SELECT session, machine, witnesses, damaged_lines, closed_stamp IS stamp, {SOURCE} FROM sources
        WHERE session IN (SELECT value FROM json_each(?)) AND {COUNTING} ORDER BY agent IS NULL, key
    """
    for session, machine, witnesses, lines, is_closed, *source in database.execute(query, given):
        names.setdefault(session, set()).update([machine] if machine in machines else [])
        source_row = source_of(source)
        sources.setdefault(session, []).append(source_row)
        state = SourceState(
            source_row.agent, source_row.path, witnesses, source_row.modified, bool(is_closed), source_row.home
        )
        states.setdefault(session, []).append(state)
        damaged[session] = damaged.get(session, 0) + (lines or 0)
    live = _Live(states)
    rows = database.execute(_SUMMARY, given)
    columns = [column[0] for column in rows.description]
    summaries = {
        row["id"]: replace(
            _summary(row, sources.get(row["id"], []), live, damaged.get(row["id"], 0), people),
            machines=tuple(machines[key] for key in sorted(names.get(row["id"], ()))),
        )
        for row in (dict(zip(columns, values, strict=True)) for values in rows)
    }
    return [summaries[name] for name in ids if name in summaries]


def import_machines(database: Database) -> list[str]:
    """Return the keys of the machines that imports are from."""
    query = "SELECT DISTINCT machine FROM sources WHERE imported IS NOT NULL ORDER BY machine"
    return [key for (key,) in database.execute(query)]


def current_ids(database: Database, names: Iterable[str], home: str = "") -> dict[str, str]:
    """Return the session that each name belongs to: its id, its lasting name, or the name of one of its logs. `home`:
    the key of the home whose session has the name, if others have the same."""
    distinct_names = set(names)
    given = json_list(distinct_names)
    logs = """
        SELECT name, session FROM sources WHERE name IN (SELECT value FROM json_each(?)) ORDER BY imported IS NULL
    """  # the last counts
    ids = "SELECT id, id FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
    in_home = """
        SELECT repeated_id, session FROM sources WHERE repeated_id IN (SELECT value FROM json_each(?)) AND home = ?
        ORDER BY imported IS NULL, session = repeated_id
    """
    lasting = {}
    if any(map(id_and_mark, distinct_names)):
        from agent_logger.catalog.refresh.same_ids import sessions_called  # the ledger is not needed for other names

        lasting = sessions_called(database, distinct_names)
    return {
        **lasting,
        **dict(database.execute(logs, (given,))),
        **dict(database.execute(ids, (given,))),
        **dict(database.execute(in_home, (given, home))),
    }


def headings(database: Database, ids: Sequence[str]) -> dict[str, SessionHeading]:
    rows = database.execute(
        f"SELECT id, title, {PROJECT}, agent, {ENDED} FROM sessions WHERE id IN (SELECT value FROM json_each(?))",
        (json_list(ids),),
    )
    return {
        name: SessionHeading(title=title, project=project, agent=agent, ended=moment(ended))
        for name, title, project, agent, ended in rows
    }


class _Live:
    """Determines which sessions are live."""

    def __init__(self, sources: Mapping[str, Sequence[SourceState]]) -> None:
        self.now = time.time()
        # Agents on this machine note their own sessions.
        has_own = any(not source.home for states in sources.values() for source in states)
        self._noted = noted_sessions() if has_own else {}
        self._sources = sources

    def holds(self, name: str, ended: int | None, *, in_flight: bool, over: bool) -> bool:
        last = None if ended is None else ended / 1e6
        state = SessionState(last, in_flight, over, self._sources.get(name, ()))
        own = (source.agent for source in state.sources if not source.home)
        notes = (self._noted[agent] for agent in own if agent in self._noted)
        noted = next(notes, None)
        return is_live(state, self.now, runs=noted.runs(name, last) if noted else None)


def live_candidates(database: Database) -> list[str]:
    """Return sessions whose files were written to a short time ago, whose agent runs, or of which a program has a log
    open. Files may be new copies of old ones: where the last event is known, it counts."""
    begin = time.time() - AT_WORK_SECONDS
    rows = database.execute(
        f"""
        SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each(:running)) UNION
        SELECT id FROM sessions WHERE id IN (SELECT session FROM sources WHERE {OPEN_LOG}) UNION
        SELECT id FROM sessions WHERE modified >= :begin
            AND (details_stamp IS NOT stamp OR coalesce({ENDED} >= :begin * 1e6, true))
        """,
        {"begin": begin, "running": json_list(running_sessions())},
    )
    return [name for (name,) in rows]


def _live_sessions(database: Database) -> list[str]:
    return [summary.id for summary in summaries(database, live_candidates(database)) if summary.live]


def _summary(
    row: Mapping[str, Any],
    sources: Sequence[Source],
    live: _Live,
    damaged: int,
    people: Mapping[str, str | None],
) -> SessionSummary:
    name, nano = row["id"], row["nano_usd"]
    homes = sorted({source.home for source in sources})
    in_flight, ending = bool(row["in_flight"]), row["ending"]
    imports = tuple(sorted({source.imported for source in sources if source.imported}))
    is_at_work = not imports and live.holds(name, row["ended"], in_flight=in_flight, over=bool(row["is_over"]))
    return SessionSummary(
        **{name: row[name] for name in _AS_IT_IS},
        turns=row["turns"],
        project=row["project"],
        models=tuple(msgspec.json.decode(row["models"])),
        side_models=tuple(msgspec.json.decode(row["side_models"])),
        started=moment(row["started"]),
        ended=moment(row["ended"]),
        usage=Usage(**{field: row[field] for field in Usage.__struct_fields__}),
        cost=Cost(
            nano_usd=nano,
            price_date=None if nano is None else price_date(),
            reason=row["unpriced_reason"],
            unpriced=row["unpriced_responses"],
        ),
        reported_cost_usd=row["reported_cost_usd"],
        witnesses=WITNESS_SETS[row["witnesses"]],
        parent=row["parent"],
        live=is_at_work,
        ending=INTERRUPTED if in_flight and not is_at_work else ending,
        paths=tuple(dict.fromkeys(path for source in sources for path in _paths_of(source))),
        prompts_only=bool(sources) and all(source.prompts_only for source in sources),
        damaged_lines=damaged,
        unlisted_calls=bool(row["has_unlisted_calls"]),
        main_missing=_is_main_missing(sources),
        imported=imports,
        people=tuple(dict.fromkeys(person for home in homes if (person := people.get(home)))),
    )


def _paths_of(source: Source) -> Iterable[Path]:
    if source.main_missing:
        return map(Path, source.others or ())
    return () if source.is_of_hooks else (Path(source.path),)


def _is_main_missing(sources: Sequence[Source]) -> bool:
    files = [source for source in sources if source.agent and not source.prompts_only]
    return bool(files) and all(file.main_missing for file in files)


def moment(micros: int | None) -> datetime | None:
    return None if micros is None else time_of(micros)


def parents(database: Database) -> dict[str, str | None]:
    """Return the session that each one was forked from; of the forks of one session, the one that began first is
    first."""
    return dict(database.execute("SELECT id, parent FROM sessions ORDER BY family, family_position"))


def resolve(database: Database, given: str) -> list[str]:
    """Return the sessions that are meant: by id, by the name of a log or its path; else all that begin so."""
    for where in ("id = ?1", "id IN (SELECT session FROM sources WHERE name = ?1 OR path = ?1)", _BEGINS):
        rows = database.execute(f"SELECT id FROM sessions WHERE {where} ORDER BY last_active DESC", (storable(given),))
        if matching := [name for (name,) in rows]:
            return matching
    return []


_BEGINS = """
    ?1 <> '' AND (substr(id, 1, length(?1)) = ?1
        OR id IN (SELECT session FROM sources WHERE substr(name, 1, length(?1)) = ?1))
"""


def beginnings(database: Database, ids: Iterable[str], least: int) -> dict[str, str]:
    """Return a beginning of each id that no other session's id or log name has, of at least `least` characters.

    Codex and opencode make ids from the time: sessions of one minute have the first eight characters in common.
    """
    beginning_of = {}
    for name in ids:
        own = storable(name)
        neighbours = database.execute(_NEIGHBOURS, (own,)).fetchone()
        shared = [_common_length(own, other) for other in neighbours if other is not None]
        beginning_of[name] = name[: max(least, *(1 + length for length in shared), 0)]
    return beginning_of


_NEIGHBOURS = """
    SELECT (SELECT max(id) FROM sessions WHERE id < ?1), (SELECT min(id) FROM sessions WHERE id > ?1),
        (SELECT name FROM sources WHERE name < ?1 AND session <> ?1 ORDER BY name DESC LIMIT 1),
        (SELECT name FROM sources WHERE name > ?1 AND session <> ?1 ORDER BY name LIMIT 1)
"""


def _common_length(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))


def all_beginnings(database: Database, least: int) -> dict[str, str]:
    """Return what `beginnings` does, for all sessions."""
    query = "SELECT id, id FROM sessions UNION SELECT name, session FROM sources ORDER BY 1"
    names = database.execute(query).fetchall()
    before, after = dict(_shared_lengths(names)), dict(_shared_lengths(names[::-1]))
    return {name: name[: max(least, 1 + before[name], 1 + after[name])] for name in before}


def _shared_lengths(names: Sequence[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """Yield each session id, and how many characters it shares with the last name of another session before it. Names
    are sorted, each with its session."""
    last = ""
    for session, own in groupby(names, key=itemgetter(1)):
        for name, _ in own:
            if name == session:
                yield session, _common_length(name, last)
        last = name


# ---------------------------------------------------------------- what is known of their files


class OutdatedSession(NamedTuple):
    """A session whose details are older than its files, or than what it has in common with others."""

    id: str
    stamp: str
    size: int
    details_stamp: str | None


def outdated_sessions(database: Database, only: Iterable[str] | None = None) -> list[OutdatedSession]:
    """Return outdated sessions, the one last active first; of these only, if they are given."""
    condition = "" if only is None else "AND id IN (SELECT value FROM json_each(?))"
    query = f"""
        SELECT id, stamp, size, details_stamp FROM sessions WHERE details_stamp IS NOT stamp {condition}
        ORDER BY last_active DESC, id
    """
    return [OutdatedSession(*row) for row in database.execute(query, () if only is None else (json_list(only),))]


def backlog(database: Database) -> int:
    query = "SELECT coalesce(sum(size), 0) FROM sessions WHERE details_stamp IS NOT stamp"
    return int(database.execute(query).fetchone()[0])


def stamps(database: Database) -> dict[str, tuple[str, int]]:
    """Return the stamp and the size of each session."""
    rows = database.execute("SELECT id, stamp, size FROM sessions")
    return {session: (stamp, size) for session, stamp, size in rows}
