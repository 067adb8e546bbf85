"""A call, as its pieces come: its state, its times, and what its records say of it.

A call is fed what the relay saw, in that order. Pieces may be missing where a disk was too slow: then nothing is
refused, the call just knows that it has `holes`. Bodies are collected as they came, cut where their chunks end; the
owner of the call may take out what has been collected, for bodies need not fit into memory.
"""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import NamedTuple

from agent_logger.model import records
from agent_logger.model.records import Chunk, Headers, Timing


class CallPhase(StrEnum):
    SENDING = "sending_request"
    WAITING = "awaiting_response"
    EARLY = "early_response"  # the request is not complete yet
    ANSWERING = "receiving_response"
    ENDED = "ended"


class CallEvent(IntEnum):
    REQUEST_DATA = 1
    REQUEST_END = 2
    INTERIM = 3  # a response of 1xx
    RESPONSE_HEAD = 4
    RESPONSE_DATA = 5
    END = 6


NEXT = {
    CallPhase.SENDING: {
        CallEvent.REQUEST_DATA: CallPhase.SENDING,
        CallEvent.REQUEST_END: CallPhase.WAITING,
        CallEvent.INTERIM: CallPhase.SENDING,
        CallEvent.RESPONSE_HEAD: CallPhase.EARLY,
        CallEvent.END: CallPhase.ENDED,
    },
    CallPhase.WAITING: {
        CallEvent.INTERIM: CallPhase.WAITING,
        CallEvent.RESPONSE_HEAD: CallPhase.ANSWERING,
        CallEvent.END: CallPhase.ENDED,
    },
    CallPhase.EARLY: {
        CallEvent.REQUEST_DATA: CallPhase.EARLY,
        CallEvent.REQUEST_END: CallPhase.ANSWERING,
        CallEvent.RESPONSE_DATA: CallPhase.EARLY,
        CallEvent.END: CallPhase.ENDED,
    },
    CallPhase.ANSWERING: {
        CallEvent.RESPONSE_DATA: CallPhase.ANSWERING,
        CallEvent.END: CallPhase.ENDED,
    },
    CallPhase.ENDED: {},
}


class Collected:
    """The bytes of one direction. `times` has, for each piece, when its chunk began, or -1 if the piece continues a
    chunk."""

    size = first_ns = last_ns = chunks = 0
    _inside = False

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.times: list[int] = []

    def add(self, data: bytes, ns: int, *, ends_chunk: bool = True) -> None:
        if not self.size:
            self.first_ns = ns
        self.size += len(data)
        self.last_ns = ns
        self.chunks += not self._inside
        self.pieces.append(data)
        self.times.append(-1 if self._inside else ns)
        self._inside = not ends_chunk

    def whole(self) -> bytes:
        """The bytes that have been collected."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    def take(self) -> tuple[list[bytes], list[int]]:
        """Take what has been collected; later pieces continue from there."""
        taken = self.pieces, self.times
        self.pieces, self.times = [], []
        return taken


MOST_INTERIM_BYTES = 1 << 20  # an upstream may send them without end, and all are in memory


class CallState:
    """The state of a call. `ns` is monotonic, as all times here; a call begins when the head of its request is
    complete."""

    state = CallPhase.SENDING
    answered_ns = ended_ns = -1
    head: bytes | None = None  # of the response
    request_trailers = response_trailers = b""
    reason: str | None = None
    holes = False
    _interim_bytes = 0

    def __init__(self, ns: int) -> None:
        self.began_ns = ns
        self.request, self.response = Collected(), Collected()
        self.interim: list[bytes] = []  # heads of 1xx

    def request_data(self, data: bytes, ns: int) -> None:
        self._go(CallEvent.REQUEST_DATA)
        self.request.add(data, ns)

    def request_end(self, trailers: bytes = b"") -> None:
        self._go(CallEvent.REQUEST_END)
        self.request_trailers = trailers

    def response_head(self, head: bytes, ns: int) -> None:
        if is_interim(head):
            self._go(CallEvent.INTERIM)
            self._interim_bytes += len(head)
            if self._interim_bytes <= MOST_INTERIM_BYTES:
                self.interim.append(head)
            else:
                self.dropped()
            return
        self._go(CallEvent.RESPONSE_HEAD)
        self.head, self.answered_ns = head, ns

    def response_data(self, data: bytes, ns: int, *, ends_chunk: bool = True) -> None:
        self._go(CallEvent.RESPONSE_DATA)
        self.response.add(data, ns, ends_chunk=ends_chunk)

    def dropped(self) -> None:
        self.holes = True

    def end(self, ns: int, reason: str | None = None, trailers: bytes = b"") -> None:
        self._go(CallEvent.END)
        self.ended_ns, self.reason, self.response_trailers = ns, reason, trailers

    def timing(self) -> Timing:
        ttfb = _ms(self.answered_ns - self.began_ns) if self.answered_ns >= 0 else None
        return Timing(
            ttfb_ms=ttfb, total_ms=_ms(self.ended_ns - self.began_ns) if self.ended_ns >= 0 else None
        )

    def outcome(self, *, stream_ended: bool | None) -> str | None:
        """Why the call ended otherwise than it should; `None` if it ended well. An answer may have ended before its
        call was cut. `stream_ended` is `None` where there is no end to look for."""
        if self.holes:
            return "dropped"
        return self.reason or ("no_stream_end" if stream_ended is False else None)

    def _go(self, event: CallEvent) -> None:
        state = NEXT[self.state].get(event)
        if state is None:
            self.holes = True
        else:
            self.state = state


def _ms(ns: int) -> float:
    return round(max(0, ns) / 1e6, 3)


# ---------------------------------------------------------------- heads


class Field(NamedTuple):
    """A line of a head. `plain`: name and value are enough to restore it exactly."""

    name: bytes
    value: bytes
    plain: bool


class StatusLine(NamedTuple):
    http: str | None
    status: int | None
    text: str | None
    plain: bool


def head_lines(head: bytes) -> list[bytes]:
    """The lines of a head, without the empty one at the end."""
    return head.removesuffix(b"\r\n").removesuffix(b"\r\n").split(b"\r\n")


def field_of(line: bytes) -> Field | None:
    """The field in a line; `None` if it is no field: a folded line, or one without a colon."""
    name, colon, value = line.partition(b":")
    if not colon or not name or name[0] in b" \t":
        return None
    stripped = value.strip(b" \t")
    plain = len(value) == len(stripped) + 1 and value[0] == 32 and line.isascii() and name.strip() == name
    return Field(name, stripped, plain)


def headers_of(fields: Iterable[tuple[str, str]]) -> tuple[Headers, bool]:
    """The headers as an object, and whether the object preserves the order of the fields."""
    fields = list(fields)
    headers: Headers = dict(fields)
    if len(headers) == len(fields):
        return headers, True  # no name came twice, so it is nearly always
    headers, in_order, last = {}, True, None
    for name, value in fields:
        earlier = headers.get(name)
        if earlier is None:
            headers[name] = value
        else:
            in_order = in_order and name == last
            headers[name] = [*earlier, value] if isinstance(earlier, list) else [earlier, value]
        last = name
    return headers, in_order


_STATUS = re.compile(rb"(HTTP/\d\.\d) (\d{3})(?: (.*))?", re.DOTALL)
_INTERIM = re.compile(rb"HTTP/\d\.\d 1(?!01)\d\d")


def is_interim(head: bytes) -> bool:
    """Whether a response is interim. 101 is not: another protocol follows it."""
    return _INTERIM.match(head) is not None


@lru_cache(64)
def status_line(line: bytes) -> StatusLine:
    match = _STATUS.fullmatch(line)
    if not match:
        return StatusLine(None, None, None, plain=False)
    text = match[3].decode("latin-1") if match[3] is not None else None
    return StatusLine(match[1].decode(), int(match[2]), text, plain=line.isascii())


def method_of(request_line: bytes) -> str:
    return request_line.partition(b" ")[0].decode("latin-1")


# ---------------------------------------------------------------- streams

_STREAMS = (
    "text/event-stream",
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonl",
)

_TYPE = rb'(?:^|[\r\n])(?:event: ?|data: ?\{ ?"type": ?")'
_ENDS = (
    (re.compile(rb"/v1/messages(?:\?|$)"), re.compile(_TYPE + rb"message_stop\b")),
    (re.compile(rb"/chat/completions(?:\?|$)"), re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]")),
    (re.compile(rb"/responses(?:\?|$)"), re.compile(_TYPE + rb"response\.(?:completed|failed|incomplete)\b")),
)


def is_stream(content_type: str) -> bool:
    """Whether a body is recorded chunk by chunk."""
    return content_type.partition(";")[0].strip().lower() in _STREAMS


def stream_end(path: bytes, content_type: str) -> re.Pattern[bytes] | None:
    """A pattern for the end of an event stream of this endpoint, for a stream that is too large to be read; `None` if
    we know of no such end."""
    if not content_type.lower().startswith("text/event-stream"):
        return None
    return next((end for endpoint, end in _ENDS if endpoint.search(path)), None)


def chunks_of(pieces: Sequence[bytes], times: Sequence[int]) -> tuple[list[bytes], list[int]]:
    """The whole chunks, and when each began."""
    if -1 not in times:
        return list(pieces), list(times)
    joined: list[list[bytes]] = []
    starts: list[int] = []
    for piece, ns in zip(pieces, times, strict=True):
        if ns >= 0 or not joined:
            joined.append([])
            starts.append(max(ns, 0))
        joined[-1].append(piece)
    return [b"".join(chunk) for chunk in joined], starts


def chunk_records(chunks: Iterable[bytes], starts: Sequence[int]) -> list[Chunk]:
    """Chunks as a record has them; the first one has `delta_ms` 0."""
    before = starts[0] if starts else 0
    sizes: list[Chunk] = []
    for chunk, ns in zip(chunks, starts, strict=True):
        text, encoding = records.as_text(chunk)
        sizes.append(Chunk(delta_ms=_ms(ns - before), raw=text, raw_encoding=encoding))
        before = ns
    return sizes


def told_sizes(sizes: Iterable[int], starts: Sequence[int]) -> list[Chunk]:
    """The same for a stream whose bytes are in a file."""
    before = starts[0] if starts else 0
    chunks: list[Chunk] = []
    for size, ns in zip(sizes, starts, strict=True):
        chunks.append(Chunk(delta_ms=_ms(ns - before), bytes=size))
        before = ns
    return chunks
