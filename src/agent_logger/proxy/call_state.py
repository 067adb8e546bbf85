"""A call while its pieces arrive: its state, its times, and the facts for its records.

The pieces are fed in the order in which the relay saw them. Pieces may be missing if the disk was too slow; then the
call has `holes`, and nothing is refused. Bodies are collected without decoding, cut where their chunks end. The owner
of the call may take out the collected bytes, because a body need not fit into memory.
"""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from itertools import pairwise

from agent_logger.model import records
from agent_logger.model.records import Chunk, Timing
from agent_logger.proxy.head import is_interim


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

    def extend(self, pieces: Sequence[bytes], moments: Sequence[int], ends_chunk: Sequence[bool]) -> None:
        """Add several pieces, at least one: an answer has hundreds of short ones."""
        if not self.size:
            self.first_ns = next((ns for piece, ns in zip(pieces, moments, strict=True) if piece), moments[-1])
        self.size += sum(map(len, pieces))
        self.last_ns = moments[-1]
        self.pieces += pieces
        begins_chunk = [not self._inside, *ends_chunk[:-1]]
        self.chunks += sum(begins_chunk)
        if all(begins_chunk):
            self.times += moments
        else:
            self.times += [ns if begins else -1 for ns, begins in zip(moments, begins_chunk, strict=True)]
        self._inside = not ends_chunk[-1]

    def whole(self) -> bytes:
        """The bytes that have been collected."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    def take(self) -> tuple[list[bytes], list[int]]:
        """Take out the collected bytes; later pieces continue from there."""
        taken = self.pieces, self.times
        self.pieces, self.times = [], []
        return taken


MOST_INTERIM_BYTES = 1 << 20  # an upstream may send them without end, and all are in memory


class CallState:
    """The state of a call. `ns` is monotonic, as all times here; a call begins when the head of its request is
    complete."""

    state = CallPhase.SENDING
    answered_ns = ended_ns = -1
    head: bytes | None = None  # the head of the response
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

    def response_data(self, pieces: Sequence[bytes], moments: Sequence[int], ends_chunk: Sequence[bool]) -> None:
        self._go(CallEvent.RESPONSE_DATA)
        self.response.extend(pieces, moments, ends_chunk)

    def dropped(self) -> None:
        self.holes = True

    def end(self, ns: int, reason: str | None = None, trailers: bytes = b"") -> None:
        self._go(CallEvent.END)
        self.ended_ns, self.reason, self.response_trailers = ns, reason, trailers

    def timing(self) -> Timing:
        ttfb = _ms(self.answered_ns - self.began_ns) if self.answered_ns >= 0 else None
        return Timing(ttfb_ms=ttfb, total_ms=_ms(self.ended_ns - self.began_ns) if self.ended_ns >= 0 else None)

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


def chunk_records(chunks: Sequence[bytes], starts: Sequence[int], times: Iterable[str]) -> list[Chunk]:
    """Chunks as a record has them; the first one has `delta_ms` 0. `times`: those of `starts`."""
    each = zip(records.as_texts(chunks), _deltas(starts), times, strict=True)
    return [Chunk(ts=ts, delta_ms=delta, raw=text, raw_encoding=encoding) for (text, encoding), delta, ts in each]


def chunk_size_records(sizes: Iterable[int], starts: Sequence[int], times: Iterable[str]) -> list[Chunk]:
    """The same for a stream whose bytes are in a file."""
    each = zip(sizes, _deltas(starts), times, strict=True)
    return [Chunk(ts=ts, delta_ms=delta, bytes=size) for size, delta, ts in each]


def _deltas(starts: Sequence[int]) -> list[float]:
    pairs = pairwise([*starts[:1], *starts])
    return [round((ns - before) / 1e6, 3) if ns > before else 0.0 for before, ns in pairs]
