"""What only the whole session shows: its title, exchanges and tools. Read on demand, or in the background."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec

from agent_logger.catalog.database import json_list, transaction
from agent_logger.catalog.discovery.reader import unpacked
from agent_logger.catalog.discovery.sessions import joined
from agent_logger.catalog.ledger.inherited import mark_inherited
from agent_logger.catalog.ledger.rows import NEVER, micros_of
from agent_logger.catalog.live.liveness import in_flight
from agent_logger.catalog.queries import OutdatedSession, sources_of, summaries_beside
from agent_logger.catalog.refresh import incremental
from agent_logger.catalog.refresh.incremental import Counts, Mark, SessionTail, counts_of, mark_of, tail_of
from agent_logger.catalog.refresh.refresh import count_change
from agent_logger.files.projects import project_of
from agent_logger.files.stored_text import hashed, storable
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session

LONGEST_TITLE = 500  # characters; a first prompt may be very long


def load_session(database: sqlite3.Connection, session: str) -> Session | None:
    """Read a session from the files of all its witnesses, as they are now."""
    whole = joined(sources_of(database, session), summaries_beside(database, session))
    return mark_inherited(database, session, whole) if whole else None


def load_tail(database: sqlite3.Connection, session: str, mark: bytes) -> SessionTail | None:
    """Read what a session has after a mark; None if it must be read as a whole."""
    rows = database.execute(
        "SELECT responses FROM sources JOIN source_responses ON source = sources.id WHERE session = ?",
        (session,),
    )
    responses = (response for (data,) in rows for response in unpacked(data))
    return tail_of(sources_of(database, session), _mark(mark), responses)


_mark = msgspec.json.Decoder(Mark).decode


class Details(NamedTuple):
    """What is stored of a session that was read."""

    of: OutdatedSession
    values: dict[str, object] | None  # none: the session cannot be read any more
    tools: list[tuple[int, str | None]]  # for each response the tools that it called, if any
    mark: Mark | None = None
    read_on: bool = False  # the tools are those after the mark


def details_of(source: OutdatedSession, session: Session | None, mark: Mark | None) -> Details:
    if session is None:
        return Details(source, None, [])
    return Details(source, _values(session, counts_of(session)), list(_tools(session)), mark)


def load_details(database: sqlite3.Connection, source: OutdatedSession) -> Details:
    """Read details from the files as they are now; only from what was written since, where that is enough."""
    if details := _tail_details(database, source):
        return details
    session = load_session(database, source.id)
    return details_of(source, session, find_mark(database, source, session))


def find_mark(database: sqlite3.Connection, source: OutdatedSession, session: Session | None) -> Mark | None:
    """Return where a session that was just read can be continued; None if it is short, or cannot be."""
    long = session is not None and source.size >= incremental.LONG_BYTES
    return mark_of(sources_of(database, source.id), session) if session and long else None


def read_details(database: sqlite3.Connection, batch: Iterable[OutdatedSession]) -> None:
    store_details(database, [load_details(database, source) for source in batch])


def _tail_details(database: sqlite3.Connection, source: OutdatedSession) -> Details | None:
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
    new = _values(tail.session, tail.counts)
    # A command of the client is a title only as long as nothing else was typed.
    if (tail.titled and new["title"] != title) or title.startswith("/"):
        return None
    values = {
        **new,
        "title": title,
        "project": project or new["project"],
        "started": started,
        "ended": max(filter(None, (ended, _micros(tail.session.ended))), default=None),
        "exchanges": tail.exchange - 1 + len(tail.session.exchanges) - (inherited or 0),
        "inherited_exchanges": inherited,
        "turns": tail.turn + len(tail.session.turns) - tail.mark.inherited_turns,
        "reported": reported if tail.session.reported_cost_usd is None else tail.session.reported_cost_usd,
    }
    return Details(source, values, list(_tools(tail.session)), tail.mark, read_on=True)


def store_details(database: sqlite3.Connection, details: Sequence[Details]) -> None:
    with transaction(database):
        for source, values, _, mark, _ in details:
            if values is None:
                database.execute(
                    "UPDATE sessions SET details_stamp = ? WHERE id = ?", (source.stamp, source.id)
                )
            else:
                encoded = msgspec.json.encode(mark) if mark else None
                database.execute(_DETAIL, {**values, "id": source.id, "stamp": source.stamp, "mark": encoded})
        _store_tools(database, details)
        count_change(database)


def _store_tools(database: sqlite3.Connection, details: Sequence[Details]) -> None:
    anew = json_list(detail.of.id for detail in details if not detail.read_on)
    database.execute("DELETE FROM response_tools WHERE session IN (SELECT value FROM json_each(?))", (anew,))
    tool_rows = [(detail.of.id, key, calls) for detail in details for key, calls in detail.tools]
    none = [row[:2] for row in tool_rows if row[2] is None]
    database.executemany("DELETE FROM response_tools WHERE session = ? AND message_key = ?", none)
    rows = sorted(row for row in tool_rows if row[2] is not None)
    database.executemany("INSERT OR REPLACE INTO response_tools VALUES (?, ?, ?)", rows)


_DETAIL = """
    UPDATE sessions SET details_stamp = :stamp, details_position = :mark, title = :title, project = :project,
        started = :started, ended = :ended, last_active = coalesce(:ended, last_response, round(modified * 1e6)),
        exchanges = :exchanges, inherited_exchanges = :inherited_exchanges, turns = :turns, tool_calls = :tool_calls,
        errors = :errors, active_seconds = :active_seconds, in_flight = :in_flight, ending = :ending,
        is_over = :is_over, reported_session_cost_usd = :reported, agent = coalesce(agent, :agent)
    WHERE id = :id
"""


def _values(session: Session, counts: Counts) -> dict[str, object]:
    title = storable(hidden(session.title)[:LONGEST_TITLE]) if session.title else None
    return {
        "title": title,
        "agent": storable(session.agent) if session.agent else None,  # responses name it, where there are any
        "project": storable(project_of(session.project)) if session.project else None,
        "started": _micros(session.started),
        "ended": _micros(session.ended),
        "exchanges": len(session.exchanges) - (session.inherited.exchanges if session.inherited else 0),
        "inherited_exchanges": _inherited_exchanges(session),
        "turns": len(session.own_turns),
        "tool_calls": counts.tool_calls,
        "errors": counts.errors,
        "active_seconds": counts.active_micros / 1e6 if session.started or counts.active_micros else None,
        "reported": session.reported_cost_usd,
        "in_flight": in_flight(session),
        "ending": _ending(session),
        "is_over": session.end_reason is not None,
    }


def _inherited_exchanges(session: Session) -> int | None:
    """Return how many exchanges a fork inherited; None for a fork whose files do not contain what came before."""
    if session.inherited:
        return session.inherited.exchanges
    return None if session.parent else 0


def _ending(session: Session) -> str | None:
    reason = session.exchanges[-1].end_reason if session.exchanges else None
    return storable(reason) if reason else None


def _micros(at: datetime | None) -> int | None:
    micros = micros_of(at)
    return None if micros == NEVER else micros


def _tools(session: Session) -> Iterator[tuple[int, str | None]]:
    for turn in session.turns:
        uses = tuple(block.name for block in turn.blocks if block.kind == "tool_use" and block.name)
        if turn.message_id:
            yield hashed(turn.message_id), _encode_counts(uses) if uses else None


@lru_cache  # nearly every turn calls one tool once
def _encode_counts(uses: tuple[str, ...]) -> str:
    return json_list(sorted(Counter(uses).items()))
