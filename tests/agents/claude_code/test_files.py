"""Where sessions of Claude Code are found, by real trees and by every layout that was ever described."""

import json
import os
from pathlib import Path

import pytest

from agent_logger.agents.claude_code import AGENT
from agent_logger.agents.claude_code.files import find
from agent_logger.agents.claude_code.naming import folder_name, is_id, project_folders
from agent_logger.files.sources import Source, StampCache

DATA = Path(__file__).parents[2] / "data" / "claude-cli"
TREES = sorted(path for path in DATA.rglob("projects") if path.is_dir())
SESSION = "707575f7-6966-4682-abc3-e62e1560a136"


def session_files(root: Path) -> list[Source]:
    return list(AGENT.discover([root], StampCache()))


@pytest.mark.parametrize("projects", TREES, ids=lambda it: it.relative_to(DATA).as_posix())
def test_all_sessions_of_a_real_tree_are_listed_without_subagents(projects: Path) -> None:
    found = {Path(it.path) for it in session_files(projects.parent)}
    assert found == {path for path in projects.glob("*/*.jsonl") if not path.name.startswith("agent-")}
    assert all(it.name == Path(it.path).stem for it in session_files(projects.parent))


@pytest.mark.parametrize("projects", TREES, ids=lambda it: it.relative_to(DATA).as_posix())
def test_project_folder_names_follow_the_rule_of_the_client(projects: Path) -> None:
    for it in session_files(projects.parent):
        folders = [json.loads(line).get("cwd") for line in Path(it.path).read_text().splitlines()]
        first = next(filter(None, folders), None)
        if first and "/odd_cwds/" in str(it.path):  # elsewhere the recorded folders were renamed
            assert folder_name(first) == Path(it.path).parent.name


def write(path: Path, *, age: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    os.utime(path, (1_700_000_000 - age,) * 2)
    return path


def layouts(root: Path, repo: Path) -> list[Path]:
    own = [root / "projects" / folder / f"{SESSION}.jsonl" for folder in project_folders(repo)]
    return [*own, root / "projects" / f"{SESSION}.jsonl", root / "sessions" / f"{SESSION}.jsonl"]


@pytest.mark.parametrize("number", range(6))
def test_sessions_are_found_in_every_folder_layout(tmp_path: Path, number: int) -> None:
    repo = tmp_path / "my.repo"
    repo.mkdir()
    path = write(layouts(tmp_path / "c", repo)[number])
    assert [Path(it.path) for it in find([tmp_path / "c"], SESSION)] == [path]


def test_find_returns_the_repository_match_first_then_the_newest(tmp_path: Path) -> None:
    repo, root = tmp_path / "repo", tmp_path / "c"
    repo.mkdir()
    own = write(root / "projects" / project_folders(repo)[0] / f"{SESSION}.jsonl", age=100)
    old = write(root / "projects" / "-other" / f"{SESSION}.jsonl", age=50)
    new = write(root / "sessions" / f"{SESSION}.jsonl")
    assert [Path(it.path) for it in find([root], SESSION)] == [new, old, own]
    assert [Path(it.path) for it in find([root, root], SESSION, repo)] == [own, new, old]


HOSTILE = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "a\\b",
    "a\0b",
    "*",
    "a.jsonl",
    "agent-1",
    "-x",
    "$(id)",
    "é",
    "x" * 200,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_find_rejects_invalid_session_ids(tmp_path: Path, text: str) -> None:
    assert not is_id(text)
    with pytest.raises(ValueError, match="not a session id"):
        find([tmp_path], text)


def test_links_pipes_and_folders_are_skipped(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "secret.jsonl")
    project = tmp_path / "c" / "projects" / "-p"
    project.mkdir(parents=True)
    (project / "link.jsonl").symlink_to(outside)
    (project / "folder.jsonl").mkdir()
    os.mkfifo(project / "pipe.jsonl")
    (tmp_path / "c" / "projects" / "elsewhere").symlink_to(outside.parent)
    assert list(session_files(tmp_path / "c")) == []
    assert find([tmp_path / "c"], "secret") == []


def test_a_missing_folder_has_no_sessions(tmp_path: Path) -> None:
    assert list(session_files(tmp_path / "nowhere")) == []
