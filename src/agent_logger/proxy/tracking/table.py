"""The file `sessions.db`: what the tracker knows, kept over a restart. The one module here that touches a file.

It is a cache. All that is in it was read from the logs or can be; a tracker that finds it missing, damaged or of
another version rebuilds it.
"""

import contextlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_logger.model.records import Identity
from agent_logger.proxy.tracking.fingerprint import hex_text, state_of
from agent_logger.proxy.tracking.index import Branch, CallOutcome, CallRow, root_of
from agent_logger.proxy.tracking.tool_uses import MOST_USES, Use

VERSION = 2
UNFINISHED = VERSION | 1 << 16  # instead of the version, until all logs are in the table
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_MOST_STATES = 16  # asked for at once; the first are the likely ones
MOST_COLD_TWINS = 16  # sessions in one state that are read for one call
_UNANSWERED = "outcome IN ('failed', 'cut')"
_DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

SCHEMA = f"""
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    upstream TEXT NOT NULL,
    created_at TEXT NOT NULL,
    last_activity TEXT NOT NULL,
    last_seq INTEGER NOT NULL,
    last_fingerprint TEXT NOT NULL,
    file_path TEXT NOT NULL,
    root TEXT NOT NULL,
    parent_session TEXT,
    from_seq INTEGER,
    client_id TEXT,
    id_source TEXT,
    id_confidence TEXT,
    id_candidates TEXT,
    agent TEXT
);
CREATE TABLE fingerprints (
    fingerprint TEXT NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    part TEXT NOT NULL,
    thread TEXT NOT NULL,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    retry_of INTEGER,
    message_id TEXT,
    PRIMARY KEY (fingerprint, session_id, seq),
    FOREIGN KEY (session_id) REFERENCES sessions(id)
) WITHOUT ROWID;
CREATE TABLE uses (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL
);
CREATE INDEX idx_fingerprints_session ON fingerprints(session_id);
CREATE INDEX idx_fingerprints_message ON fingerprints(message_id) WHERE message_id IS NOT NULL;
CREATE INDEX idx_fingerprints_unanswered ON fingerprints(fingerprint, session_id) WHERE {_UNANSWERED};
CREATE INDEX idx_sessions_provider ON sessions(provider);
CREATE INDEX idx_sessions_client ON sessions(client_id, provider);
"""


class TableBusy(Exception):  # noqa: N818 - not the table's fault, nor ours
    """The table cannot be used now; later perhaps."""


class TableLost(Exception):  # noqa: N818
    """The table is missing, damaged, or of another version."""


class Table:
    """The table on disk. No method waits for a lock: each raises `TableBusy` or `TableLost`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    # ------------------------------------------------------------ the file

    def open(self) -> None:
        self.close()
        if self._is_foreign() or self._version() != VERSION:
            raise TableLost("it is missing, has another version, or is a link")
        self._connect()
        try:
            self._all("SELECT count(*) FROM sessions")
        except TableLost:
            self.close()
            raise

    def create(self) -> None:
        """Create an empty table, in the place of whatever is there."""
        self.close()
        try:
            for path in self._files():
                path.unlink(missing_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise TableBusy(str(error)) from error
        self._connect()
        self._script(SCHEMA)
        self._mark(UNFINISHED)

    def finish(self) -> None:
        """Mark the table as whole: all that was there to be written has been."""
        self._mark(VERSION)

    def _mark(self, version: int) -> None:
        # The version must be in the file itself, where `is_ours` looks for it.
        self._script(f"PRAGMA user_version = {version}; PRAGMA wal_checkpoint(TRUNCATE);")

    def is_ours(self) -> bool:
        """Whether the file at the path is the one that is open, and has a version of ours."""
        try:
            return os.lstat(self.path).st_ino == self._inode and self._version() in (VERSION, UNFINISHED)
        except OSError:
            return False

    def close(self) -> None:
        if self._connection:
            with contextlib.suppress(sqlite3.Error):  # what could not be written will be rebuilt
                self._connection.close()
            self._connection = None

    def _files(self) -> list[Path]:
        return [self.path.with_name(self.path.name + ending) for ending in ("", "-wal", "-shm", "-journal")]

    def _is_foreign(self) -> bool:
        """Whether a file is not a plain file of ours: SQLite would write through a link to another place, and reading a
        FIFO never ends."""
        for path in self._files():
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                    return True
        return False

    def _version(self) -> int | None:
        try:
            with self.path.open("rb") as file:
                header = file.read(_HEADER_BYTES)
        except OSError:
            return None
        return int.from_bytes(header[60:64], "big") if header.startswith(_MAGIC) else None

    def _connect(self) -> None:
        with _translated_errors():
            self._connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            self._inode = self.path.stat().st_ino
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            # KiB; fingerprints fall on pages at random.
            self._connection.execute("PRAGMA cache_size = -16384")

    # ------------------------------------------------------------ writing

    def write(self, branches: Iterable[Branch], rows: Iterable[CallRow], uses: Mapping[str, Use]) -> None:
        """Write all of it or nothing."""
        connection = self._open_connection()
        with _translated_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(_PUT_SESSION, map(_session, branches))
                connection.executemany(_PUT_FINGERPRINT, _fingerprints(rows))
                connection.executemany(_PUT_USE, ((name, *use) for name, use in uses.items()))
                connection.execute(_FORGET_USES, (MOST_USES,))
                connection.execute("COMMIT")
            except sqlite3.DatabaseError:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    # ------------------------------------------------------------ reading

    def roots(self) -> list[str]:
        """The roots of all sessions, the last active one first."""
        rows = self._all("SELECT root FROM sessions GROUP BY root ORDER BY max(last_activity) DESC")
        return [root for (root,) in rows]

    def roots_of_client(self, client: tuple[str, str]) -> list[str]:
        rows = self._all("SELECT DISTINCT root FROM sessions WHERE provider = ? AND client_id = ?", client)
        return [root for (root,) in rows]

    def root_of_session(self, session: str) -> str | None:
        rows = self._all("SELECT root FROM sessions WHERE id = ?", (session,))
        return str(rows[0][0]) if rows else None

    def root_of_response(self, message_id: str) -> str | None:
        rows = self._all(f"{_ROOTS} WHERE message_id = ? LIMIT 1", (message_id,))
        return str(rows[0][0]) if rows else None

    def roots_at(self, state: bytes, *, unanswered: bool) -> list[str]:
        """The roots of the newest sessions with a call in this state; `unanswered`: only with a call that failed or was
        cut in it."""
        which = f"AND {_UNANSWERED}" if unanswered else ""
        sql = f"SELECT session_id FROM fingerprints WHERE fingerprint = ? {which} ORDER BY session_id DESC LIMIT ?"
        return list(dict.fromkeys(root_of(name) for (name,) in self._all(sql, (hex_text(state), MOST_COLD_TWINS))))

    def first_of(self, states: Sequence[bytes]) -> bytes | None:
        """The first of these states that any call was in."""
        for start in range(0, len(states), _MOST_STATES):
            some = [hex_text(state) for state in states[start : start + _MOST_STATES]]
            condition = "EXISTS (SELECT 1 FROM fingerprints WHERE fingerprint = value)"
            rows = self._all(f"SELECT value FROM json_each(?) WHERE {condition} LIMIT 1", (json.dumps(some),))
            if rows:
                return state_of(rows[0][0])
        return None

    def load(self, root: str) -> list[tuple[Branch, list[CallRow]]]:
        """The branches of a root, the one last active last, each with its rows by number."""
        loaded = []
        branches = f"{_GET_SESSION} WHERE id = ? OR (id > ? AND id < ? AND root = ?) ORDER BY last_activity, id"
        for values in self._all(branches, (root, f"{root}_b", f"{root}_c", root)):
            branch = _branch(values)
            rows: dict[int, CallRow] = {}
            for values in self._all(f"{_GET_FINGERPRINT} WHERE session_id = ? ORDER BY seq, part", (branch.name,)):
                _add_row(rows, branch, values)
            loaded.append((branch, list(rows.values())))
        return loaded

    def uses(self) -> dict[str, Use]:
        """The tool uses, the last one last."""
        rows = self._all("SELECT id, session_id, seq FROM uses ORDER BY number")
        return {name: Use(session, seq) for name, session, seq in rows}

    def _all(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with _translated_errors():
            return self._open_connection().execute(sql, parameters).fetchall()

    def _script(self, sql: str) -> None:
        with _translated_errors():
            self._open_connection().executescript(sql)

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise TableBusy("not open")
        return self._connection


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise errors as ours: a full disk and a lock are temporary, damage is not."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        lost = code is not None and code & 0xFF in _DAMAGED
        raise TableLost(str(error)) if lost else TableBusy(str(error)) from error


# ---------------------------------------------------------------- rows

_SESSION = (
    "id, provider, upstream, created_at, last_activity, last_seq, last_fingerprint, file_path, root, parent_session, "
    "from_seq, client_id, id_source, id_confidence, id_candidates, agent"
)
_FINGERPRINT = "fingerprint, session_id, seq, part, thread, kind, outcome, retry_of, message_id"
_PUT_SESSION = f"INSERT OR REPLACE INTO sessions ({_SESSION}) VALUES ({','.join('?' * 16)})"
_PUT_FINGERPRINT = f"INSERT OR REPLACE INTO fingerprints ({_FINGERPRINT}) VALUES ({','.join('?' * 9)})"
_PUT_USE = "INSERT OR REPLACE INTO uses (id, session_id, seq) VALUES (?, ?, ?)"  # the last one by its number
_FORGET_USES = "DELETE FROM uses WHERE number <= (SELECT max(number) FROM uses) - ?"
_GET_SESSION = f"SELECT {_SESSION} FROM sessions"
_GET_FINGERPRINT = f"SELECT {_FINGERPRINT} FROM fingerprints"
_ROOTS = "SELECT root FROM fingerprints JOIN sessions ON sessions.id = session_id"
_OUTCOMES = {outcome: outcome.name.lower() for outcome in CallOutcome}


def _session(branch: Branch) -> tuple[object, ...]:
    identity = branch.identity
    candidates = identity.candidates if identity else None
    return (
        branch.name,
        branch.provider,
        branch.upstream,
        branch.created_at,
        branch.last_activity,
        branch.last_seq,
        hex_text(branch.last_state) if branch.last_state else "",
        f"{branch.provider}/{branch.name}.jsonl",
        branch.root,
        branch.parent,
        branch.from_seq,
        identity.id if identity else None,
        identity.source if identity else None,
        identity.confidence if identity else None,
        " ".join(candidates) if candidates else None,
        branch.agent,
    )


def _branch(values: tuple[Any, ...]) -> Branch:
    (name, provider, upstream, created, activity, last_seq, last, _, root, parent, from_seq) = values[:11]
    (client_id, source, confidence, candidates, agent) = values[11:]
    identity = None
    if source is not None:
        identity = Identity(
            id=client_id,
            source=source,
            confidence=confidence,
            candidates=candidates.split(" ") if candidates else None,
        )
    return Branch(
        name=name,
        provider=provider,
        upstream=upstream,
        root=root,
        created_at=created,
        last_activity=activity,
        identity=identity,
        agent=agent,
        parent=parent,
        from_seq=from_seq,
        last_seq=last_seq,
        last_state=state_of(last),
    )


def _fingerprints(rows: Iterable[CallRow]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        rest = (row.thread, row.kind, _OUTCOMES[row.outcome], row.retry_of, row.message_id)
        yield (hex_text(row.state), row.branch.name, row.seq, "request", *rest)
        if row.after:
            yield (hex_text(row.after), row.branch.name, row.seq, "response", *rest)


def _add_row(rows: dict[int, CallRow], branch: Branch, values: tuple[Any, ...]) -> None:
    fingerprint, _, seq, part, thread, kind, outcome, retry_of, message_id = values
    state = state_of(fingerprint)
    if state is None:
        return
    if part == "response":  # "request" was sorted before "response"
        if seq in rows:
            rows[seq].after = state
        return
    rows[seq] = CallRow(
        branch,
        seq,
        thread,
        kind,
        state,
        outcome=CallOutcome[outcome.upper()],
        retry_of=retry_of,
        message_id=message_id,
    )
