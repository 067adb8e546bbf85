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
    folder = tmp_path / "logs" / "anthropic"
    first = replace(start(NAME), identity=Identity(id=CLIENT, source="header", confidence="certain"))
    write(folder, NAME, [first, *calls(1, 2)])
    write(folder, f"{NAME}_b1", own(f"{NAME}_b1", NAME, 1, 3))
    other = Identity(id=f"{CLIENT}0", source="header", confidence="certain")
    last = replace(start("20261116-090000-beef"), identity=other)
    write(tmp_path / "logs" / "openai", "20261116-090000-beef", [last, *calls(1)])
    named = Identity(id="77aa-bbcc", source="header", confidence="certain")
    write(
        tmp_path / "logs" / "openai", "20261117-070000-cafe", [replace(start("c"), identity=named), *calls(1)]
    )
    return folder


def lines(done: subprocess.CompletedProcess[str]) -> int:
    assert (done.returncode, done.stderr) == (0, "")
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
def test_a_session_is_found_by_what_people_call_it(export: Run, logs: Path, wanted: str, count: int) -> None:
    assert lines(export(wanted)) == count


def test_a_log_folder_elsewhere_is_searched_when_it_is_named(export: Run, logs: Path, tmp_path: Path) -> None:
    logs.parent.rename(tmp_path / "old")
    assert export(NAME).returncode == 1
    assert lines(export(NAME, "--log-dir", tmp_path / "old")) == 5


def test_a_log_is_found_wherever_it_was_recorded_to(export: Run, logs: Path, tmp_path: Path) -> None:
    logs.parent.rename(tmp_path / "elsewhere")
    register_log_folder(tmp_path / "home" / ".agent-logger", tmp_path / "elsewhere")
    assert lines(export(NAME)) == 5
    other = tmp_path / "logs" / "anthropic"
    write(other, NAME, [start(NAME), *calls(1)])
    assert lines(export(NAME)) == 3, "what the log folder has comes first"


def test_a_session_that_is_not_there_is_exit_1(export: Run, logs: Path) -> None:
    done = export("2027")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no session '2027'" in done.stderr


def test_a_beginning_of_several_is_exit_2_and_names_them(export: Run, logs: Path) -> None:
    done = export("20261115")
    assert (done.returncode, done.stdout) == (2, "")
    assert NAME in done.stderr
    assert f"{NAME}_b1" in done.stderr


def test_an_empty_id_means_nothing(export: Run, logs: Path) -> None:
    assert export("").returncode == 1


def test_what_is_no_wire_log_is_exit_1(export: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"type":"user"}\n')
    done = export("a.jsonl")
    assert (done.returncode, "not a wire log" in done.stderr) == (1, True)


def test_a_file_is_written_for_its_owner_alone(export: Run, logs: Path, tmp_path: Path) -> None:
    done = export(f"{NAME}_b1", "--output", "out.jsonl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    file = tmp_path / "out.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_session(file) == read_session(logs / f"{NAME}_b1.jsonl")


def test_a_file_that_is_there_is_not_touched(export: Run, logs: Path) -> None:
    log = logs / f"{NAME}.jsonl"
    before = log.read_bytes()
    done = export(NAME, "--output", log)
    assert (done.returncode, "File exists" in done.stderr) == (1, True)
    assert log.read_bytes() == before


def test_no_file_is_left_where_there_is_nothing_to_write(export: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"type":"user"}\n')
    assert export("a.jsonl", "--output", "out.jsonl").returncode == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_damage_is_noted_beside_the_data(export: Run, logs: Path) -> None:
    log = logs / f"{NAME}.jsonl"
    log.write_bytes(log.read_bytes() + b"\0\0\n")
    done = export(NAME)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 5)
    assert done.stderr == "left out: 1 damaged place; 'agent-logger verify' names them\n"


def test_a_file_that_cannot_be_written_whole_is_said_and_gone(logs: Path, tmp_path: Path) -> None:
    line = f"ulimit -f 0; {sys.executable} -m agent_logger export {NAME} --to wire -o {tmp_path}/whole.jsonl"
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    done = subprocess.run(
        ["bash", "-c", line], env=clean, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        1,
        f"agent-logger: cannot export to {tmp_path}/whole.jsonl: File too large\n",
    )
    assert not (tmp_path / "whole.jsonl").exists()


def test_a_terminal_is_not_driven(logs: Path, tmp_path: Path) -> None:
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
