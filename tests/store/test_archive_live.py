"""The real Claude Code goes on with a session that was put back from the archive."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients import Sandbox, run_claude
from tests.fakeapi import FakeAPI
from tests.fakeapi.turns import answers

pytestmark = pytest.mark.needs("claude")


def archive(sandbox: Sandbox, *options: str) -> str:
    environment = {"HOME": str(sandbox.home), "PATH": os.environ["PATH"]}
    line = [sys.executable, "-m", "agent_logger", "archive", *options]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_session_that_was_deleted_and_put_back_is_resumed(sandbox: Sandbox) -> None:
    with FakeAPI(answers({"text": "I will remember 4711."}, {"text": "It was 4711."})) as api:
        first = json.loads(
            run_claude(sandbox, api.url, "-p", "Remember 4711", "--output-format", "json").stdout
        )
        archive(sandbox, "--seal-after", "1s")
        shutil.rmtree(sandbox.home / ".claude" / "projects")
        lost = run_claude(sandbox, api.url, "-p", "What was it?", "--resume", first["session_id"])
        assert lost.exit_code == 1
        shown = archive(sandbox, "--restore", first["session_id"][:8], "--yes")
        (path,) = [
            Path(line.removeprefix("write ")) for line in shown.splitlines() if line.endswith(".jsonl")
        ]
        assert path.is_relative_to(sandbox.home / ".claude" / "projects")
        done = run_claude(
            sandbox, api.url, "-p", "What was it?", "--resume", first["session_id"], "--output-format", "json"
        )
        told = json.loads(done.stdout)
        asked = json.loads(api.calls[-1].body)
    assert (told["result"], told["session_id"]) == ("It was 4711.", first["session_id"])
    assert "I will remember 4711." in json.dumps(asked["messages"])
    assert "It was 4711." in path.read_text()
