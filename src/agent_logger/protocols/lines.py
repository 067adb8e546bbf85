"""Splitting a byte stream into lines."""

from io import BytesIO

import msgspec

LONGEST_LINE = 64 << 20  # bytes; a longer line is kept by its place, for parsing it could take all memory


# No dataclass: making one takes four times as long, and there are many.
class Line(msgspec.Struct, frozen=True, gc=False):
    """A line without its newline. `data` is `None` when it is longer than `LONGEST_LINE`."""

    number: int  # from 1
    offset: int
    length: int
    data: bytes | None


class LineSplitter:
    """Splits a byte stream into lines at LF, and nowhere else.

    Text tools also split at U+2028 and U+0085. JSON strings may hold both unescaped, so a prompt that quotes one would
    tear its own record in two.
    """

    def __init__(self, *, number: int = 1, offset: int = 0, longest: int = LONGEST_LINE) -> None:
        self.number, self._offset, self._longest = number, offset, longest
        self._held: list[bytes] = []  # what follows the last LF: being written, or cut by a crash
        self._held_bytes = 0

    def feed(self, chunk: bytes) -> list[Line]:
        pieces = lines_in(chunk)
        last = b"" if chunk.endswith(b"\n") or not pieces else pieces.pop()
        if not pieces:
            self._hold(last)
            return []
        self._hold(pieces[0][:-1])
        lines = [self._take()]
        number, offset, longest = self.number, self._offset, self._longest
        for data in pieces[1:]:  # in one go, for every byte of every log passes here
            length = len(data) - 1
            lines.append(Line(number, offset, length, data[:-1] if length <= longest else None))
            number, offset = number + 1, offset + length + 1
        self.number, self._offset = number, offset
        self._hold(last)
        return lines

    def torn(self) -> Line | None:
        """What follows the last newline, if anything does."""
        if not self._held_bytes:
            return None
        return Line(self.number, self._offset, self._held_bytes, self._joined())

    def _hold(self, piece: bytes) -> None:
        self._held_bytes += len(piece)
        if self._held_bytes > self._longest:
            self._held.clear()
        elif piece:
            self._held.append(piece)

    def _joined(self) -> bytes | None:
        return b"".join(self._held) if self._held_bytes <= self._longest else None

    def _take(self) -> Line:
        line = Line(self.number, self._offset, self._held_bytes, self._joined())
        self._held.clear()
        self._held_bytes = 0
        self.number += 1
        self._offset += line.length + 1
        return line


def lines_in(data: bytes) -> list[bytes]:
    """The lines of `data`, each with its newline; the last one perhaps without. `split` looks at every byte, and takes
    six times as long."""
    return BytesIO(data).readlines()
