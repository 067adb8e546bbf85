"""Calls to the vendors' own back ends that are not understood are kept as bytes and counted; no others are."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agent_logger.home.layout import install_key
from agent_logger.logs.reader import read_session
from agent_logger.views.facts import unread_text
from tests.proxy.recorder.test_encoded_requests import (
    BACK_ENDS,
    Recording,
    chat,
    chat_answer,
    code_assist,
    gemini_answer,
)
from tests.proxy.spooling import response_bytes

Json = dict[str, Any]
CODE_ASSIST = "/v1internal:streamGenerateContent?alt=sse"
ASKED = code_assist([], "hello")
ANSWERED = {"response": gemini_answer("hi", 1), "traceId": "t"}
WRONG = {"result": {"text": "hi"}}


@pytest.fixture
def back_end(tmp_path: Path) -> Recording:
    return Recording(tmp_path, install_key(tmp_path / "installation"), BACK_ENDS["Code Assist"])


def posted(
    recording: Recording,
    path: str,
    body: Json,
    answer: bytes,
    *,
    status: str = "200 OK",
    client: tuple[str, ...] = (),
    encoding: str = "identity",
    reason: str | None = None,
) -> str:
    head = f"POST {path} HTTP/1.1\r\nHost: back.end.example\r\n" + "".join(f"{field}\r\n" for field in client) + "\r\n"
    return recording.relay.call(
        head=head.encode(),
        path=path.encode(),
        body=[json.dumps(body).encode()],
        status=f"HTTP/1.1 {status}".encode(),
        fields=[b"content-type: application/json", b"content-encoding: " + encoding.encode()],
        answer=[answer],
        reason=reason,
    )


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def sse(value: Any) -> bytes:
    return b"data: %b\n\n" % encoded(value)


@pytest.mark.parametrize(
    ("path", "body", "answer"),
    [
        pytest.param("/v1internal:completeCode", ASKED, {"completion": "hi"}, id="a method"),
        pytest.param("/v1internal:completeCode", ASKED, ANSWERED, id="a method with a known answer"),
        pytest.param("/v2/think", {"model": "gpt-5", "input": "hello"}, {"answer": "hi"}, id="an endpoint"),
        pytest.param("/model/nova/converse", {"messages": []}, {"output": {}}, id="a model in the path"),
        pytest.param(CODE_ASSIST, {"model": "gemini-3", "payload": {}}, ANSWERED, id="a request in another envelope"),
        pytest.param(CODE_ASSIST, ASKED, WRONG, id="an answer in another envelope"),
        pytest.param(CODE_ASSIST, ASKED, [WRONG], id="an array of them"),
        pytest.param("/chat/completions", {"model": "m", "messages": []}, {"text": "hi"}, id="no choices"),
    ],
)
def test_a_call_of_unknown_form_is_kept_as_bytes_and_counted(
    back_end: Recording, path: str, body: Json, answer: Any
) -> None:
    data = encoded(answer)
    packed = gzip.compress(data)
    whole = posted(back_end, path, body, data)
    compressed = posted(back_end, path, body, packed, encoding="gzip")
    refused = posted(back_end, "/v1internal:completeCode", ASKED, b"no such method", status="404 Not Found")
    found = back_end.record()
    assert response_bytes(found.response(whole)) == data
    assert response_bytes(found.response(compressed)) == packed
    assert response_bytes(found.response(refused)) == b"no such method"
    assert back_end.not_understood == 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("write", [encoded, sse])
def test_a_stream_of_unknown_form_is_counted_once_it_ended(back_end: Recording, write: Any, pack: Any) -> None:
    encoding = "gzip" if pack is gzip.compress else "identity"
    posted(back_end, CODE_ASSIST, ASKED, pack(write(WRONG)), encoding=encoding)
    posted(back_end, CODE_ASSIST, ASKED, pack(write(ANSWERED)), encoding=encoding)
    posted(back_end, CODE_ASSIST, ASKED, pack(write(WRONG)), encoding=encoding, reason="client_gone")
    back_end.record()
    assert back_end.not_understood == 1


ERROR = {"error": {"code": 429, "message": "Slow down", "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.parametrize(
    ("path", "body", "answer"),
    [
        pytest.param("/v1internal:loadCodeAssist", {"metadata": {}}, {"currentTier": {}}, id="an account"),
        pytest.param("/v1internal:onboardUser", {"tierId": "free-tier"}, {"done": True}, id="a new user"),
        pytest.param("/v1internal:countTokens", {"request": {"model": "m", "contents": []}}, {"n": 3}, id="a count"),
        pytest.param("/models/session", {"auto_mode": {"hints": ["auto"]}}, {"model": "m"}, id="a choice"),
        pytest.param("/api/show", {"model": "llama"}, {"details": {}}, id="a model's card"),
        pytest.param("/mcp/readonly", {"jsonrpc": "2.0", "method": "initialize"}, {"result": {}}, id="a tool server"),
        pytest.param(CODE_ASSIST, ASKED, {"response": ERROR}, id="an error in the envelope"),
        pytest.param(CODE_ASSIST, ASKED, [ERROR], id="an error in an array"),
        pytest.param(CODE_ASSIST, ASKED, {"response": {"promptFeedback": {"blockReason": "SAFETY"}}}, id="a refusal"),
        pytest.param(CODE_ASSIST, ASKED, {}, id="nothing"),
    ],
)
def test_a_call_that_is_understood_or_asks_no_model_is_not_counted(
    back_end: Recording, path: str, body: Json, answer: Any
) -> None:
    call = posted(back_end, path, body, encoded(answer))
    found = back_end.record()
    assert response_bytes(found.response(call)) == encoded(answer)
    assert back_end.not_understood == 0


def test_a_session_says_how_many_of_its_calls_are_not_understood(back_end: Recording) -> None:
    copilot = ("user-agent: copilot/1", "x-client-session-id: s")
    first, then = chat([], "hello"), chat([("hello", "hi")], "more")
    calls = [
        posted(back_end, "/chat/completions", first, encoded(chat_answer("hi", 1)), client=copilot),
        posted(back_end, "/chat/completions", then, encoded(WRONG), client=copilot),
        posted(back_end, "/v2/think", then, encoded(WRONG), client=copilot),
        posted(back_end, "/v2/think", then, b"no such page", status="404 Not Found", client=copilot),
        posted(back_end, "/telemetry", {"events": []}, encoded({"ok": True}), client=copilot),
    ]
    found = back_end.record()
    (log,) = {found.logs[call] for call in calls}
    session = read_session(back_end.log_dir / f"{log}.jsonl")
    assert (session.id, session.unread_calls) == ("s", 2)
    assert [turn.message_id for turn in session.turns] == ["chatcmpl_1"]
    assert unread_text(session) == "2 calls to models, kept as bytes, tokens not counted"
    assert back_end.not_understood == session.unread_calls
