"""The hub's index in its own SQLite database."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from agent_logger.hub.database import HubDatabase
from agent_logger.hub.storage.index import Generation, SendingDevice, SharedLevel, StoredRange
from agent_logger.push.protocol import ObjectHead

TABLES = (
    "CREATE TABLE IF NOT EXISTS senders (device TEXT PRIMARY KEY, person TEXT NOT NULL, machine TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS levels (
        device TEXT NOT NULL, session TEXT NOT NULL, level TEXT NOT NULL, revision INTEGER NOT NULL,
        PRIMARY KEY (device, session)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS generations (
        device TEXT NOT NULL, object TEXT NOT NULL, generation INTEGER NOT NULL, session TEXT NOT NULL,
        head BLOB NOT NULL, offset INTEGER NOT NULL, modified REAL NOT NULL,
        PRIMARY KEY (device, object, generation)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS generations_session ON generations (device, session)",
    """CREATE TABLE IF NOT EXISTS ranges (
        device TEXT NOT NULL, object TEXT NOT NULL, generation INTEGER NOT NULL, offset INTEGER NOT NULL,
        length INTEGER NOT NULL, sha256 TEXT NOT NULL,
        PRIMARY KEY (device, object, generation, offset)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS claims (
        person TEXT NOT NULL, session TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (person, session)
    )""",
    "CREATE INDEX IF NOT EXISTS claims_session ON claims (session, number)",
    "CREATE TABLE IF NOT EXISTS withdrawn (person TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (person, session))",
    """CREATE TABLE IF NOT EXISTS withdrawn_objects (
        person TEXT NOT NULL, object TEXT NOT NULL, PRIMARY KEY (person, object)
    )""",
    "CREATE TABLE IF NOT EXISTS unfinished (name TEXT PRIMARY KEY)",
)
NAMES = ("senders", "levels", "generations", "ranges", "claims", "withdrawn", "withdrawn_objects", "unfinished")
GENERATION = "object, generation, head, offset, modified"


class SqliteIndex:
    """An index in the hub's database, which may be used by several threads, one at a time."""

    def __init__(self, database: HubDatabase) -> None:
        self._database = database

    @contextmanager
    def change(self) -> Iterator[None]:
        with self._database.transaction():
            yield

    def senders(self) -> Sequence[SendingDevice]:
        return [
            SendingDevice(*row) for row in self._rows("SELECT device, person, machine FROM senders ORDER BY device")
        ]

    def add_sender(self, sender: SendingDevice) -> None:
        self._do("INSERT OR REPLACE INTO senders VALUES (?, ?, ?)", *sender)

    def level(self, device: str, session: str) -> SharedLevel | None:
        rows = self._rows("SELECT level, revision FROM levels WHERE device = ? AND session = ?", device, session)
        return SharedLevel(*rows[0]) if rows else None

    def levels(self, device: str) -> dict[str, SharedLevel]:
        rows = self._rows("SELECT session, level, revision FROM levels WHERE device = ?", device)
        return {session: SharedLevel(level, revision) for session, level, revision in rows}

    def set_level(self, device: str, session: str, level: SharedLevel) -> None:
        self._do("INSERT OR REPLACE INTO levels VALUES (?, ?, ?, ?)", device, session, *level)

    def generations(self, device: str, name: str) -> Sequence[Generation]:
        return self._generations("device = ? AND object = ?", device, name)

    def objects_of(self, device: str, session: str) -> Sequence[Generation]:
        return self._generations("device = ? AND session = ?", device, session)

    def objects(self, device: str) -> Sequence[Generation]:
        return self._generations("device = ?", device)

    def _generations(self, condition: str, *values: object) -> Sequence[Generation]:
        rows = self._rows(
            f"SELECT {GENERATION} FROM generations WHERE {condition} ORDER BY object, generation", *values
        )
        return [
            Generation(object=name, generation=number, head=_head(head), offset=offset, modified=modified)
            for name, number, head, offset, modified in rows
        ]

    def put(self, device: str, generation: Generation) -> None:
        self._do(
            "INSERT OR REPLACE INTO generations VALUES (?, ?, ?, ?, ?, ?, ?)",
            device,
            generation.object,
            generation.generation,
            generation.head.session,
            msgspec.json.encode(generation.head),
            generation.offset,
            generation.modified,
        )

    def remove(self, device: str, name: str, generation: int) -> None:
        for table in ("generations", "ranges"):
            self._do(
                f"DELETE FROM {table} WHERE device = ? AND object = ? AND generation = ?", device, name, generation
            )

    def ranges(self, device: str, name: str, generation: int) -> Sequence[StoredRange]:
        rows = self._rows(
            """SELECT offset, length, sha256 FROM ranges
            WHERE device = ? AND object = ? AND generation = ? ORDER BY offset""",
            device,
            name,
            generation,
        )
        return [StoredRange(*row) for row in rows]

    def add_range(self, device: str, name: str, generation: int, stored: StoredRange) -> None:
        self._do("INSERT OR REPLACE INTO ranges VALUES (?, ?, ?, ?, ?, ?)", device, name, generation, *stored)

    def claim(self, person: str, session: str, number: int) -> None:
        self._do("INSERT OR IGNORE INTO claims VALUES (?, ?, ?)", person, session, number)

    def claims(self, person: str) -> dict[str, int]:
        return dict(self._rows("SELECT session, number FROM claims WHERE person = ?", person))

    def newest_claim(self) -> int:
        return int(self._rows("SELECT coalesce(max(number), 0) FROM claims")[0][0])

    def is_withdrawn(self, person: str, session: str) -> bool:
        return bool(self._rows("SELECT 1 FROM withdrawn WHERE person = ? AND session = ?", person, session))

    def is_object_withdrawn(self, person: str, name: str) -> bool:
        return bool(self._rows("SELECT 1 FROM withdrawn_objects WHERE person = ? AND object = ?", person, name))

    def withdraw(self, person: str, session: str, objects: Sequence[str]) -> None:
        self._do("INSERT OR REPLACE INTO withdrawn VALUES (?, ?)", person, session)
        for name in objects:
            self._do("INSERT OR REPLACE INTO withdrawn_objects VALUES (?, ?)", person, name)

    def unfinished(self) -> Sequence[str]:
        return [name for (name,) in self._rows("SELECT name FROM unfinished ORDER BY rowid")]

    def begin(self, name: str) -> None:
        self._do("INSERT OR IGNORE INTO unfinished VALUES (?)", name)

    def finish(self, name: str) -> None:
        self._do("DELETE FROM unfinished WHERE name = ?", name)

    def clear(self) -> None:
        for table in NAMES:
            self._do(f"DELETE FROM {table}")

    def _do(self, statement: str, *values: object) -> None:
        self._database.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._database.rows(statement, values)


_head = msgspec.json.Decoder(ObjectHead).decode
