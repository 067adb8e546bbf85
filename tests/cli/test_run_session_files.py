"""Runs of an agent that prints no session id, close together in one folder: each is joined with its own file."""

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.recording.played import script

from agent_logger.agents.claude_code.naming import project_folders

CLAUDE = """
import json, sys, time, uuid
from pathlib import Path

_, _, prompt, folder, *rest = sys.argv
session = str(uuid.uuid4())
user = {"type": "user", "uuid": str(uuid.uuid4()), "sessionId": session, "timestamp": "2026-11-17T04:00:00.000Z"}
user["message"] = {"role": "user", "content": prompt}
path = Path(folder, f"{session}.jsonl")
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(json.dumps(user) + "\\n")
if rest:  # stay until all have begun, so that every file changes while every run lasts
    while len(list(path.parent.iterdir())) < int(rest[0]):
        time.sleep(0.02)
print("Done.")
"""


class Project:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / ".claude/projects" / project_folders(home)[0]
        (home / "bin").mkdir()
        (home / "claude.py").write_text(CLAUDE)
        script(home / "bin/claude", f'exec {sys.executable} {home}/claude.py "$@"')
        self.environment = {
            "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
            "HOME": str(home),
            "AGENT_LOGGER_SESSIONS_DIR": str(home / "sessions"),
            "AGENT_LOGGER_LOG_DIR": str(home / "logs"),
        }

    def start(self, prompt: str, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "agent_logger", "run", "--", "claude", "-p", prompt, str(self.folder), *more]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, env=self.environment, cwd=self.home, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )

    def run(self, *prompts: str) -> None:
        """Run once for each prompt, all at the same time."""
        more = [str(len(prompts))] if len(prompts) > 1 else []
        for process in [self.start(prompt, *more) for prompt in prompts]:
            output, errors = process.communicate(timeout=60)
            assert (process.returncode, output) == (0, b"Done.\n"), errors

    def rows(self) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "agent_logger", "ls", "--all", "--json"]
        printed = subprocess.run(command, env=self.environment, cwd=self.home, capture_output=True, check=True).stdout
        rows: list[dict[str, Any]] = json.loads(printed)
        return rows

    def matches(self) -> set[str]:
        """How the runs were matched with their files."""
        records = [
            json.loads(line) for log in self.home.glob("sessions/*.jsonl") for line in log.read_text().splitlines()
        ]
        messages = [message for record in records for message in record.get("messages", ())]
        return {m["content"]["matched_by"] for m in messages if "matched_by" in (m.get("content") or "")}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def assert_joined(project: Project, prompts: list[str]) -> None:
    rows = project.rows()
    assert [row["witnesses"] for row in rows] == [["run", "transcript"]] * len(prompts)
    assert sorted(row["title"] for row in rows) == sorted(prompts)
    assert {row["id"] for row in rows} == {path.stem for path in project.folder.iterdir()}
    assert "unnamed" not in " ".join(path.name for path in project.home.glob("sessions/*"))


def test_runs_one_after_the_other_are_joined_with_their_files(project: Project) -> None:
    for prompt in ("one", "two", "two"):
        project.run(prompt)
        for path in project.folder.iterdir():  # as if it had been written a moment ago, however slow this machine is
            os.utime(path, (time.time() + 5, time.time() + 5))
    assert_joined(project, ["one", "two", "two"])
    assert project.matches() == {"only_file"}


def test_runs_at_the_same_time_are_distinguished_by_their_prompts(project: Project) -> None:
    project.run("one", "two", "three")
    assert_joined(project, ["one", "two", "three"])
    assert project.matches() <= {"only_file", "prompt"}, "a run that begins late sees only its own file change"


def test_runs_with_the_same_prompt_at_the_same_time_get_a_file_each(project: Project) -> None:
    project.run("one", "one", "one")
    assert_joined(project, ["one", "one", "one"])
    assert project.matches() <= {"only_file", "prompt", "not_taken", "same_prompt"}


def test_a_session_that_another_program_has_open_is_not_that_of_a_run(project: Project) -> None:
    other = str(uuid.uuid4())
    notes = project.home / ".claude/sessions"
    notes.mkdir(parents=True)
    (notes / f"{os.getpid()}.json").write_text(json.dumps({"pid": os.getpid(), "sessionId": other}))
    process = project.start("one", "2")
    project.folder.mkdir(parents=True, exist_ok=True)
    line = {"type": "user", "sessionId": other, "message": {"role": "user", "content": "one"}}
    while not list(project.folder.iterdir()):
        assert process.poll() is None
    (project.folder / f"{other}.jsonl").write_text(json.dumps(line) + "\n")
    process.communicate(timeout=60)
    witnesses = {row["id"]: row["witnesses"] for row in project.rows()}
    assert witnesses.pop(other) == ["transcript"]
    assert list(witnesses.values()) == [["run", "transcript"]]
