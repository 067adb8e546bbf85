"""The folders that the user names for agents without a folder of their own: searched by every command, and no other."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.agents.foreign import DATA
from tests.commands import run_command

RUN = DATA / "mini-swe-agent/2.4.6/tools/home/traj.json"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "project/node_modules/package").mkdir(parents=True)
    (folder / "project/package.json").write_text('{"name": "x"}')
    shutil.copy(RUN, folder / "project/first.traj.json")
    shutil.copy(RUN, folder / "project/node_modules/package/too-deep.json")
    return folder


def run(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **variables}
    return run_command(list(arguments), environment)


def listed(tmp_path: Path, *arguments: str, **variables: str) -> list[str]:
    done = run(tmp_path, "ls", "--json", *arguments, **variables)
    return sorted(session["id"] for session in json.loads(done.stdout))


def test_nothing_is_searched_for_in_folders_that_nobody_named(tmp_path: Path, work: Path) -> None:
    shutil.copy(RUN, tmp_path / "traj.json")
    (tmp_path / ".config/mini-swe-agent").mkdir(parents=True)
    shutil.copy(RUN, tmp_path / ".config/mini-swe-agent/last_mini_run.traj.json")
    assert listed(tmp_path) == []
    assert run(tmp_path, "find").stdout == ""


def test_a_variable_or_the_settings_file_names_folders(tmp_path: Path, work: Path) -> None:
    [name] = listed(tmp_path, AGENT_LOGGER_AGENT_FOLDERS=f"{work},{work},/nowhere")
    assert name.startswith("first-")
    settings = tmp_path / ".agent-logger/config.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('agent_folders = ["~/work"]\n')
    assert listed(tmp_path) == [name]
    other = tmp_path / "other.toml"
    other.write_text('agent_folders = ["~/work/project/node_modules"]\n')
    assert [session[:9] for session in listed(tmp_path, "--config", str(other))] == ["too-deep-"]


def test_commands_know_the_sessions_in_named_folders(tmp_path: Path, work: Path) -> None:
    named = {"AGENT_LOGGER_AGENT_FOLDERS": str(work)}
    lines = [line.split() for line in run(tmp_path, "find", **named).stdout.splitlines()[1:]]
    assert lines == [["mini-swe-agent", "1", "response", str(work)]]
    assert run(tmp_path, "find", "first", **named).stdout == f"{work}/project/first.traj.json\n"
    assert "List the files" in run(tmp_path, "show", "first", **named).stdout
    assert "4,073" in run(tmp_path, "usage", "--by", "agent", **named).stdout
    assert "mini-swe-agent 1 session" in run(tmp_path, "doctor", **named).stdout


def test_a_file_is_shown_wherever_it_is(tmp_path: Path, work: Path) -> None:
    path = work / "project/node_modules/package/too-deep.json"
    assert "List the files" in run(tmp_path, "show", str(path)).stdout


def test_the_archive_has_the_sessions_of_named_folders_and_no_other_file(tmp_path: Path, work: Path) -> None:
    named = {"AGENT_LOGGER_AGENT_FOLDERS": str(work)}
    assert run(tmp_path, "archive", **named).returncode == 0
    copies = [path for path in (tmp_path / ".agent-logger/archive").rglob("*") if path.suffix == ".json"]
    assert [path.name for path in copies] == ["first.traj.json"]
    original = work / "project/first.traj.json"
    content = original.read_bytes()
    original.unlink()
    [name] = listed(tmp_path, **named)
    assert listed(tmp_path) == [name]
    assert run(tmp_path, "archive", "--restore", name, "--yes").returncode == 0
    assert original.read_bytes() == content
