"""Cline's sessions as users see them: listed, damaged, archived, restored, and joined with calls on the wire."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_logger.agents.cline import AGENT
from agent_logger.catalog.discovery.unidentified import own_name
from agent_logger.files.sources import StampCache
from tests.agents.foreign import DATA
from tests.commands import run_command

RECORDED = DATA / "cline/3.0.65"


def run(home: Path, *arguments: str) -> str:
    done = run_command(list(arguments), {"PATH": os.environ["PATH"], "HOME": str(home)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(home: Path, *arguments: str) -> Any:
    return json.loads(run(home, *arguments, "--json"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with all recorded sessions."""
    for folder in RECORDED.iterdir():
        shutil.copytree(folder / "home", tmp_path / "place", dirs_exist_ok=True)
    return tmp_path / "place"


def messages(place: Path, title: str) -> Path:
    [row] = [row for row in printed(place, "ls") if row["title"] == title]
    return Path(row["path"])


def test_a_sub_agent_has_no_row_and_its_tokens_count_once(place: Path) -> None:
    rows = {row["title"]: row for row in printed(place, "ls")}
    assert len(rows) == 6
    row = rows["Ask a helper to count the lines of the file"]
    assert (row["exchanges"], row["turns"], row["tool_calls"]) == (2, 5, 2)
    assert row["output_tokens"] == 61 + 23 + 29 + 41 + 13
    assert row["cost_usd"] is None  # the model has no price


def test_a_damaged_document_loses_one_message_and_says_so(place: Path) -> None:
    path = messages(place, "List the files")
    data = path.read_bytes()
    at = data.index(b'"id": "msg_QgPH_IPl"')
    path.write_bytes(data[: at + 60] + b"\0" * 100 + data[at + 160 :])
    [row] = [row for row in printed(place, "ls") if row["title"] == "List the files"]
    assert (row["turns"], row["output_tokens"], row["exchanges"]) == (3, 258 + 23 + 55, 2)
    assert row["damaged_lines"] == 1
    path.write_bytes(data)
    [row] = [row for row in printed(place, "ls") if row["title"] == "List the files"]
    assert (row["turns"], row["damaged_lines"]) == (4, 0)


def test_an_archived_session_is_restored_with_all_its_documents(place: Path) -> None:
    path = messages(place, "Ask a helper to count the lines of the file")
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    run(place, "archive")
    shutil.rmtree(path.parent)
    run(place, "archive", "--restore", path.parent.name, "--yes")
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_reading_changes_no_file_of_the_agent(place: Path) -> None:
    files = [path for path in (place / ".cline").rglob("*") if path.is_file()]
    before = [(path, path.stat().st_mtime_ns, path.read_bytes()) for path in files]
    printed(place, "ls")
    printed(place, "usage")
    assert [(path, path.stat().st_mtime_ns, path.read_bytes()) for path in files] == before
    assert sorted(path for path in (place / ".cline").rglob("*") if path.is_file()) == sorted(files)


def test_calls_of_the_sdk_are_found_in_the_file_that_says_the_same(home: Path) -> None:
    shutil.copytree(RECORDED / "tools/home", home, dirs_exist_ok=True)
    [source] = AGENT.discover([home / ".cline/data"], StampCache())
    session = AGENT.session_of(AGENT.open_session(source))
    assert own_name(replace(session, id="log", agent="ai-sdk"), "log") == session.id
    assert own_name(replace(session, id="log", agent="openai-python"), "log") is None
