"""Reads a log as a whole: all its parts, plain or sealed, the exchanges still in flight, what a branch continues
from."""

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_logger.agents.registry import recognise
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.line_files import part_entries
from agent_logger.files.parts import PartFile, live_files_of, part_of, parts_of
from agent_logger.files.sources import FIRST_BYTES, source_at
from agent_logger.journal.bodies import decode
from agent_logger.journal.live import merged, read_live
from agent_logger.journal.ownership import ids_of, kind_of
from agent_logger.logs import exchange_log
from agent_logger.logs.transcript.lines import Message, message_of
from agent_logger.logs.transcript.session import session_of_log
from agent_logger.logs.transcript.side_files import whole
from agent_logger.logs.wire_log import session as wire_log
from agent_logger.model.records import (
    AnyRecord,
    ExchangeRecord,
    Fork,
    Kind,
    Part,
    Request,
    Response,
    Rewrite,
    SessionHeader,
    SessionStart,
    Unknown,
)
from agent_logger.model.session import SIDE, Session, Witness
from agent_logger.protocols.jsonl import Damage, JsonEntry, Torn


@dataclass(frozen=True, slots=True)
class LogItem:
    """A record, or what is in its place, and where: a part, and the offset in its plain text."""

    part: PartFile
    line: int
    offset: int
    value: AnyRecord | Damage | Torn


def read_session(path: Path, *, alone: bool = False) -> Session:
    """Return the session of a log of ours, by the path of any of its files: finished, in flight, sealed, or a branch;
    or that of a main file of Claude Code, Codex, Gemini CLI or opencode.

    `alone`: for a branch only its own calls, and not those of its parents. What is damaged is left out. Raises
    `SourceError` if it is none of these, and `OSError`.
    """
    part = part_of(path)
    kind = kind_of_log(part.folder, part.name) if part else None
    if part and kind == "wire":
        own = (item.value for item in read_log(part.folder, part.name))
        whole = read_branch(part.folder, part.name)
        return wire_log.session_of(
            (record for record in own if not isinstance(record, Torn)) if alone else whole, part.name
        )
    if part and kind == "exchange":
        read_records = (item.value for item in read_log(part.folder, part.name))
        records = [
            record for record in read_records if not isinstance(record, Damage | Torn | ExchangeRecord)
        ]
        return exchange_log.session_of(records, read_exchanges(part.folder, part.name), part.name)
    if part and kind == "transcript":
        return session_of_log(part, read_header(part), read_messages)
    return _read_foreign(path)


def witness_of(path: Path) -> Witness | None:
    """Return which witness wrote a log of ours; that is known even if nothing was answered."""
    part = part_of(path)
    kind = kind_of_log(part.folder, part.name) if part else None
    if part and kind == "exchange":
        records = (item.value for item in read_log(part.folder, part.name))
        start = next((record for record in records if isinstance(record, SessionStart)), None)
        stated = start and start.witness
        return stated or exchange_log.witness_of(read_exchanges(part.folder, part.name))
    return "wire" if kind == "wire" else None


def read_messages(log: PartFile) -> list[Message]:
    """Return the messages of a transcript in order, with what is in files beside it. What cannot be read is left
    out."""
    return read_transcript(log)[1]


def read_transcript(log: PartFile) -> tuple[SessionHeader | None, list[Message]]:
    """Return the header and the messages of a transcript, as `read_messages` does."""
    records = [item.value for item in read_log(log.folder, log.name)]
    lines = (message_of(record) for record in records)
    messages = [whole(line, log.folder / log.name) for line in lines if line is not None]
    return next((record for record in records if isinstance(record, SessionHeader)), None), messages


def read_lines(log: PartFile) -> list[Message]:
    """Return the messages of a transcript as they are in the log, without what is in files beside it."""
    messages = (message_of(item.value) for item in read_log(log.folder, log.name))
    return [message for message in messages if message is not None]


def read_header(log: PartFile) -> SessionHeader | None:
    """Return the header; None if it was lost, or the log is not a transcript of ours."""
    for item in read_log(log.folder, log.name):
        if isinstance(item.value, SessionHeader):
            return item.value
        if message_of(item.value):
            return None
    return None


def _read_foreign(path: Path) -> Session:
    """Read a session in a main file of another agent, or in a sealed copy of it; of a database the newest session."""
    path = path.with_name(path.name.removesuffix(foreign.SEALED))
    if foreign.existing(path) is None:
        raise SourceError(f"{path}: no such log")
    agent = recognise(path.absolute().as_posix(), next(foreign.chunks(path), b"")[:FIRST_BYTES])
    if agent is None:
        raise SourceError(f"{path}: not a log of a session")
    return agent.session_of(agent.open_session(source_at(agent.name, path)))


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


def read_exchanges(folder: Path, name: str) -> list[ExchangeRecord]:
    """Return the exchanges of a log, and those in flight, each once."""
    files = live_files_of(folder, name).values()
    in_flight = [exchange for paths in files for path in paths for exchange in read_live(path)]
    # Read the log only now: an exchange that ends meanwhile is in it before its live file is deleted.
    logged = [item.value for item in read_log(folder, name) if isinstance(item.value, ExchangeRecord)]
    return merged(logged + in_flight)


# ---------------------------------------------------------------- branches


def read_branch(folder: Path, name: str) -> Iterator[AnyRecord | Damage]:
    """Yield the records of a wire log, in order, and before them those of its parents up to where it left them.

    Calls are numbered consecutively through all of them, as if one log had been written. A missing parent is left out.
    The result for a branch is a log that needs no other: its `fork` records say so.
    """
    taken = 0  # numbers of calls
    for depth, (log, last) in enumerate(lineage_of(folder, name)):
        before = taken
        read_records = (item.value for item in read_log(folder, log))
        records = (item for item in read_records if not isinstance(item, Part | Torn))
        for record in records if last is None else _up_to(records, last):
            moved = _moved(record, before) if depth else record
            if isinstance(moved, Request | Response):
                taken = max(taken, moved.seq)
            yield moved


def lineage_of(folder: Path, name: str) -> list[tuple[str, int | None]]:
    """Return the logs that make up a branch, the oldest first, each with the number of its last call that belongs to
    it; None: all of them do."""
    logs: list[tuple[str, int | None]] = [(name, None)]
    visited = {name}
    # The name of a parent comes from a file: it may be any text, though not one that makes `parts_of` leave the
    # folder, and it may lead in a circle.
    while (fork := _fork(folder, logs[-1][0])) and fork.parent_session not in visited:
        parent = fork.parent_session
        if fork.included or fork.from_seq < 1 or not parts_of(folder, parent):
            break
        visited.add(parent)
        logs.append((parent, fork.from_seq))
    return logs[::-1]


def _fork(folder: Path, name: str) -> Fork | None:
    """Return the fork record, which precedes the first call of the conversation; side calls may have come first."""
    for item in read_log(folder, name):
        if isinstance(item.value, Fork):
            return item.value
        if isinstance(item.value, Request) and item.value.thread != SIDE:
            return None
    return None


def _up_to(records: Iterator[AnyRecord | Damage], last: int) -> Iterator[AnyRecord | Damage]:
    """Yield records up to the last call. Later calls may be before the last answer. A record that is no call belongs to
    the one after it."""
    waiting: list[AnyRecord | Damage] = []
    unanswered: set[int] = set()
    for record in records:
        if not isinstance(record, Request | Response | Rewrite):
            waiting.append(record)
            continue
        if record.seq > last:
            continue
        yield from waiting
        yield record
        waiting = []
        if isinstance(record, Request):
            unanswered.add(record.seq)
        elif isinstance(record, Response):
            unanswered.discard(record.seq)
            if record.seq == last and not unanswered:
                return


def _moved(record: AnyRecord | Damage, by: int) -> AnyRecord | Damage:
    match record:
        case Request():
            return replace(record, seq=record.seq + by, retry_of=record.retry_of and record.retry_of + by)
        case Response() | Rewrite():
            return replace(record, seq=record.seq + by)
        case Fork():
            return replace(record, from_seq=by, included=True)
    return record


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
    except (msgspec.MsgspecError, SourceError, OSError) as error:
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
    except (msgspec.MsgspecError, RecursionError):
        return ""
    return time if _TIME.match(time) else ""
