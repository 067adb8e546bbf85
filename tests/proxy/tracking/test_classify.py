"""Which calls are tracked, and what kind each is."""

import json
from typing import Any

import pytest

from agent_logger.proxy.tracking.tracker import Decision, TrackedAnswer, TrackedRequest
from tests.proxy.tracking.captures import new_tracker

USER = {"role": "user", "content": "hello"}
TEXT = {"messages": [USER]}
TOOLS = {"tools": [{"name": "Bash"}]}
CLAUDE = {"user-agent": "claude-cli/2.1.325 (external, cli)"}
OPENCODE = {"user-agent": "opencode/1.18.33 ai-sdk"}
GEMINI = {"user-agent": "GeminiCLI-tui/0.61.0/gemini (linux; x64)"}
CODEX = {"user-agent": "codex_exec/0.166.0 (Linux)"}


def asked(
    method: str = "POST",
    path: str = "/v1/messages",
    body: Any = None,
    headers: dict[str, str] | None = None,
    *,
    message: bool = False,
    ts: str = "2026-11-15T10:15:00.000Z",
) -> TrackedRequest:
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    return TrackedRequest(
        provider="any",
        upstream="api.example.com",
        method=method,
        path=path,
        headers=headers or {},
        body=data,
        ts=ts,
        message=message,
    )


def decide(*args: Any, **kwargs: Any) -> Decision:
    return new_tracker().request(asked(*args, **kwargs))


GENERATE = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}

TRACKED = [
    pytest.param("POST", "/v1/messages", TEXT, False, id="messages"),
    pytest.param("POST", "/v1/messages?beta=true", TEXT, False, id="messages, with a query"),
    pytest.param("POST", "/model/m/invoke", TEXT, False, id="messages on Bedrock"),
    pytest.param("POST", "/v1/p/models/m:streamRawPredict", TEXT, False, id="messages on Vertex AI"),
    pytest.param("POST", "/model/m/invoke-with-response-stream", TEXT, False, id="a stream of Bedrock"),
    pytest.param("POST", "/v1/chat/completions", TEXT, False, id="chat completions"),
    pytest.param("POST", "/api/v1/chat/completions", TEXT, False, id="chat completions of OpenRouter"),
    pytest.param("POST", "/v1/completions", {"prompt": "hello"}, False, id="completions"),
    pytest.param("POST", "/v1/completions", {"prompt": ["a", "b"]}, False, id="completions of several"),
    pytest.param("POST", "/api/chat", TEXT, False, id="chat of Ollama"),
    pytest.param("POST", "/api/generate", {"prompt": "hello"}, False, id="a prompt for Ollama"),
    pytest.param("POST", "/v1/responses", {"input": "hello"}, False, id="responses"),
    pytest.param("GET", "/v1/responses", {"type": "response.create", "input": [USER]}, True, id="WebSocket"),
    pytest.param("POST", "/v1beta/models/g:generateContent", GENERATE, False, id="generateContent"),
    pytest.param("POST", "/v1beta/models/g:streamGenerateContent?alt=sse", GENERATE, False, id="streamGenerateContent"),
]
UNTRACKED = [
    pytest.param("POST", "/v1/messages/count_tokens", TEXT, "count_tokens", id="count_tokens"),
    pytest.param("POST", "/v1beta/models/g:countTokens", GENERATE, "count_tokens", id="countTokens"),
    pytest.param("POST", "/v1/p/models/count-tokens:rawPredict", TEXT, "count_tokens", id="of Vertex AI"),
    pytest.param("POST", "/model/m/count-tokens", TEXT, "count_tokens", id="of Bedrock"),
    pytest.param("POST", "/v1/messages/batches", {"requests": []}, "other", id="a batch"),
    pytest.param("GET", "/v1/messages/batches/msgbatch_1", None, "other", id="a batch's state"),
    pytest.param("GET", "/v1/messages/batches/msgbatch_1/results", None, "other", id="a batch's results"),
    pytest.param("GET", "/v1/models", None, "models", id="models"),
    pytest.param("GET", "/v1/models/gpt-5?x=1", None, "models", id="one model"),
    pytest.param("GET", "/v1beta/models", None, "models", id="models of Gemini"),
    pytest.param("HEAD", "/", None, "probe", id="probe"),
    pytest.param("HEAD", "/api/hello", None, "probe", id="probe of Claude Code"),
    pytest.param("GET", "/v1/responses", None, "other", id="an upgrade"),
    pytest.param("GET", "/v1/responses/resp_1", None, "other", id="a stored response"),
    pytest.param("GET", "/v1/messages", None, "other", id="not a POST"),
    pytest.param("POST", "/v1/responses/compact", TEXT, "compact", id="compaction by the server"),
    pytest.param("POST", "/v1/embeddings", {"input": "x"}, "other", id="another path"),
    pytest.param("POST", "/v1/completions", {"prompt": [1, 2]}, "other", id="a prompt that is tokens"),
    pytest.param("POST", "/v1/messages", b"not json", "other", id="a body that is not JSON"),
    pytest.param("POST", "/v1/messages", {"messages": []}, "other", id="no messages"),
    pytest.param("POST", "/v1/messages", {"messages": "x"}, "other", id="messages of another shape"),
]


@pytest.mark.parametrize(("method", "path", "body", "message"), TRACKED)
def test_a_call_to_a_model_is_tracked(method: str, path: str, body: Any, message: bool) -> None:
    decision = decide(method, path, body, message=message)
    assert (decision.kind, decision.thread, decision.link, decision.begins) == ("main", "main", "start", True)
    assert decision.fingerprint
    assert decision.fingerprint.startswith("v1:")
    assert len(decision.fingerprint) == len("v1:") + 64


@pytest.mark.parametrize(("method", "path", "body", "kind"), UNTRACKED)
def test_any_other_call_is_logged_and_not_tracked(method: str, path: str, body: Any, kind: str) -> None:
    alone = decide(method, path, body)
    assert (alone.kind, alone.thread, alone.session, alone.link) == (kind, "side", None, None)
    assert alone.fingerprint is None
    tracker = new_tracker()
    named = {"x-session-id": "s1"}
    main = tracker.request(asked(body={**TEXT, **TOOLS}, headers=named))
    also = tracker.request(asked(method, path, body, named))
    assert (also.kind, also.session, also.seq, also.begins) == (kind, main.session, 2, False)
    other = tracker.request(asked(method, path, body, {"x-session-id": "s2"}))
    assert (other.kind, other.begins) == (kind, True)  # the first call of a session begins its log


SIDE = [
    pytest.param(
        CLAUDE,
        {**TEXT, "model": "claude-haiku-5-5", "output_config": {"format": {"type": "json_schema"}}},
        id="a title of Claude Code",
    ),
    pytest.param(CLAUDE, {**TEXT, "stop_sequences": ["</block>"], "max_tokens": 64}, id="a classifier"),
    pytest.param(CLAUDE, {"messages": [{"role": "user", "content": "Warmup"}], **TOOLS}, id="a warm-up"),
    pytest.param(CLAUDE, {**TEXT, "model": "claude-3-5-haiku"}, id="around a shell command, 1.0.3"),
    pytest.param(OPENCODE, TEXT, id="a title of opencode"),
]
COLD = {**TEXT, "model": "claude-3-5-haiku", "temperature": 0}
MAIN = [
    pytest.param({}, TEXT, id="no tools, no agent"),
    pytest.param(CLAUDE, TEXT, id="no tools, not the small model"),
    pytest.param({}, {"messages": [{"role": "user", "content": "Warmup"}]}, id="Warmup of somebody"),
    pytest.param(CLAUDE, {"messages": [{"role": "user", "content": "Warmup the car"}], **TOOLS}, id="a prompt"),
    pytest.param(OPENCODE, {**TEXT, **TOOLS}, id="opencode with tools"),
    pytest.param({}, {**TEXT, "output_config": {"format": {"type": "json_schema"}}}, id="a schema of somebody"),
]


@pytest.mark.parametrize(("headers", "body"), SIDE)
def test_an_unnamed_call_of_a_known_side_call_shape_is_a_side_call(headers: dict[str, str], body: Any) -> None:
    decision = decide(body=body, headers=headers)
    assert (decision.kind, decision.thread, decision.session) == ("side", "side", None)


@pytest.mark.parametrize(("headers", "body"), MAIN)
def test_any_other_unnamed_call_is_a_main_call(headers: dict[str, str], body: Any) -> None:
    assert decide(body=body, headers=headers).kind == "main"


def test_a_title_request_under_an_unused_session_id_is_a_side_call() -> None:
    """1.0.128 makes titles of older sessions when it resumes one, before it takes that one's id."""
    named = {"metadata": {"user_id": "user_1_account__session_abc"}}
    assert decide(body={**COLD, **named}, headers=CLAUDE).kind == "side"
    assert decide(body={**COLD, **named, "temperature": 1}, headers=CLAUDE).kind == "main"
    assert decide(body={**COLD, **named, **TOOLS}, headers=CLAUDE).kind == "main"
    assert decide(body={**COLD, **named}).kind == "main"


def test_a_gemini_router_call_is_a_side_call() -> None:
    body = {**GENERATE, "generationConfig": {"responseMimeType": "application/json"}}
    assert decide(path="/v1beta/models/g:generateContent", body=body, headers=GEMINI).kind == "side"
    assert decide(path="/v1beta/models/g:generateContent", body={**body, **TOOLS}, headers=GEMINI).kind == "main"
    assert decide(path="/v1beta/models/g:generateContent", body=body).kind == "main"


def test_a_websocket_warm_up_is_a_side_call_and_starts_the_log() -> None:
    body = {"type": "response.create", "input": [USER], "generate": False}
    decision = decide("GET", "/v1/responses", body, {**CODEX, "session-id": "s"}, message=True)
    assert (decision.kind, decision.begins, decision.agent) == ("side", True, "codex")


def test_a_call_without_tools_is_a_side_call_once_its_session_has_started() -> None:
    tracker = new_tracker()
    named = {**CLAUDE, "x-claude-code-session-id": "s"}
    first = tracker.request(asked(body=TEXT, headers=named))
    assert first.kind == "main"  # nothing is known yet; a call must not be lost from its session
    other = tracker.request(asked(body={"messages": [{"role": "user", "content": "title?"}]}, headers=named))
    assert (other.kind, other.session) == ("side", first.session)
    more = {"messages": [USER, {"role": "assistant", "content": "hi"}, USER]}
    assert tracker.request(asked(body=more, headers=named)).kind == "main"  # it goes on


def test_a_claude_code_compaction_is_recognized_by_its_prompt() -> None:
    words = "CRITICAL: Respond with TEXT ONLY. Do not call any tools."
    blocks = [{"type": "text", "text": "before"}, {"type": "text", "text": words}]
    body = {"messages": [{"role": "user", "content": blocks}], **TOOLS}
    assert decide(body=body, headers=CLAUDE).kind == "compact"
    assert decide(body=body).kind == "main"
    quoted = {"messages": [{"role": "user", "content": f"what is '{words}'?"}], **TOOLS}
    assert decide(body=quoted, headers=CLAUDE).kind == "main"


def test_a_codex_compaction_is_recognized_by_its_prompt_or_its_item() -> None:
    words = {
        "role": "user",
        "content": "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a summary.",
    }
    codex = {**CODEX, "session-id": "s", "thread-id": "s"}
    for last in (words, {"type": "compaction_trigger"}):
        body = {"input": [USER, last]}
        assert decide(path="/v1/responses", body=body, headers=codex).kind == "compact"
        assert decide(path="/v1/responses", body=body).kind == "main"
    quoted = {"input": [{"role": "user", "content": "what is a compaction_trigger?"}]}
    assert decide(path="/v1/responses", body=quoted, headers=codex).kind == "main"


def test_a_sub_agent_is_recognized_by_its_id_header() -> None:
    claude = {**CLAUDE, "x-claude-code-session-id": "s", "x-claude-code-agent-id": "a1"}
    codex = {**CODEX, "session-id": "s", "thread-id": "t"}
    assert decide(body=TEXT, headers=claude).thread == "agent:a1"
    decision = decide(path="/v1/responses", body={"input": "x"}, headers=codex)
    assert (decision.kind, decision.thread) == ("subagent", "agent:t")
    codex["thread-id"] = "s"
    assert decide(path="/v1/responses", body={"input": "x"}, headers=codex).thread == "main"


def test_a_sub_agent_without_an_id_is_recognized_by_its_prompt() -> None:
    """Before 2.1.197. What the person asked may be passed on word for word."""
    tracker, ts = new_tracker(), "2026-11-15T10:15:01.000Z"
    headers = {**CLAUDE, "x-claude-code-session-id": "s"}
    start = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"prompt": "Look around"}}
    same = {**start, "id": "toolu_2", "input": {"prompt": "hello"}}
    answer = {"role": "assistant", "content": [start, same]}
    note = {"type": "text", "text": "<system-reminder>The date.</system-reminder>"}
    told = {"role": "user", "content": [note, {"type": "text", "text": "Look around"}]}

    def ask(*messages: Any) -> Decision:
        return tracker.request(asked(body={"messages": messages, **TOOLS}, headers=headers))

    main = ask(USER)
    tracker.answered(main, TrackedAnswer(ts=ts, status=200, complete=True, message=answer))
    first = ask(told)
    assert (first.kind, first.thread, first.session) == ("subagent", "agent:toolu_1", main.session)
    tracker.answered(first, TrackedAnswer(ts=ts, status=200, complete=True, message={"content": "Done."}))
    again = ask(told, {"role": "assistant", "content": "Done."}, USER)
    assert (again.thread, again.link) == ("agent:toolu_1", "continuation")
    results = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}
    on = ask(USER, answer, results)
    assert (on.kind, on.thread, on.link) == ("main", "main", "continuation")
    assert tracker.request(asked(body={"messages": [told], **TOOLS}, headers=CLAUDE)).thread == "main"
    # The first request of a sub-agent that was given the person's own words: nothing in it was answered yet.
    passed_on = ask(USER, {"role": "user", "content": "<system-reminder>The date.</system-reminder>"})
    assert (passed_on.kind, passed_on.thread) == ("subagent", "agent:toolu_2")
