import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.commands import run_command

SESSION = "707575f7-6966-4682-abc3-e62e1560a136"


def run(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **variables}
    return run_command(["find", *arguments], environment)


def session(root: Path, project: str, age: float = 0.0) -> Path:
    path = root / "projects" / project / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    os.utime(path, (1_700_000_000 - age,) * 2)
    return path


def test_the_newest_path_is_printed_and_the_others_are_listed_on_stderr(tmp_path: Path) -> None:
    newest = session(tmp_path / ".claude", "-a")
    older = session(tmp_path / ".config" / "claude", "-b", age=10)
    done = run(tmp_path, SESSION)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{newest}\n", f"also: {older}\n")
    told = json.loads(run(tmp_path, SESSION, "--json").stdout)
    assert [it["path"] for it in told] == [str(newest), str(older)]


def test_claude_config_dir_can_be_a_list(tmp_path: Path) -> None:
    session(tmp_path / ".claude", "-a")
    path = session(tmp_path / "two", "-b")
    done = run(tmp_path, SESSION, CLAUDE_CONFIG_DIR=f"{tmp_path / 'one'}, {tmp_path / 'two'}")
    assert done.stdout == f"{path}\n"


def test_a_missing_session_is_a_one_line_error_with_exit_code_1(tmp_path: Path) -> None:
    done = run(tmp_path, SESSION)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"agent-logger: no session '{SESSION}'; 'agent-logger ls' lists them\n"


def test_sessions_of_other_agents_are_found(tmp_path: Path) -> None:
    rollout = f"rollout-2026-01-01T00-00-00-{SESSION}.jsonl"
    path = tmp_path / ".codex" / "sessions" / "2026" / "01" / "01" / rollout
    path.parent.mkdir(parents=True)
    meta = {
        "id": SESSION,
        "timestamp": "2026-01-01T00:00:00Z",
        "cwd": "/p",
        "originator": "codex",
        "cli_version": "1",
    }
    path.write_text(json.dumps({"timestamp": "t", "type": "session_meta", "payload": meta}) + "\n")
    assert run(tmp_path, SESSION).stdout == f"{path}\n"


def test_a_session_is_found_by_id_prefix(tmp_path: Path) -> None:
    path = session(tmp_path / ".claude", "-a")
    line = {"type": "user", "message": {"role": "user", "content": "hi"}, "sessionId": SESSION, "uuid": "u"}
    path.write_text(json.dumps({**line, "timestamp": "2026-01-01T00:00:00Z"}) + "\n")
    assert run(tmp_path, SESSION[:8]).stdout == f"{path}\n"


@pytest.mark.parametrize("wrong", ["../../etc/passwd", "a b", "agent-1", "\x1b[31m"])
def test_an_invalid_id_is_not_found(tmp_path: Path, wrong: str) -> None:
    done = run(tmp_path, wrong)
    assert (done.returncode, done.stdout) == (1, "")
    assert "\x1b" not in done.stderr


def test_the_agents_with_sessions_here_are_listed_without_an_id(tmp_path: Path) -> None:
    assert run(tmp_path).stdout == ""
    session(tmp_path / ".claude", "-a")
    folder = tmp_path / ".cline/data/sessions/1_a"
    folder.mkdir(parents=True)
    (folder / "1_a.messages.json").write_text("{}")
    (tmp_path / ".omp/agent").mkdir(parents=True)
    done = run(tmp_path)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines == [
        ["agent", "sessions", "tokens", "per", "folder"],
        ["claude-code", "1", "response", str(tmp_path / ".claude")],
        ["omp", "(unverified)", "0", "response", str(tmp_path / ".omp/agent")],
        ["cline", "1", "response", str(tmp_path / ".cline/data")],
    ]
    agents = json.loads(run(tmp_path, "--json").stdout)
    assert [(agent["agent"], agent["sessions"], agent["response_ids"], agent["verified"]) for agent in agents] == [
        ("claude-code", 1, "vendor", True),
        ("omp", 0, "vendor", False),
        ("cline", 1, "client", True),
    ]
