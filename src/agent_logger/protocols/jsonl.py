"""Reading lines of JSON that may be damaged, as every reader of ours does it.

A line is decoded by msgspec; by the standard library where msgspec refuses what agents do write (lone surrogates, NaN,
numbers beyond a double); else the readable parts are saved, and the rest is reported as `Damage` with its place.
Nothing is skipped silently, and nothing here raises.

Crashes leave three marks: a line cut short, a line whose start was lost so that two records share it, and runs of NUL
where a power cut took unwritten blocks. All three are mended by looking for the next `{"` from which JSON reaches
another record or the end of the line.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from agent_logger.protocols.lines import Line

BOM = b"\xef\xbb\xbf"
SALVAGE_TRIES = 200  # starts to try in one bad line: enough for a record, and a bound on hostile ones
SALVAGE_WORK = 4  # how often, in all, the bytes of a bad line may be read again


class Damage(msgspec.Struct, frozen=True):
    """Bytes that could not be read. `line` counts from 1; `offset` is in the file."""

    line: int
    offset: int
    length: int
    reason: str


class Torn(msgspec.Struct, frozen=True):
    """The bytes after the last newline: still being written, or cut by a crash. They are not judged yet."""

    line: int
    offset: int
    length: int


class JsonEntry(msgspec.Struct, frozen=True):
    """A value that was read, and the bytes it was read from."""

    line: int
    offset: int
    value: Any
    raw: bytes


def decode(line: Line) -> list[JsonEntry | Damage]:
    """Decode a line: one entry as a rule; none if the line is blank; several, with damage between them, if it is
    bad."""
    if line.data is None:
        return [Damage(line.number, line.offset, line.length, f"a line of {line.length:,} bytes")]
    try:
        return [JsonEntry(line.number, line.offset, msgspec.json.decode(line.data), line.data)]
    except (ValueError, RecursionError):
        return list(_Salvage(line, line.data))


_read_value = json.JSONDecoder().raw_decode
_blank = re.compile(r"[ \t\r]*")


class _Salvage:
    """A walk over a bad line: it reads what can be read, and skips to where reading works again."""

    def __init__(self, line: Line, data: bytes) -> None:
        self._line = line
        self._text = data.removeprefix(BOM).decode("utf-8", "surrogateescape")  # bytes come back exactly
        self._at = 0  # in the text
        self._offset = line.offset + len(data) - len(data.removeprefix(BOM))  # the same place in the file
        self._tries, self._work = SALVAGE_TRIES, SALVAGE_WORK * len(self._text)

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        while not self._done():
            value, end, reason = self._read(self._at)
            yield self._damage(reason) if reason else self._entry(value, end)

    def _done(self) -> bool:
        self._skip_to(self._after_blank(self._at))
        return self._at == len(self._text)

    def _read(self, start: int) -> tuple[Any, int, str | None]:
        """The value that begins at `start`, and its end; or how far reading got, and why it stopped."""
        try:
            value, end = _read_value(self._text, start)
        except json.JSONDecodeError as error:
            nul = self._text.startswith("\0", start)
            fault = error.msg.lower().removesuffix(" starting at")
            return None, error.pos, "NUL bytes" if nul else f"not JSON: {fault}"
        except RecursionError:
            return None, len(self._text), "nested too deeply"
        except ValueError:
            return None, len(self._text), "a number with too many digits"
        return value, end, None

    def _entry(self, value: Any, end: int) -> JsonEntry | Damage:
        offset, raw = self._offset, self._skip_to(end)
        if not is_utf8(raw):
            return Damage(self._line.number, offset, len(raw), "not UTF-8")
        return JsonEntry(self._line.number, offset, value, raw)

    def _damage(self, reason: str) -> Damage:
        offset = self._offset
        return Damage(self._line.number, offset, len(self._skip_to(self._resume())), reason)

    def _resume(self) -> int:
        """Where the next record begins, or the end of the line."""
        start = self._at
        while self._tries > 0 and self._work > 0:
            start = self._text.find('{"', start + 1)
            if start < 0:
                break
            _, end, reason = self._read(start)
            self._tries -= 1
            self._work -= end - start
            if reason is None and self._ends_record(end):
                return start
        return len(self._text)

    def _ends_record(self, at: int) -> bool:
        """Whether a value that ends here was a record, not a piece within one that is broken."""
        at = self._after_blank(at)
        return at == len(self._text) or self._text.startswith('{"', at)

    def _after_blank(self, at: int) -> int:
        match = _blank.match(self._text, at)
        return match.end() if match else at

    def _skip_to(self, at: int) -> bytes:
        passed = self._text[self._at : at].encode("utf-8", "surrogateescape")
        self._at, self._offset = at, self._offset + len(passed)
        return passed


def is_utf8(raw: bytes) -> bool:
    if raw.isascii():
        return True
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
