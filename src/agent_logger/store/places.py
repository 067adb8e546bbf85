"""Where agents keep their sessions: one table, and the walk that finds the main files in a folder of theirs.

No link below an agent's folder is followed, nothing but regular files is named, and both are bounded: what any program
may write to must not lead us out of it, nor keep us busy for ever.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

MOST_FILES = 200_000  # of one agent in one folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    agent: str
    globs: tuple[str, ...]  # of main files, below the agent's folder
    default: tuple[str, ...]  # its folders, below the home
    variable: str | None = (
        None  # names the folder instead; several, separated by commas, where the agent says so
    )
    below: str = ""  # of what the variable names
    several: bool = False
    file_variable: str | None = None  # names a main file, from the folder if it is relative


AGENT_PLACES = (
    Place(
        agent="claude-code",
        globs=("projects/*/*.jsonl",),
        default=(".claude", ".config/claude"),
        variable="CLAUDE_CONFIG_DIR",
        several=True,
    ),
    Place(
        agent="codex",
        globs=("sessions/*/*/*/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"),
        default=(".codex",),
        variable="CODEX_HOME",
    ),
    Place(
        agent="gemini-cli",
        globs=("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json"),
        default=(".gemini",),
        variable="GEMINI_CLI_HOME",
        below=".gemini",
    ),
    Place(
        agent="opencode",
        globs=("opencode.db", "opencode-*.db"),
        default=(".local/share/opencode",),
        variable="XDG_DATA_HOME",
        below="opencode",
        file_variable="OPENCODE_DB",
    ),
)


def folders_of(place: Place, environment: Mapping[str, str], home: Path) -> list[Path]:
    """Where the agent would look, whether it is there or not. A variable that is empty counts as not set."""
    told = environment.get(place.variable or "", "")
    names = [name.strip() for name in told.split(",")] if place.several else [told]
    folders = [Path(name).expanduser() / place.below for name in names if name]
    return list(dict.fromkeys(folders or [home / name for name in place.default]))


def main_files(place: Place, environment: Mapping[str, str], home: Path) -> list[Path]:
    """Those that are there, in the order of their names."""
    found: dict[Path, None] = {}
    for folder in folders_of(place, environment, home):
        root = Path(os.path.realpath(folder))  # the folder itself may be a link: its owner made it
        for glob in place.globs:
            for path in _matching(root, glob.split("/")):
                found[path] = None
                if len(found) >= MOST_FILES:
                    return sorted(found)
        if (named := environment.get(place.file_variable or "")) and _is_file(root / named):
            found[root / named] = None
    return sorted(found)


def _matching(folder: Path, pattern: list[str]) -> Iterator[Path]:
    first, *rest = pattern
    try:
        with os.scandir(folder) as entries:
            names = [
                it.name
                for it in entries
                if fnmatchcase(it.name, first)
                and (it.is_dir(follow_symlinks=False) if rest else it.is_file(follow_symlinks=False))
            ]
    except OSError:  # not there, or not ours to read
        return
    for name in sorted(names):
        if rest:
            yield from _matching(folder / name, rest)
        else:
            yield folder / name


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
