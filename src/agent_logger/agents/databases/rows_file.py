"""The rows of one session, taken out of an agent's database, as a file of JSON lines.

A database has other sessions, too, and cannot be redacted. So what leaves it is what its reader gets: for each file of
the session a line with its name, then a line for each row. Texts that are JSON themselves stay texts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage, JsonEntry
from agent_logger.protocols.lines import LineSplitter


class _RowLine(msgspec.Struct, omit_defaults=True):
    """A line: the name of a file, a row, or what could not be read."""

    file: str | None = None
    row: Any = None
    documents: dict[str, str] = {}  # columns of the row whose texts its reader decodes
    damage: str | None = None


def row_lines(session: SourceFiles) -> Iterator[bytes]:
    """Yield the lines of a session, each with its newline."""
    for file in (session.main, *session.others):
        yield _encoded(_RowLine(file=file.name))
        for entry in file.entries:
            if isinstance(entry, JsonEntry):
                yield _encoded(_line_of(entry.value))
            elif isinstance(entry, Damage):
                yield _encoded(_RowLine(damage=entry.reason))


def _line_of(value: Any) -> _RowLine:
    if type(value) is not dict:
        return _RowLine(row=value)
    documents = {name: text.decode("utf-8", "replace") for name, text in value.items() if isinstance(text, bytes)}
    return _RowLine(row={name: text for name, text in value.items() if name not in documents}, documents=documents)


def _encoded(line: _RowLine) -> bytes:
    try:
        return msgspec.json.encode(line) + b"\n"
    except UnicodeEncodeError:  # halves of characters
        return msgspec.json.encode(_whole(msgspec.to_builtins(line))) + b"\n"


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
    return value


def open_rows(path: str) -> SourceFiles:
    """Open a session. Raises `SourceError` if the file has none."""
    names = [line.file for line in _lines(path) if isinstance(line, _RowLine) and line.file is not None]
    if not names:
        raise SourceError(f"{path}: contains no session")
    main, *others = [File(name, _RowEntries(path, number)) for number, name in enumerate(names, 1)]
    return SourceFiles(main, others)


class _RowEntries:
    """The rows of one of the files, read each time it is iterated over."""

    def __init__(self, path: str, number: int) -> None:
        self._path, self._number = path, number

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        number = row = 0
        for line in _lines(self._path):
            if isinstance(line, _RowLine) and line.file is not None:
                number += 1
            elif number == self._number:
                row += 1
                yield _entry(line, row)


def _entry(line: "_RowLine | Damage", number: int) -> JsonEntry | Damage:
    if isinstance(line, Damage):
        return line
    if line.damage is not None:
        return Damage(number, 0, 0, line.damage)
    if type(line.row) is dict:
        documents = {name: text.encode("utf-8", "replace") for name, text in line.documents.items()}
        return JsonEntry(number, 0, {**line.row, **documents}, b"")
    return JsonEntry(number, 0, line.row, b"")


def _lines(path: str) -> Iterator["_RowLine | Damage"]:
    splitter = LineSplitter()
    for chunk in foreign.chunks(Path(path)):
        for line in splitter.feed(chunk):
            for entry in jsonl.decode(line):
                if isinstance(entry, Damage):
                    yield entry
                    continue
                try:
                    yield msgspec.convert(entry.value, _RowLine)
                except (ValueError, RecursionError) as error:
                    yield Damage(entry.line, entry.offset, len(entry.raw), str(error))
