"""The files of a log: what they are called, and which there are.

A log is `<name>.jsonl`, `<name>.p2.jsonl`, ...; a sealed part has `.zst` behind its name, the messages
of an exchange in flight are in `.live`.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PART = re.compile(
    r"(?P<name>.+?)(?:\.p(?P<number>[2-9]|[1-9][0-9]+))?\.jsonl(?:\.zst|(?P<live>\.live(?:\.[\w.-]+)?))?"
)


@dataclass(frozen=True, slots=True, order=True)
class PartFile:
    """One part of a log, by name; it need not exist."""

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

    def is_sealed(self) -> bool:
        """The sealed file appears only when it is whole, so it counts even while the plain one is there."""
        return self.sealed_path.exists()

    def existing_path(self) -> Path:
        return self.sealed_path if self.is_sealed() else self.path


def part_of(path: Path) -> PartFile | None:
    """The part that a file belongs to, whatever its suffix; `None` for a file that is no log's."""
    found = _PART.fullmatch(path.name)
    return PartFile(path.parent, found["name"], int(found["number"] or 1)) if found else None


def is_live(path: Path) -> bool:
    found = _PART.fullmatch(path.name)
    return bool(found and found["live"])


def parts_of(folder: Path, name: str) -> list[PartFile]:
    """The parts of a log, oldest first."""
    return sorted({part for part, path in _files(folder, name) if not is_live(path)})


def live_files_of(folder: Path, name: str) -> dict[PartFile, list[Path]]:
    """A part has more than one while a sync is due for an exchange that has just ended."""
    found: dict[PartFile, list[Path]] = {}
    for part, path in _files(folder, name):
        if is_live(path):
            found.setdefault(part, []).append(path)
    return found


def parts_in(folder: Path) -> list[PartFile]:
    return sorted({part for part, path in _files(folder) if not is_live(path)})


def _files(folder: Path, name: str | None = None) -> Iterator[tuple[PartFile, Path]]:
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            if name is not None and not entry.name.startswith(name):
                continue
            part = part_of(Path(entry.path))
            if part and name in (None, part.name):
                yield part, Path(entry.path)
