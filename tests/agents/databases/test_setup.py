"""How Kilo and Goose are sent through the proxy under `run`: base URLs in their variables and files are followed."""

import json
from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.goose.setup import SETUP as GOOSE
from agent_logger.agents.kilo.setup import SETUP as KILO


def through(api: str, url: str) -> str:
    return f"http://127.0.0.1:9/{api}/{url.removeprefix('https://')}"


def kilo_urls(folder: Path, **environment: str) -> dict[str, str]:
    child = ChildCommand(("kilo", "run"), {"HOME": str(folder), **environment}, folder)
    content = KILO.variables(child, through, is_own=True)["KILO_CONFIG_CONTENT"]
    providers = json.loads(content or "{}")["provider"]
    return {name: provider["options"]["baseURL"] for name, provider in providers.items()}


def test_a_base_url_in_kilos_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / ".config/kilo/kilo.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"provider": {"own": {"options": {"baseURL": "https://models.example.com/v1"}}}}))
    assert kilo_urls(tmp_path) == {
        "anthropic": "http://127.0.0.1:9/anthropic/api.anthropic.com/v1",
        "own": "http://127.0.0.1:9/openai/models.example.com/v1",
    }


def test_a_base_url_in_kilos_variable_takes_precedence_over_its_file(tmp_path: Path) -> None:
    (tmp_path / "kilo.json").write_text('{"provider": {"own": {"options": {"baseURL": "https://file.example.com"}}}}')
    content = '{"provider": {"own": {"options": {"baseURL": "https://variable.example.com", "apiKey": "k"}}}}'
    assert kilo_urls(tmp_path, KILO_CONFIG_CONTENT=content)["own"] == "http://127.0.0.1:9/openai/variable.example.com"


def test_nothing_is_set_for_kilo_if_a_file_with_a_base_url_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "kilo.json").write_text('{"provider": {"own": {"options": {"baseURL": ')
    child = ChildCommand(("kilo", "run"), {"HOME": str(tmp_path)}, tmp_path)
    assert "KILO_CONFIG_CONTENT" not in KILO.variables(child, through, is_own=True)


def goose_variables(folder: Path, **environment: str) -> dict[str, str | None]:
    child = ChildCommand(("goose", "run"), {"HOME": str(folder), **environment}, folder)
    return dict(GOOSE.variables(child, through, is_own=True))


def test_a_host_in_gooses_variable_is_followed(tmp_path: Path) -> None:
    assert goose_variables(tmp_path, ANTHROPIC_HOST="https://models.example.com") == {
        "ANTHROPIC_HOST": "http://127.0.0.1:9/anthropic/models.example.com"
    }


@pytest.mark.parametrize(
    "line", ["OPENAI_HOST: https://models.example.com", 'OPENAI_HOST: "https://models.example.com" # own']
)
def test_a_host_in_gooses_file_is_followed_and_no_base_url_takes_its_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / ".config/goose/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(f"GOOSE_PROVIDER: openai\n{line}\n")
    assert goose_variables(tmp_path) == {
        "OPENAI_HOST": "http://127.0.0.1:9/openai/models.example.com",
        "OPENAI_BASE_URL": None,
        "ANTHROPIC_HOST": "http://127.0.0.1:9/anthropic/api.anthropic.com",
    }


def test_a_base_url_of_the_user_is_unchanged_for_goose(tmp_path: Path) -> None:
    found = goose_variables(
        tmp_path, OPENAI_BASE_URL="https://models.example.com/v1", OPENAI_HOST="https://h.example.com"
    )
    assert "OPENAI_BASE_URL" not in found
