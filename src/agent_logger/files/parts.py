"""The files of a log: what they are called, which there are, and how one is opened for reading.

A log is `<name>.jsonl`, `<name>.p2.jsonl`, ...; a sealed part has `.zst` behind its name, the messages
of an exchange in flight are in `.live`.
"""

import os
import re
import stat
import time
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple

from agent_logger.errors import SourceError

_PART = re.compile(
    r"(?P<name>.+?)(?:\.p(?P<number>[2-9]|[1-9][0-9]+))?\.jsonl(?:\.zst|(?P<live>\.live(?:\.[\w.-]+)?))?"
)


class PartFile(NamedTuple):
    """A part of a log, by name; it need not exist."""

    folder: Path
    name: str
    number: int = 1

    @property
    def path(self) -> Path:
        infix = f".p{self.number}" if self.number > 1 else ""
        return self.folder / f"{self.name}{infix}.jsonl"

    @property
    def sealed_path(self) -> Path:
        return self.path.with_name(self.path.name + ".zst")

    @property
    def live_path(self) -> Path:
        return self.path.with_name(self.path.name + ".live")

    @property
    def bodies(self) -> Path:
        return self.folder / f"{self.name}.bodies"

    def next(self) -> "PartFile":
        return PartFile(self.folder, self.name, self.number + 1)

    def newest(self) -> "PartFile":
        """The last part that exists, from this one on: found without listing the whole folder."""
        part = self
        while os.path.exists(part.next().path) or part.next().is_sealed():
            part = part.next()
        return part

    def is_sealed(self) -> bool:
        """Whether the sealed file exists. It appears only when it is whole, so it counts even while the plain one is
        there. What is not a file is somebody else's. The name may be too long for a file that is sealed."""
        return os.path.isfile(self.sealed_path)

    def existing_path(self) -> Path:
        return self.sealed_path if self.is_sealed() else self.path


class LoneFile(PartFile):
    """A log in one file, which may have any name."""

    @property
    def path(self) -> Path:
        return self.folder / self.name


def part_of(path: Path) -> PartFile | None:
    """The part that a file belongs to, whatever its suffix; `None` for a file that is no log's."""
    return _part_called(path.name, path.parent)


def _part_called(file_name: str, folder: Path) -> PartFile | None:
    match = _PART.fullmatch(file_name)
    return PartFile(folder, match["name"], int(match["number"] or 1)) if match else None


def log_named(file_name: str) -> str | None:
    """Return the name of the log that a file of this name belongs to; `None` for a file that is no log's."""
    match = _PART.fullmatch(file_name)
    return match["name"] if match else None


def is_live(path: Path) -> bool:
    match = _PART.fullmatch(path.name)
    return bool(match and match["live"])


def parts_of(folder: Path, name: str) -> list[PartFile]:
    """The parts of a log, oldest first."""
    return sorted({part for part, path in _files(folder, name) if not is_live(path)})


def live_files_of(folder: Path, name: str) -> dict[PartFile, list[Path]]:
    """The live files of a log, by part. A part has more than one while a sync is due for an exchange that has just
    ended."""
    by_part: dict[PartFile, list[Path]] = {}
    for part, path in _files(folder, name):
        if is_live(path):
            by_part.setdefault(part, []).append(path)
    return by_part


def parts_in(folder: Path) -> list[PartFile]:
    return sorted({part for part, path in _files(folder) if not is_live(path)})


def parts_by_log(folder: Path) -> dict[str, list[PartFile]]:
    """Return the parts of all logs in a folder by the name of the log, from one listing."""
    return {name: list(parts) for name, parts in groupby(parts_in(folder), key=attrgetter("name"))}


Files = list[tuple[PartFile, Path]]


class _Listing(NamedTuple):
    changed_ns: int  # when the folder was
    by_name: dict[str, Files]


_SETTLED_SECONDS = 2.0  # clocks of file systems are coarse: a folder that changed just now may change unseen
_MOST_LISTINGS = 64
_listings: dict[Path, _Listing] = {}


def _files(folder: Path, name: str | None = None) -> Files:
    """The files of a folder, or of one log in it. A folder may hold the logs of many thousand sessions, so it is listed
    again only when it has changed."""
    try:
        changed_ns = os.stat(folder).st_mtime_ns
        listing = _listings.get(folder)
        if listing is None or listing.changed_ns != changed_ns:
            if name is not None and not _is_settled(changed_ns):
                return _by_name(folder, name).get(name, [])  # the listing cannot be used again
            listing = _Listing(changed_ns, _by_name(folder))
            _remember(folder, listing)
    except (FileNotFoundError, NotADirectoryError):
        return []
    if name is not None:
        return listing.by_name.get(name, [])
    return [file for files in listing.by_name.values() for file in files]


def _by_name(folder: Path, beginning: str = "") -> dict[str, Files]:
    """List the files whose names start with `beginning`, by the name of their log."""
    files_by_name: dict[str, Files] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            part = _part_called(entry.name, folder) if entry.name.startswith(beginning) else None
            if part and entry.is_file():  # else it is somebody else's, and would hide the log
                files_by_name.setdefault(part.name, []).append((part, folder / entry.name))
    return files_by_name


def _remember(folder: Path, listing: _Listing) -> None:
    _listings.pop(folder, None)
    if _is_settled(listing.changed_ns):
        while len(_listings) >= _MOST_LISTINGS:
            _listings.pop(next(iter(_listings)), None)
        _listings[folder] = listing


def _is_settled(changed_ns: int) -> bool:
    return time.time() - changed_ns / 1e9 > _SETTLED_SECONDS


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file of ours, also through a link. Raises `SourceError` for anything else: a FIFO must not block
    us."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise SourceError(f"{path}: not a regular file")
    return os.fdopen(fd, "rb")
