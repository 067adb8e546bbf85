"""How OpenHands is sent through the proxy."""

from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.openhands.setup import SETUP

URL = "https://llm.example.com/v1"
ARGV = ("openhands", "--headless", "--override-with-envs", "-t", "hi")


def through(provider: str, url: str) -> str | None:
    return f"{provider}/{url}"


@pytest.mark.parametrize(
    ("variables", "changed"),
    [
        ({}, {}),
        ({"LLM_BASE_URL": URL}, {"LLM_BASE_URL": f"openai/{URL}"}),
        ({"LLM_BASE_URL": URL, "LLM_MODEL": "openai/gpt-5.4"}, {"LLM_BASE_URL": f"openai/{URL}"}),
        ({"LLM_BASE_URL": URL, "LLM_MODEL": "anthropic/claude-sonnet-4-5"}, {"LLM_BASE_URL": f"anthropic/{URL}"}),
    ],
)
def test_the_base_url_in_the_variables_is_followed(
    variables: dict[str, str], changed: dict[str, str], tmp_path: Path
) -> None:
    assert SETUP.variables(ChildCommand(ARGV, variables, tmp_path), through, is_own=True) == changed


def test_without_the_option_that_reads_them_the_variables_lead_nowhere(tmp_path: Path) -> None:
    variables = {"LLM_BASE_URL": URL}
    assert SETUP.door(ChildCommand(ARGV, variables, tmp_path)) == "base-url"
    assert SETUP.door(ChildCommand(("openhands", "-t", "hi"), variables, tmp_path)) == "forward"
    assert SETUP.door(ChildCommand(ARGV, {}, tmp_path)) == "forward"
