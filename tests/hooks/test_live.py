"""The real Claude Code, with the hooks that `hook --install` writes into its settings."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_logger.hooks.reader import KeptHook
from tests.clients import Sandbox, run_claude
from tests.fakeapi import FakeAPI
from tests.hooks.test_entry import kept_hooks

pytestmark = pytest.mark.needs("claude")

BASH = {"type": "tool_use", "name": "Bash", "input": {"command": "echo hi", "description": "say hi"}}
SCENARIO = {"lanes": [{"name": "main", "turns": [{"content": [BASH]}, {"text": "Hi."}]}]}


def install(sandbox: Sandbox, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(sandbox.home), "PATH": os.environ["PATH"]}
    program = str(Path(sys.executable).with_name("agent-logger"))
    line = [program, "hook", *(options or ("--install", "--yes"))]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=True)


def events(hooks: list[KeptHook]) -> list[str | None]:
    return [it.input.hook_event_name for it in hooks]


def test_claude_code_hook_inputs_are_stored_and_its_transcript_is_copied(sandbox: Sandbox) -> None:
    install(sandbox)
    with FakeAPI(SCENARIO) as api:
        done = run_claude(sandbox, api.url, "-p", "say hi", "--allowedTools", "Bash", "--output-format", "json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    home = sandbox.home / ".agent-logger"
    found = kept_hooks(sandbox.home)
    assert events(found) == [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ]
    assert {it.input.session_id for it in found} == {told["session_id"]}
    (transcript,) = {it.input.transcript_path for it in found}
    assert transcript
    original = Path(transcript).read_bytes()
    until = time.monotonic() + 60
    while original not in kept(home) and time.monotonic() < until:
        time.sleep(0.05)
    assert original in kept(home)
    joins_the_transcript(home, sandbox, told["session_id"], transcript)


def joins_the_transcript(home: Path, sandbox: Sandbox, session_id: str, transcript: str) -> None:
    """The hooks and the transcript are one session; when the client deletes that, hooks and the copy still are."""
    environment = {"HOME": str(sandbox.home), "PATH": os.environ["PATH"]}
    for _ in range(2):
        show = [sys.executable, "-m", "agent_logger", "show", session_id, "--json"]
        done = subprocess.run(show, env=environment, capture_output=True, text=True, check=True)
        session = json.loads(done.stdout)
        assert (session["id"], session["hooked"], session["end_reason"]) == (session_id, True, "other")
        turns = [turn for it in session["exchanges"] for turn in it["turns"]]
        assert [sorted(it["witnesses"]) for it in turns] == [["hook", "transcript"], ["transcript"]]
        Path(transcript).unlink(missing_ok=True)


def kept(home: Path) -> list[bytes]:
    return [it.read_bytes() for it in (home / "archive").rglob("*.jsonl")]
