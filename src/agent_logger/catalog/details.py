"""Reads the details of sessions from their files, on demand or in the background, and stores them."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from agent_logger.agents.databases.reading import databases_kept_open
from agent_logger.catalog.database import Database, json_list, replace_rows, transaction
from agent_logger.catalog.discovery.sessions import joined
from agent_logger.catalog.ledger.inherited import mark_inherited
from agent_logger.catalog.queries import OutdatedSession
from agent_logger.catalog.refresh import incremental
from agent_logger.catalog.refresh.changes import count_change
from agent_logger.catalog.refresh.incremental import Mark, SessionTail, mark_of, tail_of
from agent_logger.catalog.session_details import SessionDetails, details_of, micros_or_none
from agent_logger.catalog.source_queries import sources_of, summaries_beside
from agent_logger.catalog.usage_queries import session_source_responses
from agent_logger.model.session import Session


def load_session(database: Database, session: str) -> Session | None:
    """Read a session from the files of all its witnesses, as they are now."""
    whole = joined(sources_of(database, session), summaries_beside(database, session))
    return mark_inherited(database, session, replace(whole, id=session)) if whole else None


def load_tail(database: Database, session: str, mark: bytes) -> SessionTail | None:
    """Read what a session has after a mark; None if it must be read as a whole."""
    return tail_of(sources_of(database, session), _mark(mark), session_source_responses(database, session))


_mark = msgspec.json.Decoder(Mark).decode


class ReadDetails(NamedTuple):
    """The facts that are stored about a session that was read."""

    of: OutdatedSession
    details: SessionDetails | None  # none: the session cannot be read any more
    mark: Mark | None = None
    read_on: bool = False  # the tools are those after the mark


def load_details(database: Database, source: OutdatedSession) -> ReadDetails:
    """Read details from the files as they are now; only from what was written since, where that is enough."""
    return _tail_details(database, source) or load_whole(database, source)[1]


def load_whole(database: Database, source: OutdatedSession) -> tuple[Session | None, ReadDetails]:
    """Read a session as a whole, its details, and where it can be continued, if it is long."""
    session = load_session(database, source.id)
    if session is None:
        return None, ReadDetails(source, None)
    is_long = source.size >= incremental.LONG_BYTES
    mark = mark_of(sources_of(database, source.id), session) if is_long else None
    return session, ReadDetails(source, details_of(session), mark)


@databases_kept_open()
def read_details(database: Database, batch: Iterable[OutdatedSession]) -> None:
    store_details(database, [load_details(database, source) for source in batch])


def _tail_details(database: Database, source: OutdatedSession) -> ReadDetails | None:
    row = database.execute(
        """
        SELECT details_position, title, project, started, ended, reported_session_cost_usd, inherited_exchanges
        FROM sessions WHERE id = ?
        """,
        (source.id,),
    ).fetchone()
    tail = load_tail(database, source.id, row[0]) if row and row[0] and row[1] else None
    if tail is None:
        return None
    _, title, project, started, ended, reported, inherited = row
    new, tools = details_of(tail.session, tail.counts)
    # A command of the client is a title only as long as nothing else was typed.
    if (tail.titled and new["title"] != title) or title.startswith("/"):
        return None
    columns = {
        **new,
        "title": title,
        "project": project or new["project"],
        "started": started,
        "ended": max(filter(None, (ended, micros_or_none(tail.session.ended))), default=None),
        "exchanges": tail.exchange - 1 + len(tail.session.exchanges) - (inherited or 0),
        "inherited_exchanges": inherited,
        "turns": tail.turn + len(tail.session.turns) - tail.mark.inherited_turns,
        "reported": reported if tail.session.reported_cost_usd is None else tail.session.reported_cost_usd,
    }
    return ReadDetails(source, SessionDetails(columns, tools), tail.mark, read_on=True)


def store_details(database: Database, batch: Iterable[ReadDetails]) -> None:
    """Store what was read, but not of sessions that must be read again since, or that another process has read."""
    with transaction(database):
        in_order = sorted(batch, key=lambda read: read.of.id)  # processes lock rows in one order
        stored = [read for read in in_order if _store_columns(database, read)]
        replaced = [read.of.id for read in stored if not read.read_on]
        _store_tools(database, replaced, [(read.of.id, read.details) for read in stored if read.details])
        count_change(database)


def _store_columns(database: Database, read: ReadDetails) -> bool:
    source, details = read.of, read.details
    keys = {"id": source.id, "stamp": source.stamp, "before": source.details_stamp}
    if details is None:
        return database.execute(_UPDATE_UNREADABLE, keys).rowcount > 0
    mark = msgspec.json.encode(read.mark) if read.mark else None
    return database.execute(_UPDATE, {**details.columns, **keys, "mark": mark}).rowcount > 0


def store_lone_details(database: Database, sessions: Iterable[tuple[str, SessionDetails]]) -> None:
    """Store the details of sessions that were just read from their only source. Those that have another source, or that
    other sessions have something in common with, are left for later. Call it within a transaction."""
    stored = []
    for name, details in sessions:
        if database.execute(_UPDATE_LONE, {**details.columns, "id": name, "mark": None}).rowcount:
            stored.append((name, details))
    _store_tools(database, [name for name, _ in stored], stored)


def _store_tools(database: Database, replaced: Iterable[str], sessions: Iterable[tuple[str, SessionDetails]]) -> None:
    """Store which tools were called. `replaced`: sessions of which these are all."""
    database.execute(
        "DELETE FROM response_tools WHERE session IN (SELECT value FROM json_each(?))", (json_list(replaced),)
    )
    tool_rows = [(name, key, calls) for name, details in sessions for key, calls in details.tools]
    none = [row[:2] for row in tool_rows if row[2] is None]
    database.executemany("DELETE FROM response_tools WHERE session = ? AND message_key = ?", none)
    rows = sorted(row for row in tool_rows if row[2] is not None)
    database.executemany(replace_rows("response_tools", ("session", "message_key", "calls"), key=2), rows)


_COLUMNS = """
    details_position = :mark, title = :title, project = :project,
        started = :started, ended = :ended,
        last_active = coalesce(:ended, last_response, CAST(round(modified * 1e6) AS BIGINT)),
        exchanges = :exchanges, inherited_exchanges = :inherited_exchanges, turns = :turns, tool_calls = :tool_calls,
        errors = :errors, active_seconds = :active_seconds, in_flight = :in_flight, ending = :ending,
        is_over = :is_over, reported_session_cost_usd = :reported, agent = coalesce(agent, :agent)
"""
_UNLESS_RESET = "WHERE id = :id AND details_stamp IS :before"
_UPDATE = f"UPDATE sessions SET details_stamp = :stamp, {_COLUMNS} {_UNLESS_RESET}"
_UPDATE_UNREADABLE = f"UPDATE sessions SET details_stamp = :stamp {_UNLESS_RESET}"
_UPDATE_LONE = f"""
    UPDATE sessions SET details_stamp = stamp, {_COLUMNS} WHERE id = :id AND parent IS NULL
        AND (SELECT count(*) FROM sources WHERE session = :id) = 1
        AND NOT EXISTS (SELECT 1 FROM sessions other WHERE other.family = sessions.family AND other.id <> :id)
"""
