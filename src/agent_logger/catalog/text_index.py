"""The index for full-text search: tables of SQLite's FTS5 that hold words and no texts.

Texts stay in the files. A row of `texts` says where one stands; a row of an index without one in `texts` is dead, and
found by nobody. Indexes are shards: one that has grown enough is followed by the next, and one of which a fifth is
dead is dropped, and its sessions are indexed again. What was removed for good takes its shard with it at once, for
words cannot be taken out of an index one by one.
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent_logger.catalog.database import listed, writing
from agent_logger.catalog.texts import Text
from agent_logger.catalog.words import spaced

SHARD_TEXT_BYTES = 360_000_000  # of texts, which make an index of about 200 MB
MOST_DEAD = 0.2
SHARD = 40  # bits of a row's number below that of its shard
HASH_BYTES = (
    16 << 20
)  # words that SQLite gathers before it writes them: half the time that its own choice takes


class Entry(NamedTuple):
    """A session to be indexed."""

    session: str
    stamp: str
    texts: Sequence[Text]


class Indexed(NamedTuple):
    """A text that an index has found."""

    session: str
    exchange: int
    turn: int
    kind: int
    at: int
    until: int
    error: bool
    rank: float


def stamps(database: sqlite3.Connection) -> dict[str, str]:
    return dict(database.execute("SELECT session, stamp FROM indexed"))


def whole(database: sqlite3.Connection) -> str | None:
    """The state of the catalog that all texts are in the index of."""
    row = database.execute("SELECT value FROM facts WHERE name = 'whole'").fetchone()
    return row[0] if row else None


def note_whole(database: sqlite3.Connection, state: str) -> None:
    with writing(database):
        database.execute("INSERT OR REPLACE INTO facts VALUES ('whole', ?)", (state,))


def index(database: sqlite3.Connection, entries: Iterable[Entry], gone: Iterable[str] = ()) -> None:
    """Take these in, and forget those that are gone; all at once, or nothing of it."""
    with writing(database):
        database.execute("DELETE FROM facts")
        for session in gone:
            _forget(database, session)
        new = [(session, it) for entry in entries for session, it in _new(database, entry)]
        if new:
            _insert(database, new)
        _drop_dead(database)


def erase(database: sqlite3.Connection, sessions: Iterable[str]) -> None:
    """No word of these is left; others that shared a shard with them are to be indexed again."""
    with writing(database):
        database.execute("DELETE FROM facts")
        shards: set[int] = set()
        for session in sessions:
            rows = database.execute(
                "SELECT DISTINCT texts.id >> ? FROM texts JOIN indexed ON indexed.id = texts.session "
                "WHERE indexed.session = ?",
                (SHARD, session),
            )
            shards |= {shard for (shard,) in rows}
            _forget(database, session)
        for shard in shards:
            _drop(database, shard)


def found(
    database: sqlite3.Connection, match: str, *, error: bool, sessions: str | None, limit: int
) -> list[Indexed]:
    """The rows that match, the best first, and of equals the newer one. `sessions`: a list of them in JSON, if only
    those are wanted."""
    shards = [shard for (shard,) in database.execute("SELECT id FROM shards ORDER BY id DESC")]
    rows = [row for shard in shards for row in _matching(database, shard, match, error, sessions, limit)]
    return sorted(rows, key=lambda it: (it.rank, -it.at, it.session, it.turn))[:limit]


MONTH = 30 * 86_400_000.0  # milliseconds; what was said now counts twice, and half of that is gone in a month


def failed(database: sqlite3.Connection, *, sessions: str | None, limit: int) -> list[Indexed]:
    """Tool calls that failed, the newest first."""
    query = """
        SELECT indexed.session, exchange, turn, kind, at, until, error, 0.0
        FROM texts JOIN indexed ON indexed.id = texts.session
        WHERE error AND (?1 IS NULL OR indexed.session IN (SELECT value FROM json_each(?1)))
        ORDER BY at DESC LIMIT ?2
    """
    return [Indexed(*row) for row in database.execute(query, (sessions, limit))]


MOST_MATCHES = 10_000  # of a shard that are looked at: with more of them, words tell nothing apart


def _matching(
    database: sqlite3.Connection, shard: int, match: str, error: bool, sessions: str | None, limit: int
) -> list[Indexed]:
    table = f"words_{shard}"
    wanted = "AND texts.error" if error else ""
    within = "AND indexed.session IN (SELECT value FROM json_each(?))" if sessions is not None else ""
    query = f"""
        SELECT indexed.session, exchange, turn, kind, at, until, error,
            rank * (1 + 1 / (1 + max(0, ? - at) / {MONTH})) AS score
        FROM (
            SELECT rowid AS row, bm25({table}, 1.0, 0.5, 0.5) AS rank FROM {table} WHERE {table} MATCH ?
            ORDER BY rowid DESC LIMIT {MOST_MATCHES}
        )
        JOIN texts ON texts.id = {shard << SHARD} + row JOIN indexed ON indexed.id = texts.session
        WHERE 1 {wanted} {within} ORDER BY score, at DESC, indexed.session, turn LIMIT ?
    """
    now = round(time.time() * 1000)
    values = [now, match, limit] if sessions is None else [now, match, sessions, limit]
    return [Indexed(*row) for row in database.execute(query, values)]


# ---------------------------------------------------------------- writing


def _new(database: sqlite3.Connection, entry: Entry) -> list[tuple[int, Text]]:
    """Texts that are in the index already stay where they are; these are not. Each with the number of its session."""
    row = database.execute("SELECT id FROM indexed WHERE session = ?", (entry.session,)).fetchone()
    if row is None:
        insert = "INSERT INTO indexed (session, stamp) VALUES (?, ?) RETURNING id"
        (session,) = database.execute(insert, (entry.session, entry.stamp)).fetchone()
        return [(session, it) for it in entry.texts]
    (session,) = row
    database.execute("UPDATE indexed SET stamp = ? WHERE id = ?", (entry.stamp, session))
    return [(session, it) for it in _without_known(database, session, entry.texts)]


def _without_known(database: sqlite3.Connection, session: int, texts: Sequence[Text]) -> list[Text]:
    known: dict[int, list[int]] = {}
    for row, told in database.execute(
        "SELECT id, hash FROM texts WHERE session = ? ORDER BY id DESC", (session,)
    ):
        known.setdefault(told, []).append(row)
    new: list[Text] = []
    kept: list[tuple[int, ...]] = []
    for it in texts:
        if rows := known.get(it.hash):
            kept.append((it.exchange, it.turn, it.kind, it.at, it.until, it.error, rows.pop()))
        else:
            new.append(it)
    update = "UPDATE texts SET exchange = ?, turn = ?, kind = ?, at = ?, until = ?, error = ? WHERE id = ?"
    database.executemany(update, kept)
    _remove(database, [row for rows in known.values() for row in rows])
    return new


def _insert(database: sqlite3.Connection, texts: Sequence[tuple[int, Text]]) -> None:
    shard, first = _shard(database)
    grown = (len(texts), sum(len(it.text) for _, it in texts), len(texts), shard)
    database.execute(
        "UPDATE shards SET rows = rows + ?, text_bytes = text_bytes + ?, next = next + ? WHERE id = ?", grown
    )
    rows = (
        (
            (shard << SHARD) + number,
            session,
            it.exchange,
            it.turn,
            it.kind,
            it.at,
            it.until,
            it.error,
            it.hash,
        )
        for number, (session, it) in enumerate(texts, first)
    )
    database.executemany("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    # Last, and at once: with every other statement in between, SQLite writes out the words it has gathered.
    words = (
        (number, spaced(it.text), spaced(it.tool), spaced(it.file))
        for number, (_, it) in enumerate(texts, first)
    )
    database.executemany(f"INSERT INTO words_{shard} (rowid, text, tool, file) VALUES (?, ?, ?, ?)", words)


def _shard(database: sqlite3.Connection) -> tuple[int, int]:
    """The one that grows, and the number of its next row."""
    row = database.execute("SELECT id, next, text_bytes FROM shards ORDER BY id DESC LIMIT 1").fetchone()
    if row and row[2] < SHARD_TEXT_BYTES:
        return row[0], row[1]
    shard = row[0] + 1 if row else 1
    database.execute("INSERT INTO shards VALUES (?, 0, 0, 0, 1)", (shard,))
    database.execute(
        f"CREATE VIRTUAL TABLE words_{shard} USING fts5"
        f"""(text, tool, file, content = '', tokenize = "unicode61 tokenchars '_'")"""
    )
    database.execute(f"INSERT INTO words_{shard} (words_{shard}, rank) VALUES ('hashsize', {HASH_BYTES})")
    return shard, 1


def _forget(database: sqlite3.Connection, session: str) -> None:
    row = database.execute("SELECT id FROM indexed WHERE session = ?", (session,)).fetchone()
    if row:
        _remove(database, [it for (it,) in database.execute("SELECT id FROM texts WHERE session = ?", row)])
        database.execute("DELETE FROM indexed WHERE id = ?", row)


def _remove(database: sqlite3.Connection, rows: Sequence[int]) -> None:
    database.execute("DELETE FROM texts WHERE id IN (SELECT value FROM json_each(?))", (listed(rows),))
    database.executemany("UPDATE shards SET dead = dead + 1 WHERE id = ?", [(row >> SHARD,) for row in rows])


def _drop_dead(database: sqlite3.Connection) -> None:
    dead = database.execute("SELECT id FROM shards WHERE dead > rows * ?", (MOST_DEAD,)).fetchall()
    for (shard,) in dead:
        _drop(database, shard)


def _drop(database: sqlite3.Connection, shard: int) -> None:
    """All sessions that have a text in it are to be indexed again, as a whole."""
    rows = database.execute(
        "SELECT session FROM indexed WHERE id IN (SELECT session FROM texts WHERE id >> ? = ?)",
        (SHARD, shard),
    ).fetchall()
    for (session,) in rows:
        _forget(database, session)
    database.execute(f"DROP TABLE words_{shard}")
    database.execute("DELETE FROM shards WHERE id = ?", (shard,))
