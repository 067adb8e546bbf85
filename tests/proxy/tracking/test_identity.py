"""The client's own name for a session, and where it was found."""

import json
from typing import Any

import pytest

from agent_logger.model.records import Unknown, decode
from agent_logger.providers.request_body import Api
from agent_logger.providers.request_body import read as read_body
from agent_logger.proxy.tracking.identity import GATEWAYS, GENERIC_HEADERS, agent_of
from agent_logger.proxy.tracking.tracker import Decision
from tests.proxy.tracking.captures import new_tracker
from tests.proxy.tracking.conversation import TOOLS, Recorder, said, user
from tests.proxy.tracking.test_classify import asked, decide

USER = [{"role": "user", "content": "hello"}]
DEVICE = "d0" * 32


def metadata(user_id: Any) -> dict[str, Any]:
    return {"messages": USER, "metadata": {"user_id": user_id}}


NAMED = [
    pytest.param({"x-claude-code-session-id": "s"}, {}, ("s", "x-claude-code-session-id", "certain"), id="Claude"),
    pytest.param({}, metadata('{"device_id":"d","session_id":"s"}'), ("s", "metadata.user_id", "certain"), id="JSON"),
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
        {},
        {"messages": USER, "prompt_cache_key": "all"},
        ("all", "prompt_cache_key", "ambiguous"),
        id="another's cache key",
    ),
    pytest.param({}, {"messages": USER, "prompt_cache_key": " "}, (None, "none", "none"), id="a blank cache key"),
    pytest.param({}, {"messages": USER, "prompt_cache_key": 7}, (None, "none", "none"), id="a number as cache key"),
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
def test_a_session_is_identified_by_the_client_session_id(
    headers: dict[str, str], body: dict[str, Any], expected: tuple[str | None, str, str]
) -> None:
    said = decide(body=body or {"messages": USER}, headers=headers).identity
    assert (said.id, said.source, said.confidence) == expected


def test_session_id_sources_have_a_fixed_precedence() -> None:
    # This agent claims the first two; what comes after them is generic.
    order = ["x-claude-code-session-id", "metadata", *GENERIC_HEADERS, *GATEWAYS, "prompt_cache_key"]
    headers = {**{name: name for name in order}, "user-agent": "claude-cli/2"}
    body = {**metadata(f"user_{DEVICE}_account__session_metadata"), "prompt_cache_key": "prompt_cache_key"}
    for name in order:
        assert decide(body=body, headers=headers).identity.id == name
        headers.pop(name, None)
        body.pop(name, None)
    assert decide(body=body, headers=headers).identity.id is None


def test_the_calls_of_a_sub_agent_of_kilo_belong_to_the_session_that_started_it() -> None:
    kilo = {"user-agent": "Kilo-Code/7.7.9 ai-sdk/provider-utils/4.0.27 runtime/bun/1.3.14"}
    own = {**kilo, "x-session-id": "ses_a", "x-session-affinity": "ses_a"}
    inner = {**kilo, "x-session-id": "ses_b", "x-session-affinity": "ses_b", "x-parent-session-id": "ses_a"}
    tools = {"messages": USER, "tools": [{"type": "function"}]}
    decided = [decide(body=tools, headers=headers) for headers in (own, inner)]
    assert [(it.agent, it.identity.id, it.kind, it.thread) for it in decided] == [
        ("kilo", "ses_a", "main", "main"),
        ("kilo", "ses_a", "subagent", "agent:ses_b"),
    ]


def test_goose_is_known_by_its_system_prompt_and_names_its_session() -> None:
    system = {"role": "system", "content": "You are a general-purpose AI agent called goose, created by AAIF."}
    body = {"messages": [system, *USER], "tools": [{"type": "function"}]}
    decided = decide(body=body, headers={"agent-session-id": "20261118_1"})
    assert (decided.agent, decided.identity.id, decided.identity.confidence) == ("goose", "20261118_1", "certain")
    title = decide(body={"messages": USER}, headers={"agent-session-id": "20261118_1"})
    assert (title.agent, title.kind, title.identity.id) == ("goose", "side", "20261118_1")


def test_the_names_that_an_agent_claims_come_before_generic_ones() -> None:
    order = ["session-id", "session_id", "thread-id", "prompt_cache_key", "x-session-id", "x-affinity"]
    headers = {**{name: name for name in order}, "originator": "codex_exec"}
    body = {"messages": USER, "prompt_cache_key": "prompt_cache_key"}
    for name in order:
        assert decide(body=body, headers=headers).identity.id == name
        headers.pop(name, None)
        body.pop(name, None)


def test_a_generic_name_that_another_agent_claims_is_not_certain() -> None:
    headers = {"user-agent": "GeminiCLI/0.61.0", "session-id": "s"}
    said = decide(body={"messages": USER}, headers=headers).identity
    assert (said.id, said.source, said.confidence) == ("s", "session-id", "likely")


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


PI = "You are an expert coding assistant operating inside pi, a coding agent harness. You"
COPILOT = "You are the GitHub Copilot CLI, a terminal assistant"
OPENCLAW = "You are a personal assistant running inside OpenClaw.\n## Tools"
PROMPTS = [
    ("claude-cli/2.1.75", {"system": [{"text": "You are Claude Code."}, {"text": PI}], "messages": []}, "pi"),
    ("OpenAI/JS 6.26.0", {"messages": [{"role": "system", "content": PI}]}, "pi"),
    ("OpenAI/JS 6.26.0", {"messages": [{"role": "developer", "content": [{"type": "text", "text": PI}]}]}, "pi"),
    ("google-genai-sdk/1.0", {"systemInstruction": {"parts": [{"text": PI}]}, "contents": []}, "pi"),
    ("OpenAI/JS 5.20.1", {"instructions": COPILOT, "input": []}, "copilot-cli"),
    ("OpenAI/JS 7.15.0", {"messages": [{"role": "system", "content": OPENCLAW}]}, "openclaw"),
    ("OpenAI/JS 7.15.0", {"instructions": f"<!-- openclaw:attempt -->\n{OPENCLAW}", "input": []}, "openclaw"),
    ("OpenAI/JS 7.15.0", {"instructions": f"<!-- one -->\n<!-- two -->{OPENCLAW}", "input": []}, "openclaw"),
    ("OpenAI/JS 7.15.0", {"instructions": f"<!-- {OPENCLAW}", "input": []}, "openai-js"),
    ("claude-cli/2.1.325", {"messages": [{"role": "user", "content": PI}]}, "claude-code"),
    ("claude-cli/2.1.325", {"system": f"Quoted: {PI}", "messages": []}, "claude-code"),
    ("OpenAI/JS 6.26.0", {"messages": []}, "openai-js"),
]


@pytest.mark.parametrize(("user_agent", "body", "agent"), PROMPTS)
def test_an_agent_with_another_user_agent_is_identified_by_its_system_prompt(
    user_agent: str, body: dict[str, Any], agent: str
) -> None:
    api: Api = "gemini" if "contents" in body else "responses" if "input" in body else "chat"
    assert agent_of({"user-agent": user_agent}, read_body(json.dumps(body).encode()), api) == agent


@pytest.mark.parametrize(
    ("headers", "agent"),
    [
        ({"user-agent": "OpenAI/JS 5.20.1", "x-initiator": "agent"}, "copilot-cli"),
        ({"x-interaction-type": "conversation-subagent"}, "copilot-cli"),
        ({"user-agent": "opencode/1.18", "x-initiator": "agent"}, "opencode"),
    ],
)
def test_an_agent_with_a_user_agent_of_a_library_is_identified_by_its_headers(
    headers: dict[str, str], agent: str
) -> None:
    assert agent_of(headers) == agent


@pytest.mark.parametrize(("headers", "agent"), AGENTS)
def test_an_agent_is_identified_by_its_user_agent(headers: dict[str, str], agent: str | None) -> None:
    assert agent_of(headers) == agent


def test_the_same_session_id_at_two_providers_is_two_sessions() -> None:
    tracker = new_tracker()
    one = asked(body={"messages": USER}, headers={"x-session-id": "s"})
    two = asked(body={"messages": USER}, headers={"x-session-id": "s"})
    two.provider = "other"
    assert tracker.request(one).session != tracker.request(two).session


SPAWNED = {"prompt": "Look around", "description": "Look"}
SPAWN = {"name": "spawn_subagent", "arguments": json.dumps(SPAWNED)}
SPAWNING = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_" + "a" * 24, "function": SPAWN}]}


def grok(recorder: Recorder, session: str, *messages: dict[str, Any]) -> Decision:
    system = {"role": "system", "content": "You are Grok"}
    body = {"model": "m", "messages": [system, *messages], "tools": [{"type": "function"}]}
    headers = {"user-agent": "grok-shell/1.0.41 (linux; x86_64)", "x-grok-session-id": session}
    return recorder.request("/v1/chat/completions", body, headers)


def test_a_session_that_a_tool_call_started_is_a_sub_agent_of_the_session_with_that_call() -> None:
    recorder = Recorder()
    first = grok(recorder, "a", user("Go"))
    recorder.end(first, message=SPAWNING)
    inner = grok(recorder, "b", user("Look around"))
    recorder.end(inner, message=said("There."))
    again = grok(recorder, "b", user("Look around"), said("There."), user("On"))
    other = grok(recorder, "c", user("Something else"))
    assert [(it.session == first.session, it.kind, it.thread) for it in (first, inner, again, other)] == [
        (True, "main", "main"),
        (True, "subagent", "agent:b"),
        (True, "subagent", "agent:b"),
        (False, "main", "main"),
    ]
    assert [it.identity.id for it in (inner, other)] == ["a", "c"]


def test_a_sub_agent_with_a_session_of_its_own_is_known_after_a_restart() -> None:
    recorder = Recorder()
    recorder.end(grok(recorder, "a", user("Go")), message=SPAWNING)
    inner = grok(recorder, "b", user("Look around"))
    recorder.end(inner, message=said("There."))
    logs = recorder.all_logs()
    recorder.start()
    for log in logs:
        for line in log.lines:
            record = decode(line, "wire")
            assert not isinstance(record, Unknown)
            recorder.tracker.learn(log.provider, log.name, record)
    again = grok(recorder, "b", user("Look around"), said("There."), user("On"))
    assert (again.session, again.thread) == (inner.session, "agent:b")


def test_an_id_with_dashes_is_that_of_the_agents_files() -> None:
    recorder = Recorder()
    system = {"role": "system", "content": "You are OpenHands agent, a helpful assistant"}
    body = {"messages": [system, user("Go")], "prompt_cache_key": "025cd623-fae0-4791-9d94-05746871be61"}
    first = recorder.request("/v1/chat/completions", body, {"user-agent": "OpenAI/Python 2.54.0"})
    assert first.identity.id == "025cd623fae047919d9405746871be61"


def test_vibe_is_known_by_its_system_prompt_or_its_user_agent() -> None:
    prompt = "You help users get complex tasks done. Act directly and proactively. Find relevant skills"
    httpx = {"user-agent": "python-httpx/0.28.1", "x-affinity": "a"}
    for headers, system in ((httpx, prompt), ({"user-agent": "Mistral-Vibe/2.26.1", "x-affinity": "a"}, "You are X")):
        recorder = Recorder()
        messages = [{"role": "system", "content": system}, user("Go")]
        call = recorder.request("/v1/chat/completions", {"messages": messages, "tools": TOOLS}, headers)
        recorder.end(call, message=said("Yes."))
        titled = [{"role": "system", "content": "You write titles"}, user("user: Go")]
        title = recorder.request("/v1/chat/completions", {"messages": titled}, headers)
        assert (call.agent, call.identity.id, call.kind) == ("mistral-vibe", "a", "main")
        assert (title.session, title.kind) == (call.session, "side")


def test_a_sub_agent_without_a_name_is_recognised_by_its_prompt_in_chat_completions() -> None:
    recorder, headers = Recorder(), {"user-agent": "kimi-code-cli/2.1.0"}

    def ask(text: str) -> Decision:
        system = {"role": "system", "content": "You are Kimi"}
        body = {"messages": [system, user(text)], "tools": [{"type": "function"}], "prompt_cache_key": "s"}
        return recorder.request("/v1/chat/completions", body, headers)

    spawn = {"name": "Agent", "arguments": json.dumps(SPAWNED)}
    call = {"id": "call_" + "a" * 24, "function": spawn}
    first = ask("Go")
    recorder.end(first, message={"role": "assistant", "content": None, "tool_calls": [call]})
    inner = ask("<git-context>\nBranch: main\n</git-context>\n\nLook around")
    assert (inner.session, inner.kind, inner.thread) == (first.session, "subagent", f"agent:{call['id']}")


GITHUB_LOGIN = {"user-agent": "copilot/1.0.102 (linux v24.20.0)", "x-client-session-id": "s", "x-initiator": "user"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/chat/completions", {"messages": USER, "tools": [{"type": "function"}]}),
        ("/v1/messages", {"messages": USER, "tools": [{"name": "bash"}]}),
        ("/responses", {"input": USER, "tools": [{"type": "function"}]}),
    ],
)
def test_copilot_with_a_github_login_names_its_session_and_its_sub_agents(path: str, body: dict[str, Any]) -> None:
    main = {**GITHUB_LOGIN, "x-agent-task-id": "task-1"}
    inner = {**GITHUB_LOGIN, "x-agent-task-id": "task-2", "x-parent-agent-id": "task-1"}
    decided = [decide(path=path, body=body, headers=headers) for headers in (main, inner)]
    assert [(it.agent, it.identity.id, it.identity.confidence, it.kind, it.thread) for it in decided] == [
        ("copilot-cli", "s", "certain", "main", "main"),
        ("copilot-cli", "s", "certain", "subagent", "agent:task-2"),
    ]


SUB_AGENT = "be18182f-7ac3-478b-8815-670ff6e14f0d"
GEMINI_CLI = {"user-agent": "GeminiCLI-tui/0.61.0/gemini (linux; x64)"}


@pytest.mark.parametrize(
    ("prompt_id", "config", "expected"),
    [
        pytest.param("s", {}, ("main", "main"), id="a run"),
        pytest.param(f"{SUB_AGENT}########3", {}, ("main", "main"), id="a terminal"),
        pytest.param(f"{SUB_AGENT}#3", {}, ("subagent", f"agent:{SUB_AGENT}"), id="a sub-agent"),
        pytest.param(f"{SUB_AGENT}#3", {"responseMimeType": "application/json"}, ("side", "side"), id="its side call"),
        pytest.param("classifier-router-1a2b", {"responseMimeType": "application/json"}, ("side", "side"), id="router"),
        pytest.param(7, {}, ("main", "main"), id="a number"),
    ],
)
def test_code_assist_calls_name_their_session_and_sub_agents_beside_the_request(
    prompt_id: Any, config: dict[str, Any], expected: tuple[str, str]
) -> None:
    tools = {} if config else {"tools": [{"functionDeclarations": [{"name": "ls"}]}]}
    inner = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}], "session_id": "s", **tools}
    body = {"model": "m", "user_prompt_id": prompt_id, "request": {**inner, "generationConfig": config}}
    decided = decide(path="/v1internal:streamGenerateContent?alt=sse", body=body, headers=GEMINI_CLI)
    assert (decided.kind, decided.thread) == expected
    assert (decided.identity.id, decided.identity.source) == ("s", "session_id")
