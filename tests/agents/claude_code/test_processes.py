"""Notes of running clients. The real one's, of which this is a copy, says a lot more."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_logger.agents.claude_code.processes import noted_sessions


def note(folder: Path, pid: int, session: str, **fields: Any) -> Path:
    (folder / "sessions").mkdir(parents=True, exist_ok=True)
    path = folder / "sessions" / f"{pid}.json"
    told = {"pid": pid, "sessionId": session, "cwd": "/p", "startedAt": 1794759786950, "kind": "interactive"}
    path.write_text(json.dumps({**told, **fields}))
    return path


def began(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_a_session_is_running_while_its_process_is_alive(tmp_path: Path) -> None:
    client = subprocess.Popen(["sleep", "60"])
    try:
        note(tmp_path / "one", client.pid, "a", procStart=began(client.pid))
        note(tmp_path / "two", os.getpid(), "b")  # older clients did not say when they began
        assert noted_sessions([tmp_path / "one", tmp_path / "two"]).running == {"a", "b"}
    finally:
        client.kill()
        client.wait()
    assert noted_sessions([tmp_path / "one", tmp_path / "two"]).running == {"b"}


def test_a_reused_pid_with_another_start_time_does_not_count_as_running(tmp_path: Path) -> None:
    note(tmp_path, os.getpid(), "a", procStart="1")
    assert noted_sessions([tmp_path]).running == set()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"pid":-1,"sessionId":"a"}', b'{"pid":1e99}', b"\xff", b"[" * 100_000]
)
def test_unreadable_process_files_are_ignored(content: bytes, tmp_path: Path) -> None:
    note(tmp_path, os.getpid(), "a").write_bytes(content)
    assert noted_sessions([tmp_path]).running == set()


def test_a_process_file_whose_name_is_not_its_pid_is_ignored(tmp_path: Path) -> None:
    path = note(tmp_path, os.getpid(), "a").rename(tmp_path / "sessions" / "2.json")
    path.with_name(f"{os.getpid()}.0a1b.key").write_text(json.dumps({"pid": os.getpid(), "sessionId": "key"}))
    path.with_name("7.json").symlink_to(path)
    os.mkfifo(path.with_name("8.json"))
    assert noted_sessions([tmp_path, tmp_path / "nowhere"]).running == set()
