"""Continue's sessions as users see them: listed, counted, damaged, archived, restored, and joined with calls."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_logger.agents.continue_cli import AGENT
from agent_logger.catalog.discovery.unidentified import own_name
from agent_logger.files.sources import StampCache
from tests.agents.foreign import DATA
from tests.agents.recorded import recording
from tests.commands import run_command

RECORDED = DATA / "continue-cli/1.5.47"
FORK = "5a46020e-881b-4104-8fd4-8934a21ec87a"


def run(home: Path, *arguments: str) -> str:
    done = run_command(list(arguments), {"PATH": os.environ["PATH"], "HOME": str(home)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(home: Path, *arguments: str) -> Any:
    return json.loads(run(home, *arguments, "--json"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with all recorded sessions, and the list of one recording."""
    for folder in RECORDED.iterdir():
        if folder.is_dir():
            shutil.copytree(folder / "home", tmp_path / "place", dirs_exist_ok=True)
    shutil.copytree(RECORDED / "fork/home", tmp_path / "place", dirs_exist_ok=True)
    return tmp_path / "place"


def test_each_session_is_listed_and_everything_counts_once(place: Path) -> None:
    rows = {row["id"]: row for row in printed(place, "ls", "--all")}
    assert len(rows) == sum(path.name != "sessions.json" for path in RECORDED.glob("*/home/.continue/sessions/*"))
    assert {(row["agent"], row["damaged_lines"]) for row in rows.values()} == {("continue-cli", 0)}
    assert (rows[FORK]["title"], rows[FORK]["exchanges"]) == ("In the fork", 2)
    expected = [recording(folder).usage(["main"]) for folder in RECORDED.iterdir() if folder.is_dir()]
    used = printed(place, "usage")["rows"]
    assert sum(row["output_tokens"] for row in used) == sum(usage.output_tokens for usage in expected)
    given = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    assert sum(row[name] for row in used for name in given) == sum(usage.context_tokens for usage in expected)


def test_a_damaged_message_is_counted_and_the_others_are_read(place: Path) -> None:
    path = place / f".continue/sessions/{FORK}.json"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"content": "Forked."', b'"content": "Forked.', 1))
    [row] = [row for row in printed(place, "ls", "--all") if row["id"] == FORK]
    assert (row["damaged_lines"], row["turns"], row["exchanges"]) == (1, 1, 2)


def test_an_archived_session_is_restored(place: Path) -> None:
    path = place / f".continue/sessions/{FORK}.json"
    before = path.read_bytes()
    run(place, "archive")
    path.unlink()
    assert "More in the fork" in run(place, "show", FORK)
    run(place, "archive", "--restore", FORK, "--yes")
    assert path.read_bytes() == before


def test_calls_are_found_in_the_file_that_says_the_same(home: Path) -> None:
    shutil.copytree(RECORDED / "tools/home", home, dirs_exist_ok=True)
    [source] = AGENT.discover([home / ".continue"], StampCache())
    session = AGENT.session_of(AGENT.open_session(source))
    assert own_name(replace(session, id="log", agent="continue-cli"), "log") == session.id
    assert own_name(replace(session, id="log", agent="openai-python"), "log") is None
