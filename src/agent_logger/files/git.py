"""What git's own files say of a folder: no process is started."""

import re
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 4096  # of a file that says where something is

_BRANCH = re.compile(r"ref: refs/heads/(\S+)\s*\Z")
_FOLDER = re.compile(r"gitdir: (.+?)\s*\Z")


def branch_of(folder: Path) -> str | None:
    """`HEAD` where none is checked out; none outside of a repository. Nothing is raised."""
    for _, git in git_folders(folder):
        try:
            match = _BRANCH.match(read(git / "HEAD"))
        except (OSError, ValueError):
            continue
        return match[1] if match else "HEAD"
    return None


def git_folders(folder: Path) -> Iterator[tuple[Path, Path]]:
    """From the folder upwards, those that git knows, each with where git keeps what belongs to it."""
    for above in (folder, *folder.parents):
        if git := _git_folder(above):
            yield above, git


def _git_folder(folder: Path) -> Path | None:
    """In a work tree, and in a submodule, `.git` is a file that tells where the folder is."""
    git = folder / ".git"
    try:
        if git.is_dir():
            return git
        match = _FOLDER.match(read(git)) if git.is_file() else None
    except (OSError, ValueError):
        return None
    return folder / match[1] if match else None


def read(path: Path) -> str:
    """Raises `OSError`; `ValueError`, if it is no text or no path."""
    with path.open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8")
