"""The index for full-text search: tables of SQLite's FTS5 that hold words and no texts.

Texts stay in the files. A row of `texts` says where a text is; a row of an index without one in `texts` is dead, and
never found. A fork begins with a copy of what it was forked from: one row of an index stands for both.

Indexes are shards: one that has grown enough is followed by the next, and one of which a fifth is dead is dropped, and
its sessions are indexed again. A session that is removed for good takes its shards with it at once, because words
cannot be removed from an index one by one. Where very much is new, several processes build a shard each
(`parallel.py`); later sessions are added to these until they are full.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from agent_logger.catalog.database import Database, json_list, transaction
from agent_logger.catalog.search.query import Term
from agent_logger.catalog.search.text_index import IndexedSession, IndexHit, Scope, TextPosition
from agent_logger.catalog.search.texts import NO_TURN, Text
from agent_logger.catalog.search.tokenizer import FTS5_TOKENIZER, fts5_text, space_words

SHARD_TEXT_BYTES = 360_000_000  # bytes of texts, which make an index of about 200 MB
MOST_DEAD = 0.2
SHARD = 40  # bits of a row's number below that of its shard
HASH_BYTES = 16 << 20  # words that SQLite gathers before it writes them: half the time that its own choice takes


class SqliteTextIndex:
    """The index in a database of its own (`search.text_index.TextIndex`)."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def stamps(self) -> dict[str, str]:
        return stamps(self.database)

    def marks(self) -> dict[str, bytes]:
        return marks(self.database)

    def complete_state(self) -> str | None:
        return complete_state(self.database)

    def store_complete_state(self, state: str) -> None:
        store_complete_state(self.database, state)

    def claim(self, _session: str, /) -> bool:
        return True  # one process at a time fills the index (`index_lock.py`)

    def index(self, entries: Sequence[IndexedSession], gone: Iterable[str] = ()) -> None:
        index(self.database, entries, gone)

    def erase(self, sessions: Iterable[str]) -> None:
        erase(self.database, sessions)

    def matches(self, terms: Sequence[Term], scope: Scope, limit: int) -> list[IndexHit]:
        return matches(self.database, terms, scope, limit)

    def failed_calls(self, scope: Scope, limit: int) -> list[IndexHit]:
        return failed_calls(self.database, scope, limit)

    def first_turns(self, session: str, exchanges: Iterable[int]) -> dict[int, int]:
        return first_turns(self.database, session, exchanges)


def stamps(database: Database) -> dict[str, str]:
    return dict(database.execute("SELECT session, stamp FROM indexed_sessions"))


def marks(database: Database) -> dict[str, bytes]:
    """Return where sessions that can be read incrementally continue."""
    return dict(database.execute("SELECT session, position FROM indexed_sessions WHERE position IS NOT NULL"))


def complete_state(database: Database) -> str | None:
    """Return the state of the catalog whose texts are all in the index."""
    row = database.execute("SELECT value FROM properties WHERE name = 'catalog_state'").fetchone()
    return row[0] if row else None


def store_complete_state(database: Database, state: str) -> None:
    with transaction(database):
        database.execute("INSERT OR REPLACE INTO properties VALUES ('catalog_state', ?)", (state,))


def forget_complete_state(database: Database) -> None:
    database.execute("DELETE FROM properties")


def index(database: Database, entries: Iterable[IndexedSession], gone: Iterable[str] = ()) -> None:
    """Index these sessions, and forget those that are gone; all at once, or nothing of it."""
    with transaction(database):
        forget_complete_state(database)
        for session in gone:
            _forget(database, session)
        _drop_dead(database)  # dead rows are dropped before anything is added
        writing_to = _Shard(database)
        for entry in entries:
            writing_to.take(entry)
        writing_to.write()
        _drop_dead(database)


def erase(database: Database, sessions: Iterable[str]) -> None:
    """Remove every word of these sessions; others that shared a shard with them must be indexed again."""
    with transaction(database):
        forget_complete_state(database)
        shards: set[int] = set()
        for session in sessions:
            shards |= _shards_of(database, session)
            _forget(database, session)
        for shard in shards:
            _drop(database, shard)


def _shards_of(database: Database, session: str) -> set[int]:
    """Return the shards that have a text of the session."""
    query = """
        SELECT DISTINCT index_row >> ? FROM texts
        WHERE session = (SELECT id FROM indexed_sessions WHERE session = ?)
    """
    return {shard for (shard,) in database.execute(query, (SHARD, session))}


def _condition(scope: Scope) -> str:
    times = "AND (:since IS NULL OR at >= :since) AND (:until IS NULL OR at < :until AND at > 0)"
    within = "AND (:sessions IS NULL OR indexed_sessions.session IN (SELECT value FROM json_each(:sessions)))"
    return f"{within} {times} {'AND is_error' if scope.error else ''}"


def _fts5_query(terms: Sequence[Term]) -> str:
    return " AND ".join(map(_fts5_term, terms))


def _fts5_term(term: Term) -> str:
    phrase = f'"{" ".join(term.words)}"' + ("*" if term.is_beginning else "")
    return f"{term.field} : {phrase}" if term.field else phrase


def matches(database: Database, terms: Sequence[Term], scope: Scope, limit: int) -> list[IndexHit]:
    """Return the rows that match, the best first, and of equals the newer one."""
    match = _fts5_query(terms)
    shards = [shard for (shard,) in database.execute("SELECT id FROM shards ORDER BY id DESC")]
    rows = [row for shard in shards for row in _matches_in_shard(database, shard, match, scope, limit)]
    return sorted(rows, key=lambda row: (row.rank, -row.at, row.places))[:limit]


MONTH = 30 * 86_400_000.0  # milliseconds; what was said now counts twice, and half of that is gone in a month


def failed_calls(database: Database, scope: Scope, limit: int) -> list[IndexHit]:
    """Return tool calls that failed, the newest first."""
    query = f"""
        SELECT {_PLACES}, kind, at, result_at, is_error, hash, 0.0
        FROM texts JOIN indexed_sessions ON indexed_sessions.id = texts.session
        WHERE is_error {_condition(scope)} GROUP BY index_row ORDER BY at DESC LIMIT :limit
    """
    return [_read_hit(row) for row in database.execute(query, {**scope._asdict(), "limit": limit})]


def first_turns(database: Database, session: str, exchanges: Iterable[int]) -> dict[int, int]:
    """Return the first turn of these exchanges of a session, where an exchange has one."""
    query = """
        SELECT exchange, min(turn) FROM texts
        WHERE session = (SELECT id FROM indexed_sessions WHERE session = ?)
            AND exchange IN (SELECT value FROM json_each(?)) AND turn <> ? GROUP BY exchange
    """
    return dict(database.execute(query, (session, json_list(exchanges), NO_TURN)))


_PLACES = "json_group_array(json_array(indexed_sessions.session, exchange, turn))"
_places = msgspec.json.Decoder(list[TextPosition]).decode


def _read_hit(row: Sequence[Any]) -> IndexHit:
    return IndexHit(tuple(sorted(_places(row[0]))), *row[1:])


# Matches of a shard that are looked at. Words with more matches distinguish nothing.
MOST_MATCHES = 10_000


def _matches_in_shard(database: Database, shard: int, match: str, scope: Scope, limit: int) -> list[IndexHit]:
    table = f"words_{shard}"
    query = f"""
        SELECT {_PLACES}, kind, at, result_at, is_error, hash,
            rank * (1 + 1 / (1 + max(0, :now - at) / {MONTH})) AS score
        FROM (
            SELECT rowid AS row, bm25({table}, 1.0, 0.5, 0.5) AS rank FROM {table} WHERE {table} MATCH :match
            ORDER BY rowid DESC LIMIT {MOST_MATCHES}
        )
        JOIN texts ON index_row = {shard << SHARD} + row JOIN indexed_sessions ON indexed_sessions.id = texts.session
        WHERE 1 {_condition(scope)} GROUP BY index_row ORDER BY score, at DESC, index_row LIMIT :limit
    """
    values = {**scope._asdict(), "now": round(time.time() * 1000), "match": match, "limit": limit}
    return [_read_hit(row) for row in database.execute(query, values)]


# ---------------------------------------------------------------- shards


def add_shard(database: Database, rows: int = 0, text_bytes: int = 0) -> int:
    """Add a shard for so many rows. Returns its number. Its words are in the table `words_` and that number."""
    shard: int
    (shard,) = database.execute("SELECT coalesce(max(id), 0) + 1 FROM shards").fetchone()
    database.execute("INSERT INTO shards VALUES (?, ?, 0, ?, ?)", (shard, rows, text_bytes, rows + 1))
    create_words(database, "main", f"words_{shard}")
    return shard


def create_words(database: Database, schema: str, table: str) -> None:
    """Create a table of words in one of the connection's databases."""
    database.execute(
        f"CREATE VIRTUAL TABLE {schema}.{table} USING fts5"
        f"""(text, tool, file, content = '', tokenize = "{FTS5_TOKENIZER}")"""
    )
    database.execute(f"INSERT INTO {schema}.{table} ({table}, rank) VALUES ('hashsize', {HASH_BYTES})")


def add_words(database: Database, table: str, texts: Iterable[Text], first: int) -> None:
    """Add the words of texts, in rows from that number on. Do so at once: any other statement in between makes SQLite
    write out the words it has gathered."""
    words = (
        (number, fts5_text(text.text), space_words(text.tool), fts5_text(text.file))
        for number, text in enumerate(texts, first)
    )
    database.executemany(f"INSERT INTO {table} (rowid, text, tool, file) VALUES (?, ?, ?, ?)", words)


INSERT_TEXT = "INSERT INTO {} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def columns_of(text: Text) -> tuple[int, ...]:
    # A `bool` is slow to bind.
    return text.exchange, text.turn, text.kind, text.at, text.until, 1 if text.error else 0


# ---------------------------------------------------------------- transaction


RowsByText = dict[tuple[int, int, int], list[int]]  # rows of an index by what copies of a text have in common


class _Shard:
    """The shard that grows, and what is to be written to it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shard, self._first = _growing_shard(database)
        self._words: list[Text] = []
        self._rows: list[tuple[int, ...]] = []
        # The rows of sessions that have relatives, by session.
        self._rows_by_session: dict[str, list[tuple[int, ...]]] = {}

    def take(self, entry: IndexedSession) -> None:
        session, texts = _register(self._database, entry)
        copied = self._copies_in(session, entry.relatives) if entry.relatives else {}
        rows: list[tuple[int, ...]] = []
        for text in texts:
            digest = text.hash
            # The row of a copy, each for one text of a session; else a new one.
            copies = copied.get((digest, text.at, text.kind)) if copied else None
            rows.append((copies.pop() if copies else self._add(text), session, *columns_of(text), digest))
        self._rows += rows
        if entry.relatives:
            self._rows_by_session[entry.session] = rows

    def _add(self, text: Text) -> int:
        """Add a text. Returns the number of its row."""
        self._words.append(text)
        return (self._shard << SHARD) + self._first + len(self._words) - 1

    def _copies_in(self, session: int, relatives: Sequence[str]) -> RowsByText:
        """Return the rows of relatives that the session does not use already: a row is one text of a session."""
        query = """
            SELECT hash, at, kind, index_row FROM texts
            WHERE session IN (SELECT id FROM indexed_sessions WHERE session IN (SELECT value FROM json_each(?)))
        """
        copies = set(self._database.execute(query, (json_list(relatives),)))
        for name in relatives:
            copies |= {(row[-1], row[5], row[4], row[0]) for row in self._rows_by_session.get(name, ())}
        query = "SELECT index_row FROM texts WHERE session = ?"
        used = {row for (row,) in self._database.execute(query, (session,))}
        copied: RowsByText = {}
        for text, at, kind, words in sorted(copies, reverse=True):
            if words not in used:
                copied.setdefault((text, at, kind), []).append(words)
        return copied

    def write(self) -> None:
        texts, shard = self._words, self._shard
        self._database.executemany(INSERT_TEXT.format("texts"), self._rows)
        grown = (len(texts), sum(len(text.text) for text in texts), len(texts), shard)
        self._database.execute(
            "UPDATE shards SET rows = rows + ?, text_bytes = text_bytes + ?, next_row = next_row + ? WHERE id = ?",
            grown,
        )
        add_words(self._database, f"words_{shard}", texts, self._first)  # last


def _register(database: Database, entry: IndexedSession) -> tuple[int, Sequence[Text]]:
    """Return the number of the session, and its texts that are not in the index yet. The others stay where they are."""
    row = database.execute("SELECT id FROM indexed_sessions WHERE session = ?", (entry.session,)).fetchone()
    if row is None:
        insert = "INSERT INTO indexed_sessions (session, stamp, position) VALUES (?, ?, ?) RETURNING id"
        (session,) = database.execute(insert, (entry.session, entry.stamp, entry.mark)).fetchone()
        return session, entry.texts
    (session,) = row
    update = "UPDATE indexed_sessions SET stamp = ?, position = ? WHERE id = ?"
    database.execute(update, (entry.stamp, entry.mark, session))
    return session, _reuse_rows(database, session, entry)


def _reuse_rows(database: Database, session: int, entry: IndexedSession) -> list[Text]:
    """Return the texts that have no row yet; the rows of the others are kept, and rows without a text removed."""
    rows_by_hash = _rows_by_hash(database, session, entry.since)
    new: list[Text] = []
    rest: list[tuple[int, ...]] = []
    for text in entry.texts:
        if rows := rows_by_hash.get(text.hash):
            rest.append((*columns_of(text), rows.pop(), session))
        else:
            new.append(text)
    columns = "exchange = ?, turn = ?, kind = ?, at = ?, result_at = ?, is_error = ?"
    database.executemany(f"UPDATE texts SET {columns} WHERE index_row = ? AND session = ?", rest)
    _remove(database, session, [row for rows in rows_by_hash.values() for row in rows])
    return new


def _rows_by_hash(database: Database, session: int, since: tuple[int, int]) -> dict[int, list[int]]:
    query = """
        SELECT index_row, hash FROM texts
        WHERE session = ?1 AND exchange >= ?2 AND (exchange > ?2 OR turn >= ?3) ORDER BY index_row DESC
    """
    rows: dict[int, list[int]] = {}
    for row, text_hash in database.execute(query, (session, *since)):
        rows.setdefault(text_hash, []).append(row)
    return rows


def _growing_shard(database: Database) -> tuple[int, int]:
    """Return the shard that grows, and the number of its next row."""
    query = "SELECT id, next_row FROM shards WHERE text_bytes < ? ORDER BY id DESC LIMIT 1"
    row = database.execute(query, (SHARD_TEXT_BYTES,)).fetchone()
    return (row[0], row[1]) if row else (add_shard(database), 1)


def _forget(database: Database, session: str) -> None:
    row = database.execute("SELECT id FROM indexed_sessions WHERE session = ?", (session,)).fetchone()
    if row:
        rows = database.execute("SELECT index_row FROM texts WHERE session = ?", row).fetchall()
        _remove(database, row[0], [number for (number,) in rows])
        database.execute("DELETE FROM indexed_sessions WHERE id = ?", row)


def _remove(database: Database, session: int, rows: Sequence[int]) -> None:
    """Remove rows. A row that a fork also uses is not dead."""
    given = json_list(rows)
    database.execute(
        "DELETE FROM texts WHERE session = ? AND index_row IN (SELECT value FROM json_each(?))",
        (session, given),
    )
    dead = database.execute(
        """
        SELECT count(*), value >> ? AS shard FROM json_each(?)
        WHERE NOT EXISTS (SELECT * FROM texts WHERE index_row = value) GROUP BY shard
        """,
        (SHARD, given),
    ).fetchall()
    database.executemany("UPDATE shards SET dead_rows = dead_rows + ? WHERE id = ?", dead)


def _drop_dead(database: Database) -> None:
    dead = database.execute("SELECT id FROM shards WHERE dead_rows > rows * ?", (MOST_DEAD,)).fetchall()
    for (shard,) in dead:
        _drop(database, shard)


def _drop(database: Database, shard: int) -> None:
    """Drop a shard. All sessions that have a text in it must be indexed again, as a whole."""
    query = """
        SELECT session FROM indexed_sessions
        WHERE id IN (SELECT session FROM texts WHERE index_row >= ? AND index_row < ?)
    """
    rows = database.execute(query, (shard << SHARD, shard + 1 << SHARD)).fetchall()
    for (session,) in rows:
        _forget(database, session)
    database.execute(f"DROP TABLE words_{shard}")
    database.execute("DELETE FROM shards WHERE id = ?", (shard,))
