import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent_logger import SessionLogger
from agent_logger.cli.init import RULES, command
from agent_logger.journal.sync import UPKEEP


def run(folder: Path, *arguments: str, said: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(command, [*arguments, str(folder)], input=said, standalone_mode=False)
    assert done.exception is None
    return done.return_value, done.output


@pytest.mark.parametrize("before", [None, "*.pyc\n", "*.pyc", "/logs/\n"])
def test_ignore_rules_are_added_once_and_existing_lines_are_kept(before: str | None, tmp_path: Path) -> None:
    ignore = tmp_path / ".gitignore"
    if before is not None:
        ignore.write_text(before)
    code, shown = run(tmp_path, "--yes")
    assert code == 0 and "/sessions/*" in shown
    lines = ignore.read_text().splitlines()
    assert lines[: len((before or "").splitlines())] == (before or "").splitlines()
    assert sorted(it for it in lines if it in RULES) == sorted(RULES)
    assert sorted(it.name for it in (tmp_path / "sessions").iterdir()) == [".gitkeep"]
    text = ignore.read_text()
    assert run(tmp_path, "--yes")[0] == 0
    assert ignore.read_text() == text


def test_nothing_is_written_without_confirmation(tmp_path: Path) -> None:
    code, shown = run(tmp_path, said="n\n")
    assert code == 1 and "!/sessions/.gitkeep" in shown
    assert not (tmp_path / "sessions").exists() and not (tmp_path / ".gitignore").exists()
    assert run(tmp_path, said="y\n")[0] == 0
    assert (tmp_path / "sessions" / ".gitkeep").exists()


def test_without_a_terminal_the_error_suggests_the_yes_option(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path)], input="")
    assert done.exit_code == 2 and "nothing was changed; pass --yes" in done.output
    assert not (tmp_path / "sessions").exists() and not (tmp_path / ".gitignore").exists()


@pytest.mark.parametrize("recorded", ["before", "after", "never"])
def test_git_keeps_the_folder_and_no_log(recorded: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    if recorded == "before":
        _record(project)
    run(project, "--yes")
    if recorded == "after":
        _record(project)
    subprocess.run(["git", "-C", str(project), "add", "-A"], check=True)
    command = ["git", "-C", str(project), "ls-files"]
    kept = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert kept == [".gitignore", "sessions/.gitkeep"]
    assert "nothing to do" in run(project, "--yes")[1]


def _record(project: Path) -> None:
    with SessionLogger(project / "sessions") as logger:
        logger.log_user_input("go")
    UPKEEP.finish()


def test_a_logger_writes_no_gitignore_into_the_initialised_folder(tmp_path: Path) -> None:
    run(tmp_path, "--yes")
    with SessionLogger(tmp_path / "sessions") as logger:
        logger.log_user_input("go")
    assert not (tmp_path / "sessions" / ".gitignore").exists()
