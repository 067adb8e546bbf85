"""Requests that begin as an earlier one: what is known of the beginning is not worked out again.

Agents send their whole history with every call. Of the last request of each conversation this module keeps the text,
the states of its fingerprint, what was redacted in it, its form as JSON, and the states of its HMAC behind some of its
messages. A request that begins with the same bytes, up to one of these places, is worked on from there; its record is
the same as without all this. Nothing is taken over that other credentials could change: see `Redactor.search`.

The request whose text has most in common is found by comparing the bytes: names of sessions and threads are not needed.
"""

import hmac
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

import msgspec

from agent_logger.model.redaction.redactor import KnownPrefix, Redactor, Search, Span, redacted_part
from agent_logger.providers.request_body import Api
from agent_logger.proxy.tracking.known_history import KnownHistory, RequestHistory

KNOWN_BYTES = 24 << 20  # of texts, and of their JSON: a dozen conversations of 1 MB
MOST_KNOWN = 1024
SMALLEST_KNOWN = 16 << 10  # a shorter one is worked on as fast
LARGEST_KNOWN = 8 << 20
WAYPOINT_BYTES = 128 << 10  # between two waypoints, but for the last ones
LAST_WAYPOINTS = 4  # a client may change the last messages of a history with the next request
KEY_BYTES = 64
MOST_COMPARED = 16  # requests that begin with the same `KEY_BYTES`

T = TypeVar("T")


class Waypoint(NamedTuple, Generic[T]):
    """A place behind a message, and what is known of the text before it."""

    end: int
    value: T


Waypoints = Sequence[Waypoint[T]]


@dataclass(frozen=True, slots=True, eq=False)
class KnownRequest:
    """A request that was recorded. `encoded`: its redacted text as JSON, quotes included; empty if not needed."""

    text: bytes
    history: KnownHistory | None
    search: Search
    hmacs: Waypoints[hmac.HMAC]
    encoded: bytes
    lengths: Waypoints[int]  # of the JSON, without the quote behind it

    @property
    def size(self) -> int:
        return len(self.text) + len(self.encoded)

    @property
    def core(self) -> int:
        """The bytes that the next request of the conversation is certain to have, and no other conversation has."""
        if self.history is None:
            return len(self.text) // 2
        ends = self.history.places.ends
        return ends[max(len(ends) - 1 - LAST_WAYPOINTS, 0)]


class RequestText:
    """The text of a request that is being recorded, with its encoding undone."""

    def __init__(self, text: bytes, earlier: KnownRequest | None = None, common: int = 0) -> None:
        """`earlier`: a request that has the first `common` bytes, too."""
        self.text = text
        self._earlier, self._common = earlier, common
        self.history = RequestHistory(text, earlier.history if earlier else None, common)
        self._learned: KnownHistory | None = None
        self._ends: Sequence[int] = ()  # of messages
        self._search = Search()
        self._hmacs: Waypoints[hmac.HMAC] = ()
        self._encoded = b""
        self._lengths: Waypoints[int] = ()

    def note_history(self, api: Api | None) -> None:
        """Note what was learned of the history, once it was read."""
        self._learned = self.history.learned(api)
        if self._learned:
            # Only an object is certain to end there, whatever follows.
            self._ends = [end for end in self._learned.places.ends if self.text[end - 1] == _BRACE]

    def hmac(self, key: bytes) -> str:
        """Compute the HMAC of the text."""
        waypoints = self._usable(self._earlier.hmacs) if self._earlier else []
        at, state = waypoints[-1] if waypoints else (0, keyed(key))
        state, text = state.copy(), memoryview(self.text)
        for end in self._ends_behind(at):
            state.update(text[at:end])
            waypoints.append(Waypoint(end, state.copy()))
            at = end
        state.update(text[at:])
        self._hmacs = _thinned(waypoints)
        return "v1:" + state.hexdigest()

    def search(self, redactor: Redactor) -> Search:
        """Find what is to be redacted."""
        earlier, prefix = self._earlier, None
        if earlier:
            size = len(earlier.text)
            tail = common_tail(earlier.text, self.text, min(size, len(self.text)) - self._common)
            prefix = KnownPrefix(size, earlier.search, self._common, tail)
        self._search = redactor.search(self.text, prefix)
        return self._search

    def encoded(self) -> msgspec.Raw | None:
        """Return the redacted text as JSON; `None` if it is no text. Call `search` first."""
        earlier, spans = self._earlier, self._search.spans
        waypoints = self._usable(earlier.lengths, _agreement(earlier.search.spans, spans)) if earlier else []
        at, length = waypoints[-1] if waypoints else (0, 1)
        pieces: list[bytes | memoryview] = [memoryview(earlier.encoded)[:length] if earlier and waypoints else b'"']
        begun = done = bisect_left(spans, at, key=attrgetter("start"))
        for end in [*self._ends_behind(at), len(self.text)]:
            while done < len(spans) and spans[done].end <= end:
                done += 1
            if done < len(spans) and spans[done].start < end:
                continue  # something is redacted on both sides of this place
            try:
                text = redacted_part(self.text, spans[begun:done], at, end).decode()
            except UnicodeDecodeError:
                return None
            pieces.append(memoryview(msgspec.json.encode(text))[1:-1])
            at, length, begun = end, length + len(pieces[-1]), done
            waypoints.append(Waypoint(at, length))
        self._encoded, self._lengths = b"".join([*pieces, b'"']), _thinned(waypoints[:-1])
        return msgspec.Raw(self._encoded)

    def learned(self) -> KnownRequest:
        """Return what is known now, for the next request."""
        return KnownRequest(self.text, self._learned, self._search, self._hmacs, self._encoded, self._lengths)

    @property
    def replaces(self) -> KnownRequest | None:
        """The known request that this one replaces: it belongs to the same conversation."""
        earlier = self._earlier
        return earlier if earlier and self._common >= earlier.core else None

    def _usable(self, waypoints: Waypoints[T], agreement: int = LARGEST_KNOWN) -> list[Waypoint[T]]:
        return [waypoint for waypoint in waypoints if waypoint.end < self._common and waypoint.end <= agreement]

    def _ends_behind(self, at: int) -> Iterator[int]:
        ends = self._ends
        last = ends[-LAST_WAYPOINTS] if len(ends) >= LAST_WAYPOINTS else 0
        for end in ends[bisect_right(ends, at) :]:
            if end >= last or end - at >= WAYPOINT_BYTES:
                yield end
                at = end


def _agreement(one: Sequence[Span], other: Sequence[Span]) -> int:
    """Return up to where the same is redacted in two texts."""
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return min((span.start for spans in (one, other) for span in spans[same : same + 1]), default=LARGEST_KNOWN)


def _thinned(waypoints: Sequence[Waypoint[T]]) -> Waypoints[T]:
    """Drop waypoints that are close to others, but for the last ones."""
    thinned: list[Waypoint[T]] = []
    for number, waypoint in enumerate(waypoints):
        before = thinned[-1].end if thinned else 0
        if number >= len(waypoints) - 2 * LAST_WAYPOINTS or waypoint.end - before >= WAYPOINT_BYTES:
            thinned.append(waypoint)
    return thinned


class KnownRequests:
    """The last requests of the conversations that were recorded most recently, up to a number of bytes."""

    def __init__(self, most_bytes: int = KNOWN_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._requests: OrderedDict[int, KnownRequest] = OrderedDict()  # by `id`
        self._alike: dict[bytes, list[KnownRequest]] = {}  # by their first bytes, the last one used last

    def begin(self, text: bytes) -> RequestText:
        """Begin to record a request. `remember` ends it."""
        best, common = None, 0
        for earlier in self._alike.get(text[:KEY_BYTES], ())[: -MOST_COMPARED - 1 : -1]:
            # Most have less in common than the best one so far, which shows at once.
            if earlier.text[common : common + KEY_BYTES] != text[common : common + KEY_BYTES]:
                continue
            if (head := common_head(earlier.text, text)) > common:
                best, common = earlier, head
            if common >= earlier.core:
                break
        return RequestText(text, best, common)

    def remember(self, request: RequestText) -> None:
        latest = request.learned()
        if replaced := request.replaces:
            self._forget(replaced)
        self._requests[id(latest)] = latest
        self._alike.setdefault(latest.text[:KEY_BYTES], []).append(latest)
        self._bytes += latest.size
        while len(self._requests) > 1 and (self._bytes > self._most or len(self._requests) > MOST_KNOWN):
            self._forget(next(iter(self._requests.values())))

    def _forget(self, request: KnownRequest) -> None:
        if self._requests.pop(id(request), None) is None:
            return
        self._bytes -= request.size
        key = request.text[:KEY_BYTES]
        alike = self._alike[key]
        alike.remove(request)
        if not alike:
            del self._alike[key]


# ---------------------------------------------------------------- bytes that two texts have in common


def common_head(one: bytes, other: bytes) -> int:
    view = memoryview(other)
    return _common(min(len(one), len(other)), lambda start, end: one.startswith(view[start:end], start))


def common_tail(one: bytes, other: bytes, most: int) -> int:
    """How many of the last bytes are the same, up to `most`."""
    view, shift = memoryview(other), len(one) - len(other)
    size = len(other)
    return _common(most, lambda start, end: one.startswith(view[size - end : size - start], size - end + shift))


def _common(most: int, is_same: Callable[[int, int], bool]) -> int:
    """How many bytes are the same, up to `most`. `is_same` compares a range of them."""
    at, step = 0, 1 << 16
    while step and at < most:
        if at + step <= most and is_same(at, at + step):
            at += step
        else:
            step //= 2
    return at


_BRACE = ord("}")


@lru_cache(4)
def keyed(key: bytes) -> hmac.HMAC:
    """An HMAC once it has read the key: for a short body that is a third of the work."""
    return hmac.new(key, digestmod="sha256")
