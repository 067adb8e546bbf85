"""`agent-logger cat`: all records of a log, wherever they are."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.commands import run_command

from agent_logger.demo.recorded import record_demo
from agent_logger.files.parts import part_of, parts_of
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.seal import seal


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    record_demo(home / "demo", pace=0.0)
    for folder in (home / "demo", home / "demo/logs"):
        register_log_folder(home / ".agent-logger", folder)
    return home


def cat(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(["cat", *arguments], {"PATH": os.environ["PATH"], "HOME": str(home)})


def records(printed: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in printed.splitlines()]


def wire_log(home: Path) -> Path:
    (log,) = (
        path for path in (home / "demo/logs").glob("*/*.jsonl*") if "session_start" in cat(home, str(path)).stdout
    )
    return log


def test_a_session_has_the_records_of_all_its_logs(home: Path) -> None:
    done = cat(home, "last")
    kinds = {record["type"] for record in records(done.stdout)}
    assert {"session_start", "request", "response", "exchange", "session_end"} <= kinds
    assert done.stderr.count(".jsonl:") == 2


def test_a_sealed_log_is_printed_like_a_plain_one(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "20261118-101010-abcd.jsonl"
    log.write_bytes(wire_log(home).read_bytes())
    plain = cat(home, str(log)).stdout
    part = part_of(log)
    assert part
    assert seal(part)
    assert not log.exists()
    assert cat(home, str(log)).stdout == plain
    assert cat(home, f"{log}.zst").stdout == plain
    assert [part.is_sealed() for part in parts_of(part.folder, part.name)] == [True]


def test_a_line_that_is_being_written_is_left_out(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "20261118-101010-abcd.jsonl"
    log.write_bytes(wire_log(home).read_bytes() + b'{"type": "requ')
    assert cat(home, str(log)).stdout == cat(home, str(wire_log(home))).stdout


def test_errors_say_what_to_use_instead(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    for given, hint in ((str(other), "show --raw"), ("no-such-session", "'agent-logger ls' lists them")):
        done = cat(home, given)
        assert done.returncode == 1
        assert hint in done.stderr
    assert cat(home).returncode == 2
