"""The lines of a rollout, decoded as far as they matter: most lines only repeat others for the screen."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from agent_logger.agents.codex.meta import CodexMeta, meta_of
from agent_logger.agents.objects import salvaged, shallow, time_of
from agent_logger.agents.source_files import File, raw_lines_of
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.lenient import REFUSED, fitting


class Info(msgspec.Struct, gc=False):
    """The counts of a `token_count` event. In both, `input_tokens` includes what was read from and written to the
    cache."""

    total_token_usage: Json | None = None
    last_token_usage: Json | None = None


class CodexEvent(msgspec.Struct, gc=False):
    """`event_msg` lines, of the types that matter."""

    type: str = ""
    info: Info | None = None  # a field of `token_count`
    turn_id: str | None = None
    error: Any = None


EVENTS = frozenset({"token_count", "task_started", "task_complete", "turn_complete", "turn_aborted"})


class CodexRecord(msgspec.Struct, gc=False):
    """`token_usage_record` lines."""

    usage: Json | None = None
    response_id: str | None = None


class CodexContext(msgspec.Struct, gc=False):
    """`turn_context` lines."""

    model: str | None = None
    service_tier: str | None = None
    turn_id: str | None = None


class Compacted(msgspec.Struct, gc=False):
    """`compacted` lines."""

    message: str | None = None


class CodexItem(msgspec.Struct, gc=False):
    """`response_item` lines, in the form of the responses API."""

    fields: Json


P = TypeVar("P")
AnyLine = CodexEvent | CodexRecord | CodexContext | Compacted | CodexItem | CodexMeta


# ---------------------------------------------------------------- lines as they are written


class _Line(msgspec.Struct, Generic[P], gc=False):
    payload: P
    timestamp: str | None = None


_DECODERS: Mapping[bytes | None, Callable[[bytes], _Line[Any]]] = {
    b"event_msg": msgspec.json.Decoder(_Line[CodexEvent]).decode,
    b"token_usage_record": msgspec.json.Decoder(_Line[CodexRecord]).decode,
    b"turn_context": msgspec.json.Decoder(_Line[CodexContext]).decode,
    b"compacted": msgspec.json.Decoder(_Line[Compacted]).decode,
}
_item = msgspec.json.Decoder(_Line[Json]).decode

# The beginning of a line says what it is: two thirds of a rollout are skipped without decoding.
_BEGINNING = re.compile(rb'\{"timestamp":"[^"\\]*",(?:"ordinal":\d+,)?"type":"(\w+)","payload":\{(?:"type":"(\w+)")?')
_RECORD = b'{"timestamp":'
_EVENTS = frozenset(name.encode() for name in EVENTS)


def lines_of(file: File, items: Callable[[], bool] = lambda: True) -> Iterator[tuple[datetime | None, AnyLine]]:
    """Yield the lines of the kinds above, in order, with their times; items only while `items()` is true.

    What cannot be read is left out.
    """
    for line in raw_lines_of(file):
        match = _BEGINNING.match(line)
        kind, inner = match.groups() if match else (None, None)
        if _is_passed_over(kind, inner, items) and line.find(_RECORD, 1) < 0:  # another record may be glued to it
            continue
        try:
            yield _whole(kind, line)
        except REFUSED:
            yield from _read_leniently(line)


def _is_passed_over(kind: bytes | None, inner: bytes | None, items: Callable[[], bool]) -> bool:
    if kind == b"response_item":
        return not items()
    return kind == b"world_state" or (kind == b"event_msg" and inner is not None and inner not in _EVENTS)


def _whole(kind: bytes | None, line: bytes) -> tuple[datetime | None, AnyLine]:
    """Decode a line of this kind. Raises those of `REFUSED` for a line of another kind, or one that does not fit."""
    if kind == b"response_item":
        item = _item(line)
        if shallow(item.payload, line) is None:
            raise ValueError("nested too deeply")
        return time_of(item.timestamp), CodexItem(item.payload)
    decode = _DECODERS.get(kind)
    if decode is None:
        raise ValueError("nothing that is read at once")
    decoded = decode(line)
    return time_of(decoded.timestamp), decoded.payload


# ---------------------------------------------------------------- lines that are not as they should be


def _read_leniently(line: bytes) -> Iterator[tuple[datetime | None, AnyLine]]:
    """Yield the parts of a line that fit, where the whole does not."""
    for value in salvaged(line):
        record = _lenient_line(value, fields_of(value.get("payload")))
        if record is not None:
            yield time_of(value.get("timestamp")), record


def _lenient_line(line: Json, payload: Json) -> AnyLine | None:
    if "payload" not in line:  # before 0.32 items had no envelope, and no time
        return CodexItem(line) if type(line.get("type")) is str else meta_of(line)
    match line.get("type"):
        case "response_item":
            return CodexItem(payload)
        case "event_msg":
            event = fitting(CodexEvent, payload)
            return event if event.type in EVENTS else None
        case "token_usage_record":
            return fitting(CodexRecord, payload)
        case "turn_context":
            return fitting(CodexContext, payload)
        case "compacted":
            return fitting(Compacted, payload)
        case "session_meta":
            return meta_of(line)
    return None
