"""Answers of Anthropic's Messages API."""

from typing import Any

import msgspec

from agent_logger.providers.answer import Answer, Assembler, failure
from agent_logger.providers.json_values import Json, fields_of, parsed, text_of
from agent_logger.providers.token_counts import usage_of


class _Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None


class _Event(msgspec.Struct, gc=False):
    """What the many small events say; the few others are decoded again, as a whole."""

    type: str = ""
    index: int = 0
    delta: _Delta | None = None


_event = msgspec.json.Decoder(_Event)
_object = msgspec.json.Decoder(dict[str, Any])

_BEGUN: dict[str, Json] = {  # what a block was whose beginning is missing
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
    "partial_json": {"type": "tool_use", "input": {}},
}


class _Block:
    """A content block, and the pieces of its texts that came since it began."""

    __slots__ = ("begun", "pieces")

    def __init__(self, begun: Json) -> None:
        self.begun = begun
        self.pieces: dict[str, list[str]] = {}

    def add(self, name: str, piece: str) -> None:
        if pieces := self.pieces.get(name):
            pieces.append(piece)
        else:
            self.pieces[name] = [piece]

    def add_other(self, delta: Json) -> None:
        """Add citations, signatures, and fields newer than this code: texts are appended, anything else is replaced."""
        for name, value in delta.items():
            if name == "citation":
                cited = self.begun.get("citations")
                self.begun["citations"] = [*(cited if isinstance(cited, list) else ()), value]
            elif isinstance(value, str) and name not in ("type", "signature"):
                self.add(name, value)
            elif name != "type":
                self.begun[name] = value

    def joined(self) -> Json:
        block = dict(self.begun)
        for name, pieces in self.pieces.items():
            added = "".join(pieces)
            if name == "partial_json":
                block.update(_input(added))
            else:
                block[name] = (text_of(block.get(name)) or "") + added
        return block


def _input(partial_json: str) -> Json:
    """The input of a tool. JSON that was cut, or that the model wrote wrong, stays text."""
    try:
        return {"input": parsed(partial_json)} if partial_json else {}
    except (ValueError, RecursionError):
        return {"partial_json": partial_json}


class AnthropicMessages(Assembler):
    event_types = frozenset(
        (
            "message_start",
            "message_delta",
            "message_stop",
            "content_block_start",
            "content_block_delta",
            "error",
        )
    )
    last = frozenset(("message_stop",))

    def __init__(self) -> None:
        super().__init__()
        self._message: Json | None = None
        self._blocks: dict[int, _Block] = {}
        self._usage: Json | None = None

    def event(self, data: bytes) -> None:
        event = self.read(_event, data)
        if event is None:
            return
        if event.type == "content_block_delta":
            delta, block = event.delta, self._blocks.get(event.index)
            if delta and block and delta.text is not None:  # nearly every event is one of these
                block.add("text", delta.text)
            else:
                self._delta(event, data)
        elif event.type == "message_stop":
            self.ended = True
        elif event.type in self.event_types and (fields := self.read(_object, data)) is not None:
            self._other(event, fields)

    def whole(self, data: bytes) -> None:
        if (body := self.read_body(data, "content")) is not None:
            self._start(body)

    def assemble(self) -> Answer:
        if self._message is None:
            return Answer()
        message = self._message
        if self._blocks:
            message = {**message, "content": [self._blocks[index].joined() for index in sorted(self._blocks)]}
        if self._usage is not None:
            message["usage"] = self._usage
        return Answer(
            message=message,
            message_id=text_of(message.get("id")),
            model=text_of(message.get("model")),
            stop_reason=text_of(message.get("stop_reason")),
            usage=usage_of(self._usage),
            raw_usage=self._usage,
            service_tier=text_of((self._usage or {}).get("service_tier")),
        )

    def _delta(self, event: _Event, data: bytes) -> None:
        delta = event.delta
        if delta is None:
            self.damaged = True
        elif delta.text is not None:
            self._block(event.index, "text").add("text", delta.text)
        elif delta.partial_json is not None:
            self._block(event.index, "partial_json").add("partial_json", delta.partial_json)
        elif delta.thinking is not None:
            self._block(event.index, "thinking").add("thinking", delta.thinking)
        elif (fields := self.read(_object, data)) is not None:
            self._block(event.index, "text").add_other(fields_of(fields.get("delta")))

    def _block(self, index: int, name: str) -> _Block:
        block = self._blocks.get(index)
        if block is None:
            self.damaged = True
            self._begin()
            block = self._blocks[index] = _Block(dict(_BEGUN[name]))
        return block

    def _other(self, event: _Event, fields: Json) -> None:
        if event.type == "message_start":
            self._start(fields_of(fields.get("message")))
        elif event.type == "content_block_start":
            self._begin()
            self._blocks[event.index] = _Block(fields_of(fields.get("content_block")))
        elif event.type == "message_delta":
            self._end(fields)
        else:
            self.fail(failure(fields))

    def _start(self, message: Json) -> None:
        self._message = message
        self._count(message.get("usage"))

    def _end(self, fields: Json) -> None:
        """Take the end of a message. Beside `delta` and `usage` the event has the fields that a whole message has at
        its top."""
        message = self._begin()
        self._count(fields.pop("usage", None))
        del fields["type"]
        message.update(fields_of(fields.pop("delta", None)))
        message.update(fields)

    def _begin(self) -> Json:
        if self._message is None:
            self.damaged = True
            self._message = {"type": "message", "role": "assistant", "content": []}
        return self._message

    def _count(self, usage: Any) -> None:
        """Take the counts of an event. Those of a later event are totals; null says nothing."""
        if isinstance(usage, dict):
            counts = self._usage or {}
            news = {name: value for name, value in usage.items() if value is not None or name not in counts}
            self._usage = {**counts, **news}
