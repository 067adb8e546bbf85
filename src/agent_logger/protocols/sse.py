"""Server-sent events out of a byte stream, as the HTML standard frames them.

A line ends with LF, CR or CRLF; an empty line ends an event. An event without that empty line does not count: where a
stream is cut, its last piece is dropped, as every client drops it.
"""

import re
from itertools import chain
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"


# An event as all but a few servers write them: a glance instead of a look at each line.
_PLAIN = re.compile(rb"(?:event: ([^\r\n]*)\n)?data: ([^\r\n]+)\n\n")
_NAME_FRAMING, _DATA_FRAMING = len(b"event: \n"), len(b"data: \n\n")


class ServerSentEvent(NamedTuple):
    name: bytes  # empty where the stream does not name it, which the standard calls `message`
    data: bytes  # its data lines, joined with LF


def _plain_events(chunk: bytes) -> list[ServerSentEvent]:
    """All events of a chunk, if it has plain ones and nothing else; otherwise none."""
    if not chunk.endswith(b"\n\n"):
        return []
    pairs = _PLAIN.findall(chunk)
    # If their lengths add up to that of the chunk, nothing stands between them.
    named = sum(1 for name, _ in pairs if name)
    framing = _NAME_FRAMING * named + _DATA_FRAMING * len(pairs)
    is_all = framing + sum(map(len, chain.from_iterable(pairs))) == len(chunk)
    return list(map(ServerSentEvent._make, pairs)) if is_all else []


class EventSplitter:
    """Splits a byte stream into events. `last_id` and `retry_ms` are the last values that the stream gave."""

    __slots__ = ("_after_cr", "_at_start", "_data", "_held", "_name", "last_id", "retry_ms")

    def __init__(self) -> None:
        self.last_id = b""
        self.retry_ms: int | None = None
        self._held: list[bytes] = []  # the beginning of a line
        self._name = b""
        self._data: list[bytes] = []
        self._at_start = True
        self._after_cr = False  # whether an LF that comes next belongs to the line that has ended

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if not (self._held or self._data or self._name):
            if events := _plain_events(chunk):
                self._at_start = False
                return events
            at = 0
            while match := _PLAIN.match(chunk, at):
                events.append(ServerSentEvent(match[1] or b"", match[2]))
                at = match.end()
            if at:
                chunk, self._at_start = chunk[at:], False
        if chunk:
            events += self._events(self._lines(chunk))
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        """The lines that have ended."""
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        if lines and self._held:
            lines[0] = b"".join([*self._held, lines[0]])
            self._held = []
        if rest:
            self._held.append(rest)
        if lines and self._at_start:
            lines[0], self._at_start = lines[0].removeprefix(BOM), False
        return lines

    def _events(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        for line in lines:
            if line[:6] == b"data: ":
                self._data.append(line[6:])
            elif line:
                self._field(line)
            else:
                if self._data and (data := b"\n".join(self._data)):
                    events.append(ServerSentEvent(self._name, data))
                self._name, self._data = b"", []
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value
        elif name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self.last_id = value
        elif name == b"retry" and value.isdigit() and len(value) < 19:
            self.retry_ms = int(value)
