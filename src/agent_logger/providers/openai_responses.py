"""Answers of OpenAI's Responses API, over HTTP and over a WebSocket.

The last event of a stream holds the whole response, so the events before it mostly matter for streams that are cut. But
some backends leave `output` empty in the last event: then the items that came before count.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from agent_logger.providers.answer import Answer, AnswerFailure, Assembler, failure
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.token_counts import usage_of


class _Response(msgspec.Struct):
    """The fields of a response that are kept. The rest repeats the request: its instructions, its tools, its
    settings."""

    id: Any = UNSET
    object: Any = UNSET
    created_at: Any = UNSET
    status: Any = UNSET
    model: Any = UNSET
    output: Any = UNSET
    error: Any = UNSET
    incomplete_details: Any = UNSET
    service_tier: Any = UNSET
    usage: Any = UNSET

    def as_json(self) -> Json:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


class _Text(NamedTuple):
    """Where the text of a delta goes: a field of its item, or of a part in a list of the item."""

    field: str
    parts: str = ""
    kind: str = ""  # of a part that was not announced


_DELTAS: Mapping[str, _Text] = {
    "response.output_text.delta": _Text("text", "content", "output_text"),
    "response.refusal.delta": _Text("refusal", "content", "refusal"),
    "response.reasoning_text.delta": _Text("text", "content", "reasoning_text"),
    "response.reasoning_summary_text.delta": _Text("text", "summary", "summary_text"),
    "response.function_call_arguments.delta": _Text("arguments"),
    "response.custom_tool_call_input.delta": _Text("input"),
    "response.mcp_call_arguments.delta": _Text("arguments"),
    "response.code_interpreter_call_code.delta": _Text("code"),
}
_ITEMS = ("response.output_item.added", "response.output_item.done")
_PARTS = {
    "response.content_part.added": "content",
    "response.content_part.done": "content",
    "response.reasoning_summary_part.added": "summary",
    "response.reasoning_summary_part.done": "summary",
}
_BEGUN = ("response.created", "response.in_progress", "response.queued")
LAST = tuple(f"response.{name}" for name in ("completed", "incomplete", "failed", "cancelled", "done"))


class _Event(msgspec.Struct):
    type: str = ""
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0
    delta: str | None = None
    item: Json | None = None
    part: Json | None = None
    response: _Response | None = None


class _Item:
    """An output item, and the texts that came since it was announced: by field, and by part."""

    __slots__ = ("begun", "parts", "texts")

    def __init__(self, begun: Json) -> None:
        self.begun = begun
        self.parts: dict[tuple[str, int], Json] = {}
        self.texts: dict[tuple[_Text, int], list[str]] = {}

    def joined(self) -> Json:
        item = dict(self.begun)
        parts = {place: dict(part) for place, part in self.parts.items()}
        for (place, index), pieces in self.texts.items():
            into = parts.setdefault((place.parts, index), {"type": place.kind}) if place.parts else item
            into[place.field] = (text_of(into.get(place.field)) or "") + "".join(pieces)
        for name in dict.fromkeys(name for name, _ in parts):
            item[name] = [parts[place] for place in sorted(parts) if place[0] == name]
        return item


_event = msgspec.json.Decoder(_Event)
_response = msgspec.json.Decoder(_Response)
_object = msgspec.json.Decoder(Json)


class Responses(Assembler):
    event_types = frozenset((*_DELTAS, *_ITEMS, *_PARTS, *_BEGUN, *LAST, "error"))
    last = frozenset(LAST)

    def __init__(self) -> None:
        super().__init__()
        self._response: Json = {}
        self._items: dict[int, _Item] = {}

    def event(self, data: bytes) -> None:
        event = self.read(_event, data)
        if event is None:
            return
        place = _DELTAS.get(event.type)
        if place is not None:
            self._delta(event, place)
        elif event.type in _PARTS:
            self._part(event, _PARTS[event.type])
        elif event.type in _ITEMS:
            self._items[event.output_index] = _Item(event.item or {})
        elif event.type in _BEGUN:
            self._take(event.response)
        elif event.type in LAST:
            self._end(event.response)
        elif event.type == "error":
            self._fail(data)

    def whole(self, data: bytes) -> None:
        body = self.read(_response, data)
        if body is None:
            return
        if isinstance(body.output, list):
            self._end(body)
        else:
            self.ended = True
            self.fail(failure({"error": body.error}))
            self.damaged = self.damaged or not self.error

    def assemble(self) -> Answer:
        response = self._response
        output = response.get("output")
        if self._items and not (self.ended and output):
            response = {**response, "output": [self._items[index].joined() for index in sorted(self._items)]}
        if not response:
            return Answer()
        reason = text_of(fields_of(response.get("incomplete_details")).get("reason"))
        return Answer(
            message=response,
            message_id=text_of(response.get("id")),
            model=text_of(response.get("model")),
            stop_reason=reason or (text_of(response.get("status")) if self.ended else None),
            usage=usage_of(response.get("usage")),
            raw_usage=response.get("usage"),
            service_tier=text_of(response.get("service_tier")),
        )

    def _delta(self, event: _Event, place: _Text) -> None:
        if event.delta is None:
            self.damaged = True
            return
        index = event.summary_index if place.parts == "summary" else event.content_index
        self._item(event.output_index).texts.setdefault((place, index), []).append(event.delta)

    def _part(self, event: _Event, name: str) -> None:
        index = event.summary_index if name == "summary" else event.content_index
        item = self._item(event.output_index)
        item.parts[(name, index)] = event.part or {}
        if event.type.endswith(".done"):
            item.texts = {at: pieces for at, pieces in item.texts.items() if (at[0].parts, at[1]) != (name, index)}

    def _item(self, index: int) -> _Item:
        item = self._items.get(index)
        if item is None:
            self.damaged = True
            item = self._items[index] = _Item({})
        return item

    def _take(self, response: _Response | None) -> None:
        if response is None:
            self.damaged = True
        else:
            self._response = {**self._response, **response.as_json()}

    def _end(self, response: _Response | None) -> None:
        self.ended = True
        self._take(response)
        self.fail(failure(self._response))

    def _fail(self, data: bytes) -> None:
        """Take an error event. Over HTTP the event is the error itself; over a WebSocket it holds one."""
        fields = self.read(_object, data) or {}
        kind = text_of(fields.get("code")) or text_of(fields.get("type"))
        self.fail(failure(fields) or AnswerFailure(type=kind, message=text_of(fields.get("message"))))
