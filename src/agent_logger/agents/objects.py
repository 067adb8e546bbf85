"""The JSON objects of other agents' lines, made safe to keep; and the times in them.

Decoded lines may still contain halves of characters, which no file and no terminal can hold, and nesting that later
readers could not follow. Both are rare, and visible in the bytes, so checking for them costs next to nothing.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Any, TypeVar

import msgspec

from agent_logger.agents.source_files import File, raw_lines_of
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import JsonEntry, is_utf8
from agent_logger.protocols.lines import Line
from agent_logger.providers.answer import MOST_NESTED
from agent_logger.providers.blocks.base import parts_of
from agent_logger.providers.json_values import Json, nested_deeper, with_whole_characters
from agent_logger.providers.lenient import REFUSED, fitting

S = TypeVar("S", bound=msgspec.Struct)
_decode = msgspec.json.Decoder().decode


def objects_of(file: File, but: re.Pattern[bytes]) -> Iterator[Json]:
    """Yield the objects in order, without lines that match `but` as a whole. What is not an object, or is nested too
    deeply, is left out."""
    for line in raw_lines_of(file):
        if not but.fullmatch(line):
            yield from _objects_in(line)


def structs_of(file: File, exact: msgspec.json.Decoder[S], lenient: type[S]) -> Iterator[S]:
    """Yield the objects in order as one type, whose fields all have defaults. Fields that it does not name are skipped,
    not decoded: most bytes are in them. A line that does not fit becomes a `lenient`, of those fields that fit."""
    for line in raw_lines_of(file):
        if line.count(b"{") + line.count(b"[") <= MOST_NESTED and is_utf8(line):
            try:
                record = exact.decode(line)
            except REFUSED:
                pass
            else:
                yield record
                continue
        if line.strip():
            yield from (fitting(lenient, fields) for fields in _objects_in(line))


def _objects_in(line: bytes) -> Iterable[Json]:
    try:
        value = decoded(line, line)
    except REFUSED:
        return salvaged(line)
    return (value,) if type(value) is dict else ()


def decoded(data: bytes | msgspec.Raw, line: bytes) -> Any:
    """Decode `data`, a part of the line; None if it cannot be kept. Raises those of `REFUSED`."""
    return shallow(_decode(data), line)  # msgspec itself refuses halves of characters


def salvaged(line: bytes) -> Iterator[Json]:
    """Yield the objects of any line, also of one that is damaged, or has what msgspec refuses."""
    for entry in jsonl.decode(Line(1, 0, len(line), line)):
        if isinstance(entry, JsonEntry):
            value = shallow(entry.value, entry.raw)
            if type(value) is dict:
                yield with_whole_characters(value)


def object_in(data: bytes) -> Json:
    """Decode these bytes as an object; empty if they are not one."""
    try:
        value = decoded(data, data)
    except REFUSED:
        value = next(salvaged(data), None)
    return value if type(value) is dict else {}


def parts_in(data: Any) -> list[Json]:
    """Decode these bytes as parts of a content: a text, or a list, of which the objects are returned."""
    if not isinstance(data, bytes):
        return []
    try:
        return list(parts_of(decoded(data, data)))
    except REFUSED:
        return list(salvaged(data))


def object_as(decoder: msgspec.json.Decoder[S], data: Any) -> S:
    """Decode these bytes as a type whose fields all have defaults: those of its fields that fit."""
    if not isinstance(data, bytes):
        return fitting(decoder.type, None)
    if data.count(b"{") + data.count(b"[") <= MOST_NESTED:
        try:
            return decoder.decode(data)
        except REFUSED:
            pass
    return fitting(decoder.type, object_in(data))


def shallow(value: Any, raw: bytes) -> Any:
    """Return the value, or None if it is nested too deeply; `raw` is what it was read from."""
    if raw.count(b"{") + raw.count(b"[") <= MOST_NESTED or not isinstance(value, dict | list):
        return value
    return None if nested_deeper(value, MOST_NESTED) else value


def time_of(text: Any) -> datetime | None:
    """Read an ISO 8601 time, with a zone, so that it can be compared with others."""
    if type(text) is not str:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return in_utc(time)


def local_time_of(text: Any) -> datetime | None:
    """Read an ISO 8601 time. One without a zone is of the machine that wrote it, which was most likely this one."""
    if type(text) is not str:
        return None
    try:
        time = datetime.fromisoformat(text)
        return in_utc(time if time.tzinfo else time.astimezone())
    except (ValueError, OverflowError, OSError):
        return None


def time_of_ms(since_1970: Any) -> datetime | None:
    if type(since_1970) is not int and type(since_1970) is not float:
        return None
    try:
        return in_utc(datetime.fromtimestamp(since_1970 / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def in_utc(time: datetime) -> datetime | None:
    """Convert a time to UTC. None at the ends of the calendar: the year 1 or 9999 in one zone is no time at all in
    another."""
    if not MINYEAR < time.year < MAXYEAR:
        return None
    if time.tzinfo is UTC:
        return time
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
