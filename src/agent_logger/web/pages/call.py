"""A call, prepared for display: what was asked, what is new in it, what was answered, and when."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from agent_logger.catalog.joining.calls import CallDetail, WireCall
from agent_logger.logs.wire_log.answers import body_of
from agent_logger.logs.wire_log.requests import SentMessage
from agent_logger.model.records import Headers
from agent_logger.model.redaction.redactor import hidden, hidden_header
from agent_logger.model.session import Block, Cost
from agent_logger.providers.blocks.base import value_of
from agent_logger.views.diffs import diff_of
from agent_logger.views.figures import stream_speed
from agent_logger.views.hide import hidden_value
from agent_logger.views.pieces import Code, Diff, Json, Piece, Prose
from agent_logger.views.request_diff import RequestDiff, request_diff
from agent_logger.web.pages.stream import StreamEvent, events_of

MOST_EVENTS = 2_000
LONGEST_BODY = 200_000  # characters that are laid out as JSON


@dataclass(frozen=True)
class CallView:
    detail: CallDetail
    calls: Sequence[WireCall] = ()  # all of the session
    since: CallDetail | None = None  # the call that it is compared with, if one was chosen
    cost: Cost | None = None

    @property
    def number(self) -> int:
        """The number of the call in the list, from 1."""
        return next((number for number, call in enumerate(self.calls, 1) if call.call == self.call.call), 1)

    @property
    def before(self) -> WireCall | None:
        return self.calls[self.number - 2] if self.number > 1 else None

    @property
    def after(self) -> WireCall | None:
        return self.calls[self.number] if self.number < len(self.calls) else None

    @cached_property
    def diff(self) -> RequestDiff | None:
        """The difference to the call that was chosen."""
        return request_diff(self.since, self.detail) if self.since else None

    @property
    def speed(self) -> float | None:
        return call_speed(self.call)

    @property
    def call(self) -> WireCall:
        return self.detail.call

    @property
    def request_headers(self) -> list[tuple[str, str]]:
        return header_rows(self.detail.request.headers)

    @property
    def response_headers(self) -> list[tuple[str, str]]:
        return header_rows(self.detail.response.headers if self.detail.response else None)

    @property
    def body(self) -> Piece:
        return body_piece(body_of(self.detail.request))

    @property
    def answer(self) -> list[Piece]:
        """The answer: the message that the recorder reassembled, otherwise the body."""
        response = self.detail.response
        if response is None:
            return []
        message = value_of(response.message) if response.message else None
        return [Json(hidden_value(message))] if message is not None else [body_piece(body_of(response))]

    @property
    def events(self) -> list[StreamEvent]:
        response, websocket = self.detail.response, self.detail.request.transport == "websocket"
        return list(islice(events_of(response, websocket=websocket), MOST_EVENTS)) if response else []

    @property
    def system(self) -> Piece | None:
        request = self.detail.request_view
        return Prose(hidden(request.system)) if request and request.system else None

    @property
    def tools(self) -> list[tuple[str, Piece]]:
        request = self.detail.request_view
        return [(name, Json(hidden_value(tool))) for name, tool in request.tools.items()] if request else []

    @property
    def messages(self) -> list[tuple[str, list[Piece]]]:
        request = self.detail.request_view
        return [message_pieces(message) for message in request.messages] if request else []

    @property
    def new_messages(self) -> list[tuple[str, list[Piece]]]:
        return [message_pieces(message) for message in self.detail.changes.messages] if self.detail.changes else []

    @property
    def system_diff(self) -> Diff | None:
        if self.detail.changes is None or (change := self.detail.changes.system) is None:
            return None
        return diff_of("system prompt", [(hidden(change.before or ""), hidden(change.after or ""))])


def call_speed(call: WireCall) -> float | None:
    """Output tokens per second, where the answer was a stream that took a while."""
    tokens = call.usage.output_tokens if call.usage and call.tokens_per_second else None
    return stream_speed(tokens, call.stream_seconds)


def header_rows(headers: Headers | None) -> list[tuple[str, str]]:
    rows = []
    for name, value in (headers or {}).items():
        rows += [(name, hidden_header(name, text)) for text in ([value] if isinstance(value, str) else value)]
    return rows


def body_piece(body: bytes) -> Piece:
    text = hidden(body.decode("utf-8", "replace"))
    if text[:1] not in ("{", "[") or len(text) > LONGEST_BODY:
        return Code(text)
    try:
        return Json(json.loads(text))
    except (ValueError, RecursionError):
        return Json(text)


def message_pieces(message: SentMessage) -> tuple[str, list[Piece]]:
    return message.role, [_piece(block) for block in message.blocks]


def _piece(block: Block) -> Piece:
    if block.kind in ("text", "thinking"):
        return Prose(hidden(block.text))
    if block.kind == "tool_result":
        return Code(hidden(block.text))
    return Json(hidden_value(block.raw if block.raw is not None else {"name": block.name, "input": block.input}))
