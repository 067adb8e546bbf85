"""Requests with a content encoding, and those of back ends that wrap a known dialect, are understood as plain ones."""

import json
import shutil
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.home.layout import install_key
from agent_logger.model.records import Request, Response
from agent_logger.providers.ending import body_of
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import CredentialFrame
from agent_logger.proxy.spool.spool import Spool
from tests.fakeapi.encodings import PACKERS
from tests.proxy.spooling import KEY, Logged, Relay, logged, record, request_bytes, response_bytes

Json = dict[str, Any]
Turn = tuple[str, str]  # what the user says, and the model


@dataclass(frozen=True)
class BackEnd:
    """An endpoint, and what its clients send and get. `turns`: the conversation until now."""

    path: str
    agent: str
    request: Callable[[Sequence[Turn], str], Json]
    answer: Callable[[str, int], Json]


def _messages(turns: Sequence[Turn], said: str, user: str = "user", model: str = "assistant") -> list[tuple[str, str]]:
    pairs = [pair for asked, answered in turns for pair in ((user, asked), (model, answered))]
    return [*pairs, (user, said)]


def anthropic(turns: Sequence[Turn], said: str) -> Json:
    messages = [{"role": role, "content": text} for role, text in _messages(turns, said)]
    return {"model": "claude-fable-5", "max_tokens": 9, "messages": messages, "tools": [{"name": "t"}]}


def anthropic_answer(text: str, number: int) -> Json:
    usage = {"input_tokens": 3, "output_tokens": 4}
    content = [{"type": "text", "text": text}]
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-fable-5"}
    return {**head, "content": content, "stop_reason": "end_turn", "usage": usage}


def chat(turns: Sequence[Turn], said: str) -> Json:
    return {"model": "gpt-5", "messages": [{"role": role, "content": text} for role, text in _messages(turns, said)]}


def chat_answer(text: str, number: int) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    return {"id": f"chatcmpl_{number}", "model": "gpt-5", "choices": [choice], "usage": usage}


def responses(turns: Sequence[Turn], said: str) -> Json:
    kinds = {"user": "input_text", "assistant": "output_text"}
    items = [
        {"type": "message", "role": role, "content": [{"type": kinds[role], "text": text}]}
        for role, text in _messages(turns, said)
    ]
    return {"model": "gpt-5-codex", "input": items, "prompt_cache_key": "thread-7"}


def responses_answer(text: str, number: int) -> Json:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    usage = {"input_tokens": 3, "output_tokens": 4}
    return {"id": f"resp_{number}", "status": "completed", "model": "gpt-5-codex", "output": [item], "usage": usage}


def gemini(turns: Sequence[Turn], said: str) -> Json:
    pairs = _messages(turns, said, model="model")
    return {"contents": [{"role": role, "parts": [{"text": text}]} for role, text in pairs], "tools": [{}]}


def gemini_answer(text: str, number: int) -> Json:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 4}
    return {
        "candidates": [candidate],
        "modelVersion": "gemini-3",
        "responseId": f"r{number}",
        "usageMetadata": usage,
    }


def code_assist(turns: Sequence[Turn], said: str) -> Json:
    return {"model": "gemini-3", "project": "p", "user_prompt_id": "u", "request": gemini(turns, said)}


BACK_ENDS = {
    "Anthropic": BackEnd("/v1/messages", "claude-cli/2", anthropic, anthropic_answer),
    "Copilot, chat": BackEnd("/chat/completions", "copilot/1", chat, chat_answer),
    "Copilot, responses": BackEnd("/responses", "copilot/1", responses, responses_answer),
    "Copilot, messages": BackEnd("/v1/messages", "copilot/1", anthropic, anthropic_answer),
    "Codex": BackEnd("/backend-api/codex/responses", "codex_cli_rs/0.166", responses, responses_answer),
    "Gemini": BackEnd("/v1beta/models/gemini-3:generateContent", "GeminiCLI/1", gemini, gemini_answer),
    "Code Assist": BackEnd(
        "/v1internal:generateContent",
        "GeminiCLI/1",
        code_assist,
        lambda text, number: {"response": gemini_answer(text, number), "traceId": "t"},
    ),
}
ENCODINGS = ["gzip", "deflate", "br", "zstd", "x-gzip", "GZIP", "gzip, zstd", "identity"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def packed(encoding: str, data: bytes) -> bytes:
    for name in encoding.lower().split(", "):
        packer = PACKERS[name.removeprefix("x-")]()
        data = packer.feed(data) + packer.end()
    return data


class Recording:
    """Calls of one client to a back end, as a relay spools them."""

    def __init__(self, folder: Path, key: bytes, back_end: BackEnd) -> None:
        self.log_dir, self.home, self.back_end = folder / "logs", folder / "recorder", back_end
        self.not_understood = -1  # until it has been recorded
        self.home.mkdir(parents=True)
        (self.home / "key").write_bytes(key)
        self.credentials: list[CredentialFrame] = []
        self.spool = Spool(spool_folder(self.log_dir), send_credential=self.credentials.append, memory_bytes=1 << 26)
        self.relay = Relay(self.spool)

    def call(self, body: bytes, answer: Json, encoding: str = "", cut: int = 1 << 20) -> str:
        path = self.back_end.path.encode()
        lines = [
            b"POST /openai/back.end.example%b HTTP/1.1" % path,
            b"Host: 127.0.0.1:8080",
            b"User-Agent: " + self.back_end.agent.encode(),
            b"Authorization: Bearer " + KEY,
            *([b"Content-Encoding: " + encoding.encode()] if encoding else []),
        ]
        sent = packed(encoding, body) if encoding else body
        pieces = [sent[start : start + cut] for start in range(0, len(sent), cut)]
        answered = [json.dumps(answer).encode()]
        return self.relay.call(head=b"\r\n".join(lines) + b"\r\n\r\n", path=path, body=pieces, answer=answered)

    def record(self) -> Logged:
        assert self.spool.close()
        child = record(self.log_dir, self.home, self.credentials)
        self.not_understood = child.recording.not_understood
        return logged(self.log_dir)


def understanding(found: Logged, calls: Sequence[str]) -> list[Any]:
    """What was understood of calls. Logs are numbered, for their names have the time and random letters."""
    logs = list(dict.fromkeys(found.logs[call] for call in calls))

    def of(request: Request, response: Response, log: str) -> Any:
        asked = (request.seq, request.thread, request.kind, request.fingerprint, request.retry_of)
        message = msgspec.json.encode(response.message)
        answered = (response.fingerprint, message, response.message_id, response.model, response.usage)
        return logs.index(log), asked, answered

    return [of(found.request(call), found.response(call), found.logs[call]) for call in calls]


@pytest.mark.parametrize("back_end", BACK_ENDS.values(), ids=BACK_ENDS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    turns=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3),
    encodings=st.lists(st.sampled_from(ENCODINGS), min_size=3, max_size=3),
    cut=st.integers(1, 300),
)
def test_an_encoded_request_is_understood_like_a_plain_one(
    back_end: BackEnd, turns: list[Turn], encodings: list[str], cut: int
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="encoded"))
    try:
        key = install_key(folder / "installation")
        plain, encoded = (Recording(folder / name, key, back_end) for name in ("plain", "encoded"))
        calls: dict[Recording, list[str]] = {plain: [], encoded: []}
        for number, (said, answered) in enumerate(turns):
            body = json.dumps(back_end.request(turns[:number], said)).encode()
            answer = back_end.answer(answered, number)
            calls[plain].append(plain.call(body, answer))
            calls[encoded].append(encoded.call(body, answer, encodings[number], cut))
        expected, got = (understanding(world.record(), calls[world]) for world in (plain, encoded))
        assert got == expected
        assert all(asked[1] == "main" and asked[3] and answer[0] for _, asked, answer in expected), expected
        assert {log for log, _, _ in expected} == {0}
        assert plain.not_understood == encoded.not_understood == 0
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def codex(tmp_path: Path) -> Recording:
    return Recording(tmp_path, install_key(tmp_path / "installation"), BACK_ENDS["Codex"])


SECRET = "sk-proj-" + "a1B2c3D4" * 6


@pytest.mark.parametrize("encoding", ["zstd", "gzip", "br", "deflate"])
def test_a_compressed_request_is_stored_as_it_came_if_nothing_is_redacted(codex: Recording, encoding: str) -> None:
    body = json.dumps(responses([], "hello")).encode()
    call = codex.call(body, responses_answer("hi", 1), encoding)
    request = codex.record().request(call)
    assert request_bytes(request) == packed(encoding, body)
    assert body_of(request) == body
    assert (request.recoded, request.body_encoding) == (False, "base64")


@pytest.mark.parametrize("encoding", ["zstd", "gzip", "br", "deflate"])
def test_a_compressed_request_with_a_secret_is_stored_decoded_without_it(codex: Recording, encoding: str) -> None:
    body = json.dumps(responses([], f"my key is {SECRET}, remember it")).encode()
    call = codex.call(body, responses_answer("hi", 1), encoding)
    request = codex.record().request(call)
    assert request.recoded and request.original is not None
    assert request.original.bytes == len(packed(encoding, body))
    stored = request_bytes(request).decode()
    assert SECRET not in stored and "my key is sk-proj-" in stored and ", remember it" in stored
    assert body_of(request) == stored.encode()
    assert request.fingerprint and request.kind == "main"


@pytest.mark.parametrize("encoding", ["zstd", "gzip", "br"])
def test_a_bomb_is_stored_as_bytes_and_takes_bounded_memory(codex: Recording, encoding: str) -> None:
    packer = PACKERS[encoding]()
    zeros = bytes(1 << 20)
    bomb = b"".join([*(packer.feed(zeros) for _ in range(200)), packer.end()])
    call = codex.relay.call(
        head=b"POST /openai/back.end.example/responses HTTP/1.1\r\nHost: h\r\nContent-Encoding: %b\r\n\r\n"
        % encoding.encode(),
        path=b"/responses",
        body=[bomb],
        answer=[json.dumps(responses_answer("hi", 1)).encode()],
    )
    after = codex.call(json.dumps(responses([], "hello")).encode(), responses_answer("hi", 2), encoding)
    tracemalloc.start()
    try:
        found = codex.record()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert request_bytes(found.request(call)) == bomb
    assert (found.request(call).kind, found.request(call).fingerprint) == ("other", None)
    assert found.request(after).fingerprint
    assert peak < 450 << 20


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        pytest.param("dcb", b'{"input": []}', id="an encoding that is not known"),
        pytest.param("zstd", b'{"input": "not compressed"}', id="no encoding, although it is claimed"),
        pytest.param("zstd", zstd.compress(b'{"input": "' + b"x" * 9000)[:-6], id="cut"),
        pytest.param("gzip, gzip, gzip, gzip, gzip, gzip", b"{}", id="too many encodings"),
    ],
)
def test_a_request_that_cannot_be_decoded_is_kept_as_bytes(codex: Recording, encoding: str, body: bytes) -> None:
    call = codex.relay.call(
        head=b"POST /openai/back.end.example/responses HTTP/1.1\r\nHost: h\r\nContent-Encoding: %b\r\n\r\n"
        % encoding.encode(),
        path=b"/responses",
        body=[body],
        answer=[json.dumps(responses_answer("hi", 1)).encode()],
    )
    found = codex.record()
    assert request_bytes(found.request(call)) == body
    assert found.request(call).kind == "other"
    assert found.response(call).message_id == "resp_1"
    assert codex.not_understood == 1


def test_an_answer_in_an_unknown_encoding_is_kept_as_bytes(codex: Recording) -> None:
    fields = [b"content-type: application/json", b"content-encoding: dcb"]
    answers = {b"200 OK": 1, b"500 Oops": 0}
    body = json.dumps(responses([], "hello")).encode()
    head = b"POST /openai/back.end.example/responses HTTP/1.1\r\nHost: h\r\n\r\n"
    calls = [
        codex.relay.call(
            head=head, path=b"/responses", body=[body], status=b"HTTP/1.1 " + status, fields=fields, answer=[b"\xff?"]
        )
        for status in answers
    ]
    found = codex.record()
    assert [response_bytes(found.response(call)) for call in calls] == [b"\xff?"] * 2
    assert codex.not_understood == sum(answers.values())


def test_calls_that_ask_no_model_or_say_nothing_count_as_understood(codex: Recording) -> None:
    for path in (b"/backend-api/codex/models", b"/backend-api/wham/usage", b"/responses"):
        codex.relay.call(path=path, body=[], answer=[b"{}"])
    codex.relay.call(path=b"/telemetry", body=[b"\xff\xfe"], answer=[b"{}"])
    warm_up = {"model": "m", "input": [], "generate": False}
    codex.relay.call(path=b"/responses", body=[json.dumps(warm_up).encode()], answer=[b"{}"])
    codex.record()
    assert codex.not_understood == 0


def test_the_session_of_a_code_assist_request_has_the_id_of_its_body(tmp_path: Path) -> None:
    world = Recording(tmp_path, install_key(tmp_path / "installation"), BACK_ENDS["Code Assist"])
    calls = []
    for number, said in enumerate(["one", "another beginning"]):
        body = code_assist([], said)
        body["request"]["session_id"] = "5f0c2f1e-7a3b-4d58-9d30-1f2a3b4c5d6e"
        calls.append(world.call(json.dumps(body).encode(), {"response": gemini_answer("ok", number)}))
    found = world.record()
    assert len({found.logs[call] for call in calls}) == 1
    assert found.starts.total() == 1
