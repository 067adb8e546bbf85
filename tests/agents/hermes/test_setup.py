"""How Hermes is sent through the proxy: the provider in its settings decides about the door."""

from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.hermes.setup import SETUP

URL = "https://models.example.com/v1"
CUSTOM = f"model:\n  default: m\n  provider: custom\n  base_url: {URL}  # mine\nother:\n  base_url: https://x\n"


def through(provider: str, url: str) -> str:
    return f"{provider}/{url}"


@pytest.mark.parametrize(
    ("config", "environment", "changed"),
    [
        pytest.param(CUSTOM, {}, {"CUSTOM_BASE_URL": f"openai/{URL}"}, id="a provider of one's own"),
        pytest.param(CUSTOM, {"CUSTOM_BASE_URL": "https://v"}, {"CUSTOM_BASE_URL": "openai/https://v"}, id="variable"),
        pytest.param(
            CUSTOM.replace("default: m", "api_mode: anthropic_messages"),
            {},
            {"CUSTOM_BASE_URL": f"anthropic/{URL}"},
            id="Anthropic's API",
        ),
        pytest.param(
            "model:\n  provider: openrouter\n",
            {},
            {"OPENROUTER_BASE_URL": "openai/https://openrouter.ai/api/v1"},
            id="OpenRouter",
        ),
        pytest.param("model:\n  provider: anthropic\n", {}, {}, id="another provider"),
        pytest.param("model: m\nother:\n  base_url: https://x\n", {}, {}, id="no provider"),
        pytest.param(None, {}, {}, id="no file"),
    ],
)
def test_a_base_url_is_followed_and_any_other_provider_goes_through_the_forward_door(
    config: str | None, environment: dict[str, str], changed: dict[str, str], tmp_path: Path
) -> None:
    if config is not None:
        (tmp_path / ".hermes").mkdir()
        (tmp_path / ".hermes/config.yaml").write_text(config)
    child = ChildCommand(("hermes", "-z", "Hi"), {"HOME": str(tmp_path), **environment}, tmp_path)
    assert SETUP.variables(child, through, is_own=True) == changed
    assert SETUP.door(child) == ("base-url" if changed else "forward")


def test_a_variable_in_its_own_file_cannot_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CUSTOM)
    (tmp_path / ".env").write_text(f"KEY=x\nexport CUSTOM_BASE_URL={URL}\n")
    child = ChildCommand(("hermes",), {"HERMES_HOME": str(tmp_path)}, tmp_path)
    assert (SETUP.variables(child, through, is_own=True), SETUP.door(child)) == ({}, "forward")
