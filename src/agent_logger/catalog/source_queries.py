"""Queries about the sources of sessions in the catalog, as SQL."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agent_logger.catalog.database import Database, json_list
from agent_logger.files.sources import Source
from agent_logger.files.stored_text import restored

SOURCE = "key, agent, path, name, modified, size, stamp, other_paths, home, imported"
# What was imported does not count where this machine has the session.
COUNTING = """(imported IS NULL OR NOT EXISTS (
    SELECT 1 FROM sources local WHERE local.session = sources.session AND local.imported IS NULL
))"""


def source_of(row: Sequence[Any]) -> Source:
    key, agent, path, name, modified, size, stamp, others, home, imported = row
    paths = None if others is None else tuple(map(restored, msgspec.json.decode(others)))
    return Source(restored(key), agent, restored(path), restored(name), modified, size, stamp, paths, home, imported)


def sources_of(database: Database, session: str) -> list[Source]:
    query = f"SELECT {SOURCE} FROM sources WHERE session = ? AND {COUNTING} ORDER BY agent IS NULL, key"
    return list(map(source_of, database.execute(query, (session,))))


def sources_to_count(database: Database, sessions: Iterable[str] | None) -> list[tuple[int, Source]]:
    """Return the sources of these sessions, or of all, whose damaged lines were not counted since they changed, each
    with its number."""
    query = f"SELECT id, {SOURCE} FROM sources WHERE damage_stamp IS NOT stamp"
    if sessions is None:
        rows = database.execute(query)
    else:
        rows = database.execute(f"{query} AND session IN (SELECT value FROM json_each(?))", (json_list(sessions),))
    return [(source, source_of(values)) for source, *values in rows]


def damaged_files(database: Database, sessions: Iterable[str]) -> dict[str, dict[Path, int]]:
    """Return how many damaged lines are in which file, for each session that has any."""
    query = f"""
        SELECT session, damage_counts.path, damage_counts.damaged_lines
        FROM damage_counts JOIN sources ON sources.id = source
        WHERE damage_counts.damaged_lines > 0 AND session IN (SELECT value FROM json_each(?)) AND {COUNTING}
        ORDER BY session, damage_counts.path
    """
    damaged: dict[str, dict[Path, int]] = {}
    for session, path, lines in database.execute(query, (json_list(sessions),)):
        damaged.setdefault(session, {})[Path(restored(path))] = lines
    return damaged


class OwnLog(NamedTuple):
    """A log of ours, its session, and whether it says that it was forked."""

    session: str
    path: Path
    is_forked: bool


def own_logs(database: Database) -> list[OwnLog]:
    own = "agent IS NULL AND key = path AND imported IS NULL"
    rows = database.execute(f"SELECT session, path, parent IS NOT NULL FROM sources WHERE {own}")
    return [OwnLog(session, Path(restored(path)), bool(forked)) for session, path, forked in rows]


def summaries_beside(database: Database, session: str) -> dict[str, str]:
    """Return the summaries in files of the session's folders, by the line that each ends at."""
    return dict(
        database.execute(
            """
            SELECT leaf, text FROM summaries JOIN sources ON sources.id = source
            WHERE folder IN (SELECT folder FROM sources WHERE session = ?) ORDER BY modified, leaf
            """,
            (session,),
        )
    )


# ---------------------------------------------------------------- logs that may be open


# A log of ours that a program other than the proxy may have open. These are the terms of the index
# `sources_open_logs`.
OPEN_LOG = "agent IS NULL AND key = path AND NOT witnesses & 1 AND closed_stamp IS NOT stamp"


class OpenLog(NamedTuple):
    """A log that a program may have open, and its stamp when it was last checked."""

    source: int  # sources.id
    folder: Path
    name: str
    stamp: str


def open_logs(database: Database, sessions: Iterable[str] | None) -> list[OpenLog]:
    """Return the logs of these sessions, or of all, that are not known to be closed."""
    query = f"SELECT id, path, name, stamp FROM sources WHERE {OPEN_LOG}"
    if sessions is None:
        rows = database.execute(query)
    else:
        rows = database.execute(f"{query} AND session IN (SELECT value FROM json_each(?))", (json_list(sessions),))
    return [OpenLog(source, Path(restored(path)).parent, restored(name), stamp) for source, path, name, stamp in rows]
