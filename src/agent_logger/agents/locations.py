"""Where agents keep their sessions: one table, and the walk that finds the main files in a folder of theirs.

No link below an agent's folder is followed, nothing but regular files is named, and both are bounded: what any program
may write to must not lead us out of it, nor keep us busy for ever.
"""

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

MOST_FILES = 200_000  # of one agent in one folder


class AgentLocation(NamedTuple):
    agent: str
    globs: tuple[str, ...]  # of main files, below the agent's folder
    default: tuple[str, ...]  # its folders, below the home
    # Names the folder instead; several, separated by commas, where the agent says so.
    variable: str | None = None
    below: str = ""  # of what the variable names
    several: bool = False
    file_variable: str | None = None  # names a main file, from the folder if it is relative
    older: tuple[str, ...] = ()  # of files that were main ones before these, the newest kind first
    keep: tuple[str, ...] = ()  # what belongs to sessions, below the folder; `**` is everything from there on


AGENT_PLACES = (
    AgentLocation(
        agent="claude-code",
        globs=("projects/*/*.jsonl",),
        default=(".claude", ".config/claude"),
        variable="CLAUDE_CONFIG_DIR",
        several=True,
        keep=("projects/**", "sessions/*.jsonl", "file-history/**", "history.jsonl"),
    ),
    AgentLocation(
        agent="codex",
        globs=("sessions/*/*/*/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"),
        default=(".codex",),
        variable="CODEX_HOME",
        keep=("sessions/**", "archived_sessions/**", "history.jsonl"),
    ),
    AgentLocation(
        agent="gemini-cli",
        globs=("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json"),
        default=(".gemini",),
        variable="GEMINI_CLI_HOME",
        below=".gemini",
        keep=("tmp/*/chats/**", "tmp/*/logs.json", "tmp/*/.project_root"),
    ),
    AgentLocation(
        agent="opencode",
        globs=("opencode.db", "opencode-*.db"),
        default=(".local/share/opencode",),
        variable="XDG_DATA_HOME",
        below="opencode",
        file_variable="OPENCODE_DB",
        older=("storage/session/*/ses_*.json", "project/*/storage/session/info/ses_*.json"),
    ),
    AgentLocation(
        agent="qwen-code",
        globs=("projects/*/chats/*.jsonl",),
        default=(".qwen",),
        keep=("projects/*/chats/**",),
    ),
)


def folders_of(place: AgentLocation, environment: Mapping[str, str], home: Path) -> list[Path]:
    """Where the agent would look, whether it is there or not. A variable that is empty counts as not set."""
    named = environment.get(place.variable or "", "")
    names = [name.strip() for name in named.split(",")] if place.several else [named]
    folders = [Path(name).expanduser() / place.below for name in names if name]
    return list(dict.fromkeys(folders or [home / name for name in place.default]))


def main_files(place: AgentLocation, environment: Mapping[str, str], home: Path) -> list[Path]:
    """Those that are there, in the order of their names."""
    paths: dict[Path, None] = {}
    for folder in folders_of(place, environment, home):
        root = Path(os.path.realpath(folder))  # the folder itself may be a link: its owner made it
        paths.update(dict.fromkeys(islice(main_files_in(place, root), MOST_FILES - len(paths))))
        if (named := environment.get(place.file_variable or "")) and _is_file(root / named):
            paths[root / named] = None
    return sorted(paths)


def main_files_in(place: AgentLocation, root: Path) -> Iterator[Path]:
    for glob in place.globs:
        yield from matching(root, glob.split("/"))


def older_files_in(place: AgentLocation, root: Path) -> Iterator[Path]:
    paths = (path for glob in place.older for path in matching(root, glob.split("/")))
    return islice(paths, MOST_FILES)


def kept_files(place: AgentLocation, root: Path) -> Iterator[tuple[str, ...]]:
    """What belongs to sessions below a folder of the agent's, as names from there on."""
    paths = (path for pattern in place.keep for path in matching(root, pattern.split("/")))
    for path in islice(paths, MOST_FILES):
        yield path.relative_to(root).parts


def _everything(folder: Path) -> Iterator[Path]:
    for inside, folders, names in os.walk(folder):  # follows no link
        folders.sort()
        for name in sorted(names):
            if _is_file(path := Path(inside, name)):
                yield path


def matching(folder: Path, pattern: list[str]) -> Iterator[Path]:
    """The regular files below a folder whose path fits, name by name. No link is followed."""
    first, *rest = pattern
    if first == "**":
        yield from _everything(folder)
        return
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if fnmatchcase(entry.name, first)
                and (entry.is_dir(follow_symlinks=False) if rest else entry.is_file(follow_symlinks=False))
            ]
    except OSError:  # not there, or not ours to read
        return
    for name in sorted(names):
        if rest:
            yield from matching(folder / name, rest)
        else:
            yield folder / name


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
