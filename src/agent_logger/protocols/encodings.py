"""Content encodings, undone on a copy of a body while it arrives.

Whatever an encoder flushed comes out of the `feed` that brought it, so the events of a compressed stream appear one by
one. A stream that is cut short is no error: what came is decoded, and `complete` says that the end is missing. Sizes
are bounded at every step, for a kilobyte can claim to be a gigabyte: output is taken in pieces, each is counted, and
the next one is not made once the limit is passed.
"""

import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT_BYTES = 64 << 20
MOST_ENCODINGS = 5  # of one body, as curl has it: each takes its memory
# What a decoder is given at once: a library copies what lies behind the end of a member,
# so a body of a million tiny ones would be copied a million times.
_STEP_BYTES = 16 << 10
_PIECE_BYTES = 64 << 10  # what is taken from it at once


class DecodeError(ValueError):
    """Bytes that are not in the encoding they claim, or that decode to too much.

    `decoded` is what the failed call had decoded before. Nothing more comes out of its decoder.
    """

    def __init__(self, reason: str, decoded: bytes = b"") -> None:
        super().__init__(reason)
        self.decoded = decoded


class _Stage(Protocol):
    """A single encoding. Its pieces are small, and made on demand."""

    complete: bool

    def pieces(self, data: bytes) -> Iterator[bytes]: ...


class _Gzip:
    def __init__(self) -> None:
        self.complete = True
        self._member = zlib.decompressobj(wbits=31)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            self.complete = False
            yield from inflated(self._member, data)
            self.complete = self._member.eof
            data = self._member.unused_data


class _Deflate:
    """The deflate encoding: the standard means zlib's format; some servers send the bare stream inside it."""

    def __init__(self) -> None:
        self.complete = True
        self._head = b""  # until there is enough to tell which
        self._stream: zlib._Decompress | None = None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None:
            self.complete = False
            self._head += data
            if len(self._head) < 2:
                return
            self._stream = zlib.decompressobj(wbits=15 if _is_zlib(self._head) else -15)
            data, self._head = self._head, b""
        if not self._stream.eof:
            yield from inflated(self._stream, data)
            self.complete = self._stream.eof
            data = self._stream.unused_data
        if self.complete and data:
            raise DecodeError("bytes after the end")


def _is_zlib(head: bytes) -> bool:
    """Whether this is zlib's format. Two bytes are enough: a bare stream that begins so would pad its first block with
    ones, and no encoder does."""
    return head[0] & 0x8F == 0x08 and int.from_bytes(head[:2], "big") % 31 == 0


class _Brotli:
    def __init__(self) -> None:
        self.complete = True
        self._stream = brotli.Decompressor()

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self._stream.is_finished():
            raise DecodeError("bytes after the end")
        self.complete = False
        # Also when it "can accept more data" it may hold output back: it is asked until nothing comes.
        while piece := self._stream.process(data, output_buffer_limit=_PIECE_BYTES):
            yield piece
            data = b""
        self.complete = self._stream.is_finished()


class _Zstd:
    def __init__(self) -> None:
        self.complete = True
        self._frame = zstd.ZstdDecompressor()

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._frame.eof:
                self._frame = zstd.ZstdDecompressor()
            self.complete = False
            yield self._frame.decompress(data, _PIECE_BYTES)
            while not (self._frame.eof or self._frame.needs_input):
                yield self._frame.decompress(b"", _PIECE_BYTES)
            self.complete = self._frame.eof
            data = self._frame.unused_data


_STAGES: Mapping[str, Callable[[], _Stage]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}


class Decoder:
    """Undoes the encodings of one body; `decoder` makes it."""

    def __init__(self, stages: Sequence[_Stage], limit: int) -> None:
        self._stages = stages  # in the order of undoing
        self._limit = limit
        self._made = [0] * len(stages)  # bytes, by stage: a bomb may go off in the first of two
        self._damage = ""

    @property
    def complete(self) -> bool:
        """Whether the encoded stream reached its own end. An empty stream counts as complete."""
        return not self._damage and all(stage.complete for stage in self._stages)

    def feed(self, data: bytes) -> bytes:
        """Decode all that can be decoded by now. Raises `DecodeError`, and from then on always."""
        if not self._stages:
            return data
        if self._damage:
            raise DecodeError(self._damage)
        decoded: list[bytes] = []
        try:
            decoded.extend(self._undo(0, data))
        except (DecodeError, zlib.error, brotli.error, zstd.ZstdError) as error:
            self._damage = str(error)
            raise DecodeError(self._damage, b"".join(decoded)) from error
        return b"".join(decoded)

    def _undo(self, number: int, data: bytes) -> Iterator[bytes]:
        if number == len(self._stages):
            yield data
            return
        for start in range(0, len(data), _STEP_BYTES):
            for piece in self._stages[number].pieces(data[start : start + _STEP_BYTES]):
                self._made[number] += len(piece)
                over = self._made[number] - self._limit
                yield from self._undo(number + 1, piece[: len(piece) - over] if over > 0 else piece)
                if over > 0:
                    raise DecodeError(f"decodes to more than {self._limit:,} bytes")


def decoder(content_encoding: str, limit: int = LIMIT_BYTES) -> Decoder | None:
    """Make a decoder for the value of a `Content-Encoding` header; `None` if we cannot undo it.

    `limit` bounds all that one encoding decodes to. A body without an encoding passes unbounded: it is in memory
    already.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > MOST_ENCODINGS or not all(name in _STAGES for name in names):
        return None
    return Decoder([_STAGES[name]() for name in reversed(names)], limit)


def decode(data: bytes, content_encoding: str, limit: int = LIMIT_BYTES) -> bytes:
    """Decode a body that is in memory, as far as it can be decoded.

    Raises `DecodeError` for an encoding we cannot undo, or for rubbish; then the error holds all that stands before the
    damage.
    """
    whole = _supported(content_encoding, limit)
    try:
        return whole.feed(data)
    except DecodeError as error:
        raise DecodeError(str(error), _before_damage(data, content_encoding, limit)) from error


def _before_damage(data: bytes, content_encoding: str, limit: int) -> bytes:
    """Decode again in steps, the last one byte by byte: a library that fails does not return what it had decoded in
    that call."""
    decoded: list[bytes] = []
    good = 0
    try:
        steps = _supported(content_encoding, limit)
        for good in range(0, len(data), _STEP_BYTES):
            steps.feed(data[good : good + _STEP_BYTES])
    except DecodeError:
        again = _supported(content_encoding, limit)
        try:
            decoded.append(again.feed(data[:good]))
            decoded.extend(again.feed(data[at : at + 1]) for at in range(good, len(data)))
        except DecodeError as error:
            decoded.append(error.decoded)
    return b"".join(decoded)


def _supported(content_encoding: str, limit: int) -> Decoder:
    if found_decoder := decoder(content_encoding, limit):
        return found_decoder
    raise DecodeError(f"unsupported encoding {content_encoding!r}")


def inflated(stream: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """Yield what `data` adds to a zlib stream, in pieces of bounded size, made on demand."""
    while True:
        piece = stream.decompress(data, _PIECE_BYTES)
        yield piece
        data = stream.unconsumed_tail
        if stream.eof or (not data and len(piece) < _PIECE_BYTES):
            return
