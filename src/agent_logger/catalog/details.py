"""What only the whole session tells: its title, exchanges and tools. Read when it is asked for, or aside."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from agent_logger.catalog.columns import NEVER, micros_of
from agent_logger.catalog.database import writing
from agent_logger.catalog.found import Found
from agent_logger.catalog.metrics import active_seconds, tool_calls
from agent_logger.catalog.posting import listed
from agent_logger.catalog.scan import count_change
from agent_logger.catalog.sessions import joined, place_of
from agent_logger.redact import hidden
from agent_logger.session import Session

LONGEST_TITLE = 500  # characters; a first prompt may be a book


class Behind(NamedTuple):
    """A session whose details are not of its files as they are now."""

    id: str
    stamp: str
    size: int


def behind(database: sqlite3.Connection, only: Iterable[str] | None = None) -> list[Behind]:
    """The one last active first; of these only, if they are given."""
    wanted = "" if only is None else "AND id IN (SELECT value FROM json_each(?))"
    query = f"""
        SELECT id, stamp, size FROM sessions WHERE detailed IS NOT stamp {wanted} ORDER BY active DESC, id
    """
    return [Behind(*row) for row in database.execute(query, () if only is None else (listed(only),))]


def sources_of(database: sqlite3.Connection, session: str) -> list[Found]:
    rows = database.execute(
        """
        SELECT key, agent, path, name, modified, size, stamp, others FROM sources
        WHERE session = ? ORDER BY agent IS NULL, key
        """,
        (session,),
    )
    found = (Found(*row) for row in rows)
    return [it._replace(others=tuple(msgspec.json.decode(str(it.others)))) for it in found]


def session_from(database: sqlite3.Connection, session: str) -> Session | None:
    """From the files of all its witnesses, as they are now."""
    return joined(map(place_of, sources_of(database, session)))


def read_detail(database: sqlite3.Connection, it: Behind) -> None:
    keep(database, it, session_from(database, it.id))


def keep(database: sqlite3.Connection, it: Behind, session: Session | None) -> None:
    """What the session tells; nothing, if it cannot be read any more."""
    with writing(database):
        if session is None:
            database.execute("UPDATE sessions SET detailed = ? WHERE id = ?", (it.stamp, it.id))
            return
        database.execute(_DETAIL, {**_values(session), "id": it.id, "stamp": it.stamp})
        database.execute("DELETE FROM tools WHERE session = ?", (it.id,))
        database.executemany("INSERT OR REPLACE INTO tools VALUES (?, ?, ?, ?)", _tools(it.id, session))
        count_change(database)


_DETAIL = """
    UPDATE sessions SET detailed = :stamp, title = :title, project = coalesce(:project, project),
        started = coalesce(:started, started), ended = coalesce(:ended, ended), active = coalesce(:ended, active),
        exchanges = :exchanges, tool_calls = :tool_calls, errors = :errors, active_seconds = :active_seconds,
        parent = coalesce(:parent, parent)
    WHERE id = :id
"""


def _values(session: Session) -> dict[str, object]:
    calls = list(tool_calls(session))
    title = hidden(session.title)[:LONGEST_TITLE] if session.title else None
    return {
        "title": title,
        "project": session.project,
        "started": _micros(session.started),
        "ended": _micros(session.ended),
        "exchanges": len(session.exchanges),
        "tool_calls": len(calls),
        "errors": sum(call.is_error for call in calls),
        "active_seconds": active_seconds(session),
        "parent": session.parent,
    }


def _micros(at: datetime | None) -> int | None:
    micros = micros_of(at)
    return None if micros == NEVER else micros


def _tools(name: str, session: Session) -> Iterator[tuple[str, str, str, int]]:
    for turn in session.turns:
        if turn.message_id:
            counts = Counter(call.name for call in turn.tool_calls if call.name)
            yield from ((name, turn.message_id, tool, count) for tool, count in counts.items())
