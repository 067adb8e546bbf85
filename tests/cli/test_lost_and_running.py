"""Sessions whose file is gone, and such that a client is at, as the commands tell of them."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.agents.foreign import DATA
from tests.commands import run_command

LOST = "9d27d5ee-9684-4e56-a8ab-f109d29993a1"


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    return run_command([*arguments], environment)


def listed(home: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in json.loads(run(home, "ls", "--all", "--json", *arguments).stdout)}


def test_a_session_without_its_file_is_listed_with_its_prompts_and_marked(home: Path) -> None:
    shutil.copytree(DATA / "claude-cli/2.1.325/interactive_tui/home/.claude", home / ".claude")
    assert not listed(home)[LOST]["prompts_only"]  # its file is there
    [path] = home.glob(f".claude/projects/*/{LOST}.jsonl")
    path.unlink()
    row = listed(home)[LOST]
    assert (row["prompts_only"], row["exchanges"], row["turns"], row["cost_usd"]) == (True, 3, 0, None)
    wide = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "120"}
    assert run_command(["ls"], wide).stdout.splitlines()[1].endswith("  prompts only")
    shown = run(home, "show", LOST[:8]).stdout
    assert "The agent's session file is gone" in shown
    assert "thanks, what next?" in shown
    assert "not complete" not in shown
    found = run(home, "find", LOST)
    assert (found.returncode, found.stdout) == (1, "")


def test_a_session_is_live_while_its_client_runs(home: Path) -> None:
    shutil.copytree(DATA / "claude-cli/2.1.325/interactive_tui/home/.claude", home / ".claude")
    for path in home.glob(".claude/**/*.jsonl"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert [row["live"] for row in listed(home).values()] == [False]
    client = subprocess.Popen(["sleep", "60"])
    try:
        (home / ".claude/sessions").mkdir()
        note = {"pid": client.pid, "sessionId": LOST, "kind": "interactive"}
        (home / f".claude/sessions/{client.pid}.json").write_text(json.dumps(note))
        assert list(listed(home, "--live")) == [LOST]
    finally:
        client.kill()
        client.wait()
    assert listed(home, "--live") == {}
