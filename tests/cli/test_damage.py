"""Lines that cannot be read are never passed over without a word: how many, and the command that shows them."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.commands import run_command

from agent_logger import Catalog, SessionLogger
from agent_logger.files.parts import PartFile
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.seal import seal
from agent_logger.journal.sync import UPKEEP

OURS, CLAUDE, CODEX = ID.format(1), ID.format(2), "01a2b3c4-0000-7000-8000-00000000c0de"


def run(home: Path, *arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    done = run_command([*arguments], {"PATH": os.environ["PATH"], "HOME": str(home)})
    assert done.returncode == code, done.stderr
    return done


def log_of_ours(home: Path) -> Path:
    with SessionLogger(home / "sessions") as logger:
        logger.log_user_input("find the okapi")
        logger.log({"type": "system", "subtype": "init", "session_id": OURS, "cwd": "/p"})
        logger.log({"type": "result", "subtype": "success", "session_id": OURS, "total_cost_usd": 0.1})
    UPKEEP.finish()
    register_log_folder(home / ".agent-logger", home / "sessions")
    [path] = (home / "sessions").glob("*.jsonl")
    return path


def session_of_claude(home: Path) -> Path:
    return claude_file(home, CLAUDE, [user(1, "zebra", CLAUDE), assistant(2, "yes", CLAUDE)])


def rollout_of_codex(home: Path) -> Path:
    path = home / ".codex" / "sessions" / "2026" / "11" / "15" / f"rollout-2026-11-15T08-00-00-{CODEX}.jsonl"
    path.parent.mkdir(parents=True)
    meta = {"id": CODEX, "timestamp": "2026-11-15T08:00:00.000Z", "cwd": "/p", "cli_version": "0.166.0"}
    asked = {"type": "user_message", "message": "hello"}
    lines = [
        {"timestamp": "2026-11-15T08:00:00.000Z", "type": "session_meta", "payload": meta},
        {"timestamp": "2026-11-15T08:00:01.000Z", "type": "event_msg", "payload": asked},
    ]
    path.write_text("".join(f"{json.dumps(it)}\n" for it in lines))
    return path


FILES = [
    pytest.param(log_of_ours, OURS, id="our log"),
    pytest.param(session_of_claude, CLAUDE, id="claude code"),
    pytest.param(rollout_of_codex, CODEX, id="codex"),
]


@pytest.mark.parametrize(("write", "session"), FILES)
def test_damaged_lines_are_counted_and_the_verify_command_is_suggested(
    write: "object", session: str, home: Path
) -> None:
    assert callable(write)
    path: Path = write(home)
    for command in (["ls"], ["show", session], ["show", str(path)]):
        assert "damaged" not in run(home, *command).stderr
    with path.open("a") as file:
        file.write('{"type":"cut\nnot JSON at all\n\0\0\0\0\n{"torn":')  # the last one is being written
    for command in (["ls"], ["show", session], ["show", str(path)]):
        told = run(home, *command).stderr
        assert "3 damaged lines" in told
        assert f"agent-logger verify {path}" in told
    [row] = json.loads(run(home, "ls", "--json").stdout)
    assert row["damaged_lines"] == 3
    assert json.loads(run(home, "show", session, "--json").stdout)["damaged_lines"] == 3
    assert json.loads(run(home, "show", str(path), "--json").stdout)["damaged_lines"] == 3
    assert len(run(home, "verify", str(path), code=1).stdout.splitlines()) == 3 + 2  # the torn end, and the sum
    with Catalog.open(home / ".agent-logger") as catalog:
        assert catalog.damaged_files(session) == {session: {path: 3}}
        found = catalog.session(session)
        assert found and found.damaged_lines == 3


@pytest.mark.parametrize(("write", "session"), FILES)
def test_doctor_reports_damage_in_own_logs_and_agent_files(write: "object", session: str, home: Path) -> None:
    assert callable(write)
    path: Path = write(home)
    with path.open("a") as file:
        file.write("not JSON\n")
    is_ours = session == OURS
    told = json.loads(run(home, "doctor", "--json", code=1 if is_ours else 0).stdout)
    assert told["damaged_lines"] == 1
    found = [it for it in told["findings"] if it["check"] == "damage" and it["mark"] != "ok"]
    assert [it["mark"] for it in found] == ["wrong" if is_ours else "note"]
    assert found[0]["found"].startswith("1 damaged line in ")
    assert found[0]["next"] == f"agent-logger verify {path}"


def test_an_incomplete_last_line_is_not_damage(home: Path) -> None:
    path = session_of_claude(home)
    with path.open("a") as file:
        file.write('{"type":"assist')
    assert "damaged" not in run(home, "ls").stderr
    assert json.loads(run(home, "show", CLAUDE, "--json").stdout)["damaged_lines"] == 0


def test_the_count_of_damaged_lines_follows_the_files(home: Path) -> None:
    """Also of a sealed part, of a sub-agent's file, and when the damage is gone."""
    path, ours = session_of_claude(home), log_of_ours(home)
    below = path.with_suffix("") / "subagents" / "agent-1.jsonl"
    below.parent.mkdir(parents=True)
    below.write_text("not JSON\n")
    with ours.open("a") as file:
        file.write("not JSON\n")
    with Catalog.open(home / ".agent-logger") as catalog:
        assert {it.id: it.damaged_lines for it in catalog.sessions()} == {CLAUDE: 1, OURS: 1}
        name = ours.name.removesuffix(".jsonl")
        assert seal(PartFile(ours.parent, name))
        below.write_text("")
        catalog.refresh()
        assert {it.id: it.damaged_lines for it in catalog.sessions()} == {CLAUDE: 0, OURS: 1}
        assert catalog.damaged_files(OURS) == {OURS: {ours.with_name(f"{ours.name}.zst"): 1}}
