import os
import pty
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.commands import run_command
from tests.journal.wire_logs import calls, own, start, write

from agent_logger.home.facts import register_log_folder
from agent_logger.home.layout import install_key
from agent_logger.logs.reader import read_session
from agent_logger.model.records import Identity, Request

Run = Callable[..., subprocess.CompletedProcess[str]]
NAME = "20261115-084532-a7f3"
CLIENT = "1f320356-a178-418e-a692-69ce6e1e657c"


@pytest.fixture
def export(tmp_path: Path) -> Run:
    def export(*arguments: object) -> subprocess.CompletedProcess[str]:
        clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
        return run_command(["export", *map(str, arguments), "--to", "wire"], clean, folder=tmp_path)

    return export


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A session with a branch, and one of another provider."""
    install_key(tmp_path / "home/.agent-logger")  # without it, logs do not prove who wrote them
    folder = tmp_path / "logs" / "anthropic"
    first = replace(start(NAME), identity=Identity(id=CLIENT, source="header", confidence="certain"))
    write(folder, NAME, [first, *calls(1, 2)])
    write(folder, f"{NAME}_b1", own(f"{NAME}_b1", NAME, 1, 3))
    other = Identity(id=f"{CLIENT}0", source="header", confidence="certain")
    last = replace(start("20261116-090000-beef"), identity=other)
    write(tmp_path / "logs" / "openai", "20261116-090000-beef", [last, *calls(1)])
    named = Identity(id="77aa-bbcc", source="header", confidence="certain")
    write(tmp_path / "logs" / "openai", "20261117-070000-cafe", [replace(start("c"), identity=named), *calls(1)])
    return folder


def lines(done: subprocess.CompletedProcess[str]) -> int:
    assert done.returncode == 0, done.stderr
    return len(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        pytest.param(NAME, 5, id="name, which another begins with"),
        pytest.param(f"{NAME}_b1", 7, id="name of a branch"),
        pytest.param(CLIENT, 5, id="client's id, which another begins with"),
        pytest.param("77aa", 3, id="beginning of a client's id"),
        pytest.param("20261116", 3, id="beginning of a name"),
        pytest.param(f"logs/anthropic/{NAME}_b1.jsonl", 7, id="path"),
    ],
)
def test_a_session_is_found_by_name_id_prefix_or_path(export: Run, logs: Path, wanted: str, count: int) -> None:
    assert lines(export(wanted)) == count


def test_the_folder_given_as_log_dir_is_searched(export: Run, logs: Path, tmp_path: Path) -> None:
    logs.parent.rename(tmp_path / "old")
    assert export(NAME).returncode == 1
    assert lines(export(NAME, "--log-dir", tmp_path / "old")) == 5


def test_logs_in_registered_folders_are_found(export: Run, logs: Path, tmp_path: Path) -> None:
    logs.parent.rename(tmp_path / "elsewhere")
    register_log_folder(tmp_path / "home" / ".agent-logger", tmp_path / "elsewhere")
    assert lines(export(NAME)) == 5
    other = tmp_path / "logs" / "anthropic"
    write(other, NAME, [start(NAME), *calls(1)])
    assert lines(export(NAME)) == 3, "what the log folder has comes first"


def test_a_missing_session_exits_with_1(export: Run, logs: Path) -> None:
    done = export("2027")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no wire log of session '2027'" in done.stderr


def test_an_ambiguous_prefix_exits_with_2_and_lists_the_matches(export: Run, logs: Path) -> None:
    done = export("20261115")
    assert (done.returncode, done.stdout) == (2, "")
    assert NAME in done.stderr
    assert f"{NAME}_b1" in done.stderr


def test_an_empty_id_matches_no_session(export: Run, logs: Path) -> None:
    assert export("").returncode == 1


def test_a_file_that_is_not_a_wire_log_exits_with_1(export: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"type":"user"}\n')
    done = export("a.jsonl")
    assert (done.returncode, "not a wire log" in done.stderr) == (1, True)


def test_the_output_file_is_only_readable_by_its_owner(export: Run, logs: Path, tmp_path: Path) -> None:
    done = export(f"{NAME}_b1", "--output", "out.jsonl")
    assert (done.returncode, done.stdout) == (0, "")
    file = tmp_path / "out.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_session(file) == read_session(logs / f"{NAME}_b1.jsonl")


def test_an_existing_file_is_not_overwritten(export: Run, logs: Path) -> None:
    log = logs / f"{NAME}.jsonl"
    before = log.read_bytes()
    done = export(NAME, "--output", log)
    assert (done.returncode, "File exists" in done.stderr) == (1, True)
    assert log.read_bytes() == before


def test_no_output_file_is_created_if_the_export_fails(export: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"type":"user"}\n')
    assert export("a.jsonl", "--output", "out.jsonl").returncode == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_damage_is_reported_on_stderr(export: Run, logs: Path) -> None:
    log = logs / f"{NAME}.jsonl"
    log.write_bytes(log.read_bytes() + b"\0\0\n")
    done = export(NAME)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 5)
    assert "1 damaged line skipped; 'agent-logger verify' lists them\n" in done.stderr


def test_a_partially_written_output_file_is_reported_and_removed(logs: Path, tmp_path: Path) -> None:
    line = f"ulimit -f 0; {sys.executable} -m agent_logger export {NAME} --to wire -o {tmp_path}/whole.jsonl"
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    done = subprocess.run(["bash", "-c", line], env=clean, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        f"agent-logger: cannot export to {tmp_path}/whole.jsonl: File too large\n",
    )
    assert not (tmp_path / "whole.jsonl").exists()


def test_control_characters_are_escaped_on_a_terminal(logs: Path, tmp_path: Path) -> None:
    asked = replace(next(it for it in calls(1) if isinstance(it, Request)), body="\u202e")
    write(logs, "evil", [start("evil"), asked])
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "agent_logger", "export", "evil", "--to", "wire"]
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    subprocess.run(command, check=True, stdout=theirs, env=clean, cwd=tmp_path)
    os.close(theirs)
    with open(ours, "rb", closefd=True) as terminal:
        shown = terminal.read1(1 << 16)
    assert b"\\u202e" in shown
    assert "\u202e".encode() not in shown
