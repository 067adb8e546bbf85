"""Which instructions and settings apply in a folder, and that logs note it without their text."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import agent_logger
from agent_logger import SessionLogger, Settings
from agent_logger.agents.claude_code.context import NAMES
from agent_logger.files.parts import part_of
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import SessionStart
from tests.clients import Sandbox, run_claude
from tests.fakeapi import FakeAPI
from tests.fakeapi.turns import answers
from tests.hooks.test_entry import comes_true, hook, kept_hooks


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A sub-folder of a repository."""
    (tmp_path / "above" / "repository" / ".git").mkdir(parents=True)
    folder = tmp_path / "above" / "repository" / "inner" / "folder"
    folder.mkdir(parents=True)
    return folder


def test_instructions_come_from_the_folder_its_parents_and_the_user(home: Path, project: Path) -> None:
    own = write(project / "CLAUDE.md", "a")
    dot = write(project / ".claude" / "CLAUDE.md", "bb")
    parent = write(project.parent / "CLAUDE.local.md", "ccc")
    root = write(project.parents[1] / "CLAUDE.md", "dddd")
    above = write(project.parents[2] / "CLAUDE.md", "eeeee")
    user = write(home / ".claude" / "CLAUDE.md", "ffffff")
    found = agent_logger.context(project)
    assert found.git_root == str(project.parents[1])
    assert [(it.path, it.scope, it.bytes) for it in found.instructions] == [
        (str(own), "folder", 1),
        (str(dot), "folder", 2),
        (str(parent), "parent", 3),
        (str(root), "parent", 4),
        (str(above), "above", 5),
        (str(user), "user", 6),
    ]


def test_equal_instruction_texts_have_equal_hmacs_that_are_not_plain_hashes(project: Path) -> None:
    import hashlib

    write(project / "CLAUDE.md", "same")
    write(project.parent / "CLAUDE.md", "same")
    write(project.parents[1] / "CLAUDE.md", "other")
    first, second, third = agent_logger.context(project).instructions
    assert first.hmac == second.hmac != third.hmac
    assert hashlib.sha256(b"same").hexdigest() not in first.hmac


def test_symlinked_instructions_count_unless_the_target_is_a_device(project: Path) -> None:
    write(project / "AGENTS.md", "text")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    (project.parent / "CLAUDE.md").symlink_to("/dev/zero")
    os.mkfifo(project.parent / "CLAUDE.local.md")
    assert [it.path for it in agent_logger.context(project).instructions] == [str(project / "CLAUDE.md")]


def test_the_four_settings_are_read_in_order_and_the_last_wins(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured = home / "configured"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(configured))
    paths = [
        write(home / ".claude" / "settings.json", '{"agent": "not this", "hooks": {"Stop": [0]}}'),
        write(
            configured / "settings.json",
            '{"agent": "a", "cleanupPeriodDays": 7, "hooks": {"Stop": [1]}, "x": 1}',
        ),
        write(project / ".claude" / "settings.json", '{"agent": "b", "permissionMode": "plan", "x": 2}'),
        write(project.parents[1] / ".claude" / "settings.local.json", '{"y": 3}'),
        write(
            project / ".claude" / "settings.local.json",
            '{"hooks": {"Stop": [2]}, "permissions": {"allow": []}}',
        ),
    ]
    found = agent_logger.context(project)
    assert [(it.path, it.applies) for it in found.settings_files] == [(str(path), path != paths[0]) for path in paths]
    assert found.settings == Settings(
        hooks={"Stop": [1, 2]},
        agent="b",
        permission_mode="plan",
        cleanup_period_days=7,
        rest={"x": 2, "y": 3, "permissions": {"allow": []}},
    )


def test_malformed_settings_are_preserved_and_reported(project: Path) -> None:
    odd = {"hooks": [1], "agent": 5, "cleanupPeriodDays": True, "permissionMode": None, "permissions": 7}
    write(project / ".claude" / "settings.json", json.dumps(odd))
    write(project / ".claude" / "settings.local.json", "{")
    found = agent_logger.context(project)
    assert found.settings == Settings(rest=odd)
    assert [bool(it.problem) for it in found.settings_files] == [False, False, False, True]


def test_only_the_listed_variables_are_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/p")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    assert agent_logger.context(project).variables == {"CLAUDE_PROJECT_DIR": "/p"}


def test_a_missing_folder_has_the_context_of_its_parents(tmp_path: Path) -> None:
    write(tmp_path / "CLAUDE.md", "x")
    found = agent_logger.context(tmp_path / "no" / "such")
    assert [it.path for it in found.instructions] == [str(tmp_path / "CLAUDE.md")]


# ---------------------------------------------------------------- in logs

SECRET_TEXT = "instructions that nobody else should read"


def test_the_session_logger_records_the_context_without_text(project: Path, tmp_path: Path) -> None:
    path = write(project / "CLAUDE.md", SECRET_TEXT)
    with SessionLogger(tmp_path / "sessions") as logger:
        logger.log({"type": "system", "subtype": "init", "session_id": "s1", "cwd": str(project), "tools": []})
    assert logger.path
    part = part_of(logger.path)
    assert part
    starts = [it.value for it in read_log(part.folder, part.name) if isinstance(it.value, SessionStart)]
    (context,) = [json.loads(bytes(it.context)) for it in starts if isinstance(it.context, msgspec.Raw)]
    assert [it["path"] for it in context["instructions"]] == [str(path)]
    assert context["instructions"][0]["hmac"].startswith("v1:")
    assert SECRET_TEXT not in logger.path.read_text()
    assert json.loads(bytes(starts[0].init))["cwd"] == str(project)  # type: ignore[arg-type]


def test_a_session_start_hook_records_the_context_without_text(home: Path, project: Path) -> None:
    path = write(project / "CLAUDE.md", SECRET_TEXT)
    hook({"session_id": "s", "hook_event_name": "SessionStart", "cwd": str(project)})
    hook({"session_id": "s", "hook_event_name": "Stop", "cwd": str(project)})
    assert comes_true(lambda: any(it.context for it in kept_hooks(home)))
    first, second = kept_hooks(home)
    assert [it["path"] for it in first.context["instructions"]] == [str(path)]
    assert second.context is None
    assert SECRET_TEXT not in first.path.read_text()


# ---------------------------------------------------------------- the command


def test_the_context_command_shows_no_texts_and_no_env_values(home: Path, project: Path) -> None:
    write(project / "CLAUDE.md", SECRET_TEXT)
    write(home / ".claude" / "settings.json", '{"env": {"TOKEN": "hunter2"}, "model": "opus"}')
    command = [sys.executable, "-m", "agent_logger", "context", str(project)]
    for options in ([], ["--json"]):
        shown = subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout
        assert str(project / "CLAUDE.md") in shown
        assert SECRET_TEXT not in shown
        assert "hunter2" not in shown
    assert json.loads(shown)["settings"]["rest"] == {"env": {"TOKEN": "[redacted]"}, "model": "opus"}


# ---------------------------------------------------------------- the real client


@pytest.mark.needs("claude")
def test_claude_code_sends_the_instructions_that_context_lists(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells the model the outermost first, and the user's before all."""
    folder = sandbox.project / "inner"
    folder.mkdir()
    (sandbox.project / ".git").mkdir()
    for it in (sandbox.project.parent, sandbox.project, folder):
        for name in NAMES:
            write(it / name, f"BEGIN {it / name} END")
    write(sandbox.home / ".claude" / "CLAUDE.md", f"BEGIN {sandbox.home / '.claude' / 'CLAUDE.md'} END")
    sandbox.project = folder
    with FakeAPI(answers({"text": "ok"})) as api:
        run_claude(sandbox, api.url, "-p", "hi")
        told = re.findall("BEGIN ([^ ]*) END", api.calls[-1].body.decode())
    monkeypatch.setenv("HOME", str(sandbox.home))
    assert sorted(told) == sorted(it.path for it in agent_logger.context(folder).instructions)
