"""Masking of credentials: a frame has NULs of the same length in their places, and a list of these places."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from agent_logger.model.redaction.redactor import (
    credential_lines,
    credentials_of,
    is_lasting,
    is_word,
    prepare,
    searchable,
    stands_alone,
)
from agent_logger.protocols.byte_search import contains
from agent_logger.proxy.spool.frames import Mask

Masked = tuple[bytes, tuple[Mask, ...]]
NO_TRAILERS: Masked = (b"", ())
Part = tuple[bytes, int]  # a text to look for, and its number as a credential

_REMEMBERED = 2048  # lines that are remembered: agents send the same credentials with each call
# Parts of credentials of other calls. An agent's history quotes a token that was replaced meanwhile.
_MOST_EARLIER = 16


class InLine(NamedTuple):
    """The credentials of one header line."""

    masked: bytes  # the line with NULs in place of the credentials
    masks: tuple[Mask, ...]  # offsets are from the start of the line
    parts: tuple[Part, ...]  # parts of the credentials that can be searched for in any text


class BytesIndex(Protocol):
    def __call__(self, value: bytes, /, *, lasting: bool = False) -> int:
        """Return a value's number. `lasting`: the value is looked for in later calls, too."""


class Credentials:
    """The credentials that a relay has seen, by number."""

    def __init__(self, index: BytesIndex) -> None:
        prepare()
        self.index = index
        # Parts of the lasting credentials of the last calls, the longest first.
        self.earlier: tuple[Part, ...] = ()
        self.sought: tuple[int, ...] = ()  # the indexes of these credentials
        self._in_lines: dict[bytes, InLine] = {}
        self._newest = self._newest_then = 0  # indexes: of all, and when the lines were forgotten
        self._lasting: dict[bytes, None] = {}  # parts, the newest last

    def in_line(self, line: bytes) -> InLine:
        parts = self._in_lines.get(line)
        return parts if parts is not None else self._read(line)

    def _read(self, line: bytes) -> InLine:
        name, _, value = line.partition(b":")
        name, value, start = name.strip(b" \t"), value.strip(b" \t\r\n"), len(name) + 1
        secrets = self.numbered(credentials_of([(name, value)]))
        if max(len(self._in_lines), self._newest - self._newest_then) >= _REMEMBERED:
            self._newest_then = self._newest  # old indexes are not known for ever
            self._in_lines.clear()
            self._number_earlier()
        masks: list[Mask] = []
        masked = _cover_all(line, secrets, start, len(line), masks)
        self._in_lines[line] = in_line = InLine(masked, tuple(masks), self.parts(secrets))
        if is_lasting(name, value):
            self.remember(in_line.parts)
        return in_line

    def remember(self, parts: tuple[Part, ...]) -> None:
        """Remember these parts, to be looked for in later calls, too."""
        if all(part in self._lasting for part, _ in parts):
            return
        for part, _ in parts:
            self._lasting.pop(part, None)
            self._lasting[part] = None
        for part in list(self._lasting)[:-_MOST_EARLIER]:
            del self._lasting[part]
        self._number_earlier()

    def _number_earlier(self) -> None:
        self.earlier = self.numbered(self._lasting, lasting=True)
        self.sought = tuple(index for _, index in self.earlier)

    def numbered(self, values: Iterable[bytes], *, lasting: bool = False) -> tuple[Part, ...]:
        """The values with their numbers, the longest first: a shorter one may be a part of a longer one."""
        ordered = sorted(values, key=len, reverse=True)
        pairs = tuple((value, self.index(value, lasting=lasting)) for value in ordered)
        self._newest = max([self._newest, *(index for _, index in pairs)])
        return pairs

    def parts(self, secrets: tuple[Part, ...]) -> tuple[Part, ...]:
        return self.numbered(dict.fromkeys(part for secret, _ in secrets for part in searchable(secret)))


class Masker:
    """Hides the credentials of one call. It learns them from heads, and finds them from then on."""

    __slots__ = ("_credentials", "_parts")

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._parts = credentials.earlier

    @property
    def sought(self) -> tuple[int, ...]:
        """The indexes of the credentials of earlier calls that are looked for, too."""
        return self._credentials.sought

    def search_for(self, values: Iterable[bytes]) -> None:
        """Search for these values, too."""
        self._learn(self._credentials.parts(self._credentials.numbered(values)))

    def head(self, head: bytes, target: bytes = b"") -> Masked:
        """Mask a head. In their own places credentials are masked however short they are."""
        masks: list[Mask] = []
        for start, end in credential_lines(head):
            in_line = self._credentials.in_line(head[start:end])
            self._learn(in_line.parts)
            head = head[:start] + in_line.masked + head[end:]
            masks += [Mask(start + mask.offset, mask.length, mask.credential) for mask in in_line.masks]
        if b"=" in target:
            head = self._in_target(head, target, masks)
        return self._elsewhere(head, masks)

    def trailers(self, trailers: bytes) -> Masked:
        data, masks = self.head(b"\n" + trailers)  # a trailer begins after the end of a line
        return data[1:], tuple(Mask(mask.offset - 1, mask.length, mask.credential) for mask in masks)

    def target(self, target: bytes) -> bytes:
        masks: list[Mask] = []
        if b"=" in target:
            target = self._in_target(target, target, masks)
        return self.data(target)[0]

    def data(self, data: bytes) -> Masked:
        return self._elsewhere(data, []) if self.has_credential(data) else (data, ())

    def has_credential(self, data: bytes) -> bool:
        """Whether a credential is in these bytes. If not, none is in any part of them."""
        for part, _ in self._parts:  # noqa: SIM110 (`any` takes longer than the search in an event)
            if contains(data, part):
                return True
        return False

    def _learn(self, parts: tuple[Part, ...]) -> None:
        if not self._parts:
            self._parts = parts
        elif any(part not in self._parts for part in parts):
            both = dict.fromkeys(self._parts + parts)
            self._parts = tuple(sorted(both, key=lambda part: -len(part[0])))

    def _in_target(self, text: bytes, target: bytes, masks: list[Mask]) -> bytes:
        values = credentials_of((), target)
        if not values:
            return text
        pairs = self._credentials.numbered(values)
        parts = self._credentials.parts(pairs)
        self._learn(parts)
        self._credentials.remember(parts)
        for secret, index in pairs:
            for at in _places(text, b"=" + secret):
                text = _cover_all(text, [(secret, index)], at + 1, at + 1 + len(secret), masks)
        return text

    def _elsewhere(self, data: bytes, masks: list[Mask]) -> Masked:
        for part in self._parts:
            if part[0] in data:
                data = _cover_all(data, [part], 0, len(data), masks, alone=is_word(part[0]))
        if len(masks) > 1:
            masks.sort(key=lambda mask: mask.offset)
        return data, tuple(masks)


def _places(data: bytes, part: bytes) -> list[int]:
    places = []
    at = data.find(part)
    while at >= 0:
        places.append(at)
        at = data.find(part, at + len(part))
    return places


def _cover_all(
    data: bytes, parts: Iterable[Part], start: int, end: int, masks: list[Mask], *, alone: bool = False
) -> bytes:
    """Return `data` with NULs over the parts between `start` and `end`. A part inside a longer one is not found again.

    `alone`: only where no letter or digit stands beside them. A part at the edge of `data` counts as alone: the next
    bytes are not known yet, and the recorder, which sees all of them, puts back what was covered without need.
    """
    for part, index in parts:
        length = len(part)
        at = data.find(part, start, end)
        while at >= 0:
            if not alone or stands_alone(data, at, at + length):
                data = data[:at] + bytes(length) + data[at + length :]
                masks.append(Mask(at, length, index))
            at = data.find(part, at + length, end)
    return data
