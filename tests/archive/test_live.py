"""The real Claude Code goes on with a session that was put back from the archive."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients import OPENAI_KEY, Sandbox, find_opencode, run_claude
from tests.fakeapi import FakeAPI
from tests.fakeapi.turns import answers


def archive(sandbox: Sandbox, *options: str) -> str:
    environment = {"HOME": str(sandbox.home), "PATH": os.environ["PATH"]}
    line = [sys.executable, "-m", "agent_logger", "archive", *options]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.needs("claude")
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


def opencode(sandbox: Sandbox, url: str, *arguments: str) -> str:
    model = {"name": "Fake", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
    options = {"baseURL": f"{url}/v1", "apiKey": OPENAI_KEY}
    provider = {"npm": "@ai-sdk/anthropic", "name": "Fake", "options": options, "models": {"fake-1": model}}
    settings = {
        "provider": {"fake": provider},
        "model": "fake/fake-1",
        "small_model": "fake/fake-1",
        "autoupdate": False,
    }
    variables = {"OPENCODE_CONFIG_CONTENT": json.dumps(settings), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    done = sandbox.run([str(find_opencode()), *arguments], variables, seconds=90)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.needs("opencode")
def test_opencode_goes_on_with_a_session_that_was_put_back(sandbox: Sandbox) -> None:
    with FakeAPI(answers({"text": "I will remember 4711."}, repeat=True)) as api:
        opencode(sandbox, api.url, "run", "Remember 4711")
        archive(sandbox)
        (session,) = json.loads(opencode(sandbox, api.url, "session", "list", "--format", "json"))
        opencode(sandbox, api.url, "session", "delete", session["id"])
        assert opencode(sandbox, api.url, "session", "list", "--format", "json").strip() in ("", "[]")
        archive(sandbox)
        archive(sandbox, "--restore", session["id"], "--yes")
        (back,) = json.loads(opencode(sandbox, api.url, "session", "list", "--format", "json"))
        assert back["id"] == session["id"]
        opencode(sandbox, api.url, "run", "--session", session["id"], "What was it?")
        asked = api.calls[-1].body.decode()
    assert "Remember 4711" in asked
    assert "I will remember 4711." in asked
