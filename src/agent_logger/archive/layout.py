"""The archive: where copies of other agents' files are, and which of them exist.

`<home>/archive/<agent>/<folder>/<path>`: `<folder>` represents one folder of the agent, whose path is in `.folder`;
`<path>` is the file's below it. Nothing else is written there. What is read there may be sealed.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agent_logger import platform
from agent_logger.agents.claude_code.naming import folder_name
from agent_logger.archive.copy import OLDER
from agent_logger.files.foreign import SEALED
from agent_logger.home.small_files import read_small_file

FOLDER_FILE = ".folder"
MOST_PATH_BYTES = 64 << 10
MOST_NAME = 60  # characters of the path that are in a folder's name, for people
MAKING = re.compile(rf"\..+\.\d+{OLDER}(?:-journal)?|\.{FOLDER_FILE}\.\d+")  # what a killed copier left


class ArchiveFolder(NamedTuple):
    """A folder of an agent, and where its copies are."""

    agent: str
    origin: Path
    copies: Path

    def target(self, parts: tuple[str, ...]) -> Path:
        return self.copies.joinpath(*parts)


class ArchivedCopy(NamedTuple):
    folder: ArchiveFolder
    parts: tuple[str, ...]  # the file's path below the agent's folder
    path: Path  # of the copy, plain or sealed
    modified: float
    size: int

    @property
    def target(self) -> Path:
        """The copy's plain name, by which it is read."""
        return self.folder.target(self.parts)

    @property
    def origin(self) -> Path:
        return self.folder.origin.joinpath(*self.parts)


def archive_path(home: Path) -> Path:
    return home / "archive"


def folder_of(home: Path, agent: str, origin: Path) -> ArchiveFolder:
    """Return where the copies of an agent's folder go; the folder need not exist."""
    digest = hashlib.sha256(os.fsencode(origin)).hexdigest()[:8]
    name = f"{folder_name(str(origin))[-MOST_NAME:].lstrip('-')}-{digest}"
    return ArchiveFolder(agent, origin, archive_path(home) / agent / name)


def prepare(folder: ArchiveFolder) -> None:
    """Make the folder. Raises `OSError`."""
    path = folder.copies / FOLDER_FILE
    if not path.exists():
        platform.make_folder(folder.copies)
        platform.replace_file(path, os.fsencode(folder.origin), synced=True)


def folders(home: Path) -> list[ArchiveFolder]:
    """Return every folder of which anything was copied. Raises nothing."""
    return [
        ArchiveFolder(path.parent.parent.name, Path(os.fsdecode(origin)), path.parent)
        for path in sorted(archive_path(home).glob(f"*/*/{FOLDER_FILE}"))
        if (origin := read_small_file(path, MOST_PATH_BYTES))
    ]


def copies(folder: ArchiveFolder) -> Iterator[ArchivedCopy]:
    """Yield the newest generation of every file, sorted by name."""
    for inside, inner, names in os.walk(folder.copies):
        inner.sort()
        present = {name for name in names if OLDER not in name}
        if Path(inside) == folder.copies:
            present = {name for name in present if name != FOLDER_FILE and not MAKING.fullmatch(name)}
        for name in sorted(present):
            plain = name.removesuffix(SEALED)
            if plain != name and plain in present:
                continue
            path = Path(inside, name)
            try:
                status = os.lstat(path)
            except OSError:  # it was sealed or unsealed just now
                continue
            parts = Path(inside, plain).relative_to(folder.copies).parts
            yield ArchivedCopy(folder, parts, path, status.st_mtime, status.st_size)
