"""Opening the catalog's files, whatever state they are in.

They hold nothing that could not be derived again, so one that is damaged or of another program is begun anew. Where
none can be written at all (no permission, a full disk, one of a newer version), there is one in memory for as long as
the command runs: slower, and right.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from agent_logger import platform
from agent_logger.catalog.schema import SchemaStep
from agent_logger.files.stored_text import storable

WAIT_SECONDS = 10.0  # for another process that is writing; it never does so for long
PAGE_CACHE_KB = 16_000


# What a file with other bytes than were written ends in: names that are no text, even in SQLite's words for it, and
# values that cannot be decoded.
DAMAGED = (sqlite3.Error, UnicodeDecodeError, msgspec.DecodeError)


class UnusableError(Exception):
    """No database can be had at this path. The message says why."""


def opened(path: Path, steps: Sequence[SchemaStep]) -> sqlite3.Connection:
    """Made or brought up to date if need be. Raises `UnusableError`."""
    try:
        platform.make_folder(path.parent)
        _make_private(path)
        return _opened(path, steps)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and not is_damage(error):
            raise UnusableError(_reason(path, error)) from error
    except OSError as error:
        raise UnusableError(_reason(path, error)) from error
    except UnicodeDecodeError:
        pass
    return _begun_anew(path, steps)


def in_memory(steps: Sequence[SchemaStep]) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _migrate(database, steps)
    return database


def remove(path: Path) -> None:
    """With what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")


def is_same_file(database: sqlite3.Connection, path: Path) -> bool:
    """Whether the path still leads to what is open: it may have been deleted, and then nothing written is kept."""
    if not is_kept(database):
        return True  # nothing of it ever was
    try:
        return os.stat(path).st_ino == getattr(database, "inode", 0)
    except OSError:
        return False


def is_kept(database: sqlite3.Connection) -> bool:
    """Whether it is a file, and not in memory alone."""
    return bool(getattr(database, "inode", 0))


@contextmanager
def writing(database: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and nobody else meanwhile."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def listed(values: Iterable[object]) -> str:
    """For `IN (SELECT value FROM json_each(?))`: any number of values in one parameter."""
    return msgspec.json.encode(
        [storable(value) if isinstance(value, str) else value for value in values]
    ).decode()


# ---------------------------------------------------------------- inside


class _Connection(sqlite3.Connection):
    inode: int = 0  # none: it is in memory


def _make_private(path: Path) -> None:
    if not path.exists():
        with suppress(FileExistsError):
            platform.open_file(path, create=True).close()


def _opened(path: Path, steps: Sequence[SchemaStep]) -> sqlite3.Connection:
    database = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
    )
    try:
        database.inode = path.stat().st_ino
        database.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KB}")
        database.execute(
            "PRAGMA synchronous = NORMAL"
        )  # a power cut costs the last changes, which are made again
        _migrate(database, steps)
    except BaseException:
        database.close()
        raise
    return database


def _migrate(database: sqlite3.Connection, steps: Sequence[SchemaStep]) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == len(steps):
        return
    if version > len(steps):
        raise UnusableError("is of a newer version of agent-logger")
    database.execute("PRAGMA journal_mode = WAL")
    with writing(database):
        (version,) = database.execute("PRAGMA user_version").fetchone()
        for step in steps[version:]:
            for statement in statements(step.sql):
                database.execute(statement)
        database.execute(f"PRAGMA user_version = {len(steps)}")


def statements(sql: str) -> Iterator[str]:
    """One by one: `executescript` would end the transaction first."""
    held = ""
    for line in sql.splitlines(keepends=True):
        held += line
        if sqlite3.complete_statement(held):
            yield held
            held = ""


def is_damage(error: sqlite3.OperationalError) -> bool:
    """Tables that are not what they should be: another program's, or those of a version that nobody released."""
    return any(reason in str(error) for reason in _DAMAGE)


_DAMAGE = ("already exists", "no such table", "no such column", "malformed", "Could not decode")


def _begun_anew(path: Path, steps: Sequence[SchemaStep]) -> sqlite3.Connection:
    try:
        remove(path)
        _make_private(path)
        return _opened(path, steps)
    except (OSError, sqlite3.Error) as error:
        raise UnusableError(_reason(path, error)) from error


def _reason(path: Path, error: Exception) -> str:
    return f"{path}: {getattr(error, 'strerror', None) or error}"
