"""Where agents keep their sessions: the folders, and the walk that finds the main files in them.

No link below an agent's folder is followed, only regular files are returned, and both are bounded: folders that any
program may write to must not lead us out of them, nor keep us busy forever.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from agent_logger.agents.base import AgentLocation
from agent_logger.files.foreign import SEALED

MOST_FILES = 200_000  # files of one agent in one folder


def folders_of(location: AgentLocation, environment: Mapping[str, str], home: Path) -> list[Path]:
    """Return where the agent would look, whether the folder exists or not. An empty variable counts as not set."""
    named = environment.get(location.variable or "", "")
    names = [name.strip() for name in named.split(",")] if location.several else [named]
    folders = [Path(name).expanduser() / location.below for name in names if name]
    if not folders and location.below_data_home and (data := environment.get("XDG_DATA_HOME")):
        folders = [Path(data).expanduser() / location.below_data_home]
    folders = folders or [home / name for name in location.default]
    if further := environment.get(location.main_files_variable or ""):
        folders.append(Path(further).expanduser())
    return list(dict.fromkeys(folders))


def main_files(location: AgentLocation, folders: Iterable[Path], *, sealed: bool = False) -> list[Path]:
    """Return the main files that exist, sorted by name. `sealed`: as `matching`."""
    patterns = [glob.split("/") for glob in location.globs]
    paths = (path for folder in folders for pattern in patterns for path in matching(folder, pattern, sealed=sealed))
    return sorted(set(islice(paths, MOST_FILES)))


def is_main_file(location: AgentLocation, parts: tuple[str, ...]) -> bool:
    """Whether a path below a folder of the agent is that of a main file."""
    return any(fits(parts, glob.split("/")) for glob in location.globs)


def fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path fits a pattern, name by name."""
    if pattern[-1] == "**":
        return len(parts) >= len(pattern) and all(map(fnmatchcase, parts, pattern[:-1]))
    return len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern))


def beside(patterns: Iterable[str], parts: tuple[str, ...]) -> list[list[str]]:
    """Return patterns (for `matching`) of what belongs to a main file, by its path below a folder of the agent."""
    from glob import escape

    *above, _ = folder = [escape(part) for part in parts[:-1]] or [""]
    names = {
        "folder": "/".join(folder),
        "above": "/".join(above),
        "stem": escape(parts[-1].rpartition(".")[0]),
    }
    return [pattern.format(**names).split("/") for pattern in patterns]


def older_files_in(location: AgentLocation, root: Path) -> Iterator[Path]:
    paths = (path for glob in location.older for path in matching(root, glob.split("/")))
    return islice(paths, MOST_FILES)


def kept_files(location: AgentLocation, root: Path) -> Iterator[tuple[str, ...]]:
    """Yield the files of sessions below a folder of the agent, as paths from that folder."""
    paths = (path for pattern in location.keep for path in matching(root, pattern.split("/")))
    for path in islice(paths, MOST_FILES):
        yield path.relative_to(root).parts


def _everything(folder: Path) -> Iterator[Path]:
    for inside, folders, names in os.walk(folder):  # follows no link
        folders.sort()
        for name in sorted(names):
            if is_file(path := Path(inside, name)):
                yield path


def matching(folder: Path, pattern: list[str], *, sealed: bool = False) -> Iterator[Path]:
    """Yield the regular files below a folder whose path fits, name by name. No link is followed. `sealed`: a file that
    was packed counts by the name it had before."""
    first, *rest = pattern
    if first == "**":
        yield from _everything(folder)
        return
    end = SEALED if sealed and not rest else ""
    try:
        with os.scandir(folder) as entries:
            names = {
                entry.name.removesuffix(end)
                for entry in entries
                if fnmatchcase(entry.name.removesuffix(end), first)
                and (entry.is_dir(follow_symlinks=False) if rest else entry.is_file(follow_symlinks=False))
            }
    except OSError:  # not there, or not ours to read
        return
    for name in sorted(names):
        if rest:
            yield from matching(folder / name, rest, sealed=sealed)
        else:
            yield folder / name


def is_file(path: Path) -> bool:
    return os.path.isfile(path) and not path.is_symlink()
