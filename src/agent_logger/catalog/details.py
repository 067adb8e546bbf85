"""What only the whole session tells: its title, exchanges and tools. Read when it is asked for, or aside."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from agent_logger.catalog.columns import NEVER, micros_of
from agent_logger.catalog.database import hashed, listed, storable, writing
from agent_logger.catalog.live import in_flight
from agent_logger.catalog.metrics import active_seconds, count_tool_calls
from agent_logger.catalog.questions import Behind, sources_of
from agent_logger.catalog.scan import count_change
from agent_logger.catalog.sessions import joined
from agent_logger.redact import hidden
from agent_logger.session import Session
from agent_logger.store.projects import project_of

LONGEST_TITLE = 500  # characters; a first prompt may be a book


def session_from(database: sqlite3.Connection, session: str) -> Session | None:
    """From the files of all its witnesses, as they are now."""
    return joined(sources_of(database, session))


class Details(NamedTuple):
    """What a session tells of itself, to be kept."""

    of: Behind
    values: dict[str, object] | None  # none: it cannot be read any more
    tools: list[tuple[int, str]]


def details_of(it: Behind, session: Session | None) -> Details:
    if session is None:
        return Details(it, None, [])
    return Details(it, _values(session), list(_tools(session)))


def read_details(database: sqlite3.Connection, batch: Iterable[Behind]) -> None:
    keep(database, [details_of(it, session_from(database, it.id)) for it in batch])


def keep(database: sqlite3.Connection, details: Iterable[Details]) -> None:
    with writing(database):
        for it, values, tools in details:
            if values is None:
                database.execute("UPDATE sessions SET detailed = ? WHERE id = ?", (it.stamp, it.id))
            else:
                database.execute(_DETAIL, {**values, "id": it.id, "stamp": it.stamp})
                database.executemany("INSERT OR REPLACE INTO tools VALUES (?, ?)", tools)
        count_change(database)


_DETAIL = """
    UPDATE sessions SET detailed = :stamp, title = :title, project = :project, started = :started, ended = :ended,
        active = coalesce(:ended, last_at, round(modified * 1e6)), exchanges = :exchanges, tool_calls = :tool_calls,
        errors = :errors, active_seconds = :active_seconds, own_parent = :parent, in_flight = :in_flight,
        own_reported_usd = :reported
    WHERE id = :id
"""


def _values(session: Session) -> dict[str, object]:
    calls, errors = count_tool_calls(session)
    title = storable(hidden(session.title)[:LONGEST_TITLE]) if session.title else None
    return {
        "title": title,
        "project": storable(project_of(session.project)) if session.project else None,
        "started": _micros(session.started),
        "ended": _micros(session.ended),
        "exchanges": len(session.exchanges),
        "tool_calls": calls,
        "errors": errors,
        "active_seconds": active_seconds(session),
        "reported": session.reported_cost_usd,
        "parent": session.parent and storable(session.parent),
        "in_flight": in_flight(session),
    }


def _micros(at: datetime | None) -> int | None:
    micros = micros_of(at)
    return None if micros == NEVER else micros


def _tools(session: Session) -> Iterator[tuple[int, str]]:
    for turn in session.turns:
        uses = tuple(block.name for block in turn.blocks if block.kind == "tool_use" and block.name)
        if uses and turn.message_id:
            yield hashed(turn.message_id), _counted(uses)


@lru_cache  # nearly every turn calls one tool once
def _counted(uses: tuple[str, ...]) -> str:
    return listed(sorted(Counter(uses).items()))
