"""Which project a folder is of: its git repository, all worktrees of it together; else the folder itself.

Read from git's own files, without starting it: there may be thousands of sessions.
"""

import re
from functools import lru_cache
from pathlib import Path

MOST_BYTES = 4096  # of the small files that git keeps here
_GITDIR = re.compile(r"gitdir: *(.+)")


@lru_cache(maxsize=4096)
def project_of(folder: str) -> str:
    """Also of a folder that is gone: those above it may be there still. What is no absolute path is itself."""
    path = Path(folder)
    if not path.is_absolute():
        return folder
    return next((found for it in (path, *path.parents) if (found := _repository(it))), folder)


def _repository(folder: Path) -> str | None:
    mark = folder / ".git"
    try:
        if mark.is_dir():
            return str(folder) if (mark / "HEAD").exists() else None
        told = _GITDIR.fullmatch(_text(mark)) if mark.is_file() else None  # a FIFO would block us
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    return _main(folder, Path(folder, told[1])) if told else None


def _main(folder: Path, gitdir: Path) -> str:
    """A worktree's own folder says where the repository's is. A submodule's does not: it is a project of its own."""
    common = _common(gitdir)
    if common is None:
        return str(folder)
    return str(common.parent if common.name == ".git" else common)


def _common(gitdir: Path) -> Path | None:
    try:
        return Path(gitdir, _text(gitdir / "commondir")).resolve()
    except (OSError, ValueError):  # it was pruned; `git worktree` had it in the repository's
        worktrees = gitdir.parent
        is_there = worktrees.name == "worktrees" and worktrees.parent.is_dir()
        return worktrees.parent.resolve() if is_there else None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8", "surrogateescape").strip()
