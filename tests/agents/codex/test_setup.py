"""How Codex is sent through the proxy: by arguments, and not with a ChatGPT login."""

import json
from pathlib import Path

import pytest

from agent_logger.agents.codex.setup import SETUP
from agent_logger.agents.contracts import ChildCommand

KEY = {"CODEX_API_KEY": "sk-fake"}
DEFAULT = ["-c", 'openai_base_url="proxy/https://api.openai.com/v1"']


def through(_provider: str, url: str) -> str | None:
    return f"proxy/{url}" if "://" in url else None


@pytest.fixture
def codex_home(home: Path) -> Path:
    (home / ".codex").mkdir()
    return home / ".codex"


def sent(folder: Path, *words: str, **variables: str) -> list[str]:
    return list(SETUP.arguments(ChildCommand(("codex", *words), variables, folder), through)[1:])


def test_codex_with_a_key_gets_the_base_url_as_its_first_argument(tmp_path: Path) -> None:
    assert sent(tmp_path, "exec", "hi", **KEY) == [*DEFAULT, "exec", "hi"]


def test_the_address_in_its_configuration_is_followed(tmp_path: Path, codex_home: Path) -> None:
    (codex_home / "config.toml").write_text(
        'openai_base_url = "http://127.0.0.1:4000/v1"\nmodel_provider = "corp"\n'
        '[model_providers.corp]\nbase_url = "https://llm.example.com/v1"\n'
        '[model_providers."a b"]\nbase_url = "https://b.example.com"\n[model_providers.none]\nname = "n"\n'
    )
    assert sent(tmp_path, "exec", **KEY) == [
        *("-c", 'openai_base_url="proxy/http://127.0.0.1:4000/v1"'),
        *("-c", 'model_providers.corp.base_url="proxy/https://llm.example.com/v1"'),
        *("-c", 'model_providers."a b".base_url="proxy/https://b.example.com"'),
        "exec",
    ]


@pytest.mark.parametrize("option", [["-c"], ["--config"], []])
def test_the_address_in_its_arguments_is_followed(option: list[str], tmp_path: Path) -> None:
    setting = 'openai_base_url="https://llm.example.com/v1"'
    words = [*option, setting] if option else [f"--config={setting}"]
    changed = ['openai_base_url="proxy/https://llm.example.com/v1"']
    expected = [*option, *changed] if option else [f"--config={changed[0]}"]
    assert sent(tmp_path, "exec", *words, "-c", "model=x", **KEY) == [*DEFAULT, "exec", *expected, "-c", "model=x"]


LOGINS = [
    ({"auth_mode": "chatgpt", "tokens": {}, "OPENAI_API_KEY": None}, {}, True),
    ({"auth_mode": "chatgpt", "tokens": {}, "OPENAI_API_KEY": "sk-fake"}, {}, True),
    ({"tokens": {"access_token": "x"}}, {"OPENAI_API_KEY": "sk-fake"}, True),
    ({"tokens": {"access_token": "x"}}, KEY, False),
    ({"OPENAI_API_KEY": "sk-fake"}, {}, False),
    (None, {"OPENAI_API_KEY": "sk-fake"}, False),
    (None, {}, True),
]


@pytest.mark.parametrize(("login", "variables", "ignores"), LOGINS)
def test_the_login_decides_whether_a_base_url_is_given(
    login: dict[str, object] | None, variables: dict[str, str], ignores: bool, tmp_path: Path, codex_home: Path
) -> None:
    if login is not None:
        (codex_home / "auth.json").write_text(json.dumps(login))
    child = ChildCommand(("codex", "exec"), variables, tmp_path)
    assert SETUP.ignores_base_url(child) is ignores
    assert sent(tmp_path, "exec", **variables) == ([] if ignores else DEFAULT) + ["exec"]


@pytest.mark.parametrize("text", ["", "[", "model_providers = 5", "[model_providers]\na = 1", "openai_base_url = 5"])
def test_odd_configuration_changes_nothing(text: str, tmp_path: Path, codex_home: Path) -> None:
    (codex_home / "config.toml").write_text(text)
    (codex_home / "auth.json").write_text(text)
    assert sent(tmp_path, "exec", **KEY) == [*DEFAULT, "exec"]
