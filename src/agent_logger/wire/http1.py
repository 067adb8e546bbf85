"""HTTP/1.1 between two peers, read strictly and passed on as it came.

Nothing is normalised: what is valid is forwarded byte for byte, what is not valid is an error, for a
guess of ours could differ from the guess of whoever reads it next (that difference is request
smuggling). So there are no lenient cases: lines end in CRLF, a body has one length or one chunking, names are
tokens, nothing is folded. (`httptools` is lenient in places; what it accepts would have to be checked again.)

Readers hold back what is not yet a whole line (of a head, a chunk size, a trailer) and nothing else.
"""

import re
from typing import TypeVar

from agent_logger.wire.bodies import (
    FIELD,
    HEAD_LIMIT,
    TEXT,
    TOKEN,
    Body,
    ChunkedBody,
    LengthBody,
    MalformedError,
    UnboundedBody,
)

_FIELD = re.compile(FIELD)
_REQUEST = re.compile(rb"(%b{1,32}) ([\x21-\x7e]+) HTTP/(\d)\.(\d)" % TOKEN)
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: %b*)?" % TEXT)
_BARE_LF = re.compile(rb"(?<!\r)\n")
_LENGTH_DIGITS = 18


# ---- heads

# Headers that mean something to a relay. All others are passed on unread.
HOST, CONNECTION, HOP, LENGTH, CODING, UPGRADE, ORIGIN, FETCH_SITE = range(1, 9)
_KINDS = {
    b"host": HOST,
    b"connection": CONNECTION,
    b"keep-alive": HOP,
    b"proxy-connection": HOP,
    b"proxy-authorization": HOP,
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

# What was read of a line is kept: a client sends nearly the same head with each call, and to know a line is
# several times faster than to read it.
_LINES_KEPT = 4096
_LINE_KEPT_BYTES = 256
Field = tuple[int, bytes, bytes, bytes]  # kind, the line, its name, its value
_fields: dict[bytes, Field] = {}
_unread: set[bytes] = set()  # lines that are valid and mean nothing here
_request_lines: dict[bytes, tuple[bytes, bytes, int]] = {}
_status_lines: dict[bytes, tuple[int, int]] = {}
R = TypeVar("R")


def _keep(known: dict[bytes, R], line: bytes, read: R) -> R:
    if len(known) >= _LINES_KEPT:
        known.clear()
    if len(line) <= _LINE_KEPT_BYTES:
        known[line] = read
    return read


def _field(line: bytes) -> Field:
    if not _FIELD.fullmatch(line):
        raise MalformedError("a header line is not valid")
    name, _, value = line.partition(b":")
    kind = _KINDS.get(name.lower(), 0)
    if kind:
        return _keep(_fields, line, (kind, line, name, value.strip(b" \t")))
    if len(_unread) >= _LINES_KEPT:
        _unread.clear()
    if len(line) <= _LINE_KEPT_BYTES:
        _unread.add(line)
    return 0, line, name, value


class Head:
    """The head of a request or response: its first line, its header lines, and those that matter here."""

    __slots__ = ("_fields", "first", "lines", "minor", "options", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw  # to the empty line, included
        self.lines = raw[:-4].split(b"\r\n")
        self.first = self.lines.pop(0)
        self.minor = 1
        self._fields: dict[int, list[Field]] = {}  # those that matter, by kind
        for line in self.lines:
            if line not in _unread:
                field = _fields.get(line) or _field(line)
                if field[0]:
                    self._fields.setdefault(field[0], []).append(field)
        self.options = _options(self.values(CONNECTION)) if CONNECTION in self._fields else _NO_OPTIONS

    def values(self, kind: int) -> list[bytes]:
        return [field[3] for field in self._fields[kind]] if kind in self._fields else _NONE

    def body(self) -> "Body | None":
        """By `Transfer-Encoding` or `Content-Length`; none if there is neither."""
        lengths, codings = self.values(LENGTH), self.values(CODING)
        if codings:
            if lengths:
                raise MalformedError("Content-Length beside Transfer-Encoding")
            if len(codings) > 1 or codings[0].lower() != b"chunked" or not self.minor:
                raise MalformedError("a Transfer-Encoding other than chunked, or in HTTP/1.0")
            return ChunkedBody()
        if not lengths:
            return None
        if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > _LENGTH_DIGITS:
            raise MalformedError("Content-Length is not one number")
        return LengthBody(int(lengths[0]))

    def forwarded(self, first: bytes, *, host: bytes = b"", upgrade: bool = False) -> bytes:
        """The head for the next hop: without what is between two peers only, and with another `Host`."""
        lines = self.lines
        if HOP in self._fields or CONNECTION in self._fields:
            lines = self._end_to_end(upgrade=upgrade)
        elif first is self.first and not host:
            return self.raw
        if host:
            lines = lines.copy()
            for _, line, name, _ in self._fields.get(HOST, ()):
                lines[lines.index(line)] = name + b": " + host
        return b"\r\n".join((first, *lines, b"", b""))

    def _end_to_end(self, *, upgrade: bool) -> list[bytes]:
        taken = {line for _, line, _, _ in self._fields.get(HOP, ())}
        kept = {}
        for _, line, name, value in self._fields.get(CONNECTION, ()):
            kept[line] = _keep_upgrade(line, name, value) if upgrade else b""
        lines = [kept.get(line, line) for line in self.lines if line not in taken]
        named = self._named(upgrade)
        return [
            line for line in lines if line and (not named or line.partition(b":")[0].lower() not in named)
        ]

    def _named(self, upgrade: bool) -> frozenset[bytes]:
        named = self.options - _NOT_NAMES
        if named & _ESSENTIAL:
            raise MalformedError("Connection names a header that is not between two peers")
        return named - {b"upgrade"} if upgrade else named


def _options(values: list[bytes]) -> frozenset[bytes]:
    """What `Connection` lists, in lower case."""
    return frozenset(option.strip(b" \t").lower() for value in values for option in value.split(b","))


def _keep_upgrade(line: bytes, name: bytes, value: bytes) -> bytes:
    """What stays of a `Connection` line."""
    options = [option.strip(b" \t") for option in value.split(b",")]
    kept = [option for option in options if option.lower() == b"upgrade"]
    if not kept or kept == options:
        return line if kept else b""
    return name + b": " + kept[0]


def head_end(data: bytes) -> int:
    """Where the head at the start of `data` ends; -1 if it is not whole yet."""
    end = data.find(b"\r\n\r\n")
    if end > HEAD_LIMIT or (end < 0 and len(data) > HEAD_LIMIT):
        raise MalformedError("the head is longer than 64 KiB", 431)
    if end < 0 and _BARE_LF.search(data):
        raise MalformedError("a line ends in LF without CR")
    return end + 4 if end >= 0 else -1


def _request_line(line: bytes) -> tuple[bytes, bytes, int]:
    found = _REQUEST.fullmatch(line)
    if found is None:
        raise MalformedError("the request line is not valid")
    method, target, major, minor = found.groups()
    if major != b"1" or minor not in b"01":
        raise MalformedError("not HTTP/1.0 or HTTP/1.1", 505)
    if method == b"CONNECT":
        raise MalformedError("CONNECT is not offered", 405)
    if not target.startswith(b"/") or b"#" in target:
        raise MalformedError("the target must be a path")
    return _keep(_request_lines, line, (method, target, int(minor)))


def _status_line(line: bytes) -> tuple[int, int]:
    found = _STATUS.fullmatch(line)
    if found is None:
        raise MalformedError("the status line is not valid")
    return _keep(_status_lines, line, (int(found[1]), int(found[2])))


class RequestHead(Head):
    __slots__ = ("framing", "method", "target", "websocket")

    def __init__(self, raw: bytes) -> None:
        first = raw[: raw.find(b"\r\n")]
        self.method, self.target, minor = _request_lines.get(first) or _request_line(first)
        super().__init__(raw)
        self.minor = minor
        self.framing = self.body()
        self.websocket = b"upgrade" in self.options and self._asks_for_websocket()

    def _asks_for_websocket(self) -> bool:
        """Only this upgrade is passed on: what else could be spoken then (h2c) would pass unread."""
        asked = [value.lower() for value in self.values(UPGRADE)] == [
            b"websocket"
        ] and b"upgrade" in self.options
        return asked and self.method == b"GET" and self.minor == 1 and self.framing is None

    @property
    def closes(self) -> bool:
        """The client expects the connection to end with the response."""
        return not self.minor or b"close" in self.options


# ---- responses


class ResponseReader:
    """The answer to one request, interim responses included.

    `feed` gives what the client may have. What was read meanwhile lies in `heads` and `pieces` until it is taken.
    """

    __slots__ = (
        "_buffer",
        "_method",
        "_websocket",
        "body",
        "error",
        "final",
        "heads",
        "rest",
        "status",
        "tunnel",
    )

    def __init__(self, method: bytes, *, websocket: bool = False) -> None:
        self.heads: list[Head] = []
        self.final: Head | None = None
        self.body: Body | None = None
        self.status = 0
        self.tunnel = False  # it was 101: what follows is not HTTP
        self.error = ""
        self.rest = b""  # what follows the response
        self._method, self._websocket = method, websocket
        self._buffer = b""

    @property
    def done(self) -> bool:
        return self.body is not None and self.body.done

    @property
    def keeps(self) -> bool:
        """The upstream's connection may carry another request."""
        final = self.final
        return final is not None and self.delimited and not self.rest and b"close" not in final.options

    @property
    def delimited(self) -> bool:
        """The client knows where it ends without the connection ending, and that it may stay."""
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
        minor, self.status = _status_lines.get(first) or _status_line(first)
        head = Head(raw)
        head.minor = minor
        forwarded = head.forwarded(head.first, upgrade=self._websocket)
        self.heads.append(head)
        if self.status >= 200:
            self.final, self.body = head, self._body(head)
        elif self.status == 101:
            if not self._websocket:
                raise MalformedError("101 without having been asked")
            self.final, self.tunnel = head, True
        return forwarded

    def _body(self, head: Head) -> Body:
        body = head.body()
        if self._method == b"HEAD" or self.status in (204, 304):
            return LengthBody(0)
        return body if body is not None else UnboundedBody()

    def eof(self) -> str | None:
        """The upstream has closed. None: this is how the response ends. Else what is wrong with that."""
        if self.done or self.tunnel or isinstance(self.body, UnboundedBody):
            return None
        return "short_body" if isinstance(self.body, LengthBody) else "upstream_closed"
