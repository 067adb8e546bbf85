"""What a model answered, rejoined; and what the dialects share to do that.

An answer comes as one JSON body, as server-sent events, as messages of a WebSocket, or as a JSON array that grows.
A `Reader` finds out which, cuts it into JSON texts, and hands them to the `Assembler` of the endpoint's dialect.

Nothing here raises, whatever comes: what cannot be read is left out, and the answer is not `complete` then.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import msgspec

from agent_logger.model.session import Usage
from agent_logger.protocols.encodings import LIMIT_BYTES
from agent_logger.protocols.eventstream import FIRST, MessageSplitter
from agent_logger.protocols.sse import BOM, EventSplitter, ServerSentEvent
from agent_logger.providers.json_values import (
    Json,
    fields_of,
    nested_deeper,
    parse_odd,
    text_of,
    with_whole_characters,
)

MOST_NESTED = 128  # levels of a message that is kept: every later reader of the log has to be able to read it

_BLANK = BOM + b" \t\r\n"
DONE = b"[DONE]"  # ends OpenAI's streams, and gateways end others with it too

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFailure:
    """An error as the provider gave it."""

    type: str | None
    message: str | None

    @property
    def name(self) -> str:
        """A short name of the error."""
        return self.type or self.message or "error"


@dataclass(slots=True, kw_only=True)  # frozen it would take 3 us to make
class Answer:
    """What a model answered: the same whether it was streamed or not, however the bytes were cut."""

    message: Any | None = None  # in the provider's own form of an answer that is not streamed
    message_id: str | None = None
    model: str | None = None
    stop_reason: str | None = None  # the provider's own word
    usage: Usage | None = None  # of what is not complete, as far as it came
    raw_usage: Any | None = None  # as the provider sent it
    service_tier: str | None = None
    # It came to its own end, and all of it could be read; an error's body may do that too.
    complete: bool = False
    error: AnswerFailure | None = None
    # The last event of its dialect came, or all of a body that is not streamed; whether it could be read or not.
    ended: bool = field(default=False, compare=False)
    streamed: bool = field(default=False, compare=False)  # it came in events

    @property
    def says_nothing(self) -> bool:
        """Whether nothing of what came was understood."""
        parts = (self.message, self.error, self.stop_reason, self.raw_usage, self.message_id, self.model)
        return all(part is None for part in parts)


def tokens_per_second(answer: Answer, first_ns: int, last_ns: int, chunks: int) -> float | None:
    """Output tokens over the time from the first to the last byte of the body; `None` where that is meaningless."""
    if not answer.usage or not answer.complete or chunks < 2 or last_ns <= first_ns:
        return None  # a stream that was cut tells how many tokens it began with
    return round(answer.usage.output_tokens / ((last_ns - first_ns) / 1e9), 3)


class Assembler(ABC):
    """Puts one answer together. Each `event` is one JSON text of a stream; `whole` is a body that is not streamed."""

    # Types of events that matter; others may have any form.
    event_types: ClassVar[frozenset[str]] = frozenset()
    last: ClassVar[frozenset[str]] = frozenset()  # types of events that nothing comes after
    framed = True  # the body ended where its transport says it does; set before `whole` and `answer`

    def __init__(self) -> None:
        self.ended = False
        self.damaged = False
        self.error: AnswerFailure | None = None
        self._halves = False  # texts may hold halves of characters

    @abstractmethod
    def event(self, data: bytes) -> None: ...

    @abstractmethod
    def whole(self, data: bytes) -> None: ...

    def done(self) -> None:  # noqa: B027 - most dialects have an end of their own
        """Note that the stream had `[DONE]`."""

    @abstractmethod
    def assemble(self) -> Answer:
        """The answer, put together, without `complete` and `error`."""

    def answer(self) -> Answer:
        answer, error = self.assemble(), self.error
        answer.message, answer.raw_usage = self._shallow(answer.message), self._shallow(answer.raw_usage)
        if self._halves:
            for name in ("message", "raw_usage", "message_id", "model", "stop_reason", "service_tier"):
                setattr(answer, name, with_whole_characters(getattr(answer, name)))
            if error:
                texts = with_whole_characters([error.type, error.message])
                error = AnswerFailure(type=texts[0], message=texts[1])
        answer.complete, answer.error = self.ended and not self.damaged, error
        answer.ended = self.ended
        return answer

    def is_last(self, event: ServerSentEvent) -> bool:
        return event.data == DONE or not self.last.isdisjoint((event.name.decode("latin-1"), type_of(event.data)))

    def read(self, decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
        """Decode bytes. Returns `None`, and marks the answer as damaged, if they are not what is expected."""
        try:
            return decoder.decode(data)
        except (ValueError, RecursionError):
            return self._read_with_surrogates(decoder, data)

    def _read_with_surrogates(self, decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
        """Decode JSON with lone surrogates: some gateways cut a character in two, and its other half is in the next
        event."""
        try:
            read: T = msgspec.convert(parse_odd(data), decoder.type)
        except (ValueError, RecursionError):
            self.damaged = self.damaged or type_of(data) in ("", *self.event_types)
            return None
        self._halves = True
        return read

    def read_body(self, data: bytes, content: str) -> Json | None:
        """The body of an answer that is not streamed, if it has the list `content`; else the body is an error, or
        damaged."""
        body = self.read(_object, data)
        if body is None:
            return None
        self.ended = True
        self.fail(failure(body))
        if isinstance(body.get(content), list):
            return body
        self.damaged = self.damaged or not self.error
        return None

    def _shallow(self, value: Any) -> Any:
        """The value, if it can be written and read again; `None`, and a damaged answer, if it is nested too deep."""
        if isinstance(value, (dict, list)) and nested_deeper(value, MOST_NESTED):
            self.damaged = True
            return None
        return value

    def fail(self, error: AnswerFailure | None) -> None:
        self.error = self.error or error


class AnswerReader:
    """A reader of one answer. Feed it a body, its encodings undone, cut in any way; `finish` returns the answer.

    The first byte decides whether the body is a stream: gateways mislabel both streams and errors. With `messages`,
    each piece that is fed is a whole message of a WebSocket.
    """

    def __init__(self, assembler: Assembler, *, messages: bool = False) -> None:
        self._assembler = assembler
        self._events: EventSplitter | MessageSplitter | None = None
        self._pieces: list[bytes] = []  # of a body that is not a stream, or may not be
        self._is_json = False  # the body has begun, and is not a stream
        self._left = LIMIT_BYTES
        self._messages = self._is_streamed = messages

    def feed(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._assembler.damaged = True  # the log has it all; it is not worth the memory here
        elif data:
            self._take(data)

    def _take(self, data: bytes) -> None:
        # This is no attribute that is set: a reader that refers to itself would stay in memory until the garbage
        # collector comes, with its answer.
        if self._messages:
            self._assembler.event(data)
        elif self._events:
            self._stream(data)
        elif self._is_json:
            self._pieces.append(data)
        else:
            self._begin(data)

    def finish(self, *, framed: bool = True) -> Answer:
        """The answer from all that was fed. `framed`: the body ended where its transport says it does. Else it was cut
        somewhere, perhaps after all that matters: then only the last event of its dialect shows that it has ended."""
        self._assembler.framed = framed
        if self._pieces:
            self._assembler.whole(b"".join(self._pieces).removeprefix(BOM))
            self._pieces = []
        elif framed and isinstance(self._events, EventSplitter):
            # Some servers leave out the empty line behind the last event.
            self._give(filter(self._assembler.is_last, self._events.feed(b"\n\n")))
        answer = self._assembler.answer()
        answer.streamed = self._is_streamed
        return answer

    def partial_answer(self) -> Answer:
        """The answer from the events until now. More may be fed: this call closes nothing, however often it is made."""
        assembler = self._assembler
        ended, assembler.framed = assembler.ended, False
        answer = assembler.answer()
        answer.streamed = self._is_streamed
        assembler.ended = ended
        return answer

    def _begin(self, data: bytes) -> None:
        self._pieces.append(data)
        begun = data.lstrip(_BLANK)
        if not begun:
            return
        if begun[0] in b"{[":
            self._is_json = True
            return
        self._events = MessageSplitter() if begun[0] == FIRST else EventSplitter()
        data, self._pieces = b"".join(self._pieces), []
        self._stream(data)

    def _stream(self, data: bytes) -> None:
        assert self._events
        self._give(self._events.feed(data))

    def _give(self, events: Iterable[ServerSentEvent]) -> None:
        assembler = self._assembler
        take, last = assembler.event, {name.encode() for name in assembler.last}
        for name, data in events:
            self._is_streamed = True
            if data == DONE:
                assembler.done()
                continue
            take(data)
            if name in last:
                assembler.ended = True


# ---------------------------------------------------------------- reading what others send


class _Typed(msgspec.Struct, gc=False):
    type: str = ""


_typed = msgspec.json.Decoder(_Typed)
_object = msgspec.json.Decoder(Json)


def type_of(data: bytes) -> str:
    """Return the `type` of an object; empty if it has none, or cannot be read."""
    try:
        return _typed.decode(data).type
    except (ValueError, RecursionError):
        return ""


def failure(body: Any) -> AnswerFailure | None:
    """The error in a body or an event, in any vendor's form; `None` if there is no error."""
    fields = fields_of(body)
    # `object` and `detail` are gateways'.
    error = fields if fields.get("object") == "error" else fields.get("error") or fields.get("detail")
    if isinstance(error, str):
        return AnswerFailure(type=None, message=error)
    if not isinstance(error, dict):
        return None
    names = (error.get(key) for key in ("type", "status", "code"))  # Gemini's code is a number
    return AnswerFailure(type=next(filter(None, map(text_of, names)), None), message=text_of(error.get("message")))
