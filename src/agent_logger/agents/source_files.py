"""The input of a reader: the files of one session, opened and split into lines by the caller.

Readers are pure. They never open anything; they ask for a side file by its name, and it may be gone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

from agent_logger.protocols.jsonl import Damage, JsonEntry, Torn
from agent_logger.protocols.lines import LONGEST_LINE, Line, LineSplitter

Entries = Iterable[JsonEntry | Damage | Torn]


@dataclass(frozen=True, slots=True)
class File:
    """A file of a session. `name` is its path below the folder of the main one, with `/`."""

    name: str
    entries: Entries  # read while it is iterated over, once
    # The same bytes undecoded, for readers that need little of them.
    chunks: Callable[[], Iterable[bytes]] | None = None


def no_text(_name: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class SourceFiles:
    main: File
    others: Sequence[File] = ()  # files of sub-agents, and files that describe them
    text: Callable[[str], str | None] = no_text  # the content of a side file by its name; none if it is gone
    main_missing: bool = False  # the main file is gone, and is read as empty


def lines_of(file: File) -> Iterator[Line | Damage | Torn]:
    """Yield the lines of a file, not decoded where possible."""
    if file.chunks is None:
        for entry in file.entries:
            yield (Line(entry.line, entry.offset, len(entry.raw), entry.raw) if isinstance(entry, JsonEntry) else entry)
        return
    splitter = LineSplitter()
    for chunk in file.chunks():
        yield from splitter.feed(chunk)
    if torn := splitter.torn():
        yield Torn(torn.number, torn.offset, torn.length)


def raw_lines_of(file: File, *, unfinished: bool = False) -> Iterator[bytes]:
    """Yield the lines without their places, and without those that are too long or have no newline yet: for speed.
    `unfinished`: with the last one, if it has no newline."""
    if file.chunks is None:
        for entry in file.entries:
            if isinstance(entry, JsonEntry):
                yield from entry.raw.split(b"\n") if b"\n" in entry.raw else (entry.raw,)
        return
    for portion in portions_of(file, unfinished=unfinished):
        for line in BytesIO(portion):  # a caller may need the first line alone
            yield line[:-1] if line.endswith(b"\n") else line


class RepeatedLines:
    """Knows the lines of a file so far. Of lines with ids and times of their own, one that is there again, as after a
    careless restore, says nothing new."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def has(self, line: bytes) -> bool:
        """Whether the same line came before; from now on, this one has."""
        count = len(self._hashes)
        self._hashes.add(hash(line))
        return len(self._hashes) == count


def portions_of(file: File, *, unfinished: bool = False) -> Iterator[bytes]:
    """Yield a file's bytes in portions of whole lines, with their newlines. `unfinished`: then the bytes after the last
    newline."""
    if file.chunks is None:
        yield from (entry.raw + b"\n" for entry in file.entries if isinstance(entry, JsonEntry))
        return
    held = b""
    for chunk in file.chunks():
        end = chunk.rfind(b"\n") + 1
        if not end:
            held = held + chunk if len(held) <= LONGEST_LINE else held
        else:
            start = chunk.find(b"\n") + 1 if len(held) > LONGEST_LINE else 0
            yield chunk[start:end] if start else held + chunk[:end]
            held = chunk[end:]
    if unfinished and 0 < len(held) <= LONGEST_LINE:
        yield held
