"""How one process of Cline is sent through the proxy."""

from pathlib import Path

import pytest

from agent_logger.agents.cline.setup import SETUP
from agent_logger.agents.contracts import ChildCommand

API, BACKEND = "CLINE_API_BASE_URL", "CLINE_SESSION_BACKEND_MODE"


def through(provider: str, url: str) -> str | None:
    return f"http://127.0.0.1:8080/{provider}/{url.partition('://')[2]}" if url.startswith("https") else None


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, {API: "http://127.0.0.1:8080/openai/api.cline.bot", BACKEND: "local"}),
        ({API: "https://own.example"}, {API: "http://127.0.0.1:8080/openai/own.example", BACKEND: "local"}),
        ({API: "ftp://own.example"}, {}),
        ({BACKEND: "hub"}, {API: "http://127.0.0.1:8080/openai/api.cline.bot"}),
    ],
)
def test_the_base_url_of_its_own_provider_is_a_variable(environment: dict[str, str], expected: dict[str, str]) -> None:
    child = ChildCommand(("cline", "say hi"), environment, Path("/"))
    assert SETUP.variables(child, through, is_own=True) == expected


def test_another_command_gets_no_variable_for_it() -> None:
    assert SETUP.variables(ChildCommand(("make",), {}, Path("/")), through, is_own=False) == {}
