"""How gptme is sent through the proxy."""

from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.gptme.setup import SETUP


@pytest.mark.parametrize(
    ("arguments", "variables", "configured", "door"),
    [
        ((), {}, None, "base-url"),
        (("-m", "openai/gpt-4o"), {}, None, "base-url"),
        (("--model", "anthropic"), {}, None, "base-url"),
        (("--model=openrouter/x/y",), {}, None, "forward"),
        (("-m",), {}, None, "base-url"),
        ((), {"MODEL": "gemini/flash"}, "openai/gpt-4o", "forward"),
        ((), {}, "openai-subscription/gpt-5", "forward"),
        (("-m", "openai/gpt-4o"), {}, "openrouter/x", "base-url"),
    ],
)
def test_the_provider_decides_the_door(
    arguments: tuple[str, ...], variables: dict[str, str], configured: str | None, door: str, tmp_path: Path
) -> None:
    if configured:
        folder = tmp_path / ".config/gptme"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(f'[env]\nMODEL = "{configured}"\n')
    child = ChildCommand(("gptme", *arguments), {"HOME": str(tmp_path), **variables}, tmp_path)
    assert SETUP.door(child) == door
