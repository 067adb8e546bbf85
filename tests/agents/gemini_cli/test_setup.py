"""Gemini CLI and Qwen Code get a base URL only where it cannot break them."""

import json
from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.gemini_cli.setup import SETUP
from agent_logger.agents.qwen_code.setup import SETUP as QWEN

KEY = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
SETTINGS = [
    (KEY, False),
    ({"selectedAuthType": "gemini-api-key"}, False),
    ({"security": {"auth": {"selectedType": "oauth-personal"}}}, True),
    ({}, True),
    ([], True),
    (None, True),
]


def through(_provider: str, url: str) -> str | None:
    return f"proxy/{url}"


def command(folder: Path, home: Path, **variables: str) -> ChildCommand:
    return ChildCommand(("gemini",), {"HOME": str(home), **variables}, folder)


@pytest.mark.parametrize(("settings", "ignores"), SETTINGS)
def test_gemini_gets_a_base_url_only_with_a_key(settings: object, ignores: bool, tmp_path: Path, home: Path) -> None:
    if settings is not None:
        (home / ".gemini").mkdir()
        (home / ".gemini/settings.json").write_text(json.dumps(settings))
    child = command(tmp_path, home)
    assert SETUP.ignores_base_url(child) is ignores
    assert SETUP.variables(child, through, is_own=True) == ({"GOOGLE_GEMINI_BASE_URL": None} if ignores else {})
    assert SETUP.variables(child, through, is_own=False) == {}  # an SDK program reads the variable, too


@pytest.mark.parametrize("line", ['NAME="URL"', "export NAME=URL # why", "  NAME = URL", "NAME='URL'"])
@pytest.mark.parametrize("place", [".gemini/.env", ".env"])
def test_the_base_url_in_an_env_file_is_followed(place: str, line: str, tmp_path: Path, home: Path) -> None:
    (tmp_path / "a/.gemini").mkdir(parents=True)
    text = line.replace("URL", "https://llm.example.com/v1").replace("NAME", "GOOGLE_GEMINI_BASE_URL")
    (tmp_path / "a" / place).write_text(f"OTHER=1\n{text}\n")
    child = command(tmp_path / "a", home)
    assert SETUP.settings_environment(child) == {"GOOGLE_GEMINI_BASE_URL": "https://llm.example.com/v1"}
    assert SETUP.settings_environment(command(tmp_path / "a", home, GOOGLE_GEMINI_BASE_URL="https://b")) == {}


def test_qwen_gets_a_base_url_only_if_it_has_one(tmp_path: Path, home: Path) -> None:
    child = command(tmp_path, home)
    assert QWEN.variables(child, through, is_own=True) == {"OPENAI_BASE_URL": None}
    (home / ".qwen").mkdir()
    (home / ".qwen/.env").write_text("OPENAI_BASE_URL=https://dashscope.example.com/v1")
    assert QWEN.settings_environment(child) == {"OPENAI_BASE_URL": "https://dashscope.example.com/v1"}
    named = command(tmp_path, home, OPENAI_BASE_URL="https://dashscope.example.com/v1")
    assert QWEN.variables(named, through, is_own=True) == {}
