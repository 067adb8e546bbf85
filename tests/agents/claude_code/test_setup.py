"""How Claude Code is sent through the proxy although its settings name another address."""

import json
from pathlib import Path

import pytest

from agent_logger.agents.claude_code import setup as subject
from agent_logger.agents.claude_code.setup import SETUP
from agent_logger.agents.contracts import ChildCommand
from tests.recording.played import script

GATEWAY = "https://llm.example.com"


def through(provider: str, url: str) -> str | None:
    return f"proxy/{provider}/{url}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/.claude").mkdir(parents=True)
    return tmp_path / "project"


def claude(tmp_path: Path, version: str = "2.1.325 (Claude Code)") -> str:
    script(tmp_path / "claude", f"echo '{version}'")
    return str(tmp_path / "claude")


def settings(path: Path, **environment: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"env": environment, "model": "opus"}))


def sent(executable: str, project: Path, *words: str, **variables: str) -> list[str]:
    return list(SETUP.arguments(ChildCommand((executable, *words), variables, project), through)[1:])


def given(words: list[str]) -> dict[str, object]:
    assert words[0] == "--settings"
    value: dict[str, object] = json.loads(words[1])
    return value


def test_a_command_without_a_base_url_in_settings_is_unchanged(tmp_path: Path, project: Path, home: Path) -> None:
    settings(home / ".claude/settings.json", OTHER="x")
    assert sent(claude(tmp_path), project, "-p", "hi", ANTHROPIC_BASE_URL=GATEWAY) == ["-p", "hi"]


@pytest.mark.parametrize("place", ["home/.claude/settings.json", "project/.claude/settings.json"])
def test_a_base_url_in_a_settings_file_is_followed(place: str, tmp_path: Path, project: Path) -> None:
    settings(tmp_path / place, ANTHROPIC_BASE_URL=GATEWAY)
    words = sent(claude(tmp_path), project, "-p", "hi")
    assert given(words) == {"env": {"ANTHROPIC_BASE_URL": f"proxy/anthropic/{GATEWAY}"}}
    assert words[2:] == ["-p", "hi"]


def test_the_strongest_settings_file_counts(tmp_path: Path, project: Path, home: Path) -> None:
    settings(home / ".claude/settings.json", ANTHROPIC_BASE_URL="https://user.example.com")
    settings(project / ".claude/settings.json", ANTHROPIC_BASE_URL="https://project.example.com")
    settings(project / ".claude/settings.local.json", ANTHROPIC_BASE_URL=GATEWAY)
    assert given(sent(claude(tmp_path), project)) == {"env": {"ANTHROPIC_BASE_URL": f"proxy/anthropic/{GATEWAY}"}}


@pytest.mark.parametrize("form", ["separate", "joined", "file"])
def test_the_users_own_settings_argument_is_merged(form: str, tmp_path: Path, project: Path) -> None:
    own = {"env": {"ANTHROPIC_BASE_URL": GATEWAY, "A": "1"}, "hooks": {}}
    path = tmp_path / "own.json"
    path.write_text(json.dumps(own))
    words = {
        "separate": ["--settings", json.dumps(own)],
        "joined": [f"--settings={json.dumps(own)}"],
        "file": ["--settings", str(path)],
    }[form]
    changed = sent(claude(tmp_path), project, "-p", *words, "hi")
    assert given(changed) == {"env": {"ANTHROPIC_BASE_URL": f"proxy/anthropic/{GATEWAY}", "A": "1"}, "hooks": {}}
    assert changed[2:] == ["-p", "hi"]


def test_a_proxy_in_the_settings_does_not_stand_before_ours(tmp_path: Path, project: Path, home: Path) -> None:
    settings(home / ".claude/settings.json", ANTHROPIC_BASE_URL=GATEWAY, HTTPS_PROXY="http://corp:3128", NO_PROXY="a.b")
    words = sent(claude(tmp_path), project, NO_PROXY="a.b,127.0.0.1,localhost")
    variables = {"ANTHROPIC_BASE_URL": f"proxy/anthropic/{GATEWAY}", "NO_PROXY": "a.b,127.0.0.1,localhost"}
    assert given(words) == {"env": variables}
    child = ChildCommand(("claude",), {}, project)
    assert SETUP.settings_environment(child)["HTTPS_PROXY"] == "http://corp:3128"


@pytest.mark.parametrize("version", ["1.0.3 (Claude Code)", "1.0.60 (Claude Code)", "no version", ""])
def test_a_version_without_the_option_is_not_given_it(version: str, tmp_path: Path, project: Path) -> None:
    settings(project / ".claude/settings.json", ANTHROPIC_BASE_URL=GATEWAY)
    assert sent(claude(tmp_path, version), project, "-p", "hi") == ["-p", "hi"]


def test_managed_settings_win(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed = tmp_path / "managed-settings.json"
    monkeypatch.setattr(subject, "MANAGED", {"linux": managed, "darwin": managed})
    settings(managed, ANTHROPIC_BASE_URL=GATEWAY)
    assert sent(claude(tmp_path), project, "-p", "hi") == ["-p", "hi"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"env": []}', '{"env": {"ANTHROPIC_BASE_URL": 5}}', "\x00"])
def test_odd_settings_files_change_nothing_or_are_followed(text: str, tmp_path: Path, project: Path) -> None:
    (project / ".claude/settings.json").write_text(text)
    words = sent(claude(tmp_path), project, "-p", "hi")
    assert words[-2:] == ["-p", "hi"]
