"""How many lines of a session's files cannot be read: counted when a session is listed or shown, and stored by file."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_logger.agents.databases.reading import databases_kept_open
from agent_logger.catalog.database import Database, replace_rows, transaction
from agent_logger.catalog.refresh.changes import count_change
from agent_logger.catalog.source_queries import sources_to_count
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.parts import PartFile, live_files_of, parts_of
from agent_logger.files.sources import Source
from agent_logger.files.stored_text import storable
from agent_logger.logs.damage import DamageCount, count_damage
from agent_logger.protocols.jsonl import Damage

if TYPE_CHECKING:
    from agent_logger.agents.source_files import SourceFiles

AT_ONCE = 64  # sources
LINE_FILES = (".jsonl", foreign.SEALED)
_count = msgspec.json.Decoder(DamageCount).decode


@databases_kept_open()
def count_damaged_lines(database: Database, sessions: Iterable[str] | None) -> None:
    """Count damaged lines of the sources of these sessions, or of all, that have changed since the last count."""
    behind = sources_to_count(database, sessions)
    for start in range(0, len(behind), AT_ONCE):
        count_in(database, behind[start : start + AT_ONCE])


def count_in(database: Database, behind: Iterable[tuple[int, Source]]) -> None:
    """Count damaged lines of these sources, each with its number."""
    counts = [(number, source.stamp, list(_counts(database, source))) for number, source in behind]
    with transaction(database):
        for number, stamp, files in counts:
            _store_counts(database, number, stamp, files)
        if any(count.places for _, _, files in counts for _, count in files):
            count_change(database)


def _store_counts(database: Database, source: int, stamp: str, files: Sequence[tuple[Path, DamageCount]]) -> None:
    database.execute("DELETE FROM damage_counts WHERE source = ?", (source,))
    rows = [(storable(str(path)), source, count.places, msgspec.json.encode(count)) for path, count in files]
    database.executemany(replace_rows("damage_counts", ("path", "source", "damaged_lines", "position")), rows)
    lines = sum(count.places for _, count in files)
    update = "UPDATE sources SET damaged_lines = ?, damage_stamp = ? WHERE id = ?"
    database.execute(update, (lines, stamp, source))


def _counts(database: Database, source: Source) -> Iterator[tuple[Path, DamageCount]]:
    if source.is_in_database:
        with suppress(OSError, SourceError):
            if places := _places_in_database(source):
                yield Path(source.key), DamageCount(stamp=source.stamp, places=places)
        return
    yield from _in_documents(source)
    for path in files_of(source):
        row = database.execute("SELECT position FROM damage_counts WHERE path = ?", (storable(str(path)),)).fetchone()
        with suppress(OSError, SourceError):  # deleted meanwhile, or not a file
            yield path, count_damage(path, _count(row[0]) if row else None)


def _places_in_database(source: Source) -> int:
    """Count what cannot be read of an agent's database, whichever session it belongs to."""
    return sum(isinstance(entry, Damage) for entry in _open(source).main.entries)


def _in_documents(found_source: Source) -> Iterator[tuple[Path, DamageCount]]:
    """Count the damage that a reader finds in documents: files that do not consist of lines."""
    path = Path(found_source.path)
    if found_source.agent is None or found_source.prompts_only or path.suffix in LINE_FILES:
        return
    with suppress(OSError, SourceError):
        source = _open(found_source)
        for file in (source.main, *source.others):
            places = sum(isinstance(entry, Damage) for entry in file.entries)
            if places:
                yield (
                    Path(os.path.normpath(path.parent / file.name)),
                    DamageCount(stamp=found_source.stamp, places=places),
                )


def files_of(found_source: Source) -> list[Path]:
    """Return the JSONL files that a source is read from."""
    path = Path(found_source.path)
    if found_source.is_of_hooks or found_source.is_document or found_source.prompts_only:
        return []
    if found_source.agent is None:
        return files_of_log(PartFile(path.parent, found_source.name))
    try:
        source = _open(found_source)
    except (OSError, SourceError):
        return []
    files = [path, *(path.parent / other.name for other in source.others), *map(Path, found_source.others or ())]
    paths = (foreign.existing(Path(os.path.normpath(file))) for file in files)  # plain or sealed
    return list(dict.fromkeys(path for path in paths if path and path.suffix in LINE_FILES))


def _open(found_source: Source) -> "SourceFiles":
    from agent_logger.catalog.discovery.reader import (
        open_source,  # imported here: only what has changed needs the readers
    )

    return open_source(found_source)


def files_of_log(log: PartFile) -> list[Path]:
    lives = (path for paths in live_files_of(log.folder, log.name).values() for path in paths)
    return [*(part.existing_path() for part in parts_of(log.folder, log.name)), *lives]
