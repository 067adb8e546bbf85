"""Which project a folder belongs to: its git repository, all worktrees of it together; else the folder itself."""

import os
from functools import lru_cache
from pathlib import Path

from agent_logger.files.git import git_folders, read


@lru_cache(maxsize=4096)
def project_of(folder: str) -> str:
    """The project of a folder, even if the folder is gone: those above it may still exist. A path that is not absolute
    is its own project."""
    path = Path(folder)
    if not path.is_absolute():
        return folder
    return next(
        (repository for candidate, git in git_folders(path) if (repository := _repository(candidate, git))),
        folder,
    )


def _repository(folder: Path, git: Path) -> str | None:
    if git == folder / ".git":
        return str(folder) if os.path.exists(git / "HEAD") else None
    common = _common(git)
    if common is None:
        return str(folder)
    return str(common.parent if common.name == ".git" else common)


def _common(git: Path) -> Path | None:
    """The repository's folder, which a worktree's own folder names. A submodule's folder names none: it is a project of
    its own."""
    try:
        return Path(git, read(git / "commondir").strip()).resolve()
    except (OSError, ValueError):  # it was pruned; `git worktree` had it in the repository's
        worktrees = git.parent
        is_there = worktrees.name == "worktrees" and os.path.isdir(worktrees.parent)
        return worktrees.parent.resolve() if is_there else None
