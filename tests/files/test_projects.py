"""Sessions of one repository belong together, wherever its worktrees are."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agent_logger.files.projects import project_of


@pytest.fixture(autouse=True)
def _fresh() -> None:
    project_of.cache_clear()


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main")
    extra = ("-c", "protocol.file.allow=always")
    subprocess.run(["git", *settings, *extra, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    return folder


def test_a_folder_inside_a_repository_belongs_to_the_repository(repository: Path) -> None:
    inner = repository / "src" / "deep"
    inner.mkdir(parents=True)
    assert {project_of(str(it)) for it in (repository, repository / "src", inner)} == {str(repository)}


def test_worktrees_belong_to_their_repository(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "elsewhere"), "-b", "other")
    git(repository, "worktree", "add", str(repository / ".claude/worktrees/third"), "-b", "third")
    (tmp_path / "elsewhere" / "src").mkdir()
    for folder in (
        tmp_path / "elsewhere",
        tmp_path / "elsewhere" / "src",
        repository / ".claude/worktrees/third",
    ):
        assert project_of(str(folder)) == str(repository)


def test_a_removed_or_pruned_worktree_still_belongs_to_its_repository(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(repository / "trees" / "one"), "-b", "one")
    shutil.rmtree(repository / "trees")
    assert project_of(str(repository / "trees" / "one")) == str(repository)
    git(repository, "worktree", "add", str(tmp_path / "two"), "-b", "two")
    shutil.rmtree(repository / ".git" / "worktrees")
    assert project_of(str(tmp_path / "two")) == str(repository)


def test_worktrees_of_a_bare_repository_belong_to_the_repository(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--bare", str(repository), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", str(tmp_path / "tree"), "-b", "other")
    assert project_of(str(tmp_path / "tree")) == str(tmp_path / "bare.git")


def test_a_submodule_is_a_separate_project(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init")
    git(outer, "submodule", "add", str(repository), "inner")
    assert project_of(str(outer / "inner")) == str(outer / "inner")


@pytest.mark.parametrize("mark", ["", "gitdir:", "gitdir: \0", "nonsense", "gitdir: /nowhere/worktrees/x"])
def test_an_invalid_git_file_is_ignored(tmp_path: Path, mark: str) -> None:
    (tmp_path / ".git").write_text(mark)
    assert project_of(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("folder", ["", "relative/path", "/gone/for/good", "/a\0b", "C:\\work"])
def test_a_path_that_is_not_a_local_folder_is_its_own_project(folder: str) -> None:
    assert project_of(folder) == folder


def test_an_empty_git_folder_is_not_a_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert project_of(str(tmp_path / "x")) == str(tmp_path / "x")
