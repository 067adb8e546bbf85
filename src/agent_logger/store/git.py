"""The branch a folder is on, from git's own files: no process is started."""

import re
from pathlib import Path

MOST_BYTES = 4096  # of a file that says where something is

_BRANCH = re.compile(r"ref: refs/heads/(\S+)\s*\Z")
_FOLDER = re.compile(r"gitdir: (.+?)\s*\Z")


def branch_of(folder: Path) -> str | None:
    """`HEAD` where none is checked out; none outside of a repository. Nothing is raised."""
    for above in (folder, *folder.parents):
        said = _said(above / ".git", above)
        if said is not None:
            found = _BRANCH.match(said)
            return found[1] if found else "HEAD"
    return None


def _said(git: Path, above: Path) -> str | None:
    """What `HEAD` says. In a work tree, and in a submodule, `.git` is a file that tells where the folder is."""
    try:
        if git.is_dir():
            return _read(git / "HEAD")
        found = _FOLDER.match(_read(git)) if git.is_file() else None
        return _read(above / found[1] / "HEAD") if found else None
    except (OSError, ValueError):
        return None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8")
