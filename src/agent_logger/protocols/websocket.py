"""A single direction of a tunnelled WebSocket: bytes as they passed become messages.

This module only watches; it is no peer. It answers nothing, closes nothing, and never raises: where the bytes stop
making sense, they are handed on as they came, with the reason, and so is all that follows.

Of the parameters of permessage-deflate, only its presence matters for inflating: a window of 32 KB reads every smaller
one, and a sender that forgets its window after each message simply does not refer to it.

A kilobyte can inflate to a megabyte. Messages that inflate to much more than came share an allowance for the whole
connection; beyond it a message is handed on as the bytes that came, and its inflated text is only searched.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agent_logger.protocols.encodings import inflated

# The one function of that package we need: in Python, XOR takes a hundred times as long (500 KB: 2 ms, not 0.02 ms).
try:
    from websockets.speedups import apply_mask
except ImportError:  # there is no binary package for this machine
    from websockets.utils import apply_mask

LIMIT_BYTES = 64 << 20
USUAL_GROWTH = 32  # a message that inflates to no more than so many times its bytes costs no allowance
ALLOWANCE_BYTES = 16 << 20  # inflated, beyond that growth, of all messages of one direction together
# The same of messages that are only searched; beyond it nothing is decoded any more.
SEARCHED_BYTES = 256 << 20
_LONGEST_CONTROL = 125
_FIN, _DEFLATED, _RESERVED, _OPCODE = 0x80, 0x40, 0x30, 0x0F
_FLUSH = b"\x00\x00\xff\xff"  # what every flush ends with; senders leave it out


class MessageKind(StrEnum):
    TEXT = "text"
    BINARY = "binary"
    CLOSE = "close"
    PING = "ping"
    PONG = "pong"
    DEFLATED = "deflated"
    UNDECODABLE = "undecodable"


_CONTINUATION = 0
_KINDS = {
    1: MessageKind.TEXT,
    2: MessageKind.BINARY,
    8: MessageKind.CLOSE,
    9: MessageKind.PING,
    10: MessageKind.PONG,
}


@dataclass(frozen=True, slots=True)
class WebSocketMessage:
    """A message. `data` is joined, unmasked and inflated; if it is undecodable, it is the bytes as they passed.

    A `DEFLATED` message is only joined and unmasked: it uses the window of the messages before it.

    `complete` is false if the message is undecodable or lacks its end, and `reason` says why; of a close, `reason` is
    the text.
    """

    kind: MessageKind
    data: bytes
    complete: bool = True
    code: int | None = None  # of a close that gives one
    reason: str = ""
    matched: bool = False  # what was searched for, in one that is `DEFLATED`


class MessageSearch(Protocol):
    """A search through a message that is not kept inflated."""

    def feed(self, piece: bytes) -> None: ...

    def finish(self) -> bool:
        """Whether the searched text was found."""


class _NoSearch:
    def feed(self, piece: bytes) -> None: ...

    def finish(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class _Frame:
    first: int  # the byte with the flags and the opcode
    payload: int  # where it starts
    end: int
    mask: bytes

    @property
    def kind(self) -> MessageKind | None:
        """The kind of message that the frame begins; `None` for a continuation."""
        return _KINDS.get(self.first & _OPCODE)

    @property
    def final(self) -> bool:
        return bool(self.first & _FIN)

    @property
    def control(self) -> bool:
        return self.first & _OPCODE >= 8


class _FrameError(Exception):
    """A frame at which a peer would close the connection."""


class WebSocketMessages:
    """A reader of one direction of a WebSocket. `masked` gives the direction: clients mask. `extensions` is the
    response's `Sec-WebSocket-Extensions`.

    `search` makes the object that searches a message that is not kept inflated.
    """

    def __init__(
        self,
        *,
        extensions: str = "",
        masked: bool,
        limit: int = LIMIT_BYTES,
        search: Callable[[], MessageSearch] = _NoSearch,
    ) -> None:
        names = [extension.split(";")[0].strip().lower() for extension in extensions.split(",")]
        self._inflate = zlib.decompressobj(wbits=-15) if "permessage-deflate" in names else None
        self._masked, self._limit = masked, limit
        self._bytes = bytearray()  # of the frame that is arriving
        self._expected = 0  # how many of them there will be, once that is known
        self._kind: MessageKind | None = None  # of the message that is arriving
        self._deflated = False
        self._message = bytearray()
        self._packed = bytearray()  # of a message that is deflated, as it came
        self._new_search = search
        self._search: MessageSearch | None = None  # while the message that is arriving is only searched
        self._allowance, self._searchable = ALLOWANCE_BYTES, SEARCHED_BYTES
        self.damage = ""  # why nothing is decoded any more
        self.hides = masked or self._inflate is not None  # what cannot be decoded cannot be searched either

    def feed(self, data: bytes) -> list[WebSocketMessage]:
        if self.damage:
            return self._undecodable(data)
        self._bytes += data
        if len(self._bytes) < self._expected:
            return []
        messages: list[WebSocketMessage] = []
        try:
            messages.extend(self._messages())
        except (_FrameError, zlib.error) as error:
            self.damage = str(error)
            messages += self._rest()
        return messages

    def finish(self) -> list[WebSocketMessage]:
        """End the connection: return what it cut in two. Nothing may be fed any more."""
        if self.damage:
            return []
        self.damage = "cut"
        try:
            if (frame := self._head()) and not frame.control and frame.payload < len(self._bytes):
                self._add(frame, self._payload(frame))
                self._bytes.clear()
        except (_FrameError, zlib.error) as error:
            self.damage = str(error)
        return self._rest()

    def _rest(self) -> list[WebSocketMessage]:
        """All that is held, and the reason why no more messages will be made of it."""
        rest = self._undecodable(bytes(self._bytes))
        if self._search:
            rest = self._undecodable(bytes(self._packed)) + rest
        elif self._kind:
            rest.insert(0, WebSocketMessage(self._kind, bytes(self._message), complete=False, reason=self.damage))
        self._forget_message()
        self._bytes = bytearray()
        return rest

    def _forget_message(self) -> None:
        self._kind, self._message, self._packed, self._search = None, bytearray(), bytearray(), None

    def _undecodable(self, data: bytes) -> list[WebSocketMessage]:
        return [WebSocketMessage(MessageKind.UNDECODABLE, data, complete=False, reason=self.damage)] if data else []

    def _messages(self) -> Iterator[WebSocketMessage]:
        self._expected = 0
        while frame := self._head():
            if frame.end > len(self._bytes):
                self._expected = frame.end
                return
            payload = self._payload(frame)
            if frame.control:
                yield _control(frame, payload)
            else:
                self._add(frame, payload)
            del self._bytes[: frame.end]
            if self._kind and frame.final and not frame.control:
                message = self._whole(self._kind)
                self._forget_message()
                yield message

    def _whole(self, kind: MessageKind) -> WebSocketMessage:
        if self._search:
            return WebSocketMessage(MessageKind.DEFLATED, bytes(self._packed), matched=self._search.finish())
        self._allowance -= max(0, self._growth())
        return WebSocketMessage(kind, bytes(self._message))

    def _growth(self) -> int:
        """How many bytes the message is larger than a usual inflated one."""
        return len(self._message) - USUAL_GROWTH * len(self._packed) if self._deflated else 0

    def _head(self) -> _Frame | None:
        """The frame that is arriving, once its head is complete."""
        data = self._bytes
        if len(data) < 2:
            return None
        self._check_flags(data[0], masked=bool(data[1] & 0x80))
        length, start = data[1] & 0x7F, 2
        if length >= 126:
            start = 4 if length == 126 else 10
            if len(data) < start:
                return None
            length = int.from_bytes(data[2:start], "big")
        mask, start = (bytes(data[start : start + 4]), start + 4) if self._masked else (b"", start)
        frame = _Frame(data[0], start, start + length, mask)
        if frame.control and length > _LONGEST_CONTROL:
            raise _FrameError("a control frame that is too long")
        if not frame.control and max(len(self._message), len(self._packed)) + length > self._limit:
            raise _FrameError(f"a message of more than {self._limit:,} bytes")
        return frame if len(data) >= start else None

    def _check_flags(self, first: int, *, masked: bool) -> None:
        opcode = first & _OPCODE
        if opcode not in _KINDS and opcode != _CONTINUATION:
            raise _FrameError(f"a frame of unknown opcode {opcode}")
        if first & _RESERVED or (first & _DEFLATED and not (self._inflate and opcode in (1, 2))):
            raise _FrameError("a frame with reserved bits set")
        if masked != self._masked:
            raise _FrameError("a masked frame from the server" if masked else "an unmasked frame from the client")
        if opcode >= 8 and not first & _FIN:
            raise _FrameError("a control frame in fragments")
        if opcode == _CONTINUATION and not self._kind:
            raise _FrameError("a continuation without a message")
        if opcode in (1, 2) and self._kind:
            raise _FrameError("a new message inside another")

    def _payload(self, frame: _Frame) -> bytes:
        payload = bytes(memoryview(self._bytes)[frame.payload : frame.end])
        return apply_mask(payload, frame.mask) if self._masked else payload

    def _add(self, frame: _Frame, payload: bytes) -> None:
        """Add a frame to the message that is arriving, or begin one."""
        if frame.kind:
            self._kind, self._deflated = frame.kind, bool(frame.first & _DEFLATED)
        if not self._deflated:
            self._message += payload
            return
        whole = frame.final and frame.end <= len(self._bytes)
        before = len(self._packed)
        self._packed += payload
        try:
            self._inflate_on(payload + _FLUSH if whole else payload)
        except _FrameError:
            del self._packed[before:]  # the frame is handed on as it is
            raise

    def _inflate_on(self, data: bytes) -> None:
        for piece in self._inflated(data):
            if self._search:
                self._look(self._search, piece)
                continue
            self._message += piece
            if self._growth() > self._allowance:
                self._search, inflated = self._new_search(), bytes(self._message)
                self._message = bytearray()
                self._look(self._search, inflated)
            elif len(self._message) > self._limit:
                del self._message[self._limit :]
                raise _FrameError(f"a message that inflates to more than {self._limit:,} bytes")

    def _look(self, search: MessageSearch, piece: bytes) -> None:
        self._searchable -= len(piece)
        if self._searchable < 0:
            raise _FrameError(f"messages that inflate to more than {SEARCHED_BYTES:,} bytes")
        search.feed(piece)

    def _inflated(self, data: bytes) -> Iterator[bytes]:
        assert self._inflate
        yield from inflated(self._inflate, data)
        while self._inflate.eof:  # a sender may end its stream and begin another
            data = self._inflate.unused_data
            self._inflate = zlib.decompressobj(wbits=-15)
            yield from inflated(self._inflate, data)


def _control(frame: _Frame, payload: bytes) -> WebSocketMessage:
    assert frame.kind
    if frame.kind is not MessageKind.CLOSE or len(payload) < 2:
        return WebSocketMessage(frame.kind, payload)
    code = int.from_bytes(payload[:2], "big")
    return WebSocketMessage(frame.kind, payload, code=code, reason=payload[2:].decode("utf-8", "replace"))
