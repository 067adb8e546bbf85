"""Reads the records of a log: all parts of it in order, and the exchanges in flight."""

import heapq
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger.errors import SourceError
from agent_logger.files.line_files import part_entries
from agent_logger.files.parts import PartFile, live_files_of, parts_of
from agent_logger.journal.bodies import decode
from agent_logger.journal.live import merged, read_live
from agent_logger.journal.ownership import ids_of, kind_of
from agent_logger.model.records import AnyRecord, ExchangeRecord, Kind, Part, SessionStart, Unknown
from agent_logger.protocols.jsonl import Damage, JsonEntry, Torn


class LogItem(msgspec.Struct, frozen=True):
    """A record, or what is in its place, and where: a part, and the offset in its plain text."""

    part: PartFile
    line: int
    offset: int
    value: AnyRecord | Damage | Torn


def kind_of_log(folder: Path, name: str) -> Kind | None:
    """Return the kind of a log; `None` if there is none, or nothing in it says so. Live files show an exchange that has
    just begun."""
    kinds = (kind_of(part) for part in parts_of(folder, name))
    return next(filter(None, kinds), "exchange" if live_files_of(folder, name) else None)


def read_log(folder: Path, name: str) -> Iterator[LogItem]:
    """Yield everything in a log, in order: within a part as it is, between parts by cause, then by time.

    Bodies in files of their own are put back into their records.
    """
    parts = parts_of(folder, name)
    kind = next((kind for part in parts if (kind := kind_of(part))), None)
    streams = [_stream(chain, kind) for chain in _chains(parts)]
    return (item for _, item in heapq.merge(*streams, key=lambda timed: timed[0]))


def read_records(part: PartFile) -> list[AnyRecord]:
    """Return the records of one part, without what is damaged."""
    values = (item.value for item in _items(part, kind_of(part)))
    return [value for value in values if not isinstance(value, Damage | Torn)]


class ExchangeLog(NamedTuple):
    """An exchange log: its exchanges with those in flight, each once, and its other records."""

    exchanges: list[ExchangeRecord]
    others: list[AnyRecord]

    @property
    def start(self) -> SessionStart | None:
        return next((record for record in self.others if isinstance(record, SessionStart)), None)


def read_exchange_log(folder: Path, name: str) -> ExchangeLog:
    files = live_files_of(folder, name).values()
    in_flight = [exchange for paths in files for path in paths for exchange in read_live(path)]
    # Read the log only now: an exchange that ends meanwhile is in it before its live file is deleted.
    exchanges: list[ExchangeRecord] = []
    others: list[AnyRecord] = []
    for item in read_log(folder, name):
        if isinstance(item.value, ExchangeRecord):
            exchanges.append(item.value)
        elif not isinstance(item.value, Damage | Torn):
            others.append(item.value)
    return ExchangeLog(merged(exchanges + in_flight), others)


def read_exchanges(folder: Path, name: str) -> list[ExchangeRecord]:
    """Return the exchanges of a log, and those in flight, each once."""
    return read_exchange_log(folder, name).exchanges


# ---------------------------------------------------------------- parts


def _chains(parts: list[PartFile]) -> list[list[PartFile]]:
    """Group parts that were written one after the other; two chains were written at the same time."""
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


def _stream(chain: list[PartFile], kind: Kind | None) -> Iterator[tuple[str, LogItem]]:
    """Yield each item with its time, which never goes back within a chain, whatever the clock did."""
    latest = ""
    for part in chain:
        for item in _items(part, kind):
            latest = max(latest, _time(item.value))
            yield latest, item


def _items(part: PartFile, kind: Kind | None) -> Iterator[LogItem]:
    for entry in part_entries(part):
        if isinstance(entry, JsonEntry):
            yield LogItem(part, entry.line, entry.offset, _record(entry, kind, part.folder))
        else:
            yield LogItem(part, entry.line, entry.offset, entry)


def _record(entry: JsonEntry, kind: Kind | None, folder: Path) -> AnyRecord | Damage:
    try:
        return decode(entry.raw, kind, folder) if kind else Unknown(entry.raw)
    except (ValueError, SourceError, OSError) as error:
        return Damage(entry.line, entry.offset, len(entry.raw), str(error))


class _Line(msgspec.Struct):
    timestamp: str = ""


_line = msgspec.json.Decoder(_Line)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:")


def _time(record: object) -> str:
    if isinstance(record, Unknown):
        return _time_of_line(record.raw)
    time = getattr(record, "ts", None) or getattr(record, "ts_start", None)
    return time if isinstance(time, str) and not isinstance(record, Part) else ""


def _time_of_line(line: bytes) -> str:
    """Return the time of a transcript's line. The line comes from outside, so it may contain anything."""
    try:
        time = _line.decode(line).timestamp
    except (ValueError, RecursionError):
        return ""
    return time if _TIME.match(time) else ""
