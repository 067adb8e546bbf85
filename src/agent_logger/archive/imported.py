"""What was imported: `<home>/archive/imported/<import>/<unit>/`, and `origin.json` beside the units.

An import is a bundle, a file or another home. A unit is a session of a bundle, or all of a home. Its folders are those
that a bundle has, too:

`session.json`                       what the bundle says of the session; not in other imports
`logs/<folder>/`                     our logs
`hooks/<day>/`                       events of hooks
`agents/<agent>/<folder>/<path>`     an agent's files; of a database, the rows of each session
`files/<agent>/<name>/<name>`        an agent's file, if its path does not show whose it is
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger.archive.layout import archive_path
from agent_logger.errors import SourceError, StoreError
from agent_logger.home.small_files import read_small_file
from agent_logger.model.origin import ImportOrigin

IMPORTED = "imported"
ORIGIN, HEAD = "origin.json", "session.json"
LOGS, HOOKS, AGENTS, FILES = "logs", "hooks", "agents", "files"
MOST_HEAD_BYTES = 16 << 20
BUNDLE_FORM = "agent-logger bundle"


class BundledSession(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle says of one of its sessions: the first file of its unit."""

    form: str = BUNDLE_FORM
    v: int = 1
    session: str
    agent: str | None = None
    machine: str | None = None
    # The names of its own logs: those of its calls may not name it.
    logs: tuple[str, ...] = ()
    # Titles that files of other sessions give it, by the line that each ends at.
    titles: dict[str, str] = {}
    agent_logger: str  # the version that wrote it


class ImportedUnit(NamedTuple):
    name: str  # of the import
    folder: Path


def imports_path(home: Path) -> Path:
    return archive_path(home) / IMPORTED


def imports(home: Path) -> list[ImportOrigin]:
    """Return the origins of all imports, sorted by name."""
    return [origin for name in _folders_in(imports_path(home)) if (origin := origin_of(home, name))]


def origin_of(home: Path, name: str) -> ImportOrigin | None:
    try:
        return msgspec.json.decode(
            read_small_file(imports_path(home) / name / ORIGIN, MOST_HEAD_BYTES), type=ImportOrigin
        )
    except (ValueError, RecursionError):
        return None


def units(home: Path) -> Iterator[ImportedUnit]:
    root = imports_path(home)
    for name in _folders_in(root):
        yield from (ImportedUnit(name, root / name / unit) for unit in _folders_in(root / name))


def head_of(file: Path) -> BundledSession | None:
    """Return what the bundle says of the session that a file of an import is of."""
    unit = _unit_of(file)
    try:
        return msgspec.json.decode(read_small_file(unit / HEAD, MOST_HEAD_BYTES), type=BundledSession) if unit else None
    except OSError:  # an import of something else has none
        return None
    except (ValueError, RecursionError):
        return None


def machine_of(file: Path) -> str | None:
    """Return the machine on which a file of an import was recorded; None if that is not known."""
    unit = _unit_of(file)
    origin = origin_of(unit.parents[3], unit.parent.name) if unit else None
    return origin.machine if origin else None


def _unit_of(file: Path) -> Path | None:
    """Return the unit that a file is in: the folder of an import is in that of all imports, which is in the archive."""
    parents = file.parents
    triples = zip(parents, parents[2:], parents[3:], strict=False)
    return next((unit for unit, all_imports, archive in triples if all_imports == imports_path(archive.parent)), None)


def remove_import(home: Path, name: str) -> None:
    """Delete an import as one. Raises `SourceError` if there is none of that name, and `StoreError`."""
    if name not in _folders_in(imports_path(home)):
        raise SourceError(f"no import {name!r}; 'agent-logger import --list' lists them")
    hidden = imports_path(home) / f".{name}.{os.getpid()}"
    try:
        os.rename(imports_path(home) / name, hidden)  # it is gone at once, however long deleting takes
        shutil.rmtree(hidden)
    except OSError as error:
        raise StoreError(f"cannot remove {imports_path(home) / name}: {error.strerror}") from error


def _folders_in(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, except those of imports that are not complete."""
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name[0] != "."
            )
    except OSError:
        return []
