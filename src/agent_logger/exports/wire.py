"""The proxy's logs of a session, each as a log that needs no other: its parts joined, and for a branch the records that
it continues."""

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from agent_logger.errors import SourceError
from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece
from agent_logger.exports.masks.mask import NO_MASK, SessionMask
from agent_logger.exports.masks.records import masked_stream, readable_record
from agent_logger.logs.branches import read_branch
from agent_logger.logs.log_records import kind_of_log
from agent_logger.model import records
from agent_logger.model.records import Record, Request, Response, Unknown
from agent_logger.views.hide import hidden_line


def pieces(session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
    logs = session.wire_logs()
    if not logs:
        raise SourceError(f"the proxy did not record session {session.id}")
    for log in logs:
        for place, line in wire_records(log.folder, log.name, context.on_damage, context.mask):
            yield ExportPiece(place, line)


def wire_lines(folder: Path, name: str, on_damage: Callable[[object], None]) -> Iterator[bytes]:
    """The lines of the file, each with its newline, and without keys. Bodies are in the lines, however large.

    What cannot be read is left out and passed to `on_damage`. Raises `SourceError` if there is no such log.
    """
    return (line for _, line in wire_records(folder, name, on_damage))


def wire_records(
    folder: Path, name: str, on_damage: Callable[[object], None], mask: SessionMask = NO_MASK
) -> Iterator[tuple[str, bytes]]:
    """Yield the lines with their places."""
    if kind_of_log(folder, name) != "wire":
        raise SourceError(f"{folder / name}: not a wire log")
    for record in read_branch(folder, name):
        if isinstance(record, Record):  # the ids of its part are those of another file
            copy = replace(record, log=None, part=None, machine=None, writer=None, mac=None)
            line = hidden_line(records.encode(readable_record(copy) if mask.kinds else copy))
            yield _place(record), mask.line(masked_stream(line, mask)) + b"\n"
        elif isinstance(record, Unknown):
            yield "a line of an unknown type", mask.line(hidden_line(record.raw)) + b"\n"
        else:
            on_damage(record)


def _place(record: Record) -> str:
    match record:
        case Request():
            return f"call {record.seq} request"
        case Response():
            return f"call {record.seq} response"
    return "beginning"
