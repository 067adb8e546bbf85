"""The real Claude Code in a terminal, behind `agent-logger run`."""

import json
import os
from pathlib import Path

import pytest
from tests.cli.test_run import Terminal, logs
from tests.clients import ANTHROPIC_KEY, NOWHERE, QUIET_CLAUDE, find_claude
from tests.fakeapi import FakeAPI

from agent_logger import read_session
from agent_logger.logs.verify import verify_file

pytestmark = pytest.mark.needs("claude")

READS, LEAVES = b"\x1b[?2004h", b"\x1b[?2004l"  # it asks for pastes to be marked, and takes that back
HELLO = {"lanes": [{"name": "all", "repeat": True, "turns": [{"text": "Good evening from the script."}]}]}


def test_claude_in_a_terminal_is_recorded_by_its_own_proxy(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    # As if its first questions had been answered before.
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {str(project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        "customApiKeyResponses": {"approved": [ANTHROPIC_KEY[-20:]], "rejected": []},
    }
    (tmp_path / ".claude.json").write_text(json.dumps(known))
    with FakeAPI(HELLO) as api:
        env = {
            **QUIET_CLAUDE,
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "AGENT_LOGGER_HOME": str(tmp_path / ".agent-logger"),
            "AGENT_LOGGER_LOG_DIR": str(tmp_path / "logs"),
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": ANTHROPIC_KEY,
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1",
            "TERM": "xterm-256color",
        }
        terminal = Terminal(env, "--", str(find_claude()), cwd=project)
        terminal.wait_for(READS)
        terminal.type_until(b"hello there", b"there")
        terminal.type_until(b"\r", b"evening")
        terminal.type_until(b"\x03\x03", LEAVES)
        assert terminal.end() == 0
    [(start, [exchange])] = logs(env)
    assert start and start.agent == "claude-code" and start.session_id
    [file] = [it for it in exchange.messages if it.type == "session_file"]
    assert file.content and start.session_id in json.loads(bytes(file.content))["path"]
    wires = [it for it in (tmp_path / "logs/anthropic").glob("*.jsonl") if "unattributed" not in it.name]
    seen = [read_session(it) for it in wires]
    assert any("evening" in block.text for it in seen for turn in it.turns for block in turn.blocks)
    assert start.session_id in [it.id for it in seen]
    assert all(not verify_file(it).damage for it in wires)
