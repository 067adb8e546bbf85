"""Files of other programs as readers take them: framed and decoded, from the start each time."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agent_logger.agents.source_files import File
from agent_logger.files import foreign
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage, JsonEntry, Torn
from agent_logger.protocols.lines import LineSplitter


def source_file(folder: Path, name: str) -> File:
    """Return the file for a reader. `name` is what the reader calls it, and its path below the folder."""
    path = folder / name
    return File(name, _Entries(path), partial(foreign.chunks, path))


def modified(path: Path) -> float:
    try:
        return os.lstat(foreign.existing(path) or path).st_mtime
    except OSError:
        return 0.0


class _Entries:
    """The contents of a file, read again each time it is iterated over."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[JsonEntry | Damage | Torn]:
        splitter = LineSplitter()
        for chunk in foreign.chunks(self._path):
            for line in splitter.feed(chunk):
                yield from jsonl.decode(line)
        if torn := splitter.torn():
            yield Torn(torn.number, torn.offset, torn.length)
