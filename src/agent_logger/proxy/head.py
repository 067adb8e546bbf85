"""The head of a request or response: its first line and its fields, parsed once.

Nearly all heads are plain: ASCII, one blank behind each colon. Such a head is parsed as a whole, by one expression. Any
other one is parsed line by line.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from agent_logger.model.records import Headers

_NO_LINES = b"\r\n\r\n"
_PLAIN = re.compile(rb"\r\n(?:[!-9;-~]++: (?![ \t])[\t -~]*+(?<![ \t])\r\n|(?!))*+\r\n")
_FIELD = re.compile(r"([^\r\n:]++): ([^\r]++)")


class ParsedHead:
    """A head as it came. Parts of it may be missing, or be no HTTP at all."""

    __slots__ = ("data", "fields", "is_plain", "lines", "start")

    def __init__(self, data: bytes) -> None:
        self.data = data
        end = data.find(b"\r\n")
        # The first line, and all that follows, from its CRLF on.
        self.start, self.lines = (data[:end], data[end:]) if end >= 0 else (data, _NO_LINES)
        self.is_plain = _PLAIN.fullmatch(self.lines) is not None
        # Names and values, in order; each character is a byte.
        self.fields: list[tuple[str, str]] = (
            _FIELD.findall(self.lines.decode("ascii")) if self.is_plain else _fields_by_line(self.lines)
        )

    def by_name(self) -> dict[str, str]:
        """Return the values by name in lower case; of a field that came several times, the last one."""
        return {name.lower(): value for name, value in self.fields}

    def value(self, name: str) -> str:
        """Return the value of a field by its name in lower case. Values in several lines are joined."""
        return ", ".join([value for other, value in self.fields if other.lower() == name])

    @property
    def method(self) -> str:
        return self.start.partition(b" ")[0].decode("latin-1")

    @property
    def target(self) -> bytes:
        return cut_request_line(self.start)[1]


def cut_request_line(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a request line into the method, the target, and the rest. Joined, they are the line again."""
    start = line.find(b" ") + 1
    end = line.rfind(b" HTTP/")
    return line[:start], line[start : end if end >= start else len(line)], line[end:] if end >= start else b""


class Field(NamedTuple):
    """A line of a head. `plain`: name and value are enough to restore it exactly."""

    name: bytes
    value: bytes
    plain: bool


def field_of(line: bytes) -> Field | None:
    """The field in a line; `None` if it is no field: a folded line, or one without a colon."""
    name, colon, value = line.partition(b":")
    if not colon or not name or name[0] in b" \t":
        return None
    stripped = value.strip(b" \t")
    plain = len(value) == len(stripped) + 1 and value[0] == 32 and line.isascii() and name.strip() == name
    return Field(name, stripped, plain)


def _fields_by_line(lines: bytes) -> list[tuple[str, str]]:
    fields = map(field_of, lines.split(b"\r\n"))
    return [(field.name.decode("latin-1"), field.value.decode("latin-1")) for field in fields if field]


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


# ---------------------------------------------------------------- first lines


class StatusLine(NamedTuple):
    http: str | None
    status: int | None
    text: str | None
    plain: bool


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
