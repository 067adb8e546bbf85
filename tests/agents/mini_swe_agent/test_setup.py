"""How agents that use LiteLLM are sent through the proxy."""

from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.mini_swe_agent.setup import LiteLlmSetup

SETUP = LiteLlmSetup("THE_MODEL")
URL = "https://llm.example.com/v1"


def through(provider: str, url: str) -> str | None:
    return f"{provider}/{url}"


@pytest.mark.parametrize(
    ("variables", "changed"),
    [
        ({}, {}),
        ({"OPENAI_API_BASE": URL}, {"OPENAI_API_BASE": f"openai/{URL}", "OPENAI_BASE_URL": f"openai/{URL}"}),
        ({"OPENAI_API_BASE": URL, "OPENAI_BASE_URL": "https://other.example.com"}, {}),
        (
            {"ANTHROPIC_API_BASE": URL},
            {"ANTHROPIC_API_BASE": f"anthropic/{URL}", "ANTHROPIC_BASE_URL": f"anthropic/{URL}"},
        ),
    ],
)
def test_base_urls_under_other_names_are_followed(
    variables: dict[str, str], changed: dict[str, str], tmp_path: Path
) -> None:
    child = ChildCommand(("mini",), variables, tmp_path)
    assert SETUP.variables(child, through, is_own=True) == changed
    assert SETUP.variables(child, through, is_own=False) == {}


@pytest.mark.parametrize(
    ("arguments", "variables", "door"),
    [
        ((), {}, "base-url"),
        (("-m", "openai/gpt-x"), {}, "base-url"),
        (("--model", "claude-x"), {"THE_MODEL": "gemini/x"}, "base-url"),
        (("--model=gemini/x",), {}, "forward"),
        ((), {"THE_MODEL": "openrouter/anthropic/x"}, "forward"),
        (("-m",), {}, "base-url"),
    ],
)
def test_the_provider_of_the_model_decides_the_door(
    arguments: tuple[str, ...], variables: dict[str, str], door: str, tmp_path: Path
) -> None:
    assert SETUP.door(ChildCommand(("mini", *arguments), variables, tmp_path)) == door
