"""Messages out of a byte stream as AWS frames them, for the answers of Anthropic's models on Bedrock.

A message is its length and that of its headers, both in four bytes, a checksum, the headers, the payload and another
checksum. The payload is JSON: in `bytes`, as base64, the event that Anthropic's own API would send; or an error.
Checksums are not verified: the layers below have checked already what they could tell.
"""

import binascii
import struct
from typing import Any

import msgspec

from agent_logger.protocols.sse import ServerSentEvent

FIRST = 0  # the first byte of every stream, for no message has 16 MB
_PRELUDE, _CHECKSUM = 12, 4
_MOST = 1 << 24


class _Payload(msgspec.Struct):
    bytes: str | None = None
    message: Any = None


_payload = msgspec.json.Decoder(_Payload)


class MessageSplitter:
    """Splits a byte stream into messages, with the interface of `EventSplitter`. After a length that is impossible,
    nothing more is read."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_broken = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        self._held += b"" if self._is_broken else chunk
        events: list[ServerSentEvent] = []
        while len(self._held) >= _PRELUDE:
            whole, headers = struct.unpack_from(">II", self._held)
            if not _PRELUDE + headers + _CHECKSUM <= whole < _MOST:
                self._is_broken = True
                self._held.clear()
            elif len(self._held) < whole:
                break
            else:
                events.append(_event(bytes(self._held[_PRELUDE + headers : whole - _CHECKSUM])))
                del self._held[:whole]
        return events


def _event(payload: bytes) -> ServerSentEvent:
    try:
        decoded = _payload.decode(payload)
        if decoded.bytes is not None:
            return ServerSentEvent(b"", binascii.a2b_base64(decoded.bytes))
    except (ValueError, RecursionError):
        return ServerSentEvent(b"", payload)  # its reader reports the damage
    error = {"type": "exception", "message": decoded.message}
    return ServerSentEvent(b"error", msgspec.json.encode({"type": "error", "error": error}))
