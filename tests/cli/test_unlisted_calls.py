"""Sums that leave out side calls, because the agent's file is all there is and does not list them, say so."""

import json
import shutil
from pathlib import Path

import pytest
from tests.commands import run_command
from tests.providers.captures import DATA

SIDE_CALLS = "not included: side calls (titles, compactions) not in the files of 1 session\n"
CASES = [
    pytest.param("claude-cli/2.1.4/tools_stream", True, id="a file without a total"),
    pytest.param("claude-cli/2.1.325/tools_stream", False, id="a file with the client's total"),
]


@pytest.mark.parametrize(("fixture", "expected"), CASES)
def test_commands_report_that_an_agent_file_lists_no_side_calls(fixture: str, expected: bool, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(DATA / fixture / "home/.claude", home / ".claude")
    environment = {"HOME": str(home), "COLUMNS": "80"}
    [session] = json.loads(run_command(["ls", "--json"], environment).stdout)
    assert session["unlisted_calls"] is expected
    for filters in ([], ["--agent", "claude-code"]):
        report = json.loads(run_command(["usage", "--json", *filters], environment).stdout)
        assert report["unlisted_calls"] == expected
        assert (SIDE_CALLS in run_command(["usage", *filters], environment).stderr) is expected
    other = json.loads(run_command(["usage", "--json", "--agent", "codex"], environment).stdout)
    assert other["unlisted_calls"] == 0
    shown = " ".join(run_command(["show", session["id"]], environment).stdout.split())
    assert ("which the agent's file does not list" in shown) is expected
    explained = json.loads(run_command(["usage", "--explain", session["id"], "--json"], environment).stdout)
    assert ("unlisted" in {it["reason"] for it in explained["not_counted"]}) is expected
