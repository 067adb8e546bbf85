"""Reading a log as one: all its parts, plain or sealed, and the exchanges still in flight."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent_logger.errors import SourceError
from agent_logger.records import AnyRecord, Exchange, Kind, Part, Unknown
from agent_logger.store.bodies import decode
from agent_logger.store.files import part_entries
from agent_logger.store.live import merged, read_live
from agent_logger.store.ownership import ids_of, kind_of
from agent_logger.store.parts import PartFile, live_files_of, parts_of
from agent_logger.wire.jsonl import Damage, Entry, Torn


@dataclass(frozen=True, slots=True)
class Item:
    """A record, or what stands where one should, and its place: a part, and the offset in its plain text."""

    part: PartFile
    line: int
    offset: int
    found: AnyRecord | Damage | Torn


def read_log(folder: Path, name: str) -> Iterator[Item]:
    """Everything in a log, in order: within a part as it stands, between parts by cause, then by time.

    Bodies that stand in files of their own are where they belong in their records again.
    """
    parts = parts_of(folder, name)
    kind = next((kind for part in parts if (kind := kind_of(part))), None)
    streams = [_stream(chain, kind) for chain in _chains(parts)]
    return (item for _, item in heapq.merge(*streams, key=lambda timed: timed[0]))


def read_exchanges(folder: Path, name: str) -> list[Exchange]:
    """The exchanges of a log, and those in flight, each once."""
    files = live_files_of(folder, name).values()
    in_flight = [exchange for paths in files for path in paths for exchange in read_live(path)]
    # Only now the log: an exchange that ends meanwhile is in it before its live file goes.
    logged = [item.found for item in read_log(folder, name) if isinstance(item.found, Exchange)]
    return merged(logged + in_flight)


def _chains(parts: list[PartFile]) -> list[list[PartFile]]:
    """Parts that were written one after the other; two chains were written at the same time."""
    chain_of: dict[str, list[PartFile]] = {}
    chains: list[list[PartFile]] = []
    for part in parts:
        ids = ids_of(part)
        chain = chain_of.get(ids.after) if ids.after else None
        if chain is None:
            chains.append(chain := [])
        chain.append(part)
        if ids.part:
            chain_of[ids.part] = chain
    return chains


def _stream(chain: list[PartFile], kind: Kind | None) -> Iterator[tuple[str, Item]]:
    """With the time of each item, which never goes back within a chain, whatever the clock did."""
    latest = ""
    for part in chain:
        for item in _items(part, kind):
            latest = max(latest, _time(item.found))
            yield latest, item


def _items(part: PartFile, kind: Kind | None) -> Iterator[Item]:
    for entry in part_entries(part):
        if isinstance(entry, Entry):
            yield Item(part, entry.line, entry.offset, _record(entry, kind, part.folder))
        else:
            yield Item(part, entry.line, entry.offset, entry)


def _record(entry: Entry, kind: Kind | None, folder: Path) -> AnyRecord | Damage:
    try:
        return decode(entry.raw, kind, folder) if kind else Unknown(entry.raw)
    except (msgspec.MsgspecError, SourceError, OSError) as error:
        return Damage(entry.line, entry.offset, len(entry.raw), str(error))


def _time(found: object) -> str:
    time = getattr(found, "ts", None) or getattr(found, "ts_start", None)
    return time if isinstance(time, str) and not isinstance(found, Part) else ""
