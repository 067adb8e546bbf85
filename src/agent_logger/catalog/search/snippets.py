"""The text around words that were found: from the files, by the time in their lines.

Where a line cannot be found so, the session is read.
"""

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agent_logger.catalog.search.text_index import IndexHit, TextPosition
from agent_logger.catalog.search.texts import Text, strings_in
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import paths_in

AROUND = 60  # characters before the first word that was found
LONGEST = 200  # characters of a snippet
MOST_LINES = 20  # lines with the same time
MOST_FILE_BYTES = 1 << 30
WINDOW = 64 << 10  # bytes of a file that are searched
STAMP = b'"timestamp":"'


class Snippet(NamedTuple):
    text: str
    marks: tuple[tuple[int, int], ...]


def in_files(hit: IndexHit, files: Iterable[Path], words: Sequence[re.Pattern[str]]) -> Snippet | None:
    """Return a snippet from the lines that have the text's time; None if no such line has all the words. Without words:
    the input and the result of a tool."""
    times = [_format_time(time) for time in (hit.at, hit.until) if time]
    lines = (line for path in files for line in _lines(path, times))
    if not words:
        strings = [text for line in lines for text in _tool_texts(line)]
        return snippet("\n".join(strings), words) if strings else None
    texts = [text for line in lines for text in strings_in(line)]
    best = max(texts, key=lambda text: sum(bool(word.search(text)) for word in words), default="")
    together = best if all(word.search(best) for word in words) else "\n".join(texts)
    return snippet(together, words) if any(word.search(together) for word in words) else None


def in_texts(
    hit: IndexHit, place: TextPosition, texts: Iterable[Text], words: Sequence[re.Pattern[str]]
) -> Snippet | None:
    """Return a snippet from the texts of a whole session; None if it has no such text."""
    for text in texts:
        if (text.exchange, text.turn, text.kind, text.at) == (*place[1:], hit.kind, hit.at) and (
            not words or any(word.search(text.text) for word in words)
        ):
            return snippet(text.text, words)
    return None


def snippet(text: str, words: Sequence[re.Pattern[str]]) -> Snippet:
    """Make a snippet where most words are near each other, without keys, and in one line."""
    visible = " ".join(hidden(text).split())
    places = sorted(match.span() for word in words for match in word.finditer(visible))
    start = max(0, _densest_place(places) - AROUND)
    start = visible.find(" ", start, start + 20) + 1 or start if start else 0
    cut = visible[start : start + LONGEST]
    marks = [(low - start, min(high - start, len(cut))) for low, high in places if start <= low < start + len(cut)]
    lead, tail = "…" if start else "", "…" if start + LONGEST < len(visible) else ""
    return Snippet(lead + cut + tail, tuple((low + len(lead), high + len(lead)) for low, high in _drop_overlaps(marks)))


def _densest_place(places: Sequence[tuple[int, int]]) -> int:
    best, most = 0, 0
    for number, (low, _) in enumerate(places[:1000]):
        near = sum(start < low + LONGEST - AROUND for start, _ in places[number : number + 50])
        if near > most:
            best, most = low, near
    return best


def _drop_overlaps(marks: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Drop marks that begin within another."""
    end = 0
    for low, high in marks:
        if low >= end:
            yield low, high
            end = high


# ---------------------------------------------------------------- lines


def _format_time(milliseconds: int) -> bytes:
    time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f'"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"'.encode()


def _lines(path: Path, times: Sequence[bytes]) -> Iterator[Any]:
    with (
        suppress(OSError, SourceError, ValueError),  # deleted, or empty
        foreign.opened(path) as fd,
        mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as data,
    ):
        for time in times if len(data) <= MOST_FILE_BYTES else ():
            yield from _lines_of_time(data, time)


def _lines_of_time(data: mmap.mmap, time: bytes) -> Iterator[Any]:
    """Yield the lines of a time. They are close together, near where they would be if all lines were in the order of
    time."""
    low, high = _find_time(data, time.strip(b'"'))
    at, count = data.find(time, low, high), 0
    if at < 0:
        at = data.find(time)
    while at >= 0 and count < MOST_LINES:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        end = end if end >= 0 else len(data)
        with suppress(ValueError, RecursionError):
            yield msgspec.json.decode(data[start:end])
        at, count = data.find(time, end, max(high, end + WINDOW)), count + 1


def _find_time(data: mmap.mmap, time: bytes) -> tuple[int, int]:
    """Return where lines of that time are, if those before are older and those after newer."""
    low, high = 0, len(data)
    while high - low > WINDOW:
        middle = (low + high) // 2
        at = data.find(STAMP, middle, high)
        if at < 0 or data[at + len(STAMP) : at + len(STAMP) + len(time)] >= time:
            high = middle
        else:
            low = at
    return max(0, low - WINDOW), high + WINDOW


def _tool_texts(line: Any) -> Iterator[str]:
    """Yield the texts of tools in a line of Claude Code's: of an edit the file and the first new line; else
    everything."""
    message = line.get("message") if isinstance(line, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield from _input_texts(block.get("input"))
        elif isinstance(block, dict) and block.get("type") == "tool_result":
            yield from _result_texts(block.get("content"))


def _result_texts(answer: Any) -> Iterator[str]:
    parts = [part.get("text") for part in answer if isinstance(part, dict)] if isinstance(answer, list) else [answer]
    yield from (part for part in parts if isinstance(part, str))


def _input_texts(given: Any) -> Iterator[str]:
    edit = [given.get(key) for key in ("old_string", "new_string")] if isinstance(given, dict) else []
    match edit:
        case [str(old), str(new)]:
            yield from paths_in(given)
            lines = set(old.splitlines())
            yield next((line for line in new.splitlines() if line not in lines), old)
        case _:
            yield from strings_in(given)
