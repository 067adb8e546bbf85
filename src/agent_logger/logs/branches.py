"""Reads the branches of a wire log: each with the calls of its parents, up to where it left them."""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from agent_logger.files.parts import parts_of
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import AnyRecord, Fork, Part, Request, Response, Rewrite
from agent_logger.model.session import SIDE
from agent_logger.protocols.jsonl import Damage, Torn


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
