"""How opencode is sent through the proxy: by configuration in a variable."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.opencode.setup import SETUP, VARIABLE

ANTHROPIC = "https://api.anthropic.com/v1"


def through(provider: str, url: str) -> str | None:
    return f"proxy/{provider}/{url}"


def config(folder: Path, home: Path, **variables: str) -> dict[str, Any] | None:
    child = ChildCommand(("opencode", "run"), {"HOME": str(home), **variables}, folder)
    content = SETUP.variables(child, through, is_own=False).get(VARIABLE)
    return json.loads(content) if content else None


def with_url(name: str, url: str, **more: object) -> dict[str, Any]:
    return {"provider": {name: {**more, "options": {"baseURL": url}}}}


def test_anthropic_is_sent_through_the_proxy(tmp_path: Path, home: Path) -> None:
    assert config(tmp_path, home) == with_url("anthropic", f"proxy/anthropic/{ANTHROPIC}")


def test_base_urls_in_its_files_are_followed(tmp_path: Path, home: Path) -> None:
    (home / ".config/opencode").mkdir(parents=True)
    own = with_url("corp", "https://llm.example.com/v1", npm="@ai-sdk/anthropic")
    (home / ".config/opencode/opencode.json").write_text(json.dumps(own))
    (tmp_path / "opencode.json").write_text(json.dumps(with_url("local", "http://127.0.0.1:11434/v1")))
    changed = config(tmp_path, home)
    assert changed and {name: it["options"]["baseURL"] for name, it in changed["provider"].items()} == {
        "anthropic": f"proxy/anthropic/{ANTHROPIC}",
        "corp": "proxy/anthropic/https://llm.example.com/v1",
        "local": "proxy/openai/http://127.0.0.1:11434/v1",
    }


def test_the_users_own_variable_is_merged(tmp_path: Path, home: Path) -> None:
    own = {"theme": "x", **with_url("anthropic", "https://llm.example.com", npm="@ai-sdk/anthropic")}
    changed = config(tmp_path, home, **{VARIABLE: json.dumps(own)})
    url = "proxy/anthropic/https://llm.example.com"
    assert changed == {"theme": "x", **with_url("anthropic", url, npm="@ai-sdk/anthropic")}


@pytest.mark.parametrize("text", ['{// "baseURL"\n}', '{"provider": {"a": {"options": {"baseURL": "x"}}},}'])
def test_a_file_with_a_base_url_that_cannot_be_read_changes_nothing(text: str, tmp_path: Path, home: Path) -> None:
    (tmp_path / "opencode.jsonc").write_text(text)
    assert config(tmp_path, home) is None


def test_another_anthropic_address_of_the_user_is_not_replaced(tmp_path: Path, home: Path) -> None:
    assert config(tmp_path, home, ANTHROPIC_BASE_URL="https://llm.example.com") is None


def test_opencode_without_our_configuration_does_not_get_the_base_url_of_the_sdks(tmp_path: Path, home: Path) -> None:
    (tmp_path / "opencode.jsonc").write_text('{// "baseURL"\n}')
    child = ChildCommand(("opencode",), {"HOME": str(home)}, tmp_path)
    assert SETUP.variables(child, through, is_own=True) == {"ANTHROPIC_BASE_URL": None}
