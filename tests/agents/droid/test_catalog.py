"""Droid's sessions as users see them: listed, damaged, archived and restored."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.agents.foreign import DATA
from tests.commands import run_command

RECORDED = DATA / "droid/0.225.2"


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


def expected() -> list[dict[str, Any]]:
    manifests = (json.loads((folder / "manifest.json").read_bytes()) for folder in RECORDED.iterdir())
    return [session for manifest in manifests for session in manifest["expected_sessions"]]


def test_each_session_is_listed_once_with_its_total(place: Path) -> None:
    rows = {row["id"]: row for row in printed(place, "ls")}
    sessions = {session["id"]: session for session in expected() if session["kind"] != "subagent"}
    assert set(rows) == set(sessions)
    assert {row["agent"] for row in rows.values()} == {"droid"}
    assert [row["damaged_lines"] for row in rows.values()] == [0] * len(rows)
    alone = [session for session in sessions.values() if session["title"] != "Ask helpers"]
    for session in alone:
        assert rows[session["id"]]["output_tokens"] == session["totals"]["output"]
        assert rows[session["id"]]["exchanges"] == len(session["new_exchanges"])


def test_everything_counts_once(place: Path) -> None:
    rows = printed(place, "usage")["rows"]
    for kind in ("input", "output", "cache_read", "cache_write"):
        counted = sum(row[f"{kind}_tokens"] for row in rows)
        assert counted == sum(session["totals"][kind] for session in expected())
    assert [row["cost_usd"] for row in rows] == [None] * len(rows)  # the models have no price


def test_a_damaged_line_is_counted(place: Path) -> None:
    [row] = [row for row in printed(place, "ls") if row["title"] == "Ask helpers"]
    path = Path(row["path"])
    lines = path.read_bytes().split(b"\n")
    lines[3] = lines[3][:100]
    path.write_bytes(b"\n".join(lines))
    [row] = [row for row in printed(place, "ls") if row["title"] == "Ask helpers"]
    assert (row["damaged_lines"], row["turns"], row["output_tokens"]) == (1, 8, 564 + 119 + 197)


def test_an_archived_session_is_restored_with_its_settings_and_its_sub_agents(place: Path) -> None:
    [row] = [row for row in printed(place, "ls") if row["title"] == "Ask helpers"]
    agents = [session["id"] for session in expected() if session.get("parent") == row["id"]]
    files = [path for name in (row["id"], *agents) for path in Path(row["path"]).parent.glob(f"{name}.*")]
    before = {path: path.read_bytes() for path in files}
    assert len(before) == 9
    run(place, "archive")
    for path in files:
        path.unlink()
    run(place, "archive", "--restore", row["id"], "--yes")
    assert {path: path.read_bytes() for path in files if path.exists()} == before


def test_reading_changes_no_file_of_the_agent(place: Path) -> None:
    files = sorted(path for path in (place / ".factory").rglob("*") if path.is_file())
    before = [(path, path.stat().st_mtime_ns, path.read_bytes()) for path in files]
    printed(place, "ls")
    printed(place, "usage")
    assert [(path, path.stat().st_mtime_ns, path.read_bytes()) for path in files] == before
    assert sorted(path for path in (place / ".factory").rglob("*") if path.is_file()) == files
