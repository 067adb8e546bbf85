"""What git's own files say of a folder: no process is started."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 4096  # of a file that says where something is

_BRANCH = re.compile(r"ref: refs/heads/(\S+)\s*\Z")
_FOLDER = re.compile(r"gitdir: (.+?)\s*\Z")


def branch_of(folder: Path) -> str | None:
    """The branch that is checked out; `HEAD` if none is, `None` outside of a repository. Raises nothing."""
    for _, git in git_folders(folder):
        try:
            match = _BRANCH.match(read(git / "HEAD"))
        except (OSError, ValueError):
            continue
        return match[1] if match else "HEAD"
    return None


def git_folders(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the folders that git knows, from this one upwards, each with the folder where git keeps its data."""
    for above in (folder, *folder.parents):
        if git := _git_folder(above):
            yield above, git


def _git_folder(folder: Path) -> Path | None:
    """The folder where git keeps the data of this one. In a work tree and in a submodule, `.git` is a file that names
    it."""
    git = folder / ".git"
    try:
        if os.path.isdir(git):
            return git
        match = _FOLDER.match(read(git)) if os.path.isfile(git) else None
    except (OSError, ValueError):
        return None
    return folder / match[1] if match else None


def read(path: Path) -> str:
    """Read a small text file. Raises `OSError`, and `ValueError` if the content is no text or `path` is no path."""
    with path.open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8")
