"""The lines of a rollout, decoded as far as they matter: most only repeat for the screen what others tell."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.formats.codex_meta import Meta, meta_of
from agent_logger.formats.objects import REFUSED, decoded, salvaged, time_of
from agent_logger.formats.source import File, raw_lines_of
from agent_logger.wire.answer import Json, count, fields_of, text_of


class Tokens(msgspec.Struct, gc=False):
    """As Codex counts: `input_tokens` holds what came from the cache and what went into it."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0


class Info(msgspec.Struct, gc=False):
    total_token_usage: Tokens | None = None
    last_token_usage: Tokens | None = None


class Event(msgspec.Struct, gc=False):
    """`event_msg`, of the types that matter"""

    type: str = ""
    info: Info | None = None  # of `token_count`
    turn_id: str | None = None
    error: Any = None


EVENTS = frozenset({"token_count", "task_started", "task_complete", "turn_complete", "turn_aborted"})


class Record(msgspec.Struct, gc=False):
    """`token_usage_record`"""

    usage: Tokens | None = None
    response_id: str | None = None


class Context(msgspec.Struct, gc=False):
    """`turn_context`"""

    model: str | None = None
    service_tier: str | None = None
    turn_id: str | None = None


class Compacted(msgspec.Struct, gc=False):
    """`compacted`"""

    message: str | None = None


class Item(msgspec.Struct, gc=False):
    """`response_item`, in the form of the responses API"""

    fields: Json


AnyLine = Event | Record | Context | Compacted | Item | Meta


class _Head(msgspec.Struct, gc=False):
    type: str = ""
    timestamp: str | None = None
    payload: msgspec.Raw = msgspec.Raw()


class _Kind(msgspec.Struct, gc=False):
    type: str = ""


_head = msgspec.json.Decoder(_Head).decode
_kind = msgspec.json.Decoder(_Kind).decode
_event = msgspec.json.Decoder(Event).decode
_record = msgspec.json.Decoder(Record).decode
_context = msgspec.json.Decoder(Context).decode
_compacted = msgspec.json.Decoder(Compacted).decode


# How lines begin that are not needed. Two thirds of a rollout are told from this, without decoding them.
_START = rb'\{"timestamp":"[^"\\]*",(?:"ordinal":\d+,)?"type":"'
_SCREEN = rb'event_msg","payload":\{"type":"(?!(?:token_count|task_|turn_))|world_state"'
_NO_MATTER = re.compile(_START + rb"(?:" + _SCREEN + rb")")
_NO_USAGE = re.compile(_START + rb"(?:" + _SCREEN + rb'|response_item")')
_RECORD = b'{"timestamp":"'


def _always() -> bool:
    return True


def lines_of(file: File, items: Callable[[], bool] = _always) -> Iterator[tuple[datetime | None, AnyLine]]:
    """Those of the kinds above, in order, with their times; items only while they are asked for.

    What cannot be read is left out.
    """
    for line in raw_lines_of(file):
        passed_over = _NO_MATTER if items() else _NO_USAGE
        if passed_over.match(line) and line.find(_RECORD, 1) < 0:  # else another record is glued to it
            continue
        try:
            head = _head(line)
            found = _line(head, line)
        except REFUSED:
            yield from _oddly(line)
        else:
            if found is not None:
                yield time_of(head.timestamp), found


def _line(head: _Head, line: bytes) -> AnyLine | None:
    match head.type:
        case "response_item":
            fields = decoded(head.payload, line)
            return Item(fields) if type(fields) is dict else None
        case "event_msg":
            return _event(head.payload) if _kind(head.payload).type in EVENTS else None
        case "token_usage_record":
            return _record(head.payload)
        case "turn_context":
            return _context(head.payload)
        case "compacted":
            return _compacted(head.payload)
        case "session_meta":
            return meta_of(decoded(line, line))
    return None


# ---------------------------------------------------------------- lines that are not as they should be


def _oddly(line: bytes) -> Iterator[tuple[datetime | None, AnyLine]]:
    """All of it that fits."""
    for value in salvaged(line):
        found = _odd_line(value, fields_of(value.get("payload")))
        if found is not None:
            yield time_of(value.get("timestamp")), found


def _odd_line(line: Json, payload: Json) -> AnyLine | None:
    match line.get("type"):
        case "response_item":
            return Item(payload)
        case "event_msg" if (kind := text_of(payload.get("type"))) in EVENTS:
            told = fields_of(payload.get("info"))
            info = Info(_tokens(told.get("total_token_usage")), _tokens(told.get("last_token_usage")))
            return Event(kind or "", info, text_of(payload.get("turn_id")), payload.get("error"))
        case "token_usage_record":
            return Record(_tokens(payload.get("usage")), text_of(payload.get("response_id")))
        case "turn_context":
            texts = (text_of(payload.get(name)) for name in ("model", "service_tier", "turn_id"))
            return Context(*texts)
        case "compacted":
            return Compacted(text_of(payload.get("message")))
        case "session_meta":
            return meta_of(line)
    return None


def _tokens(told: Any) -> Tokens | None:
    if type(told) is not dict:
        return None
    return Tokens(*(count(told, name) for name in Tokens.__struct_fields__))
