"""A process that indexes its share of the sessions that are new to the index (`parallel.py` starts it)."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from agent_logger.agents.databases.reading import databases_kept_open
from agent_logger.catalog.database import Database
from agent_logger.catalog.details import ReadDetails, load_whole, store_details
from agent_logger.catalog.queries import OutdatedSession
from agent_logger.catalog.refresh.damage import count_damaged_lines
from agent_logger.catalog.search.shard_builder import ShardBuilder
from agent_logger.catalog.search.text_index import IndexedSession
from agent_logger.catalog.search.texts import texts_of
from agent_logger.catalog.sqlite.database import SqliteDatabase, open_database, prepare
from agent_logger.catalog.sqlite.schema import CATALOG, TEXT_INDEX

WAIT_MS = 60_000  # for the other indexers, of which one at a time writes
STORED_BYTES = 8_000_000  # of files whose details are stored at once


class IndexShare(msgspec.Struct, frozen=True):
    """What an indexer is to index."""

    families: list[list[OutdatedSession]]  # sessions of a family are relatives of each other
    shard_text_bytes: int  # bytes of texts after which a shard is published


decode_share = msgspec.json.Decoder(IndexShare).decode


def _main(folder: Path) -> None:
    os.nice(19)
    share = decode_share(sys.stdin.buffer.read())
    with (
        closing(open_database(folder / "catalog.db", CATALOG)) as catalog,
        closing(open_database(folder / "catalog-text.db", TEXT_INDEX)) as texts,
    ):
        prepare(catalog)
        for database in (catalog, texts):
            database.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
        with databases_kept_open():
            for done in index_share(folder, catalog, texts, share):
                # This fails once nobody reads it: the process that started this one has ended.
                os.write(sys.stdout.fileno(), b"%d\n" % done)


def index_share(folder: Path, catalog: Database, texts: SqliteDatabase, share: IndexShare) -> Iterator[int]:
    """Index the share. Yields the bytes of files that were read since the last time; always before a shard is
    published, because nobody may want it any more."""
    builder = ShardBuilder(texts)
    read: list[ReadDetails] = []
    for family in share.families:
        builder.begin_family()
        for source in family:
            builder.add(_read(catalog, source, read))
            if sum(details.of.size for details in read) >= STORED_BYTES:
                yield _store(catalog, read)
        if builder.text_bytes >= share.shard_text_bytes:
            yield _store(catalog, read)
            builder.publish(folder)
    yield _store(catalog, read)
    builder.publish(folder)


def _read(catalog: Database, source: OutdatedSession, read: list[ReadDetails]) -> IndexedSession:
    session, details = load_whole(catalog, source)
    read.append(details)
    mark = msgspec.json.encode(details.mark) if details.mark else None
    return IndexedSession(source.id, source.stamp, texts_of(session) if session else [], mark=mark)


def _store(catalog: Database, read: list[ReadDetails]) -> int:
    """Store what was read, and what goes with it. Returns how many bytes of files that was."""
    store_details(catalog, read)
    count_damaged_lines(catalog, [details.of.id for details in read])
    done = sum(details.of.size for details in read)
    read.clear()
    return done


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
