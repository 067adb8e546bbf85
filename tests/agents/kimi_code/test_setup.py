"""How Kimi Code is sent through the proxy."""

from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.kimi_code.setup import SETUP

URL = "https://llm.example.com/v1"


def through(provider: str, url: str) -> str | None:
    return f"{provider}/{url}"


@pytest.mark.parametrize(
    ("variables", "changed"),
    [
        ({}, {}),
        ({"KIMI_MODEL_BASE_URL": URL}, {}),
        ({"KIMI_MODEL_NAME": "m", "KIMI_MODEL_BASE_URL": URL}, {"KIMI_MODEL_BASE_URL": f"openai/{URL}"}),
        (
            {"KIMI_MODEL_NAME": "m", "KIMI_MODEL_BASE_URL": URL, "KIMI_MODEL_PROVIDER_TYPE": "anthropic"},
            {"KIMI_MODEL_BASE_URL": f"anthropic/{URL}"},
        ),
    ],
)
def test_the_address_of_a_model_in_variables_is_followed(
    variables: dict[str, str], changed: dict[str, str], tmp_path: Path
) -> None:
    child = ChildCommand(("kimi", "-p", "hi"), variables, tmp_path)
    assert SETUP.variables(child, through, is_own=True) == changed
    assert SETUP.arguments(child, through) == child.argv
