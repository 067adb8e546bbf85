"""How Grok Build is sent through the proxy."""

from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.grok_build.setup import SETUP

URL = "https://llm.example.com/v1"


def through(provider: str, url: str) -> str | None:
    return f"{provider}/{url}"


@pytest.mark.parametrize(
    ("variables", "changed"),
    [
        ({}, {}),
        ({"XAI_API_KEY": "k"}, {"GROK_XAI_API_BASE_URL": "openai/https://api.x.ai/v1"}),
        (
            {"XAI_API_KEY": "k", "GROK_XAI_API_BASE_URL": URL, "GROK_MODELS_BASE_URL": URL},
            {"GROK_XAI_API_BASE_URL": f"openai/{URL}", "GROK_MODELS_BASE_URL": f"openai/{URL}"},
        ),
        ({"GROK_CLI_CHAT_PROXY_BASE_URL": URL}, {"GROK_CLI_CHAT_PROXY_BASE_URL": f"openai/{URL}"}),
    ],
)
def test_the_addresses_in_variables_are_followed(
    variables: dict[str, str], changed: dict[str, str], tmp_path: Path
) -> None:
    child = ChildCommand(("grok", "-p", "hi"), variables, tmp_path)
    assert SETUP.variables(child, through, is_own=True) == changed
