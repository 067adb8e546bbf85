"""HTTP/1.1 between two peers, read strictly and passed on as it came.

Nothing is normalised: a valid message is forwarded byte for byte, an invalid one is an error, for a guess of ours could
differ from the guess of the next reader (that difference is request smuggling). So there are no lenient cases: lines
end in CRLF, a body has one length or one chunking, names are tokens, nothing is folded. (`httptools` is lenient in
places; what it accepts would have to be checked again.)

Readers hold back what is not yet a whole line (of a head, a chunk size, a trailer) and nothing else.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from agent_logger.protocols.http_bodies import (
    FIELD,
    HEAD_LIMIT,
    TEXT,
    TOKEN,
    ChunkedBody,
    LengthBody,
    MalformedError,
    MessageBody,
    UnboundedBody,
)

_AUTHORITY = re.compile(rb"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}")
_REQUEST = re.compile(rb"(%b{1,32}) ([\x21-\x7e]+) HTTP/(\d)\.(\d)" % TOKEN)
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: %b*)?" % TEXT)
_BARE_LF = re.compile(rb"(?<!\r)\n")
_LENGTH_DIGITS = 18
_FIRST_LINES_KEPT = 256  # a client asks for the same few paths all the time


# ---- heads

# Headers that mean something to a relay. All others are passed on unread.
HOST, CONNECTION, HOP, LENGTH, CODING, UPGRADE, ORIGIN, FETCH_SITE, PROXY_AUTHORIZATION = range(1, 10)
_KINDS = {
    b"host": HOST,
    b"connection": CONNECTION,
    b"keep-alive": HOP,
    b"proxy-connection": HOP,
    b"proxy-authorization": PROXY_AUTHORIZATION,
    b"te": HOP,
    b"content-length": LENGTH,
    b"transfer-encoding": CODING,
    b"upgrade": UPGRADE,
    b"origin": ORIGIN,
    b"sec-fetch-site": FETCH_SITE,
}
_ESSENTIAL = {b"host", b"content-length", b"transfer-encoding"}  # no `Connection` may name these
_NONE: list[bytes] = []
_NO_OPTIONS: frozenset[bytes] = frozenset()
_NOT_NAMES = frozenset((b"", b"close", b"keep-alive", b"connection"))

# One expression for all lines of a head: each must be valid. Then every CRLF begins a line, and others find
# those that matter. What a head costs does not depend on whether it was seen before.
_LINES = re.compile(rb"\r\n(?:%b\r\n|(?!))*+\r\n" % FIELD)


def _lines_named(names: Iterable[bytes]) -> re.Pattern[bytes]:
    initials = b"".join({name[:1] + name[:1].upper() for name in names})  # most lines have others
    return re.compile(rb"\r\n(?=[%b])((?i:%b)):(%b*+)" % (initials, b"|".join(names), TEXT))


_MATTERS = _lines_named(_KINDS)
_BETWEEN_KINDS = frozenset((CONNECTION, HOP, PROXY_AUTHORIZATION))  # between two peers only
_BETWEEN = _lines_named([name for name, kind in _KINDS.items() if kind in _BETWEEN_KINDS])
_HOST = _lines_named([b"host"])


class Head:
    """The head of a request or response: its first line, and those header lines that matter here."""

    __slots__ = ("_values", "first", "minor", "options", "raw")

    def __init__(self, raw: bytes, first: bytes, minor: int) -> None:
        self.raw = raw  # to the empty line, included
        self.first, self.minor = first, minor
        if not _LINES.fullmatch(raw, len(first)):
            raise MalformedError("a header line is not valid")
        self._values: dict[int, list[bytes]] = {}
        for name, value in _MATTERS.findall(raw, len(first)):
            self._values.setdefault(_KINDS[name.lower()], []).append(value.strip(b" \t"))
        self.options = _options(self._values[CONNECTION]) if CONNECTION in self._values else _NO_OPTIONS

    def values(self, kind: int) -> list[bytes]:
        return self._values.get(kind, _NONE)

    def body(self) -> "MessageBody | None":
        """The body as `Transfer-Encoding` or `Content-Length` frames it; `None` if there is neither."""
        lengths, codings = self._values.get(LENGTH), self._values.get(CODING)
        if codings:
            if lengths:
                raise MalformedError("both Content-Length and Transfer-Encoding")
            if len(codings) > 1 or codings[0].lower() != b"chunked" or not self.minor:
                raise MalformedError("a Transfer-Encoding other than chunked, or in HTTP/1.0")
            return ChunkedBody()
        if not lengths:
            return None
        if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > _LENGTH_DIGITS:
            raise MalformedError("Content-Length is not one number")
        return LengthBody(int(lengths[0]))

    def forwarded(self, first: bytes, *, host: bytes = b"", upgrade: bool = False) -> bytes:
        """The head for the next hop: without the headers that are between two peers only, and with another `Host`."""
        lines = self.raw[len(self.first) :]
        if not _BETWEEN_KINDS.isdisjoint(self._values):
            lines = _BETWEEN.sub(_keep_upgrade if upgrade else b"", lines)
        if self.options:
            lines = self._without_named(lines, upgrade)
        if host and (match := _HOST.search(lines)):
            lines = b"%b: %b%b" % (lines[: match.end(1)], host, lines[match.end() :])
        return first + lines

    def _without_named(self, lines: bytes, upgrade: bool) -> bytes:
        """The lines without the headers that `Connection` names."""
        named = self.options - _NOT_NAMES - ({b"upgrade"} if upgrade else set())
        if named & _ESSENTIAL:
            raise MalformedError("Connection names a header that is not between two peers")
        if not named:
            return lines
        remaining = [line for line in lines.split(b"\r\n") if line.partition(b":")[0].lower() not in named]
        return b"\r\n".join(remaining)


def _options(values: list[bytes]) -> frozenset[bytes]:
    """What `Connection` lists, in lower case."""
    return frozenset(option.strip(b" \t").lower() for value in values for option in value.split(b","))


def _keep_upgrade(line: re.Match[bytes]) -> bytes:
    """The part of a hop-by-hop header line that stays: of `Connection`, the word `upgrade`."""
    options = [option.strip(b" \t") for option in line[2].split(b",")]
    remaining = [option for option in options if option.lower() == b"upgrade"]
    if line[1].lower() != b"connection" or not remaining:
        return b""
    return line[0] if remaining == options else b"\r\n%b: %b" % (line[1], remaining[0])


def head_end(data: bytes) -> int:
    """Where the head at the start of `data` ends; -1 if it is not whole yet."""
    end = data.find(b"\r\n\r\n")
    if end > HEAD_LIMIT or (end < 0 and len(data) > HEAD_LIMIT):
        raise MalformedError("the head is longer than 64 KiB", 431)
    if end < 0 and _BARE_LF.search(data):
        raise MalformedError("a line ends in LF without CR")
    return end + 4 if end >= 0 else -1


@lru_cache(_FIRST_LINES_KEPT)
def _request_line(line: bytes) -> tuple[bytes, bytes, int]:
    match = _REQUEST.fullmatch(line)
    if match is None:
        raise MalformedError("the request line is not valid")
    method, target, major, minor = match.groups()
    if major != b"1" or minor not in b"01":
        raise MalformedError("not HTTP/1.0 or HTTP/1.1", 505)
    if method == b"CONNECT":
        if not _AUTHORITY.fullmatch(target):
            raise MalformedError("the target of CONNECT must be host:port")
    elif b"#" in target or not (target.startswith(b"/") or target[:7].lower() == b"http://"):
        raise MalformedError("the target must be a path, or a URL that begins with http://")
    return method, target, int(minor)


@lru_cache(_FIRST_LINES_KEPT)
def _status_line(line: bytes) -> tuple[int, int]:
    match = _STATUS.fullmatch(line)
    if match is None:
        raise MalformedError("the status line is not valid")
    return int(match[1]), int(match[2])


class RequestHead(Head):
    __slots__ = ("framing", "method", "target", "websocket")

    def __init__(self, raw: bytes) -> None:
        first = raw[: raw.find(b"\r\n")]
        self.method, self.target, minor = _request_line(first)
        super().__init__(raw, first, minor)
        self.framing = self.body()
        self.websocket = b"upgrade" in self.options and self._asks_for_websocket()

    def _asks_for_websocket(self) -> bool:
        """Whether the request asks for a WebSocket. No other upgrade is passed on: what could be spoken after one (h2c)
        would pass unread."""
        is_asked = [value.lower() for value in self.values(UPGRADE)] == [b"websocket"] and b"upgrade" in self.options
        return is_asked and self.method == b"GET" and self.minor == 1 and self.framing is None

    @property
    def is_for_proxy(self) -> bool:
        """Whether the client takes us for a proxy: it asks for a tunnel, or its target is a URL."""
        return not self.target.startswith(b"/")

    @property
    def closes(self) -> bool:
        """Whether the client expects the connection to end with the response."""
        return not self.minor or b"close" in self.options


# ---- responses


class ResponseReader:
    """A reader of the answer to one request, interim responses included.

    `feed` returns what the client may have. What was read meanwhile is in `heads` and `pieces` until it is taken.
    """

    final: Head | None = None
    body: MessageBody | None = None
    status = 0
    tunnel = False  # it was 101: what follows is not HTTP
    error = ""
    rest = b""  # what follows the response
    _buffer = b""

    def __init__(self, method: bytes, *, websocket: bool = False) -> None:
        self.heads: list[Head] = []
        self._method, self._websocket = method, websocket

    @property
    def done(self) -> bool:
        return self.body is not None and self.body.done

    @property
    def keeps(self) -> bool:
        """Whether the upstream's connection may carry another request."""
        final = self.final
        return final is not None and self.delimited and not self.rest and b"close" not in final.options

    @property
    def delimited(self) -> bool:
        """Whether the client can tell where the response ends without the connection ending, and that the connection
        may stay."""
        return self.final is not None and self.final.minor == 1 and not isinstance(self.body, UnboundedBody)

    def feed(self, data: bytes) -> bytes:
        if self.body is not None:
            data, self.rest = self.body.feed(data)
            self.error = self.body.error
            return data
        data, self._buffer = self._buffer + data, b""
        out = b""
        try:
            while self.final is None and (end := head_end(data)) > 0:
                out += self._head(data[:end])
                data = data[end:]
        except MalformedError as error:
            self.error = str(error)
            return out
        if self.tunnel:
            self.rest = data
        elif self.final is None:
            self._buffer = data
        else:
            return out + self.feed(data)
        return out

    def _head(self, raw: bytes) -> bytes:
        first = raw[: raw.find(b"\r\n")]
        minor, self.status = _status_line(first)
        head = Head(raw, first, minor)
        forwarded = head.forwarded(head.first, upgrade=self._websocket)
        self.heads.append(head)
        if self.status >= 200:
            self.final, self.body = head, self._body(head)
        elif self.status == 101:
            if not self._websocket:
                raise MalformedError("status 101 without an upgrade request")
            self.final, self.tunnel = head, True
        return forwarded

    def _body(self, head: Head) -> MessageBody:
        body = head.body()
        if self._method == b"HEAD" or self.status in (204, 304):
            return LengthBody(0)
        return body if body is not None else UnboundedBody()

    def eof(self) -> str | None:
        """Note that the upstream has closed. `None` if that is how the response ends, else what is wrong with it."""
        if self.done or self.tunnel or isinstance(self.body, UnboundedBody):
            return None
        return "short_body" if isinstance(self.body, LengthBody) else "upstream_closed"
