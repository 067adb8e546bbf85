"""The files that were written and are not synced yet, and their sync."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger import platform


class Unsynced(msgspec.Struct):
    """The work of the next sync."""

    bodies: list[Path] = msgspec.field(default_factory=list)
    # Folders with new names in them.
    folders: set[Path] = msgspec.field(default_factory=set)
    # Parts and live files, with how many records of each.
    lines: dict[Path, int] = msgspec.field(default_factory=dict)
    # Live files, to be removed once everything else is synced.
    retired: list[Path] = msgspec.field(default_factory=list)

    def add_lines(self, path: Path, count: int = 0) -> None:
        self.lines[path] = self.lines.get(path, 0) + count

    def add_body(self, path: Path) -> None:
        self.bodies.append(path)
        self.folders |= {path.parent, path.parent.parent}

    def __bool__(self) -> bool:
        return bool(self.bodies or self.folders or self.lines or self.retired)


class FileSync(NamedTuple):
    """The result of a file's sync. After an `error` the system may have dropped what was written."""

    path: Path
    records: int
    error: OSError | None = None
    is_postponed: bool = False


def sync(work: Unsynced, opened: Mapping[Path, platform.Held | None]) -> Iterator[FileSync]:
    """Sync files and folders, bodies first: a line that is on the disk must not name a body that is not.

    `opened`: files that were opened for this, which are closed here. By the time of the sync, the name may be another
    file's.
    """
    for path in work.bodies:
        yield _sync_file(path, 0, None)
    for folder in work.folders:
        with suppress(OSError):  # some file systems cannot; the files themselves are synced
            platform.sync_folder(folder)
    for path, records in work.lines.items():
        yield _sync_file(path, records, opened.get(path))


def _sync_file(path: Path, records: int, held: platform.Held | None) -> FileSync:
    try:
        held = held or platform.open_file(path)
    except FileNotFoundError:
        return FileSync(path, records)  # sealed or removed
    except OSError:
        return FileSync(path, records, is_postponed=True)  # no descriptor left
    with held:
        try:
            platform.sync(held.fd)
        except OSError as error:
            return FileSync(path, records, error)
    return FileSync(path, records)
