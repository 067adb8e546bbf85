"""The first pass: what is new or changed is read for what was billed, and goes into the ledger.

What is unchanged by its stamp is not opened; what has grown is read on where its reader can.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_logger.catalog.database import storable, writing
from agent_logger.catalog.found import Found, Remembered, found
from agent_logger.prices import price_date
from agent_logger.store import foreign
from agent_logger.store.facts import tombstones

REMOVED = "removed"  # the damage of a log whose session was

Progress = Callable[[int, int], None]  # bytes that are done, and all there are to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh found, and what it took."""

    sources: int  # that there are
    changed: int  # that were read
    removed: int
    files_opened: int
    bytes_read: int


def refresh(database: sqlite3.Connection, home: Path, progress: Progress | None = None) -> Refreshed:
    """What was removed does not come back, whoever still tells of it."""
    before = (foreign.work.files, foreign.work.bytes)
    remembered = Remembered(_remembered(database))
    removed = frozenset(tombstones(home))
    there = {storable(it.key): it for it in found(home, remembered) if it.name not in removed}
    rows = database.execute("SELECT key, stamp, damage, session FROM sources")
    known: dict[str, tuple[str, str, str | None, str]] = {row[0]: row for row in rows}
    changed = [
        it
        for key, it in there.items()
        if (row := known.get(key)) is None or row[1] != it.stamp or row[2] or row[3] in removed
    ]
    changed = [it for it in changed if _is_changed(it, known.get(storable(it.key)), removed)]
    changed.sort(key=lambda it: -it.modified)
    gone = [key for key in known if key not in there]
    if gone or remembered.new:
        with writing(database):
            _remember(database, remembered)
            if gone:
                from agent_logger.catalog.posting import post

                post(database, [], gone)
            count_change(database)
    if changed:
        from agent_logger.catalog.intake import take_in  # the readers are not needed before

        take_in(database, changed, removed, progress)
    _price_again(database)
    return Refreshed(
        sources=len(there),
        changed=len(changed),
        removed=len(gone),
        files_opened=foreign.work.files - before[0],
        bytes_read=foreign.work.bytes - before[1],
    )


def _is_changed(it: Found, known: tuple[str, str, str | None, str] | None, removed: frozenset[str]) -> bool:
    """What could not be read may be readable now; what was removed since is to be forgotten."""
    if known is None:
        return True
    _, stamp, damage, session = known
    return stamp != it.stamp or (damage != REMOVED if session in removed else damage is not None)


def state(database: sqlite3.Connection) -> str:
    """Another one after every change, also in a catalog that was made anew."""
    (made,) = database.execute("SELECT value FROM facts WHERE name = 'made'").fetchone()
    return f"{made}:{changes(database)}"


def changes(database: sqlite3.Connection) -> int:
    """Grows with every change that anybody makes."""
    row = database.execute("SELECT value FROM facts WHERE name = 'changes'").fetchone()
    return int(row[0]) if row else 0


def count_change(database: sqlite3.Connection) -> None:
    database.execute(
        "INSERT INTO facts VALUES ('changes', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
    )


def _price_again(database: sqlite3.Connection) -> None:
    """Costs in the ledger are those of one price list."""
    row = database.execute("SELECT value FROM facts WHERE name = 'prices'").fetchone()
    if row and row[0] == price_date():
        return
    with writing(database):
        if row:
            from agent_logger.catalog.posting import post_again

            post_again(database)
        database.execute("INSERT OR REPLACE INTO facts VALUES ('prices', ?)", (price_date(),))
        count_change(database)


def _remembered(database: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    rows = database.execute("SELECT path, stamp, told FROM remembered")
    return {path: (stamp, told) for path, stamp, told in rows}


def _remember(database: sqlite3.Connection, remembered: Remembered) -> None:
    rows = ((storable(path), *told) for path, told in remembered.new.items())
    database.executemany("INSERT OR REPLACE INTO remembered VALUES (?, ?, ?)", rows)
