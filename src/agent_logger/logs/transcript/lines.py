"""Lines from outside in a transcript: how a line becomes a record of a log, and a record becomes the line again.

A line that has the type of one of our own records is wrapped in a record, so every appended line is returned, and
nothing else is.
"""

from typing import Any

from agent_logger.model.records import KINDS, AnyRecord, Unknown, Verbatim, tag
from agent_logger.protocols.json_text import decode, encode

Message = dict[str, Any]  # a line, as JSON has it

OURS = frozenset(map(tag, KINDS["transcript"]))


def record_of(message: Message) -> AnyRecord:
    line = encode(message)
    return Verbatim(line=line.decode()) if message.get("type") in OURS else Unknown(line)


def message_of(record: object) -> Message | None:
    """Return the line of a record; None if the record is ours, also if it is newer than this."""
    if isinstance(record, Verbatim):
        return _object(record.line.encode())
    message = _object(record.raw) if isinstance(record, Unknown) else None
    return None if message is None or message.get("type") in OURS else message


def _object(line: bytes) -> Message | None:
    try:
        value = decode(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
