"""The door by which a command is recorded, and what changes for it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_logger.agents.contracts import ChildCommand
from agent_logger.agents.registry import agent_called
from agent_logger.config import Network
from agent_logger.proxy.runs.messages import TOKEN_LENGTH
from agent_logger.recording.run.doors import OutgoingCommand
from tests.recording.played import script

PORT = 8123
GATEWAY = "https://llm.example.com"
OTHER_TOKEN = "alr_" + "b" * TOKEN_LENGTH


def outgoing(
    folder: Path, agent: str | None = None, *argv: str, variables: Mapping[str, str] | None = None
) -> OutgoingCommand:
    environment = {"HOME": str(folder), **(variables or {})}
    return OutgoingCommand(ChildCommand(argv or ("some-command",), environment, folder), agent_called(agent))


def a_login(home: Path, **login: object) -> None:
    (home / ".codex").mkdir()
    (home / ".codex/auth.json").write_text(json.dumps(login))


def test_the_login_of_codex_decides_its_door(home: Path) -> None:
    assert outgoing(home, "codex", "codex", variables={"CODEX_API_KEY": "sk-x"}).door("auto") == "base-url"
    a_login(home, auth_mode="chatgpt", tokens={"access_token": "x"})
    assert outgoing(home, "codex", "codex").door("auto") == "forward"
    assert outgoing(home, "codex", "codex").door("base-url") == "base-url"


def test_gemini_with_a_google_login_needs_the_forward_door(home: Path) -> None:
    (home / ".gemini").mkdir()
    for kind, door in (("oauth-personal", "forward"), ("gemini-api-key", "base-url")):
        settings = {"security": {"auth": {"selectedType": kind}}}
        (home / ".gemini/settings.json").write_text(json.dumps(settings))
        assert outgoing(home, "gemini-cli", "gemini").door("auto") == door


@pytest.mark.parametrize(
    ("agent", "variables"),
    [
        ("copilot-cli", {"COPILOT_PROVIDER_BASE_URL": "https://llm.example.com/v1"}),
        ("kimi-code", {"KIMI_MODEL_NAME": "m", "KIMI_MODEL_BASE_URL": "https://llm.example.com/v1"}),
        ("grok-build", {"XAI_API_KEY": "xai-1"}),
    ],
)
def test_an_agent_without_a_base_url_of_the_user_calls_its_own_back_end(
    home: Path, agent: str, variables: dict[str, str]
) -> None:
    assert outgoing(home, agent, "x").door("auto") == "forward"
    assert outgoing(home, agent, "x", variables=variables).door("auto") == "base-url"


def test_an_agent_that_cannot_be_given_a_base_url_needs_the_forward_door(home: Path) -> None:
    assert outgoing(home, "pi", "pi").door("auto") == "forward"


def test_a_command_of_which_nothing_is_known_gets_base_urls(home: Path) -> None:
    assert outgoing(home).door("auto") == "base-url"


@pytest.mark.parametrize(("version", "door"), [("1.0.3", "forward"), ("1.0.65", "base-url"), ("2.1.325", "base-url")])
def test_an_old_claude_with_a_gateway_in_its_settings_needs_the_forward_door(
    home: Path, version: str, door: str
) -> None:
    script(home / "claude", f"echo '{version} (Claude Code)'")
    claude = str(home / "claude")
    assert outgoing(home, "claude-code", claude).door("auto") == "base-url"
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": GATEWAY}}))
    assert outgoing(home, "claude-code", claude).door("auto") == door


def test_a_gateway_is_registered_and_its_host_recorded(home: Path) -> None:
    variables = {"ANTHROPIC_BASE_URL": GATEWAY, "OPENAI_BASE_URL": "http://127.0.0.1:4000/v1"}
    sent = outgoing(home, variables=variables).sent("forward", PORT, {})
    assert set(sent.registration.origins) >= {GATEWAY, "http://127.0.0.1:4000"}
    assert {"llm.example.com", "api.anthropic.com"} <= set(sent.registration.record_hosts)
    assert not any("127.0.0.1" in host for host in sent.registration.record_hosts)
    assert {name: sent.child.environment[name] for name in variables} == variables


def test_the_proxy_of_the_user_becomes_the_way_to_upstreams(home: Path) -> None:
    user = "http://proxy.example.com:3128"
    sent = outgoing(home, variables={"HTTPS_PROXY": user, "NO_PROXY": "git.example.com"}).sent("forward", PORT, {})
    assert sent.registration.network == Network(https_proxy=user, no_proxy="git.example.com")
    token = sent.registration.token
    assert sent.child.environment["HTTPS_PROXY"] == f"http://agent-logger:{token}@127.0.0.1:{PORT}"
    assert sent.child.environment["NO_PROXY"].startswith("git.example.com,")


def test_a_base_url_of_ours_is_taken_back_where_the_agent_calls_its_api_itself(home: Path) -> None:
    variables = {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:8080/anthropic/api.anthropic.com",
        "OPENAI_BASE_URL": "http://127.0.0.1:8080/openai/llm.example.com/v1",
    }
    environment = outgoing(home, variables=variables).sent("forward", PORT, {8080: ()}).child.environment
    assert "ANTHROPIC_BASE_URL" not in environment
    assert environment["OPENAI_BASE_URL"] == "https://llm.example.com/v1"


def test_a_run_inside_of_another_one_names_it(home: Path) -> None:
    outer = {"HTTPS_PROXY": f"http://agent-logger:{OTHER_TOKEN}@127.0.0.1:{PORT}"}
    assert outgoing(home, variables=outer).sent("forward", PORT, {}).registration.within == OTHER_TOKEN


def test_claude_gets_the_proxy_as_an_argument_if_its_settings_name_another_one(home: Path) -> None:
    script(home / "claude", "echo '2.1.325 (Claude Code)'")
    (home / ".claude").mkdir()
    user = {"HTTPS_PROXY": "http://proxy.example.com:3128", "OTHER": "x"}
    (home / ".claude/settings.json").write_text(json.dumps({"env": user}))
    sent = outgoing(home, "claude-code", str(home / "claude"), "-p", "hi").sent("forward", PORT, {})
    _, option, settings, *rest = sent.child.argv
    assert (option, rest) == ("--settings", ["-p", "hi"])
    assert json.loads(settings) == {"env": {"HTTPS_PROXY": sent.child.environment["HTTPS_PROXY"]}}
    assert sent.registration.network.https_proxy == user["HTTPS_PROXY"]


def test_without_enough_roots_an_agent_that_needs_a_bundle_is_passed_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_logger.proxy.forward import bundle

    monkeypatch.setattr(bundle.SystemRoots, "here", classmethod(lambda cls: cls((), ())))
    codex = outgoing(home, "codex", "codex").sent("forward", PORT, {})
    assert codex.registration.record_hosts == () and codex.notice
    assert "SSL_CERT_FILE" not in codex.child.environment
    claude = outgoing(home, "claude-code", "claude").sent("forward", PORT, {})
    assert claude.registration.record_hosts and claude.notice is None
