"""The redaction of calls: of heads, targets and texts. A head becomes an object, as a record has it."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from agent_logger.model.records import Headers, Redaction
from agent_logger.model.redaction.redactor import Redacted, Redactor, credential_lines
from agent_logger.proxy.head import ParsedHead, cut_request_line, field_of, headers_of

MOST_REMEMBERED = 4096
LineBounds = tuple[int, int]  # start and end of a line


class HeadFields(NamedTuple):
    """The fields of a head, redacted."""

    headers: Headers
    exact: bool  # whether the lines can be restored exactly from the fields
    fields: Sequence[tuple[str, str]]
    redactions: tuple[Redaction, ...] = ()
    # The lines of a head that is not plain; each character is a byte.
    lines: Sequence[str] | None = None

    def by_name(self) -> dict[str, str]:
        """The values by name, in lower case. A field that was sent in several lines has one value."""
        named: dict[str, str] = {}
        for name, value in self.headers.items():
            key, text = name.lower(), value if isinstance(value, str) else ", ".join(value)
            named[key] = f"{named[key]}, {text}" if key in named else text
        return named

    def texts(self) -> list[str]:
        """Return the lines of the head."""
        return [f"{name}: {value}" for name, value in self.fields] if self.lines is None else [*self.lines]


class _Line(NamedTuple):
    """A line of a head, redacted. Without a name it is no field."""

    name: str | None
    value: str
    text: str  # each character is a byte
    plain: bool
    redactions: tuple[Redaction, ...] = ()


class Secrets:
    """The redaction for calls with the same credentials."""

    def __init__(self, key: bytes, credentials: Iterable[bytes], *, patterns: bool) -> None:
        redactor = self.redactor = Redactor(key, credentials, patterns=patterns)
        remember = lru_cache(MOST_REMEMBERED)  # an agent sends the same with each call
        # A cache of texts that occur again and again, as `OK` does.
        self.text: Callable[[str], str] = remember(lambda text: redactor.redact_text(text, "").data)
        # A cache of paths with their queries.
        self.target: Callable[[bytes], Redacted[bytes]] = remember(
            lambda target: redactor.redact_target(target, "path")
        )
        self._carrier: Callable[[bytes], _Line] = remember(partial(_redacted_line, redactor))

    def redact(self, text: str) -> str:
        return self.redactor.redact_text(text, "").data

    def request_line(self, line: bytes) -> tuple[bytes, Redacted[bytes], bytes]:
        """Redact the method, the target, and the rest. All may hold secrets: a refused request need not be a request at
        all."""
        before, target, after = cut_request_line(line)
        (before, first), (after, last) = (self.redactor.redact(part, "head") for part in (before, after))
        redacted = self.target(target)
        return before, Redacted(redacted.data, (*first, *redacted.redactions, *last)), after

    def fields(self, head: ParsedHead, body: bytes = b"") -> tuple[HeadFields, bool]:
        """Redact the fields of a head.

        Also returns whether nothing is to be redacted in a body: searching both at once takes less time.
        """
        lines = head.lines
        carriers = credential_lines(lines)
        bare = _without(lines, carriers)
        clean = not self.redactor.finds(bare + body)
        if not head.is_plain or not (clean or (body and not self.redactor.finds(bare))):
            return self._line_by_line(lines), clean
        fields = head.fields
        redactions: list[Redaction] = []
        if carriers:
            redacted = {}
            for start, end in carriers:
                carrier = self._carrier(lines[start:end])
                name, _, value = lines[start:end].decode("ascii").partition(": ")
                redacted[name, value] = carrier.name or "", carrier.value
                redactions += carrier.redactions
            fields = [redacted.get(field, field) for field in fields]
        headers, exact = headers_of(fields)
        return HeadFields(headers, exact, fields, tuple(redactions)), clean

    def _line_by_line(self, lines: bytes) -> HeadFields:
        read = [_redacted_line(self.redactor, line) for line in lines.split(b"\r\n") if line]
        headers, in_order = headers_of([(line.name, line.value) for line in read if line.name is not None])
        return HeadFields(
            headers,
            in_order and all(line.plain for line in read),
            (),
            tuple(redaction for line in read for redaction in line.redactions),
            [line.text for line in read],
        )


def _redacted_line(redactor: Redactor, line: bytes) -> _Line:
    field = field_of(line)
    if field is None:
        odd = redactor.redact(line, "head")
        return _Line(None, "", odd.data.decode("latin-1"), plain=False, redactions=odd.redactions)
    redacted = redactor.redact_headers([(field.name, field.value)], "headers")
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
