"""Indexes many new sessions on all cores, in processes that each build shards of their own (`indexer.py`).

Few sessions, and those that the index already has in part, are left to `search.index`; so is whatever a process did not
get done, for it was killed, for example.
"""

import os
import subprocess
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.catalog.database import Database
from agent_logger.catalog.queries import OutdatedSession
from agent_logger.catalog.refresh.changes import Progress
from agent_logger.catalog.search import index as text_index
from agent_logger.catalog.search.indexer import IndexShare
from agent_logger.catalog.search.text_index import TextIndex
from agent_logger.catalog.sqlite.database import SqliteDatabase, is_file

SHARE_BYTES = 64_000_000  # of files: less is not worth a process, and would make many small shards
MOST_INDEXERS = 8  # each takes about 120 MB of memory; and one at a time writes
SHARD_TEXT_BYTES = text_index.SHARD_TEXT_BYTES // 2  # bytes of texts; until then all is lost if the process is killed

Family = list[OutdatedSession]


def index_new_sessions(folder: Path, catalog: Database, texts: TextIndex, progress: Progress | None = None) -> None:
    """Index sessions that the index has nothing of, if they are worth more than one process. Reads their details, and
    counts damaged lines, too. `folder`: that of the catalog."""
    if not (isinstance(texts, text_index.SqliteTextIndex) and all(map(_is_file, (catalog, texts.database)))):
        return
    families = _new_families(catalog, texts)
    total, done = sum(_size(family) for family in families), 0
    shares = _divide(families, min(platform.usable_cores(), MOST_INDEXERS, total // SHARE_BYTES))
    if len(shares) < 2:
        return
    with closing(_run_indexers(folder, shares)) as parts:
        for part in parts:
            done += part
            if progress:
                progress(done, total)


def _is_file(database: Database) -> bool:
    return isinstance(database, SqliteDatabase) and is_file(database)


def _new_families(catalog: Database, texts: TextIndex) -> list[Family]:
    """Return the sessions of families that the index has nothing of, the family last active first."""
    stamps = texts.stamps()
    families: dict[str, Family] = {}
    for family, *source in catalog.execute(
        "SELECT family, id, stamp, size, details_stamp FROM sessions ORDER BY last_active DESC, id"
    ):
        families.setdefault(family, []).append(OutdatedSession(*source))
    return [family for family in families.values() if not any(source.id in stamps for source in family)]


def _size(family: Family) -> int:
    return sum(source.size for source in family)


def _divide(families: list[Family], count: int) -> list[list[Family]]:
    """Divide them into shares of about the same size, in the order that they have."""
    shares: list[list[Family]] = [[] for _ in range(count)]
    sizes = [0] * count
    for family in families if count else ():
        smallest = sizes.index(min(sizes))
        shares[smallest].append(family)
        sizes[smallest] += _size(family)
    return [share for share in shares if share]


def _run_indexers(folder: Path, shares: list[list[Family]]) -> Generator[int, None, None]:
    """Run a process for each share, until all have ended. Yields bytes of files that one has read."""
    indexers: list[subprocess.Popen[bytes]] = []
    reading, writing = os.pipe()
    try:
        with open(reading, "rb") as done:
            try:
                with suppress(OSError):  # the system may allow no more processes
                    indexers.extend(_start_indexer(folder, writing) for _ in shares)
            finally:
                os.close(writing)
            for indexer, share in zip(indexers, shares, strict=False):
                _send(indexer, IndexShare(share, SHARD_TEXT_BYTES))
            yield from map(int, done)
    finally:
        for indexer in indexers:
            indexer.kill()
        for indexer in indexers:
            indexer.wait()


def _start_indexer(folder: Path, output: int) -> subprocess.Popen[bytes]:
    command = platform.module_command("agent_logger.catalog.search.indexer", str(folder))
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL)


def _send(indexer: subprocess.Popen[bytes], share: IndexShare) -> None:
    assert indexer.stdin
    with suppress(OSError), indexer.stdin as stdin:  # it may have ended
        stdin.write(msgspec.json.encode(share))
