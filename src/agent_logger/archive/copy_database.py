"""Keeps a copy of an agent's database, which must not be copied as a file: most of it may be in its log.

SQLite copies it, page by page, while its owner may continue to write. A copy that contains all of the one before takes
its place; else the one before stays, as an older generation: what the agent deletes stays.
"""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import cast

from agent_logger import platform
from agent_logger.agents.base import Agent, module
from agent_logger.agents.contracts import DatabaseFiles
from agent_logger.archive.copy import Change, CopyOutcome, is_equal, set_aside, temporary_copy
from agent_logger.errors import SourceError


def modified_ns(path: Path) -> int:
    """Return when the database, or its log, was last written to. Raises `FileNotFoundError`."""
    latest = os.lstat(path).st_mtime_ns
    with suppress(OSError):
        latest = max(latest, os.lstat(f"{path}-wal").st_mtime_ns)
    return latest


def copy_database(agent: Agent, path: Path, target: Path) -> CopyOutcome:
    """Bring the copy up to date. Raises `OSError`, and `SourceError` if the database cannot be read."""
    files, latest = cast("DatabaseFiles", module(agent.files)), modified_ns(path)
    with suppress(FileNotFoundError):
        if os.lstat(target).st_mtime_ns == latest:
            return CopyOutcome("same", 0)
    platform.make_folder(target.parent)
    with temporary_copy(target) as copy:
        files.copy(path, copy.path)
        platform.sync(copy.fd)
        os.utime(copy.fd, ns=(latest, latest))
        before = target.exists()
        if before and _is_same(copy, target):
            os.utime(target, ns=(latest, latest))
            return CopyOutcome("same", 0)
        is_lossless = before and _holds_all(copy.path, target, files.tables())
        if before and not is_lossless:
            set_aside(target)
        os.rename(copy.path, target)
        platform.sync_folder(target.parent)
        change: Change = "new" if not before else "grown" if is_lossless else "rewritten"
        return CopyOutcome(change, copy.size())


def _is_same(copy: platform.Held, target: Path) -> bool:
    if copy.size() != os.lstat(target).st_size:
        return False
    held = platform.open_file(target)
    try:
        return is_equal(copy.fd, held.fd, copy.size())
    finally:
        held.close()


def _holds_all(new: Path, old: Path, tables: tuple[str, ...]) -> bool:
    """Whether every row of these tables of the old copy is in the new one."""
    try:
        with closing(sqlite3.connect(f"{new.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.execute("ATTACH ? AS old", (f"{old.as_uri()}?mode=ro&immutable=1",))
            missing = " UNION ALL ".join(
                f"SELECT 1 FROM (SELECT id FROM old.{table} EXCEPT SELECT id FROM main.{table})" for table in tables
            )
            return bool(database.execute(f"SELECT NOT EXISTS ({missing})").fetchone()[0])
    except sqlite3.Error as error:
        raise SourceError(f"{old}: {error}") from error
