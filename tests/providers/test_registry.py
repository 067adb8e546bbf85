"""Answers are rejoined the same, streamed or not, over HTTP or a WebSocket, whatever their host's habits are."""

import base64
import gc
import itertools
import json
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pytest

from agent_logger.demo import anthropic
from agent_logger.demo.dialect import Ask
from agent_logger.demo.http import DemoRequest
from agent_logger.model.session import Usage
from agent_logger.providers.answer import Answer, AnswerFailure, tokens_per_second
from agent_logger.providers.registry import (
    ANTHROPIC,
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    GEMINI,
    OLLAMA,
    RESPONSES,
    Dialect,
    dialect_of,
)
from tests.fakeapi import gemini, openai
from tests.fakeapi.failures import failure_body, failure_event
from tests.fakeapi.turns import Error, FakeTurn, answers

Json = dict[str, Any]


def sse(*events: Json | bytes) -> bytes:
    texts = (event if isinstance(event, bytes) else json.dumps(event).encode() for event in events)
    return b"".join(b"data: %b\n\n" % text for text in texts)


def fed(dialect: Dialect, messages: Iterable[bytes]) -> Answer:
    reader = dialect.reader(messages=True)
    for message in messages:
        reader.feed(message)
    return reader.finish()


def test_an_answer_that_was_read_is_freed_at_once() -> None:
    """The recorder's garbage collector runs once in thousands of calls, and an answer has hundreds of pieces."""
    dialects = (ANTHROPIC, CHAT, COMPLETIONS, EMBEDDINGS, GEMINI, OLLAMA, RESPONSES)
    bodies = (b'data: {"type": "content_block_delta", "delta": {"text": "a"}}\n\n', b'{"id": "a"}', b" ", b"\0\0\0\x10")
    gc.disable()
    try:
        for dialect, body, messages in itertools.product(dialects, bodies, (False, True)):
            reader = dialect.reader(messages=messages)
            reader.feed(body)
            reader.partial_answer()
            reader.feed(body)
            reader.finish()
            freed = weakref.ref(reader)
            del reader
            assert freed() is None, (dialect.assembler, body)
    finally:
        gc.enable()


# ---------------------------------------------------------------- which endpoint


@pytest.mark.parametrize(
    ("provider", "path", "dialect"),
    [
        ("anthropic", "/v1/messages", ANTHROPIC),
        ("anthropic", "/v1/messages?beta=true", ANTHROPIC),
        ("anthropic", "/api/v1/messages", ANTHROPIC),
        ("anthropic", "/v1/messages/count_tokens", None),
        ("anthropic", "/v1/messages/batches", None),
        ("anthropic", "/v1/projects/p/models/claude:streamRawPredict", ANTHROPIC),
        ("anthropic", "/v1/projects/p/models/count-tokens:rawPredict", None),
        ("gemini", "/v1/projects/p/models/mistral:streamRawPredict", None),
        ("anthropic", "/model/us.anthropic.claude-v1:0/invoke", ANTHROPIC),
        ("anthropic", "/model/us.anthropic.claude-v1:0/invoke-with-response-stream", ANTHROPIC),
        ("openai", "/v1/chat/completions", CHAT),
        ("openai", "/openai/deployments/x/chat/completions?api-version=2026", CHAT),
        ("gemini", "/v1beta/openai/chat/completions", CHAT),
        ("openai", "/v1/completions", COMPLETIONS),
        ("openai", "/v1/fim/completions", COMPLETIONS),
        ("openai", "/v1/embeddings", EMBEDDINGS),
        ("openai", "/api/chat", OLLAMA),
        ("openai", "/api/generate", OLLAMA),
        ("openai", "/api/tags", None),
        ("openai", "/v1/responses", RESPONSES),
        ("openai", "/v1/responses/compact", RESPONSES),
        ("openai", "/backend-api/codex/responses", RESPONSES),
        ("openai", "/v1/responses/resp_1", None),
        ("openai", "/v1/models?next=/v1/responses", None),
        ("openai", "/v1/threads/t/messages", None),
        ("gemini", "/v1beta/models/gemini-3:generateContent", GEMINI),
        ("gemini", "/v1beta/models/gemini-3:streamGenerateContent?alt=sse", GEMINI),
        ("gemini", "/v1beta/models/gemini-3:countTokens", None),
        ("gemini", "/v1internal:streamGenerateContent?alt=sse", GEMINI),
    ],
)
def test_the_request_path_determines_the_dialect(provider: str, path: str, dialect: Dialect | None) -> None:
    assert dialect_of(provider, path) is dialect


# ---------------------------------------------------------------- streamed or not

TURNS: dict[str, Json] = {
    "text": {"text": "Grüße, 世界 🎉, and \u2028 too.", "usage": {"reasoning_tokens": 7}},
    "tools": {
        "content": [
            {"type": "thinking", "thinking": "Hm, two at once."},
            {"type": "text", "text": "I look."},
            {
                "type": "tool_use",
                "name": "Read",
                "input": {"path": '/a/\\b"', "n": [1, 2.5, None]},
                "id": "t_1",
            },
            {"type": "tool_use", "name": "Bash", "input": {}, "id": "t_2"},
        ]
    },
    "a tool alone": {"content": [{"type": "tool_use", "name": "Read", "input": {"path": "ü"}, "id": "t_1"}]},
    "many pieces": {"text": "word " * 100, "pieces": 100},
    "cut by its limit": {"text": "and so", "stop_reason": "max_tokens"},
}
READERS: dict[str, tuple[Dialect, Callable[[DemoRequest], Ask], str]] = {
    "messages": (ANTHROPIC, anthropic.DemoMessages, "/v1/messages"),
    "chat": (CHAT, openai.ChatCompletions, "/v1/chat/completions"),
    "responses": (RESPONSES, openai.Responses, "/v1/responses"),
    "gemini": (GEMINI, gemini.GenerateContent, "/v1beta/models/m:streamGenerateContent"),
}
ASKED = {
    "model": "m",
    "messages": [],
    "input": "",
    "contents": [],
    "stream": True,
    "stream_options": {"include_usage": True},
}


@pytest.fixture
def ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Dialect, Ask]:
    for module in (anthropic, openai, gemini):
        monkeypatch.setattr(module, "new_id", lambda prefix, length=22: f"{prefix}id")
    dialect, reader, path = READERS[request.param]
    return dialect, reader(DemoRequest(b"", "POST", path, "HTTP/1.1", (), json.dumps(ASKED).encode()))


def turn(told: Json) -> FakeTurn:
    return answers(told).lanes[0].turns[0]


@pytest.mark.parametrize("ask", READERS, indirect=True)
@pytest.mark.parametrize("told", TURNS.values(), ids=TURNS)
def test_streamed_and_non_streamed_answers_are_equal(ask: tuple[Dialect, Ask], told: Json) -> None:
    dialect, api = ask
    whole = dialect.read(msgspec.json.encode(api.whole(turn(told))))
    streamed = dialect.read(b"".join(event.sse() for event in api.stream(turn(told))))
    assert whole.complete
    assert whole.message
    assert whole.stop_reason
    assert streamed == whole


@pytest.mark.parametrize("ask", ["responses"], indirect=True)
@pytest.mark.parametrize("told", TURNS.values(), ids=TURNS)
def test_websocket_messages_give_the_same_answer_as_server_sent_events(ask: tuple[Dialect, Ask], told: Json) -> None:
    dialect, api = ask
    events = list(api.stream(turn(told)))
    assert fed(dialect, (event.data for event in events)) == dialect.read(b"".join(it.sse() for it in events))


@pytest.mark.parametrize("ask", ["gemini"], indirect=True)
@pytest.mark.parametrize("told", TURNS.values(), ids=TURNS)
def test_a_gemini_array_gives_the_same_answer_as_server_sent_events(ask: tuple[Dialect, Ask], told: Json) -> None:
    dialect, api = ask
    events = list(api.stream(turn(told)))
    array = b"[%b\n]\n" % b",\r\n".join(event.data for event in events)
    whole = dialect.read(array)
    assert whole == dialect.read(b"".join(event.sse() for event in events))
    end = array.rindex(b"}") + 1
    assert dialect.read(array[:end]).message == whole.message
    assert not dialect.read(array[:end]).complete
    assert not dialect.read(array[: end - 1]).complete


@pytest.mark.parametrize("ask", READERS, indirect=True)
def test_every_prefix_of_a_stream_is_assembled_and_only_the_whole_is_complete(
    ask: tuple[Dialect, Ask],
) -> None:
    dialect, api = ask
    events = list(api.stream(turn(TURNS["tools"])))
    got = [dialect.read(b"".join(event.sse() for event in events[:count])) for count in range(len(events) + 1)]
    assert got[-1].complete
    # The last events of chat completions are the usage and [DONE], which not all hosts send.
    assert not any(answer.complete for answer in got[: -3 if dialect is CHAT else -1])
    sizes = [len(json.dumps(answer.message)) for answer in got]
    assert all(later >= before - 40 for before, later in itertools.pairwise(sizes))  # statuses change
    assert all(answer.message_id == got[-1].message_id for answer in got[1:])


@pytest.mark.parametrize("ask", READERS, indirect=True)
def test_errors_are_read_from_a_body_and_from_a_stream_event(ask: tuple[Dialect, Ask]) -> None:
    dialect, api = ask
    error = Error("overloaded", "too many", None)
    body = dialect.read(msgspec.json.encode(failure_body(api, 529, error)))
    assert body == Answer(error=AnswerFailure(type="overloaded", message="too many"), complete=True)
    events = [*list(api.stream(turn(TURNS["many pieces"])))[:-4], failure_event(api, error)]
    streamed = dialect.read(b"".join(event.sse() for event in events))
    assert (streamed.error, streamed.complete) == (body.error, False)
    assert streamed.message


@pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT, RESPONSES, GEMINI], ids=lambda it: it.name)
@pytest.mark.parametrize(
    "body",
    [b"", b" ", b"{}", b"[]", b"<html>502</html>", b"upstream failed", b'{"a":', b"\xef\xbb\xbf{}", b"null"],
)
def test_bodies_that_are_not_answers_are_incomplete(dialect: Dialect, body: bytes) -> None:
    assert dialect.read(body) == Answer()


# ---------------------------------------------------------------- Anthropic


def start(**more: Any) -> Json:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
    return {"type": "message_start", "message": {**message, "stop_reason": None, **more}}


def block(index: int, begun: Json, *deltas: Json) -> Iterator[Json]:
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


STOP: tuple[Json, ...] = (
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
)
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "s_1",
    "content": [{"type": "web_search_result", "url": "u"}],
}
BLOCKS = [
    pytest.param(
        [
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Let me "},
            {"type": "thinking_delta", "thinking": "see."},
            {"type": "signature_delta", "signature": "b2xk"},
            {"type": "signature_delta", "signature": "c2ln"},
        ],
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        id="thinking and its signature",
    ),
    pytest.param(
        [{"type": "redacted_thinking", "data": "ZW5j"}],
        {"type": "redacted_thinking", "data": "ZW5j"},
        id="redacted thinking",
    ),
    pytest.param(
        [
            {"type": "server_tool_use", "id": "s_1", "name": "web_search", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"que'},
            {"type": "input_json_delta", "partial_json": 'ry":"x"}'},
        ],
        {"type": "server_tool_use", "id": "s_1", "name": "web_search", "input": {"query": "x"}},
        id="a server's tool",
    ),
    pytest.param([FOUND], FOUND, id="a server's result"),
    pytest.param(
        [
            {"type": "text", "text": "As "},
            {"type": "citations_delta", "citation": {"url": "u", "cited_text": "t"}},
            {"type": "text_delta", "text": "they say"},
            {"type": "citations_delta", "citation": {"url": "w"}},
        ],
        {"type": "text", "text": "As they say", "citations": [{"url": "u", "cited_text": "t"}, {"url": "w"}]},
        id="citations",
    ),
    pytest.param(
        [
            {"type": "tool_use", "id": "t", "name": "n", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
        ],
        {"type": "tool_use", "id": "t", "name": "n", "input": {}},
        id="a tool without input",
    ),
    pytest.param(
        [
            {"type": "tool_use", "id": "t", "name": "n", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"a": [1, '},
        ],
        {"type": "tool_use", "id": "t", "name": "n", "input": {}, "partial_json": '{"a": [1, '},
        id="an input that is not JSON stays what it is",
    ),
    pytest.param(
        [
            {"type": "compaction"},
            {"type": "compaction_delta", "content": "So far: "},
            {"type": "x", "content": "a"},
        ],
        {"type": "compaction", "content": "So far: a"},
        id="a delta that is not known",
    ),
    pytest.param([{"type": "brand_new", "of": {"any": [1]}}], {"type": "brand_new", "of": {"any": [1]}}, id="unknown"),
]


@pytest.mark.parametrize(("told", "joined"), BLOCKS)
def test_a_streamed_anthropic_block_equals_its_non_streamed_form(told: list[Json], joined: Json) -> None:
    answer = ANTHROPIC.read(sse(start(), *block(0, *told), {"type": "news", "index": "x"}, *STOP))
    assert answer.complete
    assert answer.message
    assert answer.message["content"] == [joined]
    assert ANTHROPIC.read(json.dumps(answer.message).encode()) == answer


def test_anthropic_blocks_are_ordered_by_index() -> None:
    texts = [({"type": "text", "text": ""}, {"type": "text_delta", "text": name}) for name in "abc"]
    events = [event for index, told in zip((7, 0, 3), texts, strict=True) for event in block(index, *told)]
    answer = ANTHROPIC.read(sse(start(), *events, *STOP))
    assert answer.message
    assert [it["text"] for it in answer.message["content"]] == ["b", "c", "a"]


def test_message_delta_fields_are_in_the_message() -> None:
    delta = {"stop_reason": "refusal", "stop_sequence": None, "stop_details": {"category": "x"}}
    end = {"type": "message_delta", "delta": delta, "context_management": {"applied_edits": []}}
    answer = ANTHROPIC.read(sse(start(), end, {"type": "message_stop"}))
    assert answer.stop_reason == "refusal"
    assert answer.message
    assert answer.message["stop_details"] == {"category": "x"}
    assert answer.message["context_management"] == {"applied_edits": []}
    assert "delta" not in answer.message


def test_anthropic_usage_merges_message_start_and_message_delta() -> None:
    begun = {
        "input_tokens": 4,
        "cache_creation_input_tokens": 150,
        "cache_read_input_tokens": 12_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 100},
        "output_tokens": 1,
        "service_tier": "priority",
        "server_tool_use": None,
        "inference_geo": None,
    }
    ended = {"output_tokens": 200, "input_tokens": None, "server_tool_use": {"web_search_requests": 1}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": ended}
    answer = ANTHROPIC.read(sse(start(usage=begun), end, {"type": "message_stop"}))
    assert answer.usage == Usage(
        input_tokens=4,
        output_tokens=200,
        cache_read_tokens=12_000,
        cache_write_tokens=150,
        cache_write_1h_tokens=100,
    )
    told = {**begun, "output_tokens": 200, "server_tool_use": {"web_search_requests": 1}}
    assert (answer.raw_usage, answer.service_tier) == (told, "priority")


def test_content_is_assembled_when_message_start_is_missing() -> None:
    told = {"type": "content_block_delta", "index": 1, "delta": {"type": "thinking_delta", "thinking": "Hm"}}
    assert not ANTHROPIC.read(sse(told, *STOP)).complete
    answer = ANTHROPIC.read(sse(told))
    assert answer.message
    assert answer.message["content"] == [{"type": "thinking", "thinking": "Hm", "signature": ""}]


def test_cache_writes_count_without_a_lifetime_breakdown() -> None:
    answer = ANTHROPIC.read(sse(start(usage={"cache_creation_input_tokens": 150})))
    assert answer.usage == Usage(cache_write_tokens=150)


@pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT, RESPONSES, GEMINI], ids=lambda it: it.name)
def test_gateway_errors_are_read(dialect: Dialect) -> None:
    plain = Answer(error=AnswerFailure(type=None, message="not found"), complete=True)
    assert dialect.read(b'{"error": "not found"}') == plain
    assert dialect.read(b'\xef\xbb\xbf \n{"error": "not found"}\n') == plain
    coded = dialect.read(b'{"error": {"type": null, "code": "model_not_found", "message": "No"}}')
    assert coded.error == AnswerFailure(type="model_not_found", message="No")
    detail = CHAT.read(b'{"detail":"Not Found"}')
    assert detail.error == AnswerFailure(type=None, message="Not Found")
    flat = CHAT.read(b'{"object":"error","message":"too long","type":"BadRequestError","code":400}')
    assert flat.error == AnswerFailure(type="BadRequestError", message="too long")


def test_numeric_ids_and_finish_reasons_of_a_chat_host_are_read() -> None:
    def chunk(delta: Json, finish: Any = 0) -> Json:
        return {"id": 7, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    answer = CHAT.read(sse(chunk({"content": "Hi"}), chunk({}, "stop"), b"[DONE]"))
    assert (answer.message, answer.message_id, answer.stop_reason) == ({"content": "Hi"}, "7", "stop")
    assert answer.complete


def test_the_first_of_several_errors_is_reported() -> None:
    errors = [{"type": "error", "error": {"type": name, "message": name}} for name in ("first", "second")]
    assert ANTHROPIC.read(sse(*errors)).error == AnswerFailure(type="first", message="first")


# ---------------------------------------------------------------- chat completions


def chunk(delta: Json, finish: str | None = None, **more: Any) -> Json:
    return {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def call(arguments: str, **more: Any) -> Json:
    return {"tool_calls": [{**more, "function": {"arguments": arguments}}]}


def called(name: str, arguments: str) -> Json:
    return {"id": name, "type": "function", "function": {"name": name, "arguments": arguments}}


def begun_call(name: str, arguments: str = "", **more: Any) -> Json:
    return {"tool_calls": [{**called(name, arguments), **more}]}


CHATS = [
    pytest.param(
        [
            begun_call("b", index=4),
            begun_call("a", index=0),
            call('{"x"', index=0),
            call("{}", index=4),
            call(":1}", index=0),
        ],
        {"content": None, "tool_calls": [called("a", '{"x":1}'), called("b", "{}")]},
        id="parallel calls, a gap between them",
    ),
    pytest.param(
        [begun_call("a", "{}", index=0), begun_call("b", "[]", index=0)],
        {"content": None, "tool_calls": [called("a", "{}"), called("b", "[]")]},
        id="all calls numbered 0",
    ),
    pytest.param(
        [begun_call("a", "{"), call("}"), begun_call("b", "[]")],
        {"content": None, "tool_calls": [called("a", "{}"), called("b", "[]")]},
        id="calls not numbered",
    ),
    pytest.param(
        [begun_call("a", "{", index=0), begun_call("a", "}", index=0)],
        {"content": None, "tool_calls": [called("a", "{}")]},
        id="id and name in every piece",
    ),
    pytest.param(
        [
            {"content": None, "reasoning_content": "Hm"},
            {"reasoning_content": "."},
            {"content": "Yes"},
            {"content": "."},
        ],
        {"content": "Yes.", "reasoning_content": "Hm."},
        id="reasoning_content",
    ),
    pytest.param(
        [{"content": None, "refusal": ""}, {"refusal": "I "}, {"refusal": "won't."}],
        {"content": None, "refusal": "I won't."},
        id="refusal",
    ),
    pytest.param(
        [{"reasoning_details": [{"type": "reasoning.text", "text": it, "index": 0}]} for it in "ab"],
        {"reasoning_details": [{"type": "reasoning.text", "text": "ab", "index": 0}]},
        id="reasoning_details",
    ),
    pytest.param(
        [{"content": [{"type": "thinking", "thinking": []}]}, {"content": "Yes"}],
        {"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Yes"}]},
        id="a list, then a text",
    ),
    pytest.param(
        [{"content": "Yes"}, {"content": [{"type": "image"}]}],
        {"content": [{"type": "text", "text": "Yes"}, {"type": "image"}]},
        id="a text, then a list",
    ),
    pytest.param(
        [
            {"annotations": [{"url": "a"}]},
            {"annotations": [{"url": "b"}], "audio": {"id": "x", "data": "AA"}},
        ],
        {"annotations": [{"url": "a"}, {"url": "b"}], "audio": {"id": "x", "data": "AA"}},
        id="other fields",
    ),
]


@pytest.mark.parametrize(("deltas", "message"), CHATS)
@pytest.mark.parametrize("done", [True, False], ids=["[DONE]", "no [DONE]"])
def test_a_chat_message_is_assembled_from_its_deltas(deltas: list[Json], message: Json, done: bool) -> None:
    chunks = [chunk({"role": "assistant"}), *map(chunk, deltas), chunk({}, "stop")]
    answer = CHAT.read(b": OPENROUTER PROCESSING\n\n" + sse(*chunks, *([b"[DONE]"] if done else [])))
    assert answer == Answer(
        message={"role": "assistant", **message}, message_id="c", model="m", stop_reason="stop", complete=True
    )


def test_the_first_choice_is_used_and_all_choices_must_finish() -> None:
    def choice(index: int, text: str, finish: str | None = None) -> Json:
        return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]}

    begun = [choice(1, "b"), choice(0, "a"), choice(1, "b", "length")]
    assert not CHAT.read(sse(*begun)).complete
    answer = CHAT.read(sse(*begun, choice(0, "a", "stop")))
    assert (answer.message, answer.stop_reason, answer.complete) == ({"content": "aa"}, "stop", True)


def test_a_chat_stream_that_ends_with_an_error_is_incomplete() -> None:
    told = chunk({"content": "a"}, "error", error={"code": 502, "message": "Provider disconnected"})
    answer = CHAT.read(sse(told))
    assert (answer.complete, answer.stop_reason) == (False, "error")
    assert answer.error == AnswerFailure(type=None, message="Provider disconnected")


TOLD = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
CHAT_USAGES = [
    pytest.param({"choices": [], "usage": TOLD}, (100, 20, 0, 0), id="without choices"),
    pytest.param(chunk({}, usage=TOLD), (100, 20, 0, 0), id="beside a choice"),
    pytest.param({"choices": [{"index": 0, "usage": TOLD}]}, (100, 20, 0, 0), id="inside a choice"),
    pytest.param({"choices": [], "x_groq": {"usage": TOLD}}, (100, 20, 0, 0), id="Groq"),
    pytest.param(
        {"usage": {**TOLD, "prompt_tokens_details": {"cached_tokens": 64}}},
        (36, 20, 64, 0),
        id="cached tokens",
    ),
    pytest.param({"usage": {**TOLD, "prompt_cache_hit_tokens": 64}}, (36, 20, 64, 0), id="DeepSeek"),
    pytest.param({"usage": {**TOLD, "cached_tokens": 64}}, (36, 20, 64, 0), id="Moonshot"),
    pytest.param(
        {"usage": {**TOLD, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}}},
        (10, 20, 60, 30),
        id="OpenRouter",
    ),
    pytest.param(
        {"usage": {**TOLD, "completion_tokens_details": {"reasoning_tokens": 15}}},
        (100, 20, 0, 0),
        id="reasoning",
    ),
    pytest.param(
        {"usage": {**TOLD, "total_tokens": 135, "completion_tokens_details": {"reasoning_tokens": 15}}},
        (100, 35, 0, 0),
        id="xAI",
    ),
    pytest.param({"usage": {**TOLD, "prompt_tokens_details": {"cached_tokens": 101}}}, (0, 20, 101, 0), id="too many"),
]


@pytest.mark.parametrize(("told", "counts"), CHAT_USAGES)
def test_chat_usage_is_read_from_every_known_location(told: Json, counts: tuple[int, int, int, int]) -> None:
    early = chunk({"content": "a"}, usage={"prompt_tokens": 100, "completion_tokens": 1})
    answer = CHAT.read(sse(early, chunk({}, "stop", service_tier="flex"), told, b"[DONE]"))
    read, answered, cached, written = counts
    assert answer.usage == Usage(
        input_tokens=read, output_tokens=answered, cache_read_tokens=cached, cache_write_tokens=written
    )
    assert answer.service_tier == "flex"


# ---------------------------------------------------------------- responses

REASONING = {
    "type": "reasoning",
    "id": "rs",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "e",
}
SAID = {
    "type": "message",
    "id": "msg",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Yes."}],
}
USED = {
    "input_tokens": 550,
    "input_tokens_details": {"cached_tokens": 500},
    "output_tokens": 60,
    "output_tokens_details": {"reasoning_tokens": 12},
}


def response(name: str, **more: Any) -> Json:
    told = {"id": "resp", "status": name, "model": "gpt", "instructions": "long", "tools": [{}], **more}
    return {"type": f"response.{name}", "response": told}


def item(event: str, index: int, told: Json) -> Json:
    return {"type": f"response.output_item.{event}", "output_index": index, "item": told}


def delta(name: str, index: int, text: str, **more: Any) -> Json:
    return {"type": f"response.{name}.delta", "output_index": index, "delta": text, **more}


def test_a_response_message_omits_echoed_request_fields() -> None:
    answer = RESPONSES.read(sse(response("completed", output=[REASONING, SAID], usage=USED, service_tier="default")))
    assert answer.message == {
        "id": "resp",
        "status": "completed",
        "model": "gpt",
        "output": [REASONING, SAID],
        "usage": USED,
        "service_tier": "default",
    }
    assert answer.usage == Usage(input_tokens=50, output_tokens=60, cache_read_tokens=500)
    assert (answer.service_tier, answer.stop_reason) == ("default", "completed")


@pytest.mark.parametrize("output", [{"output": []}, {}], ids=["empty", "missing"])
def test_output_items_are_collected_when_the_last_event_has_none(output: Json) -> None:
    events = [item("done", 1, SAID), item("done", 0, REASONING), {"type": "codex.rate_limits", "delta": {}}]
    answer = RESPONSES.read(sse(response("created", output=[]), *events, response("completed", **output), b"[DONE]"))
    assert answer.complete
    assert answer.message
    assert answer.message["output"] == [REASONING, SAID]


def test_the_last_event_overrides_earlier_items_and_keeps_earlier_fields() -> None:
    last = {"type": "response.completed", "response": {"id": "resp", "output": [SAID]}}
    answer = RESPONSES.read(sse(response("created", output=[]), item("done", 0, REASONING), last))
    assert answer.message
    assert (answer.message["output"], answer.model) == ([SAID], "gpt")


def test_a_cut_response_has_the_texts_received_so_far() -> None:
    part = {
        "type": "response.content_part.added",
        "output_index": 1,
        "part": {"type": "output_text", "text": ""},
    }
    events = [
        response("created", output=[], usage=None),
        item("added", 0, {**REASONING, "summary": []}),
        delta("reasoning_summary_text", 0, "Second", summary_index=1),
        delta("reasoning_summary_text", 0, "First", summary_index=0),
        item("added", 1, {**SAID, "content": []}),
        part,
        delta("output_text", 1, "Ye"),
        delta("output_text", 1, "s"),
        {**part, "type": "response.content_part.done", "part": {"type": "output_text", "text": "Yes."}},
        delta("refusal", 1, "No", content_index=1),
        item("added", 2, {"type": "function_call", "name": "f", "arguments": ""}),
        delta("function_call_arguments", 2, '{"a'),
        item("added", 3, {"type": "custom_tool_call", "input": ""}),
        delta("custom_tool_call_input", 3, "*** Begin"),
    ]
    answer = RESPONSES.read(sse(*events))
    summary = [{"type": "summary_text", "text": "First"}, {"type": "summary_text", "text": "Second"}]
    content = [{"type": "output_text", "text": "Yes."}, {"type": "refusal", "refusal": "No"}]
    assert answer.message
    assert answer.message["output"] == [
        {**REASONING, "summary": summary},
        {**SAID, "content": content},
        {"type": "function_call", "name": "f", "arguments": '{"a'},
        {"type": "custom_tool_call", "input": "*** Begin"},
    ]
    assert (answer.message_id, answer.complete, answer.stop_reason, answer.usage) == (
        "resp",
        False,
        None,
        None,
    )


def test_a_response_may_end_as_incomplete_or_failed() -> None:
    cut = RESPONSES.read(sse(response("incomplete", output=[SAID], incomplete_details={"reason": "max_output_tokens"})))
    assert (cut.complete, cut.stop_reason, cut.error) == (True, "max_output_tokens", None)
    error = {"code": "server_error", "message": "Sorry"}
    failed = RESPONSES.read(sse(response("failed", output=[], error=error)))
    assert (failed.complete, failed.stop_reason) == (True, "failed")
    assert failed.error == AnswerFailure(type="server_error", message="Sorry")


def test_websocket_error_messages_are_read() -> None:
    told = {"type": "error", "status": 400, "error": {"type": "invalid", "code": None, "message": "No"}}
    assert fed(RESPONSES, [json.dumps(told).encode()]) == Answer(error=AnswerFailure(type="invalid", message="No"))


# ---------------------------------------------------------------- Gemini


def parts(*told: Json, finish: str | None = None, **more: Any) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": list(told)}}
    return {
        "candidates": [candidate | ({"finishReason": finish} if finish else {})],
        "responseId": "r",
        **more,
    }


CALLED = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"}


def test_gemini_text_parts_are_joined_across_chunks() -> None:
    answer = GEMINI.read(
        sse(
            parts({"text": "Hm", "thought": True}),
            parts({"text": ".", "thought": True}, {"text": "Yes"}),
            parts({"text": ", "}),
            parts({"text": "sure", "thoughtSignature": "t"}),
            parts({"text": "More"}, CALLED, CALLED, {"text": "end"}),
            parts({"text": "", "thoughtSignature": "u"}, finish="STOP"),
        )
    )
    assert answer.complete
    assert answer.message == {
        "role": "model",
        "parts": [
            {"text": "Hm.", "thought": True},
            {"text": "Yes, sure", "thoughtSignature": "t"},
            {"text": "More"},
            CALLED,
            CALLED,
            {"text": "end", "thoughtSignature": "u"},
        ],
    }


def test_gemini_usage_counts_thoughts_as_output_and_cache_separately() -> None:
    early = {"promptTokenCount": 200, "thoughtsTokenCount": 5, "totalTokenCount": 205}
    late = {
        "promptTokenCount": 190,
        "toolUsePromptTokenCount": 10,
        "cachedContentTokenCount": 50,
        "candidatesTokenCount": 12,
        "totalTokenCount": 224,
    }
    events = (
        parts({"text": "a"}, usageMetadata=early),
        parts(finish="STOP", usageMetadata=late, modelVersion="g"),
    )
    answer = GEMINI.read(sse(*events))
    assert answer.usage == Usage(input_tokens=150, output_tokens=17, cache_read_tokens=50)
    assert (answer.message_id, answer.model, answer.stop_reason) == ("r", "g", "STOP")


def test_a_prompt_blocked_by_gemini_is_a_complete_answer() -> None:
    answer = GEMINI.read(b'{"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r"}')
    assert answer == Answer(message_id="r", stop_reason="SAFETY", complete=True)
    assert GEMINI.read(sse({"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r"})) == answer


def test_the_first_gemini_candidate_is_used_and_all_candidates_must_finish() -> None:
    def candidate(index: int, text: str, finish: str | None = None) -> Json:
        content = {"role": "model", "parts": [{"text": text}]}
        return {"candidates": [{"index": index, "content": content, "finishReason": finish}]}

    begun = [candidate(1, "b"), candidate(0, "a"), candidate(1, "b", "MAX_TOKENS")]
    assert not GEMINI.read(sse(*begun)).complete
    answer = GEMINI.read(sse(*begun, candidate(0, "a", "STOP")))
    assert (answer.message, answer.stop_reason) == ({"role": "model", "parts": [{"text": "aa"}]}, "STOP")
    assert answer.complete


def test_a_gemini_part_with_extra_fields_is_not_joined() -> None:
    told: list[Json] = [{"text": "a"}, {"text": "b", "partMetadata": {"x": 1}}, {"text": "c"}]
    answer = GEMINI.read(sse(*(parts(it) for it in told)))
    assert answer.message == {"role": "model", "parts": told}


def test_code_assist_responses_are_unwrapped() -> None:
    told = parts({"text": "a"}, finish="STOP")
    assert GEMINI.read(sse({"response": told, "traceId": "t"})) == GEMINI.read(sse(told))


WRAPPED = {
    "server-sent events": sse,
    "an array": lambda *events: json.dumps(events).encode(),
    "a body": lambda *events: json.dumps(events[-1]).encode(),
}
QUOTA: Json = {"error": {"code": 429, "message": "Slow down", "status": "RESOURCE_EXHAUSTED"}}


THOUGHT: Json = {"text": "Hm", "thought": True}
COUNTS = {"promptTokenCount": 90, "cachedContentTokenCount": 60, "thoughtsTokenCount": 7, "candidatesTokenCount": 3}


def envelope(*said: Json, **more: Any) -> Json:
    candidate = {"content": {"role": "model", "parts": said}, "finishReason": "STOP" if more else None}
    response = {"candidates": [candidate], "modelVersion": "gemini-3", **more}
    return {"response": response, "traceId": "t1", "consumedCredits": [{"creditAmount": "2"}]}


CODE_ASSIST_CHUNKS = (envelope(THOUGHT), envelope({"text": "Yes"}, usageMetadata=COUNTS))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(sse(*CODE_ASSIST_CHUNKS), id="server-sent events"),
        pytest.param(json.dumps(CODE_ASSIST_CHUNKS).encode(), id="an array"),
        pytest.param(json.dumps(envelope(THOUGHT, {"text": "Yes"}, usageMetadata=COUNTS)).encode(), id="a body"),
    ],
)
def test_a_code_assist_answer_has_thoughts_cache_and_the_id_beside_it(body: bytes) -> None:
    answer = GEMINI.read(body)
    assert answer.message == {"role": "model", "parts": [THOUGHT, {"text": "Yes"}]}
    assert (answer.model, answer.message_id, answer.stop_reason) == ("gemini-3", "t1", "STOP")
    assert answer.usage == Usage(input_tokens=30, output_tokens=10, cache_read_tokens=60)
    assert answer.complete


@pytest.mark.parametrize("written", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"response": QUOTA}, id="inside"),
        pytest.param({**QUOTA, "response": {}}, id="beside"),
        pytest.param(QUOTA, id="without"),
    ],
)
def test_an_error_in_beside_or_without_the_envelope_of_code_assist_is_read(
    written: Callable[..., bytes], body: Json
) -> None:
    answer = GEMINI.read(written(body))
    assert answer.error == AnswerFailure(type="RESOURCE_EXHAUSTED", message="Slow down")
    assert answer.message is None


@pytest.mark.parametrize("written", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("body", [{"result": {"candidates": []}}, {"response": None}, {"response": {"text": "a"}}])
def test_nothing_is_understood_of_a_wrong_envelope(written: Callable[..., bytes], body: Json) -> None:
    answer = GEMINI.read(written(body))
    assert answer.says_nothing and not answer.complete


def test_choices_of_copilot_without_numbers_are_one_answer() -> None:
    said = {"message": {"role": "assistant", "content": "Look."}, "finish_reason": "tool_calls"}
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    called = {"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
    details = {"token_details": [{"token_type": "input", "token_count": 9}], "total_nano_aiu": 17}
    body = {"id": "x", "model": "claude", "choices": [said, called], "usage": usage, "copilot_usage": details}
    answer = CHAT.read(json.dumps(body).encode())
    assert answer.message == {"role": "assistant", "content": "Look.", "tool_calls": [call]}
    assert answer.usage == Usage(input_tokens=4, output_tokens=4, cache_read_tokens=5)
    numbered = [{**said, "index": 0}, {**called, "index": 1}]
    assert CHAT.read(json.dumps({**body, "choices": numbered}).encode()).message == said["message"]


def test_errors_in_a_gemini_array_are_read() -> None:
    error = AnswerFailure(type="RESOURCE_EXHAUSTED", message="Slow down")
    body = b'[{"error": {"code": 429, "message": "Slow down", "status": "RESOURCE_EXHAUSTED"}}]'
    assert GEMINI.read(body).error == error


# ---------------------------------------------------------------- speed


@pytest.mark.parametrize(
    ("tokens", "complete", "last_ns", "chunks", "rate"),
    [
        pytest.param(100, True, 3_000_000_000, 2, 50.0, id="two seconds"),
        pytest.param(100, True, 3_000_000_000, 1, None, id="one chunk"),
        pytest.param(100, True, 1_000_000_000, 9, None, id="no time"),
        pytest.param(None, True, 3_000_000_000, 9, None, id="no usage"),
        pytest.param(1, False, 3_000_000_000, 9, None, id="cut"),
    ],
)
def test_tokens_per_second_needs_usage_and_a_complete_answer_in_several_chunks(
    tokens: int | None, complete: bool, last_ns: int, chunks: int, rate: float | None
) -> None:
    usage = None if tokens is None else Usage(output_tokens=tokens)
    assert tokens_per_second(Answer(usage=usage, complete=complete), 1_000_000_000, last_ns, chunks) == rate


# ---------------------------------------------------------------- completions, Ollama, embeddings


def text_chunk(text: str, finish: str | None = None, **more: Any) -> Json:
    return {
        "id": "cmpl-1",
        "model": "m",
        "choices": [{"text": text, "index": 0, "finish_reason": finish}],
        **more,
    }


def test_text_completions_are_read_as_messages() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    streamed = COMPLETIONS.read(
        sse(
            text_chunk("def "),
            text_chunk("f"),
            text_chunk("", "stop"),
            {"choices": [], "usage": usage},
            b"[DONE]",
        )
    )
    whole = COMPLETIONS.read(json.dumps(text_chunk("def f", "stop", usage=usage)).encode())
    for answer in (streamed, whole):
        assert answer.message == {"role": "assistant", "content": "def f"}
        assert (answer.message_id, answer.model, answer.stop_reason) == ("cmpl-1", "m", "stop")
        assert answer.usage == Usage(input_tokens=3, output_tokens=4)
        assert answer.complete and answer.error is None


ENDED = {"done": True, "done_reason": "stop", "total_duration": 9, "prompt_eval_count": 11, "eval_count": 7}
CALL = {"function": {"name": "ls", "arguments": {"path": "/"}}}


def ndjson(*lines: Json) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def said(done: Json | None = None, **message: Any) -> Json:
    return {"model": "llama", "message": {"role": "assistant", **message}, **(done or {"done": False})}


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_ollama_lines_form_one_answer(size: int) -> None:
    body = ndjson(
        said(content="", thinking="Hm"),
        said(content="", thinking="."),
        said(content="I "),
        said(content="look.", tool_calls=[CALL]),
        said(ENDED, content=""),
    )
    reader = OLLAMA.reader()
    for at in range(0, len(body), size):
        reader.feed(body[at : at + size])
    answer = reader.finish()
    assert answer.message == {
        "role": "assistant",
        "thinking": "Hm.",
        "content": "I look.",
        "tool_calls": [CALL],
    }
    assert (answer.model, answer.stop_reason, answer.complete) == ("llama", "stop", True)
    assert answer.usage == Usage(input_tokens=11, output_tokens=7)
    whole = said(ENDED, content="I look.", thinking="Hm.", tool_calls=[CALL])
    assert OLLAMA.read(json.dumps(whole).encode()) == answer


def test_ollama_text_generation_is_read_as_a_message() -> None:
    answer = OLLAMA.read(ndjson({"response": "x = ", "done": False}, {"response": "1", "context": [1], **ENDED}))
    assert answer.message == {"role": "assistant", "content": "x = 1"}
    assert answer.usage == Usage(input_tokens=11, output_tokens=7)


def test_a_cut_ollama_stream_is_incomplete() -> None:
    body = ndjson(said(content="I "), said(ENDED, content="look."))
    for cut in (len(ndjson(said(content="I "))), len(body) - 5):
        answer = OLLAMA.read(body[:cut])
        assert not answer.complete
        assert answer.message["content"] == "I "  # type: ignore[index]
    failed = OLLAMA.read(ndjson(said(content="I "), {"error": "an error was encountered"}))
    assert failed.error == AnswerFailure(type=None, message="an error was encountered")
    assert OLLAMA.read(b'{"error":"model not found"}').message is None


@pytest.mark.parametrize("value", [None, 5, "x", [], {}, True, -1, 1 << 70, [{}]])
@pytest.mark.parametrize("key", ["message", "response", "thinking", "done", "eval_count", "error", "model"])
def test_malformed_ollama_lines_raise_no_exception(key: str, value: Any) -> None:
    for line in (said(ENDED, content="a"), {"response": "a", **ENDED}):
        answer = OLLAMA.read(ndjson({**line, key: value}, line))
        assert answer.usage is None or answer.usage.output_tokens in (0, 7)


def test_embeddings_responses_keep_usage_but_no_vectors() -> None:
    body = {
        "object": "list",
        "data": [{"embedding": [0.1, 0.2]}],
        "model": "e",
        "usage": {"prompt_tokens": 9},
    }
    answer = EMBEDDINGS.read(json.dumps(body).encode())
    assert (answer.model, answer.usage, answer.complete) == ("e", Usage(input_tokens=9), True)
    assert "0.1" not in json.dumps(answer.message)
    assert EMBEDDINGS.read(b'{"error":{"message":"no","type":"t"}}').error == AnswerFailure(type="t", message="no")
    assert EMBEDDINGS.read(b"<html>").complete is False


# ---------------------------------------------------------------- Bedrock


def framed(payload: Json) -> bytes:
    """A message of AWS, its checksums left out."""
    headers, data = b"\x0b:event-type\x07\x00\x05chunk", json.dumps(payload).encode()
    return struct.pack(">III", 16 + len(headers) + len(data), len(headers), 0) + headers + data + b"\0\0\0\0"


def on_bedrock(event: bytes) -> bytes:
    return framed({"bytes": base64.b64encode(event).decode(), "p": "abc"})


SPOKEN: list[Json] = [
    {
        "type": "message_start",
        "message": {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 3}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello 🎉"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize("size", [1, 13, 10_000])
def test_a_bedrock_stream_gives_the_same_answer_as_server_sent_events(size: int) -> None:
    body = b"".join(on_bedrock(json.dumps(event).encode()) for event in SPOKEN)
    reader = ANTHROPIC.reader()
    for at in range(0, len(body), size):
        reader.feed(body[at : at + size])
    answer = reader.finish()
    assert answer == ANTHROPIC.read(sse(*SPOKEN))
    assert answer.complete and answer.usage == Usage(input_tokens=3, output_tokens=4)


def test_bedrock_exceptions_and_broken_frames_make_an_answer_incomplete() -> None:
    begun = b"".join(on_bedrock(json.dumps(event).encode()) for event in SPOKEN[:3])
    failed = ANTHROPIC.read(begun + framed({"message": "Too many tokens"}))
    assert failed.error == AnswerFailure(type="exception", message="Too many tokens")
    for rest in (
        b"",
        b"\0\0\0\x01" * 9,
        b"\xff" * 40,
        framed({"bytes": "%%%"})[:-5],
        framed({"bytes": "e30"}),
    ):
        assert not ANTHROPIC.read(begun + rest).complete
