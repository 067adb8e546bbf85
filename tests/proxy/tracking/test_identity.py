"""The client's own name for a session, and where it was found."""

from typing import Any

import pytest

from agent_logger.proxy.tracking.identity import agent_of, headers_of
from tests.proxy.tracking.captures import new_tracker
from tests.proxy.tracking.test_classify import asked, decide

USER = [{"role": "user", "content": "hello"}]
DEVICE = "d0" * 32


def metadata(user_id: Any) -> dict[str, Any]:
    return {"messages": USER, "metadata": {"user_id": user_id}}


NAMED = [
    pytest.param(
        {"x-claude-code-session-id": "s"}, {}, ("s", "x-claude-code-session-id", "certain"), id="Claude"
    ),
    pytest.param(
        {}, metadata('{"device_id":"d","session_id":"s"}'), ("s", "metadata.user_id", "certain"), id="JSON"
    ),
    pytest.param(
        {},
        metadata(f"user_{DEVICE}_account__session_s-1"),
        ("s-1", "metadata.user_id", "certain"),
        id="2.1.4",
    ),
    pytest.param(
        {},
        metadata(f"user_{DEVICE}_account_a-b_session_s"),
        ("s", "metadata.user_id", "certain"),
        id="an account",
    ),
    pytest.param({}, metadata(DEVICE), (None, "none", "none"), id="1.0.3 names its device alone"),
    pytest.param({}, metadata('{"session_id":'), (None, "none", "none"), id="half an object"),
    pytest.param({}, metadata(7), (None, "none", "none"), id="a number"),
    pytest.param({"session-id": "s", "thread-id": "s"}, {}, ("s", "session-id", "certain"), id="Codex"),
    pytest.param({"session_id": "s"}, {}, ("s", "session_id", "certain"), id="Codex before"),
    pytest.param({"thread-id": "t"}, {}, ("t", "thread-id", "certain"), id="a thread alone"),
    pytest.param(
        {"originator": "codex_cli_rs"},
        {"messages": USER, "prompt_cache_key": "s"},
        ("s", "prompt_cache_key", "likely"),
        id="Codex's cache key",
    ),
    pytest.param(
        {}, {"messages": USER, "prompt_cache_key": "all"}, (None, "none", "none"), id="another's cache key"
    ),
    pytest.param({"x-session-id": "s"}, {}, ("s", "x-session-id", "certain"), id="opencode"),
    pytest.param({"x-litellm-session-id": "s"}, {}, ("s", "x-litellm-session-id", "likely"), id="LiteLLM"),
    pytest.param({"helicone-session-id": "s"}, {}, ("s", "helicone-session-id", "likely"), id="Helicone"),
    pytest.param({"x-conversation-id": "s"}, {}, ("s", "x-conversation-id", "likely"), id="a conversation"),
    pytest.param({}, {"messages": USER, "user": "u"}, (None, "none", "none"), id="a user is not a session"),
    pytest.param({"x-client-request-id": "r"}, {}, (None, "none", "none"), id="nor is a request"),
    pytest.param({"x-session-id": "x" * 257}, {}, (None, "none", "none"), id="too long"),
    pytest.param({"x-session-id": "a\x07b"}, {}, (None, "none", "none"), id="not printable"),
    pytest.param({"x-session-id": ""}, {}, (None, "none", "none"), id="empty"),
]


@pytest.mark.parametrize(("headers", "body", "expected"), NAMED)
def test_a_session_goes_by_the_clients_name(
    headers: dict[str, str], body: dict[str, Any], expected: tuple[str | None, str, str]
) -> None:
    said = decide(body=body or {"messages": USER}, headers=headers).identity
    assert (said.id, said.source, said.confidence) == expected


def test_the_names_come_in_the_order_of_what_they_are_worth() -> None:
    headers = {
        "x-claude-code-session-id": "1",
        "session-id": "3",
        "session_id": "4",
        "thread-id": "5",
        "x-session-id": "7",
        "x-litellm-session-id": "8",
        "helicone-session-id": "9",
        "x-conversation-id": "10",
        "originator": "codex_exec",
    }
    body = {**metadata(f"user_{DEVICE}_account__session_2"), "prompt_cache_key": "6"}
    order = [("x-claude-code-session-id", "1"), ("metadata", "2"), ("session-id", "3"), ("session_id", "4")]
    order += [
        ("thread-id", "5"),
        ("prompt_cache_key", "6"),
        ("x-session-id", "7"),
        ("x-litellm-session-id", "8"),
    ]
    order += [("helicone-session-id", "9"), ("x-conversation-id", "10")]
    for name, expected in order:
        assert decide(body=body, headers=headers).identity.id == expected
        headers.pop(name, None)
        body.pop(name, None)
    assert decide(body=body, headers=headers).identity.id is None


AGENTS = [
    ({"user-agent": "claude-cli/2.1.325 (external, sdk-cli)"}, "claude-code"),
    ({"user-agent": "codex_exec/0.166.0 (Linux; x86_64)"}, "codex"),
    ({"user-agent": "Mozilla/5.0", "originator": "codex_vscode"}, "codex"),
    ({"user-agent": "GeminiCLI-tui/0.61.0/gemini-3.1-pro-preview (linux; x64; terminal)"}, "gemini-cli"),
    ({"user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14"}, "opencode"),
    ({"user-agent": "Anthropic/Python 2.8.0"}, "anthropic-python"),
    ({"user-agent": "AsyncOpenAI/Python 3.49.0"}, "openai-python"),
    ({"user-agent": "QwenCode/0.24.4 (linux; x64)"}, "qwen-code"),
    ({"user-agent": "ai/6.0.326 ai-sdk/provider-utils/4.0.64 runtime/node.js/v20.20.2"}, "ai-sdk"),
    ({"user-agent": "litellm/1.106.2"}, "litellm"),
    ({"user-agent": "curl/8.5.0"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "agent"), AGENTS)
def test_an_agent_is_known_by_how_it_calls_itself(headers: dict[str, str], agent: str | None) -> None:
    assert agent_of(headers) == agent


def test_only_the_headers_that_matter_are_taken_out_of_a_head() -> None:
    lines = (
        b"\r\nHost: x\r\nX-Claude-Code-Session-Id:  s \r\nAuthorization: Bearer secret\r\nno colon\r\n\r\n"
    )
    assert headers_of(lines) == {"x-claude-code-session-id": "s"}


def test_the_same_name_at_two_providers_is_two_sessions() -> None:
    tracker = new_tracker()
    one = asked(body={"messages": USER}, headers={"x-session-id": "s"})
    two = asked(body={"messages": USER}, headers={"x-session-id": "s"})
    two.provider = "other"
    assert tracker.request(one).session != tracker.request(two).session
