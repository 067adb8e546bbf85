"""The index for full-text search in PostgreSQL: the words of each text, in GIN indexes.

A row is a text. Its words are those that the index in SQLite has (`search/tokenizer.py`), one after the other, with a
mark where a piece ends; words of a tool's name and of files come behind them, once as they are and once with a mark
before each. GIN finds the texts that have all words, whatever their order and number; phrases are then looked for in
the words themselves.

Rows are in shards, which are tables. An indexer that has much to add makes a shard of its own, and its GIN index after
the rows, which takes a fraction of the time; little is added to a shard that no other indexer is adding to. So any
number of indexers write at once. The shards with the newest texts are searched first, until there are enough hits.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.words import LEXEMES, MOST_BYTES, gin_query, phrases_of, stored_words
from agent_logger.catalog.search.query import Term
from agent_logger.catalog.search.text_index import IndexedSession, IndexHit, Scope, TextPosition
from agent_logger.catalog.search.texts import NO_TURN, Text
from agent_logger.files.stored_text import hashed

SHARD_BYTES = 64_000_000  # of words; a shard that has so many is full
BULK_BYTES = 4_000_000  # of words that are worth a shard of their own
CLAIMS = 0x61676C74  # the first number of the advisory locks on sessions
MOST_AT_ONCE = 16  # shards that a statement searches

_SHARD_TABLE = """
CREATE TABLE texts_{shard} (
    session BIGINT NOT NULL,                  -- indexed_sessions.id
    exchange INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    kind SMALLINT NOT NULL,
    at BIGINT NOT NULL,
    result_at BIGINT NOT NULL,
    is_error SMALLINT NOT NULL,
    hash BIGINT NOT NULL,
    words TEXT {compression} COLLATE "C" NOT NULL
) WITH (toast_tuple_target = 128)
"""  # words are apart from the rows, of which there are few pages then
_SHARD_INDEXES = f"""
CREATE INDEX texts_{{shard}}_words ON texts_{{shard}} USING gin (({LEXEMES})) WITH (gin_pending_list_limit = 1024);
ALTER INDEX texts_{{shard}}_words ALTER COLUMN 1 SET STATISTICS 0;
CREATE INDEX texts_{{shard}}_session ON texts_{{shard}} (session, exchange);
CREATE INDEX texts_{{shard}}_failed ON texts_{{shard}} (at) WHERE is_error = 1;
"""
_PLACE = ("exchange", "turn", "kind", "at", "result_at", "is_error")
_COLUMNS = ("session", *_PLACE, "hash", "words")

Place = tuple[int, ...]
Row = tuple[Any, ...]


class PostgresTextIndex:
    """The index in the database of the catalog (`search.text_index.TextIndex`)."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database
        self._claims: list[int] = []

    def stamps(self) -> dict[str, str]:
        return dict(self._run("SELECT session, stamp FROM indexed_sessions"))

    def marks(self) -> dict[str, bytes]:
        return dict(self._run("SELECT session, position FROM indexed_sessions WHERE position IS NOT NULL"))

    def complete_state(self) -> str | None:
        rows = self._run("SELECT value FROM properties WHERE name = 'indexed_state'")
        return rows[0][0] if rows else None

    def store_complete_state(self, state: str) -> None:
        self._run(
            """
            INSERT INTO properties VALUES ('indexed_state', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value
            """,
            state,
        )

    def claim(self, session: str, /) -> bool:
        lock = hashed(session) & 0x7FFFFFFF
        if not self._run("SELECT pg_try_advisory_lock(%s, %s)", CLAIMS, lock)[0][0]:
            return False
        self._claims.append(lock)
        query = """
            SELECT 1 FROM sessions LEFT JOIN indexed_sessions ON session = sessions.id WHERE sessions.id = %s
                AND (indexed_sessions.stamp, details_stamp) IS DISTINCT FROM (sessions.stamp, sessions.stamp)
        """
        return bool(self._run(query, session))

    def index(self, entries: Sequence[IndexedSession], gone: Iterable[str] = ()) -> None:
        names = list(gone)
        try:
            self.database.retried(lambda: self._index(entries, names))
        finally:
            for lock in self._claims:
                self._run("SELECT pg_advisory_unlock(%s, %s)", CLAIMS, lock)
            self._claims.clear()

    def erase(self, sessions: Iterable[str]) -> None:
        self.index([], sessions)

    # ------------------------------------------------------------ writing

    def _index(self, entries: Sequence[IndexedSession], gone: Sequence[str]) -> None:
        self._run("DELETE FROM properties WHERE name = 'indexed_state'")
        self._forget(gone)
        sessions = self._register(entries)
        rows: list[Row] = []
        for entry in entries:
            number, shards = sessions[entry.session]
            texts = self._reuse_rows(number, shards, entry) if shards else entry.texts
            rows += [(number, *_place(text), text.hash, stored_words(text)) for text in texts]
        if rows:
            self._add(rows)

    def _forget(self, sessions: Sequence[str]) -> None:
        query = "DELETE FROM indexed_sessions WHERE session = ANY(%s) RETURNING id, shards"
        for number, shards in self._run(query, sorted(sessions)):
            for shard in shards:
                self._run(f"DELETE FROM texts_{shard} WHERE session = %s", number)

    def _register(self, entries: Sequence[IndexedSession]) -> dict[str, tuple[int, list[int]]]:
        """Note that they are indexed. Returns the number of each session, and the shards that it is in. The rows stay
        locked: in the order of their names, because two indexers could wait for each other otherwise."""
        insert = """
            INSERT INTO indexed_sessions (session, stamp, position) VALUES (?, ?, ?)
            ON CONFLICT (session) DO UPDATE SET stamp = excluded.stamp, position = excluded.position
        """
        in_order = sorted(entries, key=lambda entry: entry.session)
        self.database.executemany(insert, [(entry.session, entry.stamp, entry.mark) for entry in in_order])
        query = "SELECT session, id, shards FROM indexed_sessions WHERE session = ANY(%s)"
        names = [entry.session for entry in entries]
        return {name: (number, shards) for name, number, shards in self._run(query, names)}

    def _reuse_rows(self, session: int, shards: Sequence[int], entry: IndexedSession) -> list[Text]:
        """Return the texts that have no row yet; the rows of the others are kept, and rows without a text removed."""
        rows = self._rows_by_text(session, shards, entry.since)
        new: list[Text] = []
        for text in entry.texts:
            place = _place(text)
            if same := rows.get((text.hash, text.at)):
                shard, row, before = same.pop(0)
                if before != place:
                    columns = ", ".join(f"{name} = %s" for name in _PLACE)
                    self._run(f"UPDATE texts_{shard} SET {columns} WHERE ctid = %s::tid", *place, row)
            else:
                new.append(text)
        for shard, row, _ in (row for same in rows.values() for row in same):
            self._run(f"DELETE FROM texts_{shard} WHERE ctid = %s::tid", row)
        return new

    def _rows_by_text(
        self, session: int, shards: Sequence[int], since: tuple[int, int]
    ) -> dict[tuple[int, int], list[tuple[int, str, Place]]]:
        rows: dict[tuple[int, int], list[tuple[int, str, Place]]] = {}
        for shard in shards:
            query = f"""
                SELECT ctid::text, hash, {", ".join(_PLACE)} FROM texts_{shard}
                WHERE session = %s AND exchange >= %s AND (exchange > %s OR turn >= %s) ORDER BY exchange, turn, ctid
            """
            for row, text_hash, *place in self._run(query, session, since[0], *since):
                rows.setdefault((text_hash, place[3]), []).append((shard, row, tuple(place)))
        return rows

    def _add(self, rows: Sequence[Row]) -> None:
        size = sum(len(row[-1]) for row in rows)
        shard = None if size >= BULK_BYTES else self._growing_shard()
        if shard is None:
            shard = self.add_shard(lambda table: self.database.copy(table, _COLUMNS, rows))
        else:
            self.database.copy(f"texts_{shard}", _COLUMNS, rows)
        query = "UPDATE text_shards SET bytes = bytes + %s, newest = greatest(newest, %s) WHERE id = %s"
        self._run(query, size, max(row[4] for row in rows), shard)
        query = """
            UPDATE indexed_sessions SET shards = shards || %(shard)s
            WHERE id = ANY(%(sessions)s) AND %(shard)s <> ALL(shards)
        """
        self._run(query, shard=shard, sessions=sorted({row[0] for row in rows}))

    def add_shard(self, fill: Callable[[str], object]) -> int:
        """Add a shard, with the rows that `fill` inserts into its table. Returns its number."""
        [(shard,)] = self._run("INSERT INTO text_shards (bytes, newest) VALUES (0, 0) RETURNING id")
        self._run(_SHARD_TABLE.format(shard=shard, compression=self._compression()))
        fill(f"texts_{shard}")
        self._run("SET LOCAL maintenance_work_mem = '128MB'")
        self._run(_SHARD_INDEXES.format(shard=shard))
        return int(shard)

    def _compression(self) -> str:
        """Return the compression that takes half of the time, if this server has it."""
        query = "SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
        return "COMPRESSION lz4" if self._run(query)[0][0] else ""

    def _growing_shard(self) -> int | None:
        """Return a shard that has room, and that no other indexer is adding to."""
        query = "SELECT id FROM text_shards WHERE bytes < %s ORDER BY id DESC LIMIT 1 FOR UPDATE SKIP LOCKED"
        rows = self._run(query, SHARD_BYTES)
        return rows[0][0] if rows else None

    # ------------------------------------------------------------ searching

    def matches(self, terms: Sequence[Term], scope: Scope, limit: int) -> list[IndexHit]:
        """Return the texts that have all terms, the newest first."""
        phrases = phrases_of(terms)
        if phrases is None:
            return []
        conditions, values = [f"{LEXEMES} @@ %(lexemes)s::tsquery"], {"lexemes": gin_query(phrases)}
        for number, phrase in enumerate(phrases):
            values[f"phrase{number}"] = phrase.spelling
            exact = f"strpos(' ' || words || ' ', %(phrase{number})s) > 0"
            conditions.append(exact if phrase.has_order else f"(octet_length(words) <= {MOST_BYTES} OR {exact})")
        return self._search(conditions, values, scope, limit)

    def failed_calls(self, scope: Scope, limit: int) -> list[IndexHit]:
        return self._search([], {}, scope._replace(error=True), limit)

    def first_turns(self, session: str, exchanges: Iterable[int]) -> dict[int, int]:
        numbers, turns = list(exchanges), dict[int, int]()
        for number, shards in self._run("SELECT id, shards FROM indexed_sessions WHERE session = %s", session):
            for shard in shards:
                query = f"""
                    SELECT exchange, min(turn) FROM texts_{shard}
                    WHERE session = %s AND exchange = ANY(%s) AND turn <> %s GROUP BY exchange
                """
                for exchange, turn in self._run(query, number, numbers, NO_TURN):
                    turns[exchange] = min(turn, turns.get(exchange, turn))
        return turns

    def _search(self, conditions: Sequence[str], values: Mapping[str, Any], scope: Scope, limit: int) -> list[IndexHit]:
        """Search the shards with the newest texts first, until the others have none that is new enough."""
        conditions, values = [*conditions, *_conditions(scope)], {**values, **scope._asdict()}
        hits: list[IndexHit] = []
        rows: list[Row] = []
        with self.database.transaction():
            self._run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._run("SET LOCAL enable_seqscan = off")
            if scope.sessions is not None:
                values["sessions"] = self._numbers(scope.sessions)
            for shards in _divide(self._run("SELECT id, newest FROM text_shards ORDER BY newest DESC, id")):
                newest = shards[0][1]
                if (len(hits) >= limit and hits[limit - 1].at > newest) or newest < (scope.since or 0):
                    break
                rows += self._search_shards([shard for shard, _ in shards], conditions, values, limit)
                hits = _merge_copies(rows)
        return hits[:limit]

    def _numbers(self, sessions: str) -> list[int]:
        query = "SELECT id FROM indexed_sessions WHERE session = ANY(%s)"
        return [number for (number,) in self._run(query, msgspec.json.decode(sessions))]

    def _search_shards(
        self, shards: Sequence[int], conditions: Sequence[str], values: Mapping[str, Any], limit: int
    ) -> list[Row]:
        """Return the newest rows of these shards, with as many hits as are asked for, and all that are as new as the
        last one."""
        query = _statement(shards, conditions)
        count = limit
        while True:
            rows = self._run(query, **values, count=count)
            if len(rows) < count or len(_merge_copies(rows)) >= limit:
                return rows
            count *= 4  # copies in forks are one hit

    def _run(self, query: str, *parameters: Any, **named: Any) -> list[Row]:
        cursor = self.database.connection.execute(query.encode(), named or parameters or None)
        return cursor.fetchall() if cursor.description else []


def _place(text: Text) -> Place:
    return text.exchange, text.turn, text.kind, text.at, text.until, 1 if text.error else 0


def _conditions(scope: Scope) -> Iterator[str]:
    if scope.sessions is not None:
        yield "session = ANY(%(sessions)s)"
    if scope.since is not None:
        yield "at >= %(since)s"
    if scope.until is not None:
        yield "at < %(until)s AND at > 0"
    if scope.error:
        yield "is_error = 1"


def _statement(shards: Sequence[int], conditions: Sequence[str]) -> str:
    """Return a query for the newest rows of each shard. Both sorts keep rows that are as new as the last one."""
    newest = "ORDER BY at DESC FETCH FIRST %(count)s ROWS WITH TIES"
    columns = ", ".join(("session", *_PLACE, "hash"))
    parts = [f"(SELECT {columns} FROM texts_{shard} WHERE {' AND '.join(conditions)} {newest})" for shard in shards]
    return f"""
        SELECT coalesce(sessions.family, indexed.session), indexed.session, {", ".join((*_PLACE, "hash"))}
        FROM (SELECT * FROM ({" UNION ALL ".join(parts)}) rows {newest}) row
        JOIN indexed_sessions indexed ON indexed.id = row.session
        LEFT JOIN sessions ON sessions.id = indexed.session
        ORDER BY at DESC
    """


def _divide(shards: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Divide them: often the first one has enough; where a word is rare, many are searched at once."""
    start, count = 0, 1
    while start < len(shards):
        yield shards[start : start + count]
        start, count = start + count, min(2 * count, MOST_AT_ONCE)


class _Text(NamedTuple):
    """What copies of a text have in common."""

    family: str
    hash: int
    at: int
    kind: int


def _merge_copies(rows: Iterable[Row]) -> list[IndexHit]:
    """Return a hit for each text, the newest first."""
    places: dict[_Text, list[TextPosition]] = {}
    others: dict[_Text, tuple[int, int]] = {}
    for family, session, exchange, turn, kind, at, result_at, is_error, text_hash in rows:
        text = _Text(family, text_hash, at, kind)
        places.setdefault(text, []).append(TextPosition(session, exchange, turn))
        others[text] = result_at, is_error
    hits = [
        IndexHit(tuple(sorted(places[text])), text.kind, text.at, until, bool(error), text.hash, -float(text.at))
        for text, (until, error) in others.items()
    ]
    return sorted(hits, key=lambda hit: (-hit.at, hit.places))
