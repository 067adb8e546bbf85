"""The bodies of HTTP/1.1 messages: where they end, and what of them may be passed on.

A body is forwarded as it came, chunk sizes included; beside that its payload is handed out, for the log. Only what is
not yet a whole line is held back: a chunk's size, a trailer.
"""

import re
from abc import ABC, abstractmethod
from functools import lru_cache

HEAD_LIMIT = 64 << 10  # bytes of a head, and of all trailers
CHUNK_LINE_LIMIT = 4 << 10  # bytes of a chunk's size line, extensions included

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
TEXT = rb"[^\x00-\x08\x0a-\x1f\x7f]"  # bytes above 127 are nobody's business
FIELD = rb"%b++:%b*+" % (TOKEN, TEXT)

# A possessive repeat of a group ends with `|(?!)`: without it, Python before 3.11.5 adds to the match what the last,
# failed round has read (tests/test_patterns.py). An atomic group is right too, but takes 150 bytes of memory per round.
_QUOTED = rb'"(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\' + TEXT + rb'|(?!))*+"'
_TRAILER = re.compile(FIELD + rb"\r\n")
# RFC 9112 allows blanks before the semicolon; not all readers do.
_CHUNK = re.compile(
    rb"([0-9A-Fa-f]{1,15})(?:;[ \t]*%b++(?:[ \t]*=[ \t]*(?:%b++|%b))?|(?!))*+\r\n" % (TOKEN, TOKEN, _QUOTED)
)
_SHORT_LINE = 8  # bytes of a size line without extensions: chunks up to 16 MB
# No trailer may change what was understood before it came.
_NO_TRAILERS = frozenset(
    (
        b"connection", b"content-length", b"host", b"keep-alive", b"proxy-authorization",
        b"proxy-connection", b"te", b"transfer-encoding", b"upgrade",
    )
)  # fmt: skip

Piece = tuple[bytes, bool]  # payload, and whether it ends a chunk or, without chunks, a read


class MalformedError(ValueError):
    """Data that is not HTTP/1.1, or a form of it that two readers could understand in two ways."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


class MessageBody(ABC):
    """A body while it is read. `feed` returns the bytes that may be forwarded, and the bytes after the body. The caller
    takes the payload out of `pieces`."""

    __slots__ = ("done", "error", "pieces", "trailers")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.trailers = b""
        self.done = False
        self.error = ""  # why no more can be read; what `feed` gave was valid

    @abstractmethod
    def feed(self, data: bytes) -> tuple[bytes, bytes]: ...


class LengthBody(MessageBody):
    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        # As `Body.__init__`, without the call of it: there are two of these per call.
        self.pieces: list[Piece] = []
        self.trailers, self.error = b"", ""
        self._left = length
        self.done = not length

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        rest = b""
        if len(data) > self._left:
            data, rest = data[: self._left], data[self._left :]
        if data:
            self._left -= len(data)
            self.done = not self._left
            self.pieces.append((data, True))
        return data, rest


class UnboundedBody(MessageBody):
    """A body that ends when the connection does."""

    __slots__ = ()

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        if data:
            self.pieces.append((data, True))
        return data, b""


class ChunkedBody(MessageBody):
    __slots__ = ("_held", "_in_trailers", "_left")

    def __init__(self) -> None:
        super().__init__()
        self._held = b""  # the beginning of a line
        self._left = 0  # bytes of the chunk that are to come, and 2 for its CRLF
        self._in_trailers = False

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        if self._held:
            data, self._held = self._held + data, b""
        at, size = 0, len(data)
        try:
            while at < size and not self.done:
                end = self._data(data, at) if self._left else self._whole_chunks(data, at) or self._line(data, at)
                if end == at:
                    self._held = data[at:]
                    return data[:at], b""
                at = end
        except MalformedError as error:
            self.error = str(error)
            return data[:at], b""
        return (data, b"") if at == size else (data[:at], data[at:])

    def _whole_chunks(self, data: bytes, at: int) -> int:
        """Read the chunks that are here whole, up to the last one. Returns where they end; 0 if there is none."""
        end = 0
        while line_end := data.find(b"\n", at, at + _SHORT_LINE) + 1:
            size = _size_of(data[at:line_end])
            at = line_end + size + 2
            if not size or data[at - 2 : at] != b"\r\n":
                break
            self.pieces.append((data[line_end : at - 2], True))
            end = at
        return end

    def _data(self, data: bytes, at: int) -> int:
        """Read further in a chunk. Returns the end of what was read, `at` if that is nothing."""
        end = at + self._left - 2
        if at < end:
            piece = data[at:end]
            self._left -= len(piece)
            self.pieces.append((piece, self._left == 2))
            return at + len(piece)
        line_end = data[at : at + 2]
        if line_end == b"\r\n":
            self._left = 0
            return at + 2
        if line_end != b"\r":
            raise MalformedError("a chunk is longer than its size")
        return at

    def _line(self, data: bytes, at: int) -> int:
        """Read a chunk's size, or a trailer."""
        end = data.find(b"\n", at) + 1
        if not end:
            if len(data) - at > (HEAD_LIMIT if self._in_trailers else CHUNK_LINE_LIMIT):
                raise MalformedError("a line in a chunked body is too long")
            return at
        if self._in_trailers:
            self._trailer(data[at:end])
        else:
            self._chunk(data, at, end)
        return end

    def _chunk(self, data: bytes, at: int, end: int) -> None:
        match = _CHUNK.fullmatch(data, at, end)
        if match is None or end - at > CHUNK_LINE_LIMIT:
            raise MalformedError("the size of a chunk is not valid")
        size = int(match[1], 16)
        self._left = size + 2 if size else 0
        self._in_trailers = not size

    def _trailer(self, line: bytes) -> None:
        if line == b"\r\n":
            self.done = True
            return
        name = line.partition(b":")[0].lower()
        if not _TRAILER.fullmatch(line) or name in _NO_TRAILERS:
            raise MalformedError("a trailer is not valid")
        if len(self.trailers) + len(line) > HEAD_LIMIT:
            raise MalformedError("the trailers are longer than 64 KiB")
        self.trailers += line


@lru_cache(1024)
def _size_of(line: bytes) -> int:
    """Return the size that a chunk's line says; 0 for a line that is not valid, and for the last one."""
    match = _CHUNK.fullmatch(line)
    return int(match[1], 16) if match else 0
