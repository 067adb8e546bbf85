"""Keeping lines short: what is too large for a line goes to a file of its own beside the log.

`spill` decides, without touching a disk; the journal writes the files before the line that names them. `decode` is the
way back.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_logger.errors import SourceError
from agent_logger.model import records
from agent_logger.model.plurals import pluralize
from agent_logger.model.records import (
    AnyRecord,
    Chunk,
    ExchangeRecord,
    Kind,
    Large,
    Message,
    Request,
    Response,
)

SPILL_BYTES = 8 << 20  # a body, or an exchange's messages, over this goes to a file
_INSIDE = re.compile(r"[^/\0]+\.bodies/[A-Za-z0-9][A-Za-z0-9._-]*")
LINE_BYTES = 16 << 20  # no line of ours is longer


@dataclass(frozen=True, slots=True)
class Spilled:
    """A record's line with its newline, and the file it needs, by name within the log's `bodies` folder."""

    line: bytes
    name: str | None = None
    data: bytes = b""

    @property
    def line_bytes(self) -> int:
        """The length of the line without its newline."""
        return len(self.line) - 1


Namer = Callable[[str], str]  # a name that no file of the bodies folder has: the wanted one if it is free


def spill(record: AnyRecord, folder: str, free_name: Namer) -> Spilled:
    """Split a record into its line and the file it needs. `folder` is what lines call the bodies folder."""
    whole = Spilled(records.encode_line(record))
    if whole.line_bytes <= SPILL_BYTES:
        return whole
    spilled = _spill_known(record, folder, free_name) or whole
    if spilled.line_bytes <= LINE_BYTES:
        return spilled
    name, line = free_name("line"), whole.line[:-1]
    return Spilled(records.encode_line(Large(file=f"{folder}/{name}", bytes=len(line))), name, line)


def keeps_its_type(record: AnyRecord, line: bytes) -> bool:
    """Whether the record's line is still one of its type, however large it is."""
    return len(line) <= SPILL_BYTES or isinstance(record, ExchangeRecord | Request | Response)


def _spill_known(record: AnyRecord, folder: str, free_name: Namer) -> Spilled | None:
    changes: dict[str, object]
    match record:
        case ExchangeRecord():
            name = free_name(f"{record.exchange}.jsonl")
            data = b"".join(msgspec.json.encode(message) + b"\n" for message in record.messages)
            changes = {"messages": [], "messages_file": f"{folder}/{name}"}
        case Request() | Response() if record.body is not None:
            name = free_name(record.call or "body")
            data = records.as_bytes(record.body, record.body_encoding)
            changes = {"body": None, "body_encoding": None, "body_file": f"{folder}/{name}"}
        case Response(body_file=None) if record.chunks:
            name = free_name(record.call or "body")
            pieces = [records.as_bytes(chunk.raw or "", chunk.raw_encoding) for chunk in record.chunks]
            data = b"".join(pieces)
            sizes = [
                Chunk(ts=chunk.ts, delta_ms=chunk.delta_ms, bytes=len(piece))
                for chunk, piece in zip(record.chunks, pieces, strict=True)
            ]
            changes = {"chunks": sizes, "body_file": f"{folder}/{name}"}
        case _:
            return None
    return Spilled(records.encode_line(replace(record, **changes, file_bytes=len(data))), name, data)


def decode(line: bytes, kind: Kind, log_folder: Path) -> AnyRecord:
    """The record of a line, with all that `spill` took out of it.

    Raises what `records.decode` does, `OSError` if a file the line names is gone, and `SourceError` if that file is
    incomplete or lies elsewhere.
    """
    record = records.decode(line, kind)
    match record:
        case Large():
            return records.decode(_read(log_folder, record.file, record.bytes), kind)
        case ExchangeRecord(messages_file=str(file)):
            lines = _read(log_folder, file, record.file_bytes).split(b"\n")
            messages = [msgspec.json.decode(line, type=Message) for line in lines if line]
            return replace(record, messages=messages, messages_file=None, file_bytes=None)
        case Response(body_file=str(file), chunks=list(chunks)):
            data = _read(log_folder, file, record.file_bytes)
            return replace(record, chunks=_refill(chunks, data), body_file=None, file_bytes=None)
        case Request(body_file=str(file)) | Response(body_file=str(file)):
            text, encoding = records.as_text(_read(log_folder, file, record.file_bytes))
            return replace(record, body=text, body_encoding=encoding, body_file=None, file_bytes=None)
    return record


def _read(log_folder: Path, file: str, length: int | None) -> bytes:
    if not _INSIDE.fullmatch(file):  # a log may come from anybody, and must not lead us to /etc
        raise SourceError(f"{log_folder}: a record names the file {file!r}, which is not one of its bodies")
    data = (log_folder / file).read_bytes()
    if length is not None and len(data) != length:
        raise SourceError(f"{log_folder / file}: has {pluralize(len(data), 'byte')} instead of {length:,}")
    return data


def _refill(chunks: list[Chunk], data: bytes) -> list[Chunk]:
    filled, start = [], 0
    for chunk in chunks:
        end = start + (chunk.bytes or 0)
        text, encoding = records.as_text(data[start:end])
        filled.append(Chunk(ts=chunk.ts, delta_ms=chunk.delta_ms, raw=text, raw_encoding=encoding))
        start = end
    return filled
