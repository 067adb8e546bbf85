"""How aider is sent through the proxy."""

from pathlib import Path

import pytest

from agent_logger.agents.aider.setup import SETUP
from agent_logger.agents.contracts import ChildCommand

URL = "https://llm.example.com/v1"
CHANGED = {"OPENAI_BASE_URL": f"openai/{URL}", "OPENAI_API_BASE": f"openai/{URL}"}


def through(provider: str, url: str) -> str | None:
    return f"{provider}/{url}"


@pytest.mark.parametrize(
    ("arguments", "variables", "settings", "changed"),
    [
        ((), {}, "", {}),
        (("--openai-api-base", URL), {"OPENAI_BASE_URL": "https://other.example.com"}, "", CHANGED),
        ((), {"AIDER_OPENAI_API_BASE": URL}, "", CHANGED),
        ((), {"OPENAI_API_BASE": URL}, "", CHANGED),
        ((), {}, f"model: x\nopenai-api-base: '{URL}' # ours\n", CHANGED),
        ((), {}, f"# openai-api-base: {URL}\n", {}),
    ],
)
def test_base_urls_are_followed_wherever_they_are_given(
    arguments: tuple[str, ...], variables: dict[str, str], settings: str, changed: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / ".aider.conf.yml").write_text(settings)
    child = ChildCommand(("aider", *arguments), variables, tmp_path)
    assert SETUP.variables(child, through, is_own=True) == changed
    assert SETUP.variables(child, through, is_own=False) == {}


def test_the_settings_of_the_working_folder_win_over_those_of_the_home(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for place, host in ((tmp_path, "home"), (folder, "folder")):
        (place / ".aider.conf.yml").write_text(f"openai-api-base: https://{host}.example.com\n")
    child = ChildCommand(("aider",), {"HOME": str(tmp_path)}, folder)
    assert SETUP.variables(child, through, is_own=True)["OPENAI_BASE_URL"] == "openai/https://folder.example.com"


def test_the_provider_of_the_model_decides_the_door(tmp_path: Path) -> None:
    assert SETUP.door(ChildCommand(("aider", "--model", "openai/gpt-x"), {}, tmp_path)) == "base-url"
    assert SETUP.door(ChildCommand(("aider",), {"AIDER_MODEL": "gemini/x"}, tmp_path)) == "forward"
