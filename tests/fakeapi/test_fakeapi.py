"""The fake API's faults are real on the wire, it forgives nothing, and it keeps what it saw."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.clients import ROOT
from tests.fakeapi import FakeAPI, answers
from tests.fakeapi.raw import (
    connection,
    exchange,
    message_request,
    post,
    read_all,
    read_until_silent,
    unchunk,
)

TEXT = "Grüße aus dem Skript: 流れ, 🎉 and plain words."


# Faults, as they look on a socket


@pytest.mark.parametrize("events", [0, 1, 4, 99])
def test_a_disconnect_with_fin_ends_the_stream_without_its_last_chunk(events: int) -> None:
    turn = {"text": TEXT, "disconnect_after": events, "disconnect": "fin"}
    with FakeAPI(answers(turn)) as api:
        received = exchange(api, message_request(stream=True))
        [call] = api.calls
    assert received.count(b"event: ") == min(events, 9)
    assert not received.endswith(b"0\r\n\r\n")
    assert (call.status, call.complete) == (200, False)


def test_a_disconnect_with_rst_resets_the_client_connection() -> None:
    turn = {"text": TEXT, "disconnect_after": 4}
    with FakeAPI(answers(turn)) as api, connection(api) as sock:
        sock.sendall(message_request(stream=True))
        received = bytearray()
        with pytest.raises(ConnectionResetError):
            while piece := sock.recv(65536):
                received += piece
        [call] = api.calls
    assert received.count(b"event: ") == 4
    assert not call.complete


def test_a_non_streamed_answer_can_be_cut_inside_its_body() -> None:
    turn = {"text": TEXT, "split_bytes": 10, "disconnect_after": 2, "disconnect": "fin"}
    with FakeAPI(answers(turn)) as api:
        head, _, body = exchange(api, message_request(stream=False)).partition(b"\r\n\r\n")
    assert int(head.lower().split(b"content-length: ")[1]) > len(body) == 20


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_a_dropped_call_gets_no_reply(how: str) -> None:
    with FakeAPI(answers({"drop": True, "disconnect": how})) as api, connection(api) as sock:
        sock.sendall(message_request())
        try:
            assert sock.recv(100) == b""
        except ConnectionResetError:
            assert how == "rst"
        [call] = api.calls
    assert (call.status, call.complete) == (None, False)


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        pytest.param("/v1/messages", {"messages": []}, b'event: error\ndata: {"type":"error","error":', id="anthropic"),
        pytest.param("/v1/responses", {"input": "Hi"}, b'event: error\ndata: {"type":"error","code":', id="responses"),
        pytest.param("/v1/chat/completions", {"messages": []}, b'data: {"error":', id="chat"),
    ],
)
def test_an_error_event_in_mid_stream_uses_the_format_of_the_provider(
    path: str, body: dict[str, Any], told: bytes
) -> None:
    turn = {"text": TEXT, "error_after": 2, "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with FakeAPI(answers(turn)) as api:
        _, _, stream = post(api, path, {"model": "m", "stream": True, **body})
        [call] = api.calls
    *before, last = stream.split(b"\n\n")[:-1]
    assert len(before) == 2
    assert last.startswith(told)
    assert b"Overloaded" in last
    assert call.complete


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_a_failure_has_the_scripted_status_and_headers(status: int) -> None:
    with FakeAPI(answers({"status": status, "headers": {"X-Odd": "1"}})) as api:
        got, headers, body = post(api, "/v1/messages", {"model": "m", "messages": [], "stream": True})
    assert (got, headers["X-Odd"]) == (status, "1")
    assert json.loads(body)["error"] == {"type": "api_error", "message": "scripted error"}


def test_a_stall_lasts_until_the_client_disconnects() -> None:
    with FakeAPI(answers({"text": TEXT, "stall_after": 3})) as api:
        with connection(api) as sock:
            sock.sendall(message_request(stream=True))
            received = read_until_silent(sock)
            with pytest.raises(TimeoutError):
                api.wait(1, seconds=0.1)
        [call] = api.wait(1)
    assert received.count(b"event: ") == 3
    assert not call.complete


def test_a_short_stall_is_followed_by_the_rest_of_the_answer() -> None:
    with FakeAPI(answers({"text": TEXT, "stall_after": 3, "stall_s": 0.05})) as api:
        received = exchange(api, message_request(stream=True))
    assert received.endswith(b"0\r\n\r\n")


def test_delays_apply_before_the_answer_and_between_events() -> None:
    with FakeAPI(answers({"text": TEXT, "wait_ms": 100, "chunk_ms": 20})) as api, connection(api) as sock:
        started = time.monotonic()
        sock.sendall(message_request(stream=True))
        first = sock.recv(1)
        waited = time.monotonic() - started
        read_all(sock)
    assert first
    assert waited >= 0.1
    assert time.monotonic() - started >= 0.1 + 9 * 0.02


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    turn = {"text": TEXT}
    script = {"lanes": [{"name": "main", "repeat": True, "turns": [turn]}]}
    seconds = []
    with FakeAPI(script) as api:
        client = http.client.HTTPConnection("127.0.0.1", api.port)
        for _ in range(60):  # the kernel acknowledges the first ones at once
            began = time.monotonic()
            client.request("POST", "/v1/messages", message_request(stream=True).partition(b"\r\n\r\n")[2])
            client.getresponse().read()
            seconds.append(time.monotonic() - began)
        client.close()
    assert min(seconds[-20:]) < 0.02, "an acknowledgement may take 0.04 seconds"


def test_split_bytes_splits_inside_characters_and_lines() -> None:
    with FakeAPI(answers({"text": TEXT, "split_bytes": 1})) as api:
        received = exchange(api, message_request(stream=True))
        [call] = api.calls
    _, _, body = received.partition(b"\r\n\r\n")
    assert body == b"".join(b"1\r\n%c\r\n" % byte for byte in call.sent) + b"0\r\n\r\n"


def test_each_event_of_a_compressed_stream_can_be_decoded_when_it_arrives() -> None:
    with (
        FakeAPI(answers({"text": TEXT, "encoding": "gzip", "stall_after": 4})) as api,
        connection(api) as sock,
    ):
        sock.sendall(message_request(stream=True))
        received = read_until_silent(sock)
    assert b"content-encoding: gzip" in received
    chunks = received.partition(b"\r\n\r\n")[2]
    assert zlib.decompressobj(wbits=31).decompress(unchunk(chunks)).count(b"event: ") == 4


def test_a_raw_answer_is_sent_unchanged() -> None:
    raw = "HTTP/1.1 299 Odd\r\nX-Ä: 1\r\nx-ä: 2\r\n\r\nrest"
    with FakeAPI(answers({"raw": raw})) as api:
        assert exchange(api, message_request()) == raw.encode("latin-1")


# HTTP


STRICT = [
    pytest.param(b"POST /v1/messages\r\n\r\n", id="no version"),
    pytest.param(b"POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", id="two lengths"),
    pytest.param(
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        id="length and chunks",
    ),
    pytest.param(b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", id="empty length"),
    pytest.param(
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 70_000 + b"\r\n",
        id="endless chunk size",
    ),
    pytest.param(b"POST / HTTP/1.1\r\nContent-Length: +2\r\n\r\n{}", id="signed length"),
    pytest.param(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", id="bad chunk size"),
    pytest.param(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", id="long chunk"),
    pytest.param(b"GET / HTTP/1.1\nHost: x\n\r\n\r\n", id="bare line feeds"),
    pytest.param(b"GET / HTTP/1.1\r\nBad Name: x\r\n\r\n", id="space in a name"),
    pytest.param(b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", id="folded header"),
    pytest.param(b"GET / HTTP/1.1\r\nA: " + b"x" * 70_000 + b"\r\n\r\n", id="head too long"),
]


@pytest.mark.parametrize("request_bytes", STRICT)
def test_ambiguous_framing_is_rejected_with_status_400(request_bytes: bytes) -> None:
    with FakeAPI(answers()) as api:
        assert exchange(api, request_bytes).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_calls_are_recorded_byte_for_byte() -> None:
    body = b'{"model":"m","messages":[]}'
    head = b"POST /p%20x/v1/messages?a=1&&b HTTP/1.1\r\nX-Two: 1\r\nhost: h\r\nx-tWO:2 \r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    with FakeAPI(answers({"text": "ok"})) as api, connection(api) as sock:
        sock.sendall(head + b"5\r\n" + body[:5] + b"\r\n%x\r\n" % len(body[5:]) + body[5:] + b"\r\n0\r\nT: 1\r\n\r\n")
        assert sock.recv(12) == b"HTTP/1.1 200"
        [call] = api.calls
    assert (call.method, call.path, call.body) == ("POST", "/p%20x/v1/messages?a=1&&b", body)
    assert call.headers == [("X-Two", "1"), ("host", "h"), ("x-tWO", "2"), ("Transfer-Encoding", "chunked")]
    assert (call.lane, call.turn, call.status, call.complete) == ("main", 0, 200, True)


def test_pipelined_requests_on_one_connection_are_answered_in_order() -> None:
    with FakeAPI(answers({"text": "one"}, {"text": "two"})) as api:
        received = exchange(api, message_request(close=False) + message_request())
    assert received.index(b'"one"') < received.index(b'"two"')


def test_a_head_request_is_answered() -> None:
    with FakeAPI(answers()) as api:
        assert exchange(api, b"HEAD /api/hello HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200 OK")


def test_a_request_beyond_the_script_gets_status_400() -> None:
    with FakeAPI(answers({"text": "once"})) as api:
        post(api, "/v1/messages", {"model": "m", "messages": []})
        status, _, body = post(api, "/v1/messages", {"model": "m", "messages": []})
    assert (status, json.loads(body)["error"]["message"]) == (400, "lane 'main' has no turn 1")


def test_a_request_selects_its_lane_by_headers_model_and_content() -> None:
    lanes = [
        {
            "name": "side",
            "match": {"no_tools": True, "header": {"x-kind": "^s"}},
            "repeat": True,
            "turns": [{"text": "S"}],
        },
        {"name": "sub", "match": {"first_user_re": "^TASK", "system_re": "helper"}, "turns": [{"text": "H"}]},
        {"name": "main", "match": {"model_re": "opus", "path_re": "messages"}, "turns": [{"text": "M"}]},
    ]
    user = {"role": "user", "content": [{"type": "text", "text": "TASK 1"}]}
    tools = [{"name": "t", "input_schema": {}}]
    with FakeAPI({"lanes": lanes}) as api:
        post(api, "/v1/messages", {"model": "opus", "messages": [user]}, {"X-Kind": "side"})
        post(api, "/v1/messages", {"model": "x", "messages": [user], "system": "A helper.", "tools": tools})
        post(api, "/v1/messages", {"model": "opus-5", "messages": [user]})
        post(api, "/v1/messages", {"model": "haiku", "messages": [user]})
    assert [call.lane for call in api.calls] == ["side", "sub", "main", None]


def test_an_exception_inside_the_fake_api_is_raised_in_the_test() -> None:
    class Broken(FakeAPI):
        async def play(self, *_: object) -> None:
            raise LookupError("a bug")

    with pytest.raises(ExceptionGroup) as caught, Broken(answers({"text": "never"})) as api:
        exchange(api, message_request())
    assert caught.group_contains(LookupError, match="a bug")


def test_closing_the_fake_api_with_open_connections_leaves_no_threads() -> None:
    before = threading.enumerate()
    with ExitStack() as clients:
        with FakeAPI(answers({"text": TEXT, "stall_after": 1})) as api:
            stalled, idle = (clients.enter_context(connection(api)) for _ in range(2))
            stalled.sendall(message_request(stream=True))
            idle.sendall(b"HEAD / HTTP/1.1\r\n\r\n")
            assert stalled.recv(1)
            assert idle.recv(1)
        assert threading.enumerate() == before
        with pytest.raises(ConnectionRefusedError):
            connection(api)


def test_the_fake_api_runs_as_a_command_line_program(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    scenario = ROOT / "tests/fakeapi/scenarios/tools.json"
    command = [
        sys.executable,
        "-m",
        "tests.fakeapi",
        "--scenario",
        str(scenario),
        "--port-file",
        str(port_file),
    ]
    with subprocess.Popen([*command, "--var", "CWD=/there"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        port = int(port_file.read_text())
        client = http.client.HTTPConnection("127.0.0.1", port)
        client.request("POST", "/v1/messages", json.dumps({"model": "m", "messages": [], "tools": [{}]}))
        with client.getresponse() as response:
            message = json.load(response)
        client.close()
        process.send_signal(signal.SIGTERM)
        log = process.stdout.read()
    assert url == f"http://127.0.0.1:{port}"
    assert message["content"][2]["input"]["file_path"] == "/there/poem.md"
    assert log == "http POST /v1/messages main 0 200 True\n"
    assert process.returncode == 0
