"""Builds a shard of sessions that the index does not have yet.

The words are gathered in the temporary database of the connection. Nobody waits for it, and it ends with the process,
however that ends. Then the shard is copied into the index, in one transaction that takes a small part of the time: any
number of processes build shards, and one at a time writes.
"""

from pathlib import Path

from agent_logger.catalog.database import transaction
from agent_logger.catalog.search.index import (
    INSERT_TEXT,
    SHARD,
    add_shard,
    add_words,
    columns_of,
    create_words,
    forget_complete_state,
)
from agent_logger.catalog.search.text_index import IndexedSession
from agent_logger.catalog.search.texts import Text
from agent_logger.catalog.sqlite.database import SqliteDatabase
from agent_logger.home.facts import tombstones

_TABLES = """
    CREATE TABLE temp.new_sessions (id INTEGER PRIMARY KEY, session TEXT, stamp TEXT, position BLOB);
    CREATE TABLE temp.new_texts (
        index_row INTEGER, session INTEGER, exchange INTEGER, turn INTEGER, kind INTEGER, at INTEGER,
        result_at INTEGER, is_error INTEGER, hash INTEGER
    );
"""
# What FTS5 keeps of a table's words; https://sqlite.org/fts5.html#fts5_data_structures
_WORD_TABLES = ("data", "idx", "docsize")

BATCH_BYTES = 24_000_000  # of texts whose words are added at once, as SQLite writes them out after each batch


_TextKey = tuple[int, int, int]  # hash, time and kind, which copies of a text have in common


class ShardBuilder:
    """One shard after the other. Use the connection for nothing else."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._begin()

    def _begin(self) -> None:
        self.text_bytes = 0
        self._sessions: list[str] = []
        self._rows = 0
        self._batch: list[Text] = []
        self._batch_bytes = 0
        self._batch_rows: list[tuple[int, ...]] = []
        self._database.executescript(_TABLES)
        create_words(self._database, "temp", "new_words")
        self.begin_family()
        self._database.execute("BEGIN")  # it locks nothing: all that follows is in the temporary database

    def begin_family(self) -> None:
        """The sessions that are added next are relatives of each other, and of none before."""
        self._rows_by_text: dict[_TextKey, list[int]] = {}

    def add(self, entry: IndexedSession) -> None:
        """Add a session. A text that relatives have, too, gets no words of its own."""
        self._sessions.append(entry.session)
        number = len(self._sessions)
        insert = "INSERT INTO temp.new_sessions VALUES (?, ?, ?, ?)"
        self._database.execute(insert, (number, entry.session, entry.stamp, entry.mark))
        times_used: dict[_TextKey, int] = {}
        for text in entry.texts:
            key = (text.hash, text.at, text.kind)
            rows, used = self._rows_by_text.setdefault(key, []), times_used.get(key, 0)
            if used == len(rows):  # no relative has the text so often
                rows.append(self._add_text(text))
            times_used[key] = used + 1
            self._batch_rows.append((rows[used], number, *columns_of(text), key[0]))
        if self._batch_bytes >= BATCH_BYTES:
            self._add_batch()

    def _add_text(self, text: Text) -> int:
        self._batch.append(text)
        self._batch_bytes += len(text.text)
        self.text_bytes += len(text.text)
        return self._rows + len(self._batch)

    def _add_batch(self) -> None:
        self._database.executemany(INSERT_TEXT.format("temp.new_texts"), self._batch_rows)
        add_words(self._database, "temp.new_words", self._batch, self._rows + 1)
        self._rows += len(self._batch)
        self._batch, self._batch_rows, self._batch_bytes = [], [], 0

    def publish(self, folder: Path) -> None:
        """Copy the shard into the index, and begin the next. Nothing is copied if one of its sessions was removed
        meanwhile, whose words must not come back, or was indexed by another process. `folder`: that of the catalog,
        which for the own home is the home; the catalogs of several homes are deleted when a session is removed."""
        self._add_batch()
        self._database.execute("COMMIT")
        with transaction(self._database):
            if tombstones(folder).keys().isdisjoint(self._sessions) and not self._is_indexed():
                self._copy()
        self._database.executescript(
            "DROP TABLE temp.new_words; DROP TABLE temp.new_texts; DROP TABLE temp.new_sessions;"
        )
        self._begin()

    def _is_indexed(self) -> bool:
        query = "SELECT 1 FROM indexed_sessions JOIN temp.new_sessions USING (session) LIMIT 1"
        return self._database.execute(query).fetchone() is not None

    def _copy(self) -> None:
        database = self._database
        forget_complete_state(database)
        shard = add_shard(database, self._rows, self.text_bytes)
        for part in _WORD_TABLES:
            database.execute(f"DELETE FROM words_{shard}_{part}")
            database.execute(f"INSERT INTO words_{shard}_{part} SELECT * FROM temp.new_words_{part}")
        (last,) = database.execute("SELECT coalesce(max(id), 0) FROM indexed_sessions").fetchone()
        database.execute(
            "INSERT INTO indexed_sessions SELECT id + ?, session, stamp, position FROM temp.new_sessions", (last,)
        )
        database.execute(
            """
            INSERT INTO texts
            SELECT index_row + ?, session + ?, exchange, turn, kind, at, result_at, is_error, hash FROM temp.new_texts
            """,
            (shard << SHARD, last),
        )
