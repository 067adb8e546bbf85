from pathlib import Path

import pytest
from click.testing import CliRunner

from agent_logger.cli.init import RULES, command


def run(folder: Path, *arguments: str, said: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(command, [*arguments, str(folder)], input=said, standalone_mode=False)
    assert done.exception is None
    return done.return_value, done.output


@pytest.mark.parametrize("before", [None, "*.pyc\n", "*.pyc", "/logs/\n"])
def test_the_rules_are_added_once_and_what_was_there_stays(before: str | None, tmp_path: Path) -> None:
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


def test_nothing_is_done_without_being_told_to(tmp_path: Path) -> None:
    code, shown = run(tmp_path, said="n\n")
    assert code == 1 and "!/sessions/.gitkeep" in shown
    assert not (tmp_path / "sessions").exists() and not (tmp_path / ".gitignore").exists()
    assert run(tmp_path, said="y\n")[0] == 0
    assert (tmp_path / "sessions" / ".gitkeep").exists()


def test_where_nobody_can_answer_it_says_what_to_do(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path)], input="")
    assert done.exit_code == 2 and "nothing was changed; pass --yes" in done.output
    assert not (tmp_path / "sessions").exists() and not (tmp_path / ".gitignore").exists()


def test_a_logger_writes_no_rules_into_the_folder(tmp_path: Path) -> None:
    from agent_logger import SessionLogger

    run(tmp_path, "--yes")
    with SessionLogger(tmp_path / "sessions") as logger:
        logger.log_user_input("go")
    assert not (tmp_path / "sessions" / ".gitignore").exists()
