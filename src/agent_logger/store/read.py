"""Reading a log as one: all its parts, plain or sealed, and the exchanges still in flight."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent_logger import records
from agent_logger.errors import SourceError
from agent_logger.records import AnyRecord, Exchange, Kind, Large, Part, Unknown
from agent_logger.store.bodies import gather
from agent_logger.store.files import part_entries
from agent_logger.store.live import read_live
from agent_logger.store.ownership import first_entry
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
    kind = log_kind(parts)
    streams = [_stream(chain, kind) for chain in _chains(parts)]
    return (item for _, item in heapq.merge(*streams, key=lambda timed: timed[0]))


def read_exchanges(folder: Path, name: str) -> list[Exchange]:
    """The exchanges of a log, and those in flight. Of two with one id the complete one counts."""
    found = [item.found for item in read_log(folder, name) if isinstance(item.found, Exchange)]
    for paths in live_files_of(folder, name).values():
        found += [exchange for path in paths for exchange in read_live(path)]
    best: dict[object, Exchange] = {}
    for exchange in found:
        key = exchange.id or id(exchange)
        if key not in best or (exchange.complete and not best[key].complete):
            best[key] = exchange
    return list(best.values())


def log_kind(parts: list[PartFile]) -> Kind | None:
    """`None` for a log that is not ours, or has no whole line yet."""
    firsts = (first_entry(part) for part in parts)
    kinds = (records.kind_of(first.raw) for first in firsts if first)
    return next((kind for kind in kinds if kind), None)


def _chains(parts: list[PartFile]) -> list[list[PartFile]]:
    """Parts that were written one after the other; two chains were written at the same time."""
    chain_of: dict[str, list[PartFile]] = {}
    chains: list[list[PartFile]] = []
    for part in parts:
        own, after = _links(part)
        chain = chain_of.get(after) if after else None
        if chain is None:
            chains.append(chain := [])
        chain.append(part)
        if own:
            chain_of[own] = chain
    return chains


def _links(part: PartFile) -> tuple[str | None, str | None]:
    first = first_entry(part)
    if not first or not isinstance(first.value, dict):
        return None, None
    own, after = first.value.get("part"), first.value.get("after")
    return own if isinstance(own, str) else None, after if isinstance(after, str) else None


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


def decode(line: bytes, kind: Kind, folder: Path) -> AnyRecord:
    """A record with everything that belongs to it."""
    record = records.decode(line, kind)
    whole = gather(record, folder)
    if isinstance(record, Large) and isinstance(whole, Unknown):
        return records.decode(whole.raw, kind)
    return whole


def _time(found: object) -> str:
    time = getattr(found, "ts", None) or getattr(found, "ts_start", None)
    return time if isinstance(time, str) and not isinstance(found, Part) else ""
