"""Files of ours in which a disk or a person has put a byte that is no text."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.sessions import ID, write_session
from tests.commands import run_command

DAY = datetime(2026, 11, 2, 12, tzinfo=UTC)
COMMANDS = [["ls", "--json"], ["usage"], ["status"], ["doctor"], ["tag", "--json"], ["search", "timer"], ["du"]]
LINES = [
    b'{"type":"label","session":"\xff","label":"x","ts":"2026-11-02T12:00:00.000Z"}',
    b'{"type":"tombstone","session":"\xff","paths":[],"ts":"2026-11-02T12:00:00.000Z"}',
    b'{"type":"log_folder","path":"/\xff","ts":"2026-11-02T12:00:00.000Z"}',
    b"\xff",
]


def command(home: Path, *arguments: str) -> tuple[int, str, str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    done = run_command([*arguments], environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_command_works_with_home_files_that_have_bytes_of_no_text(home: Path, arguments: list[str]) -> None:
    write_session(home, 1, DAY, "Fix the timer")
    assert command(home, "tag", ID.format(1), "todo")[0] == 0
    folder = home / ".agent-logger"
    with (folder / "facts.jsonl").open("ab") as facts:
        facts.write(b"\n".join([*LINES, b""]))
    (folder / "last-runs.json").write_bytes(b'[{"agent":"\xff"}]')
    code, stdout, stderr = command(home, *arguments)
    assert "Traceback" not in stderr, stderr
    assert code == 0 or arguments[0] in ("doctor", "status"), (code, stderr)  # these two say that no proxy runs
    if arguments[0] == "tag":
        assert [row["labels"] for row in json.loads(stdout)] == [["todo"]]
