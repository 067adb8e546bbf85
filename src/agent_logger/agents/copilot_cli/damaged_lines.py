"""Records that Copilot CLI wrote, or a crash left, in a form that it does not read itself.

Some versions put tool output into a record as it was: its newlines split the record over several lines. Bytes that are
not UTF-8, and control characters, make a line unreadable for strict decoders, too.
"""

import json
import re
from collections.abc import Iterator

from agent_logger.agents.objects import decoded, salvaged, shallow
from agent_logger.protocols.lines import LONGEST_LINE
from agent_logger.providers.answer import MOST_NESTED
from agent_logger.providers.json_values import Json, with_whole_characters
from agent_logger.providers.lenient import REFUSED

MOST_TRIES = 100  # to read one split record: its text may have many lines that look like its end
_END = re.compile(rb'(?:\}|"|null)\}\s*\Z')
_decode = json.JSONDecoder(strict=False).decode


def may_be_deep(line: bytes) -> bool:
    return line.count(b"{") + line.count(b"[") > MOST_NESTED


def readable(record: bytes) -> Json | None:
    """Decode a whole record, also one with raw control characters in its texts; None if it is not whole, or nested too
    deeply. Bytes that are not UTF-8 become U+FFFD."""
    try:
        value = decoded(record, record)
    except REFUSED:
        try:
            value = shallow(_decode(record.decode("utf-8-sig", "replace").strip("\0")), record)
        except REFUSED:
            return None
        value = with_whole_characters(value)
    return value if type(value) is dict else None


class SplitRecord:
    """A record that raw newlines split over several lines."""

    def __init__(self, first: bytes) -> None:
        self._pieces = [first]
        self._bytes = len(first)
        self._tries = 0

    def add(self, piece: bytes) -> Json | None:
        """Add the next line. Returns the record if it is whole now."""
        self._bytes += len(piece)
        if self._bytes <= LONGEST_LINE:
            self._pieces.append(piece)
        if self._bytes > LONGEST_LINE or self._tries == MOST_TRIES or not _END.search(piece[-200:]):
            return None
        self._tries += 1
        return readable(b"\n".join(self._pieces))

    def remains(self) -> Iterator[Json]:
        """Yield the records in its lines, where they do not make one."""
        for piece in self._pieces[1:]:
            yield from salvaged(piece)
