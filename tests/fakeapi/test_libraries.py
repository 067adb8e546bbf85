"""The vendors' own libraries read what the fake API says, however it is wrapped."""

import importlib
import json
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.clients import ANTHROPIC_KEY, OPENAI_KEY
from tests.fakeapi import FakeAPI, answers
from tests.fakeapi.raw import post

TEXT = "Grüße aus dem Skript: 流れ, 🎉 and plain words."
USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 40,
    "cache_read_input_tokens": 500,
    "output_tokens": 60,
    "reasoning_tokens": 7,
}
TOOL = {"type": "tool_use", "name": "look", "input": {"where": "über\u2028all"}}
THOUGHT = {"type": "thinking", "thinking": "Let me see."}
TURN = {"content": [THOUGHT, {"type": "text", "text": TEXT}, TOOL], "usage": USAGE}

WRAPPINGS = [
    pytest.param({"encoding": encoding, "split_bytes": size}, id=f"{encoding}-{size or 'whole'}")
    for encoding in ("identity", "gzip", "deflate", "br", "zstd")
    for size in (0, 3)
]
BOTH_WAYS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def anthropic_client(api: FakeAPI) -> Any:
    return importlib.import_module("anthropic").Anthropic(base_url=api.url, api_key=ANTHROPIC_KEY, max_retries=0)


def openai_client(api: FakeAPI) -> Any:
    return importlib.import_module("openai").OpenAI(base_url=f"{api.url}/v1", api_key=OPENAI_KEY, max_retries=0)


# Anthropic


@pytest.mark.needs("anthropic")
@BOTH_WAYS
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_the_anthropic_sdk_reads_the_scripted_message_in_every_transfer_form(
    wrapping: dict[str, Any], stream: bool
) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    with FakeAPI(answers({**TURN, **wrapping})) as api, anthropic_client(api) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
    thinking, text, tool = message.content
    assert (thinking.thinking, text.text, tool.name, tool.input) == (
        "Let me see.",
        TEXT,
        "look",
        TOOL["input"],
    )
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 60)


@pytest.mark.needs("anthropic")
def test_the_anthropic_sdk_can_count_tokens_and_list_models() -> None:
    with FakeAPI({"models": ["claude-x"], "lanes": []}) as api, anthropic_client(api) as client:
        counted = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "Hi"}])
        models = [model.id for model in client.models.list()]
    assert counted.input_tokens > 0
    assert models == ["claude-x"]


@pytest.mark.needs("anthropic")
def test_the_anthropic_sdk_raises_a_rate_limit_error_with_response_headers() -> None:
    turn = {
        "status": 429,
        "headers": {"Retry-After": "7"},
        "error": {"type": "rate_limit_error", "message": "slow down"},
    }
    anthropic = importlib.import_module("anthropic")
    with (
        FakeAPI(answers(turn)) as api,
        anthropic_client(api) as client,
        pytest.raises(anthropic.RateLimitError, match="slow down") as caught,
    ):
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
    assert caught.value.response.headers["retry-after"] == "7"


# OpenAI


@pytest.mark.needs("openai")
@BOTH_WAYS
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_the_openai_sdk_reads_a_scripted_response_in_every_transfer_form(
    wrapping: dict[str, Any], stream: bool
) -> None:
    with FakeAPI(answers({**TURN, **wrapping})) as api, openai_client(api) as client:
        if stream:
            with client.responses.stream(model="m", input="Hi") as events:
                response = events.get_final_response()
        else:
            response = client.responses.create(model="m", input="Hi")
    assert response.output_text == TEXT
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
    assert json.loads(response.output[2].arguments) == TOOL["input"]
    assert (response.usage.input_tokens, response.usage.input_tokens_details.cached_tokens) == (543, 500)
    assert response.usage.output_tokens_details.reasoning_tokens == 7


@pytest.mark.needs("openai")
def test_the_openai_sdk_reads_a_scripted_chat_completion() -> None:
    with FakeAPI(answers(TURN)) as api, openai_client(api) as client:
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
    [choice] = answer.choices
    assert (choice.message.content, choice.finish_reason) == (TEXT, "tool_calls")
    assert json.loads(choice.message.tool_calls[0].function.arguments) == TOOL["input"]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (543, 60)


@pytest.mark.needs("openai")
@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": True}}], ids=["plain", "with usage"])
def test_a_chat_stream_includes_usage_only_when_the_request_asks_for_usage(options: dict[str, Any]) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True, **options}
    with (
        FakeAPI(answers(TURN)) as api,
        openai_client(api) as client,
        client.chat.completions.create(**asked) as chunks,
    ):
        seen = list(chunks)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in seen if chunk.choices) == TEXT
    assert [chunk.usage.completion_tokens for chunk in seen if chunk.usage] == ([60] if options else [])


# Google


@BOTH_WAYS
def test_generate_content_returns_the_scripted_parts(stream: bool) -> None:
    path = f"/v1beta/models/gemini-x:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    with FakeAPI(answers(TURN)) as api:
        _, _, body = post(api, path, {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]})
    chunks = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")] or [json.loads(body)]
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert "".join(part.get("text", "") for part in parts if "thought" not in part) == TEXT
    assert parts[-1] == {"functionCall": {"name": "look", "args": TOOL["input"]}}
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"]["totalTokenCount"] == 603
    assert {chunk["modelVersion"] for chunk in chunks} == {"gemini-x"}


# Responses over WebSocket


@pytest.mark.parametrize("compression", ["deflate", None])
@pytest.mark.parametrize("size", [0, 5], ids=["whole", "fragmented"])
def test_each_websocket_message_is_recorded_as_a_call_and_answered(compression: str | None, size: int) -> None:
    turns: list[dict[str, Any]] = [{**TURN, "split_bytes": size}, {"text": "And again."}]
    with FakeAPI(answers(*turns)) as api:
        with open_websocket(api, compression) as websocket:
            first = ask(websocket)
            second = ask(websocket, previous_response_id=first["id"])
        handshake, *messages = api.calls
    assert [item["type"] for item in first["output"]] == ["reasoning", "message", "function_call"]
    assert second["output"][0]["content"][0]["text"] == "And again."
    assert second["previous_response_id"] == first["id"]
    assert (handshake.transport, handshake.status) == ("http", 101)
    assert [(call.transport, call.lane, call.turn) for call in messages] == [
        ("websocket", "main", 0),
        ("websocket", "main", 1),
    ]
    assert all(call.complete for call in api.calls)


def test_a_websocket_warm_up_consumes_no_scripted_turn() -> None:
    with FakeAPI(answers({"text": "For the question."})) as api, open_websocket(api) as websocket:
        assert ask(websocket, generate=False)["output"] == []
        assert ask(websocket)["output"][0]["content"][0]["text"] == "For the question."


def test_a_scripted_status_becomes_an_error_message_on_a_websocket() -> None:
    turn = {"status": 429, "error": {"type": "rate_limit_error", "message": "slow down", "code": "slow"}}
    with FakeAPI(answers(turn)) as api, open_websocket(api) as websocket:
        websocket.send(json.dumps({"type": "response.create", "model": "m", "input": "Hi"}))
        told = json.loads(websocket.recv())
    assert (told["type"], told["status"], told["error"]["code"]) == ("error", 429, "slow")


def open_websocket(api: FakeAPI, compression: str | None = "deflate") -> Any:
    return connect(f"ws://127.0.0.1:{api.port}/v1/responses", compression=compression, proxy=None)


def ask(websocket: Any, **fields: object) -> dict[str, Any]:
    """Send one `response.create`, check the order of what comes, return the final response."""
    websocket.send(json.dumps({"type": "response.create", "model": "m", "input": "Hi", **fields}))
    events: list[dict[str, Any]] = []
    while not events or events[-1]["type"] != "response.completed":
        events.append(json.loads(websocket.recv(timeout=60)))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    response: dict[str, Any] = events[-1]["response"]
    return response
