"""Credentials do not stand in frames: NULs of the same length do, and a list of what stood where."""

from collections.abc import Callable, Iterable

from agent_logger.capture.proxy.frames import Mask
from agent_logger.redact import _searchable as searchable
from agent_logger.redact import credentials_of

Fields = Iterable[tuple[bytes, bytes]]  # names, and whole lines
Masked = tuple[bytes, tuple[Mask, ...]]
Part = tuple[bytes, int]  # a text to look for, and its number as a credential

_KEPT = 512  # names, and values, whose parts are remembered: agents send the same key with each call


class Credentials:
    """All that a relay has seen, by number. `index` gives a value's number."""

    def __init__(self, index: Callable[[bytes], int]) -> None:
        self.index = index
        self.bearing: dict[bytes, bool] = {}  # what is known of names
        self._in_lines: dict[bytes, tuple[Part, ...]] = {}
        self._parts: dict[bytes, tuple[Part, ...]] = {}

    def bears(self, name: bytes) -> bool:
        """Whether a header of this name holds a credential, whatever its value."""
        known = bool(credentials_of([(name, b"x")]))
        if len(self.bearing) < _KEPT:
            self.bearing[name] = known
        return known

    def in_line(self, name: bytes, line: bytes) -> tuple[Part, ...]:
        """The credentials of a header line, longest first."""
        known = self._in_lines.get(line)
        if known is None:
            known = self.numbered(credentials_of([(name, line[len(name) + 1 :].strip(b" \t\r\n"))]))
            _keep(self._in_lines, line, known)
        return known

    def numbered(self, values: Iterable[bytes]) -> tuple[Part, ...]:
        return tuple((value, self.index(value)) for value in sorted(values, key=len, reverse=True))

    def parts(self, value: bytes) -> tuple[Part, ...]:
        """What of it can be looked for in any text."""
        known = self._parts.get(value)
        if known is None:
            known = self.numbered(searchable(value))
            _keep(self._parts, value, known)
        return known


def _keep(table: dict[bytes, tuple[Part, ...]], key: bytes, parts: tuple[Part, ...]) -> None:
    if len(table) >= _KEPT:
        table.clear()
    table[key] = parts


class Masker:
    """Hides the credentials of one call. It learns them from heads, and finds them from then on."""

    __slots__ = ("_credentials", "_parts")

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._parts: list[Part] = []

    def head(self, head: bytes, fields: Fields, target: bytes = b"") -> Masked:
        """Mask a head. In their own places credentials go however short they are."""
        masks: list[Mask] = []
        known = self._credentials.bearing.get
        for name, line in fields:
            bears = known(name)
            if bears or (bears is None and self._credentials.bears(name)):
                found = self._credentials.in_line(name, line)
                self._learn(found)
                start = len(name) + 1  # of the value, at the earliest
                for at in _places(head, b"\n" + line):
                    head = _cover_all(head, found, at + 1 + start, at + 1 + len(line), masks)
        if b"=" in target:
            head = self._in_target(head, target, masks)
        return self._elsewhere(head, masks)

    def target(self, target: bytes) -> bytes:
        masks: list[Mask] = []
        if b"=" in target:
            target = self._in_target(target, target, masks)
        return self._elsewhere(target, masks)[0]

    def data(self, data: bytes) -> Masked:
        for part, _ in self._parts:
            if part in data:
                return self._elsewhere(data, [])
        return data, ()

    def _learn(self, found: Iterable[Part]) -> None:
        known = len(self._parts)
        for value, _ in found:
            self._parts += (part for part in self._credentials.parts(value) if part not in self._parts)
        if known < len(self._parts) != 1:
            self._parts.sort(key=lambda part: -len(part[0]))

    def _in_target(self, text: bytes, target: bytes, masks: list[Mask]) -> bytes:
        found = self._credentials.numbered(credentials_of((), target))
        self._learn(found)
        for secret, index in found:
            for at in _places(text, b"=" + secret):
                text = _cover_all(text, [(secret, index)], at + 1, at + 1 + len(secret), masks)
        return text

    def _elsewhere(self, data: bytes, masks: list[Mask]) -> Masked:
        for part in self._parts:
            if part[0] in data:
                data = _cover_all(data, [part], 0, len(data), masks)
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


def _cover_all(data: bytes, parts: Iterable[Part], start: int, end: int, masks: list[Mask]) -> bytes:
    """`data` with NULs over the parts between `start` and `end`. What lies in a longer one is not found again."""
    for part, index in parts:
        length = len(part)
        at = data.find(part, start, end)
        while at >= 0:
            data = data[:at] + bytes(length) + data[at + length :]
            masks.append(Mask(at, length, index))
            at = data.find(part, at + length, end)
    return data
