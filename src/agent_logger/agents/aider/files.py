"""The files of aider: a history in each project that it was used in, with the prompts and their times beside it."""

import os
import re
from collections.abc import Container, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from agent_logger.agents.aider.session import ABOUT, INPUTS, id_of
from agent_logger.agents.base import Agent
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of_copy
from agent_logger.files.stored_text import storable
from agent_logger.protocols.jsonl import Damage, JsonEntry

MOST_BYTES = 256 << 20
_BEGINNING = re.compile(rb"\s*# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s")


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find histories in which something was asked."""
    for path in map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()):
        if not (stat := stat_of_copy(path)):
            continue
        files = FileStamps()
        files.add_stat(stat, "")
        name = cache.cached(path, files.stamp, partial(_name_in, path))
        if name and name not in skip:
            yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp)


def _name_in(path: str) -> str:
    """Return the id of the session; empty if nothing was asked in it."""
    try:
        return id_of(_history(Path(path)))
    except (OSError, SourceError):
        return ""


def open_session(source: Source) -> SourceFiles:
    path = Path(source.path)
    about = {"modified": source.modified * 1000, "project": _project(path)}
    return SourceFiles(_history(path), [File(ABOUT, [JsonEntry(1, 0, about, b"")])], partial(_text, path.parent))


def _project(path: Path) -> str | None:
    """Return the folder of a history, if it is that of a repository, and not of a copy."""
    return storable(str(path.parent)) if os.path.exists(path.parent / ".git") else None


def _text(folder: Path, name: str) -> str | None:
    return foreign.text(folder / name, MOST_BYTES) if name == INPUTS else None


def _history(path: Path) -> File:
    return File(path.name, _Lines(path))


class _Lines:
    """The lines of a history, read again each time they are iterated over."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        size = os.stat(foreign.existing(self._path) or self._path).st_size
        if size > MOST_BYTES:
            raise SourceError(f"{self._path}: larger than {MOST_BYTES >> 20} MB")
        yield from lines_of(b"".join(chain(foreign.chunks(self._path))))


def lines_of(data: bytes) -> Iterator[JsonEntry | Damage]:
    """Yield the lines as texts, and what is damaged in them: bytes that are no UTF-8, and NULs, as after a crash."""
    offset = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            text = line.decode()
            is_text = "\0" not in text
        except UnicodeDecodeError:
            is_text = False
        if not is_text:
            yield Damage(number, offset, len(line), "a line is not text")
            text = line.decode("utf-8", "replace").replace("\0", "\ufffd")
        yield JsonEntry(number, offset, text.removesuffix("\r"), line)
        offset += len(line) + 1


def begins_session(first: bytes) -> bool:
    return recognises(first)


def recognises(first: bytes) -> bool:
    return bool(_BEGINNING.match(first))
