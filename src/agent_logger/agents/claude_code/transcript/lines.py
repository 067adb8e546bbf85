"""Decodes a line of Claude Code's into its record.

Nearly every line is decoded once, straight into its type, and fields that the type does not name are skipped. A line
that does not fit its type, or that msgspec does not accept as JSON, is read leniently: as any value, of which each
field that fits is taken. If the file also has the same line intact, that one counts. What cannot be read at all becomes
`Damage`, with its place. Nothing here raises.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Generic

import msgspec

from agent_logger.agents.claude_code.transcript.records import (
    RECORDS,
    AnyRecord,
    AssistantRecord,
    ClaudeMessage,
    MessageUsage,
    OtherRecord,
    SessionRecord,
    message_usage,
)
from agent_logger.agents.source_files import File, lines_of, raw_lines_of
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage, JsonEntry, Torn, is_utf8
from agent_logger.protocols.lines import Line, lines_in
from agent_logger.providers.json_values import fields_of, text_of, with_whole_characters
from agent_logger.providers.lenient import REFUSED, S, fitting

# Top-level fields with plain values, up to `type`. Quotes within texts are escaped, so this cannot match further in.
_TYPE = re.compile(rb'\{(?:"[A-Za-z_]+":(?:"[^"\\]*"|null|true|false|\d+),)*?"type":"([^"\\]*)"')


class _Head(msgspec.Struct, gc=False):
    type: str = ""


_head = msgspec.json.Decoder(_Head)


def type_of(data: bytes) -> str:
    """Return the type of a line, by its first fields, else by all of it; empty if it cannot be determined. The line may
    be damaged."""
    if match := _TYPE.match(data):
        return match[1].decode("utf-8", "replace")
    try:
        return _head.decode(data).type
    except REFUSED:
        return ""


class RecordReader(Generic[S]):
    """Reads lines into one type, or into those of its fields that fit."""

    def __init__(self, record: type[S]) -> None:
        self._record = record
        decoder = msgspec.json.Decoder(record)
        self.decode, self._decode_lines = decoder.decode, decoder.decode_lines

    def exact(self, data: bytes) -> S | None:
        try:
            return self.decode(data)
        except REFUSED:
            return None

    def all_exact(self, portion: bytes) -> list[S] | None:
        """Decode several whole lines at once; None if any of them does not fit the type."""
        lines = lines_in(portion)
        # If each line begins and ends as an object, none continues in the next one: within an object no `{` follows a
        # `}`.
        are_objects = {line[:1] for line in lines} <= {b"{"} and {line[-2:] for line in lines} <= {b"}\n"}
        if not are_objects or not is_utf8(portion):
            return None
        try:
            records = self._decode_lines(portion)
        except REFUSED:
            return None
        return records if len(records) == len(lines) else None

    def fitting(self, value: Any) -> S:
        return fitting(self._record, value)


_readers: dict[str, RecordReader[Any]] = {name: RecordReader(record) for name, record in RECORDS.items()}
_other: RecordReader[Any] = RecordReader(OtherRecord)


def reader_of(kind: str) -> RecordReader[Any]:
    return _readers.get(kind, _other)


def records_of(file: File) -> Iterator[AnyRecord | Damage | Torn]:
    """Yield every record of a file; those of unknown types are `OtherRecord`s."""
    copies = WholeCopies(file)
    for line in lines_of(file):
        if not isinstance(line, Line):
            yield line
        elif (data := line.data) and (record := read(data)):
            yield record
        else:
            for lenient_record in _read_leniently(line):
                if isinstance(lenient_record, Damage) or not copies.have(lenient_record.type, id_of(lenient_record)):
                    yield lenient_record


def id_of(record: AnyRecord) -> str | None:
    return record.uuid if isinstance(record, SessionRecord) else None


class WholeCopies:
    """The intact lines of a file, collected when the first line is read that does not fit its type."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._identities: set[tuple[str, str | None]] | None = None

    def have(self, kind: str, uuid: str | None) -> bool:
        if uuid is None or (self._file.chunks is None and isinstance(self._file.entries, Iterator)):
            return False  # the record has no id, or the file cannot be read again
        if self._identities is None:
            records = (read(data) for data in raw_lines_of(self._file))
            self._identities = {(record.type, id_of(record)) for record in records if record}
        return (kind, uuid) in self._identities


_ROLE = b'"role":"'
_BEHIND = len(_ROLE)
ROLE_WITHIN = 1000  # bytes: before it are ids, which are short
_BY_ROLE = {b"a": ("assistant", _readers["assistant"].decode), b"u": ("user", _readers["user"].decode)}


def read(data: bytes) -> AnyRecord | None:
    """Return the record of a well-formed line, as nearly all are.

    The type is guessed by the role, which comes before the long texts, while `type` may come after them.
    """
    at = data.find(_ROLE, 0, ROLE_WITHIN)
    guess = _BY_ROLE.get(data[at + _BEHIND : at + _BEHIND + 1]) if at >= 0 else None
    if guess and (data.isascii() or is_utf8(data)):
        try:
            record: AnyRecord = guess[1](data)
        except REFUSED:
            return _read_by_type(data)
        if record.type == guess[0]:
            return None if _needs_lenient_reading(record) else record
    return _read_by_type(data)


def decode(line: bytes) -> AnyRecord | None:
    """Return the record of one line, with those of its fields that fit the type; None if the line is not an object.

    A line of an unknown type is an `OtherRecord`. Of two objects in one line, which a crash can leave, the first that
    can be read counts.
    """
    lenient = _read_leniently(Line(1, 0, len(line), line))
    return read(line) or next((record for record in lenient if not isinstance(record, Damage)), None)


def _read_by_type(data: bytes) -> AnyRecord | None:
    kind = type_of(data)
    # Skipped values must be valid UTF-8, too.
    record: AnyRecord | None = reader_of(kind).exact(data) if is_utf8(data) else None
    return None if _needs_lenient_reading(record) else record


def _needs_lenient_reading(record: AnyRecord | None) -> bool:
    """Whether the line must be read again, leniently. Samples of the specification have `message` twice: a text, and an
    object with the usage alone. A damaged line may have none. A usage may have other names than the API's."""
    if type(record) is not AssistantRecord:
        return False
    message = record.message
    if not isinstance(message, ClaudeMessage):
        return message is None or has_unknown_usage(record.usage)
    return (message.content is None and message.id is None) or has_unknown_usage(message.usage or record.usage)


def has_unknown_usage(usage: MessageUsage | None) -> bool:
    return usage is not None and not usage.is_understood


def _read_leniently(line: Line) -> Iterator[AnyRecord | Damage]:
    for entry in jsonl.decode(line):
        if isinstance(entry, Damage):
            yield entry
        else:
            yield _lenient_record(entry) or Damage(entry.line, entry.offset, len(entry.raw), "not a record")


def _lenient_record(entry: JsonEntry) -> AnyRecord | None:
    value = readable(entry)
    if value is None:
        return None
    record: AnyRecord = reader_of(text_of(value.get("type")) or "").fitting(value)
    return record


def readable(entry: JsonEntry) -> dict[str, Any] | None:
    """Return the object of a line that msgspec refuses, made safe to keep; None if it is not an object, or nested too
    deeply."""
    if not isinstance(entry.value, dict):
        return None
    try:
        return fields_of(_with_usage_in_known_words(with_whole_characters(_both_messages(entry))))
    except RecursionError:
        return None


def _with_usage_in_known_words(line: dict[str, Any]) -> dict[str, Any]:
    """Rename the usage to the API's names: then it fits as a whole, or not at all."""
    changed = {}
    if "usage" in line:
        changed["usage"] = _known_usage(line["usage"])
    message = line.get("message")
    if isinstance(message, dict) and "usage" in message:
        changed["message"] = {**message, "usage": _known_usage(message["usage"])}
    return {**line, **changed} if changed else line


def _known_usage(usage: Any) -> Any:
    return msgspec.to_builtins(message_usage(usage))


def _both_messages(entry: JsonEntry) -> dict[str, Any]:
    """Decode a line; a text and an object that are both called `message` are joined."""
    value = fields_of(entry.value)
    message = value.get("message")
    if not isinstance(message, dict) or "content" in message or entry.raw.count(b'"message"') < 2:
        return value
    try:
        pairs = json.loads(entry.raw, object_pairs_hook=_Pairs)
    except REFUSED:
        return value
    texts = [text for key, text in pairs if key == "message" and isinstance(text, str)]
    return {**value, "message": {**message, "content": texts[0]}} if texts else value


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object in order, including repeated ones."""


# ---------------------------------------------------------------- whose


class _Session(msgspec.Struct, gc=False):
    session_id: str | None = msgspec.field(name="sessionId", default=None)


_session = msgspec.json.Decoder(_Session)
_SESSION = re.compile(rb'"sessionId":"([^"\\]*)"')  # pattern for a line that is cut


def session_of_line(data: bytes) -> str | None:
    """Return the session that a line, or the beginning of one, names."""
    try:
        return _session.decode(data).session_id
    except REFUSED:
        match = _SESSION.search(data)
    return match[1].decode("utf-8", "replace") if match else None
