"""Which project a folder is of: its git repository, all worktrees of it together; else the folder itself."""

from functools import lru_cache
from pathlib import Path

from agent_logger.files.git import git_folders, read


@lru_cache(maxsize=4096)
def project_of(folder: str) -> str:
    """Also of a folder that is gone: those above it may be there still. What is no absolute path is itself."""
    path = Path(folder)
    if not path.is_absolute():
        return folder
    return next(
        (repository for candidate, git in git_folders(path) if (repository := _repository(candidate, git))),
        folder,
    )


def _repository(folder: Path, git: Path) -> str | None:
    if git == folder / ".git":
        return str(folder) if (git / "HEAD").exists() else None
    common = _common(git)
    if common is None:
        return str(folder)
    return str(common.parent if common.name == ".git" else common)


def _common(git: Path) -> Path | None:
    """A worktree's own folder says where the repository's is. A submodule's does not: it is a project of its own."""
    try:
        return Path(git, read(git / "commondir").strip()).resolve()
    except (OSError, ValueError):  # it was pruned; `git worktree` had it in the repository's
        worktrees = git.parent
        is_there = worktrees.name == "worktrees" and worktrees.parent.is_dir()
        return worktrees.parent.resolve() if is_there else None
