"""What a request asks is read from its outline; its messages are cut out verbatim."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.providers.registry import ANTHROPIC, CHAT, GEMINI, RESPONSES, Dialect
from agent_logger.providers.request_outline import Question
from tests.providers.captures import Capture, answered

ALL = pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT, RESPONSES, GEMINI], ids=lambda it: it.name)
MESSAGES = {"messages": "messages", "chat": "messages", "responses": "input", "gemini": "contents"}
SYSTEMS = {"messages": "system", "responses": "instructions", "gemini": "systemInstruction"}


def ask(dialect: Dialect, body: bytes, path: str = "") -> Question:
    question = dialect.question(body, path)
    assert question
    return question


@pytest.mark.parametrize("capture", [pytest.param(it, id=it.name) for it in answered()])
def test_the_requests_of_real_clients_are_read(capture: Capture) -> None:
    assert capture.dialect
    assert capture.asked
    name, asked = capture.dialect.name, capture.asked
    question = ask(capture.dialect, capture.request_body, capture.path)
    if capture.dialect is GEMINI:  # the path says both, and manifests look into the body
        model, verb = capture.path.partition("?")[0].split("/models/")[1].split(":")
        assert (question.model, question.stream) == (model, verb == "streamGenerateContent")
    else:
        assert (question.model, question.stream) == (capture.truth["model"], capture.truth["stream"])
    told = asked[MESSAGES[name]]
    if isinstance(told, str):
        told = [{"role": "user", "content": told}]
    assert [json.loads(bytes(message)) for message in question.messages] == told
    system = asked.get(SYSTEMS.get(name, ""))
    assert (json.loads(bytes(question.system)) if question.system else None) == system
    assert question.max_tokens == (
        asked.get("max_tokens") or asked.get("generationConfig", {}).get("maxOutputTokens")
    )
    assert question.user_id == asked.get("metadata", {}).get("user_id")
    assert question.prompt_cache_key == asked.get("prompt_cache_key")
    assert question.previous_response_id == asked.get("previous_response_id")
    assert bool(question.tools) == bool(asked.get("tools"))


@pytest.mark.parametrize(
    ("dialect", "tools", "names"),
    [
        (
            ANTHROPIC,
            [{"name": "Read"}, {"type": "web_search_20260209", "name": "web_search"}],
            ("Read", "web_search"),
        ),
        (
            CHAT,
            [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "c"}}],
            ("f", "c"),
        ),
        (RESPONSES, [{"type": "function", "name": "shell"}, {"type": "web_search"}], ("shell", "web_search")),
        (
            GEMINI,
            [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, {"googleSearch": {}}],
            ("a", "b"),
        ),
        (ANTHROPIC, None, ()),
        (ANTHROPIC, "none of it", ()),
    ],
    ids=lambda it: it.name if isinstance(it, Dialect) else "",
)
def test_tools_are_told_by_name(dialect: Dialect, tools: Any, names: tuple[str, ...]) -> None:
    assert ask(dialect, json.dumps({"tools": tools}).encode()).tools == names


@pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT], ids=lambda it: it.name)
def test_messages_are_verbatim(dialect: Dialect) -> None:
    messages = [b'{ "role" : "user",\n "content": "\\u00fc \\ud83c\\udf89" }', b'{"b":1.0,"a":1e2}', b"null"]
    body = b'{"stream":true,"messages": [%b ]}' % b" , ".join(messages)
    question = ask(dialect, body)
    assert [bytes(message) for message in question.messages] == messages
    assert question.stream


def test_half_a_character_does_not_hide_the_rest() -> None:
    body = (
        rb'{"model":"m","messages":[{"content":"\ud83c\udf89 \ud83c \\ud83c \udf89"},{"content":"\uD83C"}]}'
    )
    question = ask(ANTHROPIC, body)
    assert [bytes(message) for message in question.messages] == [
        rb'{"content":"\ud83c\udf89 \ufffd \\ud83c \ufffd"}',
        rb'{"content":"\ufffd"}',
    ]


def test_a_text_is_short_for_a_message_of_the_user() -> None:
    (message,) = ask(RESPONSES, b'{"input": "Hi \\"you\\""}').messages
    assert json.loads(bytes(message)) == {"role": "user", "content": 'Hi "you"'}


@ALL
def test_what_is_null_or_left_out_is_not_given(dialect: Dialect) -> None:
    names = (
        "model",
        "messages",
        "system",
        "tools",
        "max_tokens",
        "metadata",
        "stream",
        "instructions",
        "input",
    )
    nothing = Question(model=None, messages=())
    assert dialect.question(b"{}") == nothing
    assert dialect.question(json.dumps(dict.fromkeys(names)).encode()) == nothing


def test_a_websockets_request_tells_whether_it_generates() -> None:
    asked = {
        "type": "response.create",
        "model": "m",
        "input": [{"role": "user"}],
        "previous_response_id": "resp_1",
    }
    question = ask(RESPONSES, json.dumps(asked).encode())
    assert (question.previous_response_id, question.generate, len(question.messages)) == ("resp_1", True, 1)
    assert not ask(RESPONSES, json.dumps({**asked, "generate": False}).encode()).generate


@pytest.mark.parametrize(
    ("dialect", "asked"),
    [
        (ANTHROPIC, {"max_tokens": 9}),
        (CHAT, {"max_tokens": 9}),
        (CHAT, {"max_completion_tokens": 9, "max_tokens": None}),
        (RESPONSES, {"max_output_tokens": 9}),
        (GEMINI, {"generationConfig": {"maxOutputTokens": 9}}),
    ],
    ids=lambda it: it.name if isinstance(it, Dialect) else "",
)
def test_the_limit_of_an_answer_has_several_names(dialect: Dialect, asked: dict[str, Any]) -> None:
    assert ask(dialect, json.dumps(asked).encode()).max_tokens == 9


def test_code_assist_wraps_its_request() -> None:
    asked = {"model": "gemini-3", "project": "p", "request": {"contents": [{"role": "user"}], "tools": []}}
    question = ask(GEMINI, json.dumps(asked).encode(), "/v1internal:streamGenerateContent?alt=sse")
    assert (question.model, question.stream, len(question.messages)) == ("gemini-3", True, 1)


@ALL
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'{"model":5}', b'{"messages":', b"\xff", b"[" * 100_000]
)
def test_what_asks_nothing_is_no_question(dialect: Dialect, body: bytes) -> None:
    assert dialect.question(body) is None


@ALL
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.binary(max_size=100) | st.dictionaries(st.sampled_from(
    ["model", "messages", "input", "contents", "tools", "metadata", "max_tokens", "generationConfig", "stream"]
), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers() | st.text())))  # fmt: skip
def test_any_request_is_read(dialect: Dialect, body: bytes | dict[str, Any]) -> None:
    dialect.question(body if isinstance(body, bytes) else json.dumps(body).encode())
