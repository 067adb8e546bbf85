"""The head of a request or response as a record may show it: redacted, and as an object.

Nearly all heads are plain: ASCII, one blank behind each colon, no key except where keys are sent. Such a head is read
as a whole, by one expression. Any other one is read line by line.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent_logger.model.records import Headers, Redaction
from agent_logger.model.redaction.redactor import Redacted, Redactor, credential_lines
from agent_logger.proxy.call_state import field_of, headers_of

MOST_REMEMBERED = 4096
NO_FIELDS = b"\r\n\r\n"
LineBounds = tuple[int, int]  # start and end of a line

_PLAIN = re.compile(rb"\r\n(?:[!-9;-~]++: (?![ \t])[\t -~]*+(?<![ \t])\r\n|(?!))*+\r\n")
_FIELD = re.compile(r"([^\r\n:]++): ([^\r]++)")


class HeadFields(NamedTuple):
    """The fields of a head, redacted."""

    headers: Headers
    exact: bool  # they give the lines back as they came
    lines: str  # ended by CRLF; each character is a byte
    redactions: tuple[Redaction, ...] = ()

    def by_name(self) -> dict[str, str]:
        """The values by name, in lower case. A field that was sent in several lines has one value."""
        named: dict[str, str] = {}
        for name, value in self.headers.items():
            key, text = name.lower(), value if isinstance(value, str) else ", ".join(value)
            named[key] = f"{named[key]}, {text}" if key in named else text
        return named

    def texts(self) -> list[str]:
        return [line for line in self.lines.split("\r\n") if line]


class _Line(NamedTuple):
    """A line of a head, redacted. Without a name it is no field."""

    name: str | None
    value: str
    text: str  # each character is a byte
    plain: bool
    redactions: tuple[Redaction, ...] = ()


def cut_request_line(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a request line into the method, the target, and the rest. Joined, they are the line again."""
    start = line.find(b" ") + 1
    end = line.rfind(b" HTTP/")
    return line[:start], line[start : end if end >= start else len(line)], line[end:] if end >= start else b""


def cut_head(head: bytes) -> tuple[bytes, bytes]:
    """The first line, and all that follows, from its CRLF on."""
    end = head.find(b"\r\n")
    return (head[:end], head[end:]) if end >= 0 else (head, NO_FIELDS)


class Secrets:
    """The redaction for calls with the same credentials."""

    def __init__(self, key: bytes, credentials: Iterable[bytes], *, patterns: bool) -> None:
        self.redactor = Redactor(key, credentials, patterns=patterns)
        self._carriers: dict[bytes, _Line] = {}  # an agent sends the same with each call
        self._targets: dict[bytes, Redacted[bytes]] = {}
        self._texts: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Redact a text that occurs again and again, as `OK` does."""
        redacted = self._texts.get(text)
        if redacted is None:
            if len(self._texts) > MOST_REMEMBERED:
                self._texts.clear()
            redacted = self._texts[text] = self.redactor.redact_text(text, "").data
        return redacted

    def target(self, target: bytes) -> Redacted[bytes]:
        """Redact a path with its query."""
        redacted = self._targets.get(target)
        if redacted is None:
            if len(self._targets) > MOST_REMEMBERED:
                self._targets.clear()
            redacted = self._targets[target] = self.redactor.redact_target(target, "path")
        return redacted

    def request_line(self, line: bytes) -> tuple[bytes, Redacted[bytes], bytes]:
        """Redact the method, the target, and the rest. All may hold secrets: a refused request need not be a request at
        all."""
        before, target, after = cut_request_line(line)
        (before, first), (after, last) = (self.redactor.redact(part, "head") for part in (before, after))
        redacted = self.target(target)
        return before, Redacted(redacted.data, (*first, *redacted.redactions, *last)), after

    def fields(self, lines: bytes, body: bytes = b"") -> tuple[HeadFields, bool]:
        """The fields of all lines but the first, as `cut_head` returns them.

        Also returns whether nothing is to be redacted in a body: searching both at once takes less time.
        """
        carriers = credential_lines(lines)
        bare = _without(lines, carriers)
        clean = not self.redactor.finds(bare + body)
        if not _PLAIN.fullmatch(lines) or not (clean or (body and not self.redactor.finds(bare))):
            return self._line_by_line(lines), clean
        redactions: tuple[Redaction, ...] = ()
        if carriers:
            lines, redactions = self._redacted_lines(lines, carriers)
        text = lines.decode("ascii")
        headers, exact = headers_of(_FIELD.findall(text))
        return HeadFields(headers, exact, text, redactions), clean

    def _redacted_lines(
        self, lines: bytes, carriers: Sequence[LineBounds]
    ) -> tuple[bytes, tuple[Redaction, ...]]:
        pieces: list[bytes] = []
        redactions: list[Redaction] = []
        at = 0
        for start, end in carriers:
            line = self._carrier(lines[start:end])
            pieces += [lines[at:start], line.text.encode("latin-1")]
            redactions += line.redactions
            at = end
        return b"".join([*pieces, lines[at:]]), tuple(redactions)

    def _carrier(self, line: bytes) -> _Line:
        carrier = self._carriers.get(line)
        if carrier is None:
            if len(self._carriers) > MOST_REMEMBERED:
                self._carriers.clear()
            carrier = self._carriers[line] = self._line(line)
        return carrier

    def _line_by_line(self, lines: bytes) -> HeadFields:
        read = [self._line(line) for line in lines.split(b"\r\n") if line]
        headers, in_order = headers_of([(line.name, line.value) for line in read if line.name is not None])
        return HeadFields(
            headers,
            in_order and all(line.plain for line in read),
            "".join(f"{line.text}\r\n" for line in read),
            tuple(redaction for line in read for redaction in line.redactions),
        )

    def _line(self, line: bytes) -> _Line:
        field = field_of(line)
        if field is None:
            odd = self.redactor.redact(line, "head")
            return _Line(None, "", odd.data.decode("latin-1"), plain=False, redactions=odd.redactions)
        redacted = self.redactor.redact_headers([(field.name, field.value)], "headers")
        name, value = redacted.data[0]
        start = line.index(b":") + 1
        start += len(line[start:]) - len(line[start:].lstrip(b" \t"))
        whole = name + line[len(field.name) : start] + value + line[start + len(field.value) :]
        return _Line(_text(name), _text(value), whole.decode("latin-1"), field.plain, redacted.redactions)


def _without(lines: bytes, places: Sequence[LineBounds]) -> bytes:
    if not places:
        return lines
    starts, ends = [0, *(end for _, end in places)], [*(start for start, _ in places), len(lines)]
    return b"".join([lines[start:end] for start, end in zip(starts, ends, strict=True)])


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")
