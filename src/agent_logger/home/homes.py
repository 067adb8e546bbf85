"""Several homes that are read together: this installation's own, and those of other machines or users.

Only the own home is ever written to. Of another home, what is in its folder is read, and nothing else: the paths in its
facts are those of its machine, where they may mean something else.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agent_logger.errors import ConfigError
from agent_logger.files.stored_text import storable
from agent_logger.home.facts import known_folders, tombstones
from agent_logger.home.machine import host_name, origin_of, usable_name

OWN = ""  # the key of the own home; another home's is its path
FROM_IMPORT = "imported:"  # begins the key of a machine that only imports are from; its name follows, if it is known
RECORDINGS = ("logs", "sessions", "projects", "archive", "hooks")
# What a home has, of which none is written before something is recorded.
CONTENTS = (*RECORDINGS, "facts.jsonl", "key", "machine.json")
USUAL_NAME = ".agent-logger"
LOG_FOLDERS = ("logs", "sessions", "projects")  # where things are recorded to, unless somebody chose another folder


class Homes(NamedTuple):
    """The homes that are read, and where the catalog of them is."""

    own: Path
    has_own: bool = True  # whether the own home is read, and with it the folders of agents
    others: tuple[Path, ...] = ()
    database: str | None = None  # the URL of the database with their catalog, which is only read; none: a file has it
    below: Path | None = None  # a folder of homes, which come and go: those of a hub's devices

    @property
    def are_own_alone(self) -> bool:
        return self.has_own and not self.others and not self.database and self.below is None

    @property
    def folders(self) -> dict[str, Path]:
        """The homes by their keys, the own one first."""
        own = {OWN: self.own} if self.has_own else {}
        return own | {storable(str(other)): other for other in (*self.others, *self._below())}

    def _below(self) -> Iterator[Path]:
        if self.below and self.below.is_dir():
            yield from (Path(entry.path) for entry in sorted(os.scandir(self.below), key=_entry_name) if entry.is_dir())

    @property
    def machines(self) -> dict[str, str]:
        """The name of each home's machine, by the key of the home. No two have the same name."""
        names = {key: _name(key, folder) for key, folder in self.folders.items()}
        for longer in (_person_of, _folder_label, str):
            counts = Counter(name.lower() for name in names.values())
            names = {
                key: f"{name} ({label})" if counts[name.lower()] > 1 and (label := longer(self.folders[key])) else name
                for key, name in names.items()
            }
        return names

    @property
    def people(self) -> dict[str, str | None]:
        """The name of the person whose machine each home is of, by the key of the home; only on a hub."""
        return {key: origin_of(folder).person for key, folder in self.folders.items()}


def keys_of(name: str, names: Mapping[str, str | None]) -> frozenset[str]:
    """Return the keys of the machine or person with this name, in any case. `names`: all names by key."""
    return frozenset(key for key, other in names.items() if other and other.lower() == name.lower())


def homes_of(own: Path, given: Sequence[str | os.PathLike[str]]) -> Homes:
    """Return the given homes; the own one alone if none is given. Raises `ConfigError` for a folder that is no home, or
    is given twice, or is inside another one."""
    real, folders = own.resolve(), dict[Path, str]()
    for text in (os.fspath(each) for each in given):
        folder = _resolved(text)
        if folder != real:
            _check_home(text, folder)
        if folder in folders:
            raise ConfigError(f"--home {text} is the same home as --home {folders[folder]}")
        folders[folder] = text
    for inner, outer in ((inner, outer) for inner in folders for outer in folders if outer in inner.parents):
        raise ConfigError(f"--home {folders[inner]} is inside --home {folders[outer]}; give one of them")
    others = tuple(sorted(folder for folder in folders if folder != real))
    homes = Homes(own, real in folders or not folders, others)
    for folder in others:
        if origin_of(folder).is_newer:
            raise ConfigError(f"{folder} was written by a newer version of agent-logger; update agent-logger")
    return homes


def _resolved(text: str) -> Path:
    try:
        return Path(text).expanduser().resolve()
    except (OSError, RuntimeError) as error:  # no such user, a loop of links
        raise ConfigError(f"--home {text}: {error}") from error


def _check_home(text: str, folder: Path) -> None:
    try:
        names = set(os.listdir(folder))
    except OSError as error:
        raise ConfigError(f"--home {text}: cannot read this folder: {error.strerror}") from error
    if names.isdisjoint(CONTENTS):
        hint = f"; did you mean {folder / USUAL_NAME}?" if USUAL_NAME in names else ""
        raise ConfigError(f"--home {text} is not a home of agent-logger: it has no {', '.join(RECORDINGS)}{hint}")


def _name(key: str, folder: Path) -> str:
    return origin_of(folder).machine or (host_name() if key == OWN else _folder_label(folder))


def _entry_name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _person_of(folder: Path) -> str | None:
    return origin_of(folder).person


def _folder_label(folder: Path) -> str:
    """Return the name of a home that has no machine noted: its folder's, or for a hidden folder that of its parent."""
    name = next((part for part in reversed(folder.parts) if not part.startswith(".")), "")
    return usable_name(name.strip("/")) or "unnamed"


# ---------------------------------------------------------------- what is in another home


def folders_inside(home: Path) -> list[Path]:
    """Return the log folders of another home that are in its folder, and exist."""
    return _log_folders(home)[0]


def folders_outside(home: Path) -> list[Path]:
    """Return the folders with recordings of another home that are not in its folder: log folders, as its machine names
    them, and links."""
    links = (home / name for name in RECORDINGS if (home / name).is_dir() and not is_inside(home / name))
    return [*_log_folders(home)[1], *links]


def is_inside(folder: Path) -> bool:
    """Whether a folder below a home really is there."""
    return folder.resolve() == folder


def _log_folders(home: Path) -> tuple[list[Path], list[Path]]:
    inside, outside = [home / name for name in LOG_FOLDERS], []
    before = origin_of(home).home
    for folder in known_folders(home):
        if below := _below_home(folder, home, Path(before) if before else None):
            inside.append(home / below)
        else:
            outside.append(folder)
    return [folder for folder in dict.fromkeys(inside) if os.path.isdir(folder) and is_inside(folder)], outside


def _below_home(folder: Path, home: Path, before: Path | None) -> Path | None:
    """Return the path below a home, of a folder that its facts name; None for a folder elsewhere. `before`: the path
    that the home had when the facts were written."""
    if ".." in folder.parts:
        return None
    for root in filter(None, (home, before)):
        if root in folder.parents:
            return folder.relative_to(root)
    at = next((at for at, name in enumerate(folder.parts) if name == USUAL_NAME), len(folder.parts))
    return Path(*folder.parts[at + 1 :]) if folder.parts[at + 1 :] else None


class RemovedSessions:
    """The sessions that were removed from each home: they are gone from that one only."""

    def __init__(self, homes: Homes) -> None:
        self.by_home: Mapping[str, frozenset[str]] = {
            key: frozenset(tombstones(folder)) for key, folder in homes.folders.items()
        }

    def has(self, home: str, session: str) -> bool:
        return session in self.by_home.get(home, ())

    @property
    def names(self) -> Iterator[str]:
        """Yield what identifies all removals."""
        for key, sessions in self.by_home.items():
            yield from (f"{key}\0{session}" if key else session for session in sorted(sessions))
