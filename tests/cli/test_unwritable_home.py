"""A home that nothing can be written to: what a setting names is read all the same."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from tests.commands import run_command
from tests.journal.wire_logs import calls, start
from tests.journal.wire_logs import write as write_log

from agent_logger import SessionLogger

SESSION = "7b320356-a178-418e-a692-69ce6e1e657c"
WIRE = "20261115-080000-abcd"
Home = Literal["below a file", "read-only", "full"]


@pytest.fixture(params=["below a file", "read-only", "full"])
def unwritable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "below a file":
        (tmp_path / "file").write_text("no folder")
        yield tmp_path / "file" / "home"
        return
    disk: Path = request.getfixturevalue("small_disk")
    (disk / "home").mkdir()
    if request.param == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    else:
        with (disk / "full").open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 65536):
                    pass
            except OSError:
                pass
    yield disk / "home"
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@pytest.fixture
def recorded(tmp_path: Path, home: Path) -> Path:
    with SessionLogger(tmp_path / "named" / "sessions") as logger:
        logger.log_user_input("find the okapi")
        logger.log({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m", "cwd": "/p"})
        text = [{"type": "text", "text": "an okapi"}]
        usage = {"input_tokens": 1, "output_tokens": 1}
        inner = {"id": "msg_1", "model": "m", "content": text, "usage": usage}
        logger.log({"type": "assistant", "session_id": SESSION, "message": inner})
        logger.log({"type": "result", "session_id": SESSION, "total_cost_usd": 0.1, "usage": usage})
    write_log(tmp_path / "named" / "logs" / "anthropic", WIRE, [start(WIRE), *calls(1)])
    return tmp_path / "named"


def environment(tmp_path: Path, home: Path, **more: str) -> dict[str, str]:
    usual = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "AGENT_LOGGER_HOME": str(home)}
    return {**usual, **more}


NAMED = [
    (["ls", "--json"], 0),
    (["usage", "session", "--json"], 0),
    (["search", "okapi", "--json"], 0),
    (["show", SESSION, "--json"], 0),
    (["export", SESSION, "--to", "json"], 0),
    (["tree", SESSION, "--json"], 0),
    (["find", SESSION], 0),
]


@pytest.mark.parametrize("by", ["variable", "file"])
def test_commands_read_the_folders_named_by_a_setting(
    by: str, unwritable: Path, recorded: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'sessions_dir = "{recorded}/sessions"\nlog_dir = "{recorded}/logs"\n')
    variables = {
        "AGENT_LOGGER_SESSIONS_DIR": str(recorded / "sessions"),
        "AGENT_LOGGER_LOG_DIR": str(recorded / "logs"),
    }
    for arguments, code in NAMED:
        given = environment(tmp_path, unwritable, **(variables if by == "variable" else {}))
        more = ["--config", str(config)] if by == "file" else []
        done = run_command([*arguments, *more], given, folder=tmp_path)
        assert done.returncode == code, (arguments, done.stderr)
        assert SESSION[:8] in done.stdout, (arguments, done.stderr)
    done = run_command(["ls", "--json", *more], given, folder=tmp_path)
    assert {it["id"] for it in json.loads(done.stdout)} == {SESSION, WIRE}


def test_one_line_reports_that_the_catalog_is_in_memory_and_why(
    unwritable: Path, recorded: Path, tmp_path: Path
) -> None:
    given = environment(tmp_path, unwritable, AGENT_LOGGER_SESSIONS_DIR=str(recorded / "sessions"))
    for arguments in (["ls"], ["usage"], ["search", "okapi"], ["show", SESSION]):
        done = run_command(arguments, given, folder=tmp_path)
        [line] = done.stderr.splitlines()
        assert line.startswith("the catalog cannot be written, so this command keeps it in memory: ")
        assert str(unwritable) in line
        assert "No sessions" not in done.stdout + done.stderr
