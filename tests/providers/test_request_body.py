"""A request body is read without decoding its messages, which are cut out verbatim."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.providers.registry import (
    ANTHROPIC,
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    GEMINI,
    OLLAMA,
    RESPONSES,
    Dialect,
)
from agent_logger.providers.request_body import RequestBody, text
from tests.providers.captures import Capture, answered

ALL = pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT, RESPONSES, GEMINI], ids=lambda it: it.name)
MESSAGES = {"messages": "messages", "chat": "messages", "responses": "input", "gemini": "contents"}
SYSTEMS = {"messages": "system", "responses": "instructions", "gemini": "systemInstruction"}


def read(dialect: Dialect, body: bytes, path: str = "") -> RequestBody:
    request = dialect.request(body, path)
    assert request
    return request


def messages(dialect: Dialect, body: dict[str, Any]) -> list[Any]:
    request = read(dialect, json.dumps(body).encode())
    return [json.loads(bytes(message)) for message in dialect.messages(request)]


@pytest.mark.parametrize("capture", [pytest.param(it, id=it.name) for it in answered()])
def test_requests_of_real_clients_are_read(capture: Capture) -> None:
    assert capture.dialect
    assert capture.asked
    name, sent = capture.dialect.name, capture.asked
    request = read(capture.dialect, capture.request_body, capture.path)
    model = capture.truth["model"]
    if capture.dialect is GEMINI:  # the path has it, and manifests look into the body
        model = capture.path.partition("?")[0].split("/models/")[1].split(":")[0]
    assert text(request.model) == model
    expected = sent[MESSAGES[name]]
    if isinstance(expected, str):
        expected = [{"role": "user", "content": expected}]
    given = [json.loads(bytes(message)) for message in capture.dialect.messages(request)]
    assert given == expected
    assert request.system_prompt == sent.get(SYSTEMS.get(name, ""))
    assert text(request.previous_response_id) == sent.get("previous_response_id")


@pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT], ids=lambda it: it.name)
def test_messages_are_cut_out_verbatim(dialect: Dialect) -> None:
    sent = [b'{ "role" : "user",\n "content": "\\u00fc \\ud83c\\udf89" }', b'{"b":1.0,"a":1e2}', b"null"]
    request = read(dialect, b'{"stream":true,"messages": [%b ]}' % b" , ".join(sent))
    assert [bytes(message) for message in dialect.messages(request)] == sent


def test_a_lone_surrogate_does_not_hide_the_messages() -> None:
    body = rb'{"model":"m","messages":[{"content":"\ud83c\udf89 \ud83c \\ud83c \udf89"},{"content":"\uD83C"}]}'
    assert [bytes(message) for message in ANTHROPIC.messages(read(ANTHROPIC, body))] == [
        rb'{"content":"\ud83c\udf89 \ufffd \\ud83c \ufffd"}',
        rb'{"content":"\ufffd"}',
    ]


@pytest.mark.parametrize(
    ("dialect", "body", "texts"),
    [
        (RESPONSES, {"input": 'Hi "you"'}, ['Hi "you"']),
        (COMPLETIONS, {"prompt": "once"}, ["once"]),
        (COMPLETIONS, {"prompt": ["once", "twice", [1, 2]]}, ["once", "twice"]),
        (OLLAMA, {"prompt": "once"}, ["once"]),
        (EMBEDDINGS, {"input": ["a", "b"]}, []),
    ],
)
def test_a_string_input_is_read_as_a_user_message(dialect: Dialect, body: dict[str, Any], texts: list[str]) -> None:
    assert messages(dialect, body) == [{"role": "user", "content": text} for text in texts]


@ALL
def test_null_and_missing_fields_are_equivalent(dialect: Dialect) -> None:
    names = ("model", "messages", "contents", "input", "system", "instructions", "systemInstruction")
    for body in ({}, dict.fromkeys(names)):
        request = read(dialect, json.dumps(body).encode())
        assert (text(request.model), request.system_prompt, messages(dialect, body)) == (None, None, [])


@ALL
def test_a_model_that_is_no_text_costs_the_model_alone(dialect: Dialect) -> None:
    request = read(dialect, json.dumps({"model": 5, MESSAGES[dialect.name]: [{"role": "user"}]}).encode())
    assert (text(request.model), len(dialect.messages(request))) == (None, 1)


def test_code_assist_requests_are_unwrapped() -> None:
    body = {"model": "gemini-3", "project": "p", "request": {"contents": [{"role": "user"}], "tools": [7]}}
    request = read(GEMINI, json.dumps(body).encode(), "/v1internal:streamGenerateContent?alt=sse")
    assert (text(request.model), len(GEMINI.messages(request)), bytes(request.tools)) == (
        "gemini-3",
        1,
        b"[7]",
    )


@ALL
@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"messages":', b"\xff", b"[" * 100_000])
def test_a_body_that_is_not_an_object_is_not_a_request(dialect: Dialect, body: bytes) -> None:
    assert dialect.request(body) is None


@ALL
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.binary(max_size=100) | st.dictionaries(st.sampled_from(
    ["model", "messages", "input", "contents", "tools", "metadata", "max_tokens", "generationConfig", "stream"]
), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers() | st.text())))  # fmt: skip
def test_any_request_body_is_read_without_error(dialect: Dialect, body: bytes | dict[str, Any]) -> None:
    request = dialect.request(body if isinstance(body, bytes) else json.dumps(body).encode())
    if request:
        dialect.messages(request)
