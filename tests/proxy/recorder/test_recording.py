"""What the recorder makes of frames: every byte, every header, no secret."""

import base64
import gzip
import hmac
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest
from backports import zstd

from agent_logger.home.layout import install_key
from agent_logger.model.records import Gap
from agent_logger.proxy.call_lines import CallLine
from agent_logger.proxy.recorder import sealing
from agent_logger.proxy.recorder.calls.recorded_call import RecordedCall
from agent_logger.proxy.recorder.child import RecorderChild
from agent_logger.proxy.recorder_process import Recorder
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import (
    CallEnd,
    CredentialFrame,
    Dropped,
    Refusal,
    RequestData,
    RequestEnd,
    ResponseData,
    ResponseHead,
    TunnelData,
)
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.process import wait_until
from tests.proxy.spooling import (
    KEY,
    PATH,
    Logged,
    Relay,
    every_byte_under,
    head_of,
    logged,
    masked,
    now,
    pipe_with,
    record,
    request_bytes,
    request_head,
    response_bytes,
    response_chunks,
    websocket_frame,
)

ASKED = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'


class World:
    def __init__(self, folder: Path) -> None:
        self.log_dir, self.home = folder / "logs", folder / "agent-logger"
        self.credentials: list[CredentialFrame] = []
        self.spool = Spool(spool_folder(self.log_dir), send_credential=self.credentials.append, memory_bytes=1 << 28)
        self.relay = Relay(self.spool)

    def record(self) -> Logged:
        assert self.spool.close()
        record(self.log_dir, self.home, self.credentials)
        return logged(self.log_dir)

    def hmac(self, data: bytes) -> str:
        return "v1:" + hmac.digest(install_key(self.home), data, "sha256").hex()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


BODIES = [
    pytest.param([b'{"a": "b"}'], id="text"),
    pytest.param(['{"a": "é€😀"}'.encode()], id="text beyond ASCII"),
    pytest.param(["€".encode()[:1], "€".encode()[1:]], id="a character in two pieces"),
    pytest.param([b"\xff\xfe\x00binary\n"], id="bytes"),
    pytest.param([b"a" * 70_000, b"b" * 70_000], id="pieces"),
    pytest.param([gzip.compress(b"hello" * 1000)], id="compressed"),
    pytest.param([], id="nothing"),
    pytest.param([b'{"cut": "\\ud83d'], id="half a character, escaped"),
]


@pytest.mark.parametrize("body", BODIES)
def test_records_contain_every_byte_of_the_body(world: World, body: list[bytes]) -> None:
    fields = [b"content-type: application/octet-stream"]
    call = world.relay.call(body=body, answer=body, fields=fields)
    found = world.record()
    request, response = found.request(call), found.response(call)
    whole = b"".join(body)
    assert request_bytes(request) == response_bytes(response) == whole
    assert request.bytes == response.bytes == len(whole)
    assert request.body_hmac == response.body_hmac == (world.hmac(whole) if whole else None)
    assert (response.complete, response.reason, response.status) == (True, None, 200)


@pytest.mark.parametrize("kind", ["text/event-stream", "text/event-stream; charset=utf-8", "application/x-ndjson"])
@pytest.mark.parametrize("body", BODIES)
def test_a_streamed_response_is_recorded_chunk_by_chunk(world: World, body: list[bytes], kind: str) -> None:
    call = world.relay.call(path=b"/v1/other", answer=body, fields=[b"content-type: " + kind.encode()])
    response = world.record().response(call)
    assert response_chunks(response) == body
    assert response.body is None
    assert [chunk.delta_ms for chunk in response.chunks or []][:1] == [0.0][: len(body)]
    assert response.body_hmac == (world.hmac(b"".join(body)) if body else None)


def test_pieces_of_one_http_chunk_form_one_chunk_with_a_delta_from_the_previous(world: World) -> None:
    relay = world.relay
    number = relay.begin(request_head())
    relay.put(RequestEnd(number, 1_000_000_000))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"))
    start = now()
    relay.put(ResponseData(number, start, b"data: a", ends_chunk=False))
    relay.put(ResponseData(number, start + 5_000_000, b"b\n\n", ends_chunk=True))
    relay.put(ResponseData(number, start + 7_500_000, b"event: message_stop\n", ends_chunk=True))
    relay.put(ResponseData(number, start + 8_500_000, b"data: cut", ends_chunk=False))
    relay.put(CallEnd(number, start + 9_000_000, "upstream_reset"))
    response = world.record().response(relay.ids[number])
    assert response_chunks(response) == [b"data: ab\n\n", b"event: message_stop\n", b"data: cut"]
    assert [chunk.delta_ms for chunk in response.chunks or []] == [0.0, 7.5, 1.0]
    times = [datetime.fromisoformat(chunk.ts or "") for chunk in response.chunks or []]
    ended = datetime.fromisoformat(response.ts)
    assert [(ended - time) / timedelta(milliseconds=1) for time in times] == pytest.approx([9, 1.5, 0.5], abs=1)
    assert (response.complete, response.reason) == (False, "upstream_reset")


STREAMS = [
    ("/v1/messages", b"event: message_stop\ndata: {}\n\n", True),
    ("/v1/messages", b'data: {"type": "message_stop"}\n\n', True),
    ("/v1/messages?beta=true", b'event: x\r\ndata: {"type":"message_stop"}\r\n\r\n', True),
    ("/v1/messages", b'data: {"text": "event: message_stop"}\n\n', False),
    ("/v1/messages", b"event: error\ndata: {}\n\n", False),
    ("/v1/messages", b"", False),
    ("/v1/chat/completions", b"data: [DONE]\n\n", True),
    ("/v1/chat/completions", b"data: {}\n\n", False),
    ("/v1/responses", b"event: response.completed\ndata: " + b"x" * 9000 + b"\n\n", True),
    ("/v1/responses", b"event: response.created\ndata: {}\n\n", False),
    ("/v1beta/models/g:streamGenerateContent?alt=sse", b"data: {}\n\n", False),
    (
        "/v1beta/models/g:streamGenerateContent?alt=sse",
        b'data: {"candidates": [{"finishReason": "STOP"}]}\n\n',
        True,
    ),
]


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize(("path", "stream", "ends"), STREAMS)
def test_an_event_stream_without_its_last_event_is_incomplete(
    world: World, path: str, stream: bytes, ends: bool, encoding: str
) -> None:
    fields = [b"content-type: text/event-stream"]
    answer = [b"event: ping\n\n", stream]
    if encoding == "gzip":
        fields.append(b"content-encoding: gzip")
        answer = [gzip.compress(b"".join(answer))]
    call = world.relay.call(path=path.encode(), head=request_head(path.encode()), answer=answer, fields=fields)
    response = world.record().response(call)
    assert (response.complete, response.reason) == (ends, None if ends else "no_stream_end")


def test_an_error_status_with_an_event_stream_needs_no_last_event(world: World) -> None:
    call = world.relay.call(status=b"HTTP/1.1 529 Overloaded", fields=[b"content-type: text/event-stream"])
    response = world.record().response(call)
    assert (response.status, response.status_text, response.complete) == (529, "Overloaded", True)


HEADS = [
    pytest.param([b"A: 1", b"b: 2"], True, id="plain"),
    pytest.param([b"Set-It: 1", b"Set-It: 2", b"C: 3"], True, id="a name twice"),
    pytest.param([b"X: 1", b"Y: 2", b"X: 3"], False, id="interleaved"),
    pytest.param([b"X: 1", b"x: 2"], True, id="two cases"),
    pytest.param([b"X:1"], False, id="no blank"),
    pytest.param([b"X:  1"], False, id="two blanks"),
    pytest.param([b"X: 1 "], False, id="a blank behind"),
    pytest.param([b"X:"], False, id="nothing"),
    pytest.param([b"X: \xff\xe9"], False, id="odd bytes"),
    pytest.param(["X: é".encode()], False, id="UTF-8"),
    pytest.param([b"X: a", b"\tfolded"], False, id="folded"),
    pytest.param([b"no colon"], False, id="no field"),
    pytest.param([b"1: one", b"0: zero"], True, id="numbers keep their order"),
]


@pytest.mark.parametrize(("fields", "exact"), HEADS)
def test_a_recorded_head_can_be_restored_exactly(world: World, fields: list[bytes], exact: bool) -> None:
    head = request_head(PATH, *fields)
    call = world.relay.call(head=head, body=[ASKED], fields=fields, status=b"HTTP/1.1 200 Fine then")
    found = world.record()
    request, response = found.request(call), found.response(call)
    assert head_of(request, "POST /anthropic/api.anthropic.com/v1/messages HTTP/1.1") == head
    answered = b"\r\n".join([b"HTTP/1.1 200 Fine then", *fields]) + b"\r\n\r\n"
    assert head_of(response, "HTTP/1.1 200 Fine then") == answered
    assert (request.head is None, response.head is None) == (exact, exact)


ODD_STARTS = [
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 200",
    b"HTTP/1.1 200 ",
    b"HTTP/1.1 404 N\xf6",
    b"HTTP/1.1 200 OK  ",
]


@pytest.mark.parametrize("start", ODD_STARTS)
def test_a_recorded_status_line_can_be_restored_exactly(world: World, start: bytes) -> None:
    call = world.relay.call(status=start, fields=[b"a: b"])
    response = world.record().response(call)
    assert response.status == int(start[9:12])
    parts = [response.http, str(response.status), response.status_text]
    said = " ".join(part for part in parts if part is not None)
    assert head_of(response, said) == start + b"\r\na: b\r\n\r\n"


def test_endless_interim_responses_are_recorded_up_to_a_limit(world: World) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 50_000 + b"\r\n\r\n"
    call = world.relay.call(before=[interim] * 100)
    [response] = world.record().responses[call]
    assert (response.status, response.complete, response.reason) == (200, False, "dropped")
    assert response.head and 20 * 50_000 < sum(map(len, response.head)) < 1 << 20


def test_interim_responses_and_trailers_are_recorded(world: World) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    call = world.relay.call(before=[early], answer=[b"x"], trailers=b"X-Sum: 1\r\nX-Sum: 2\r\n")
    response = world.record().response(call)
    assert response.status == 200
    assert response.head and response.head[:3] == ["HTTP/1.1 103 Early Hints", "link: </a>", ""]
    assert response.trailers == {"X-Sum": ["1", "2"]}


def test_timings_start_at_the_complete_request_head(world: World) -> None:
    relay, start = world.relay, now()
    number = relay.begin(request_head())
    began = now()
    relay.put(RequestEnd(number, began + 1))
    relay.put(ResponseHead(number, began + 40_000_000, b"HTTP/1.1 204 No Content\r\n\r\n"))
    relay.put(CallEnd(number, began + 90_000_000))
    timing = world.record().response(relay.ids[number]).timing
    slack = (began - start) / 1e6
    assert timing.ttfb_ms and 40.0 <= timing.ttfb_ms <= 40.0 + slack
    assert timing.total_ms and 90.0 <= timing.total_ms <= 90.0 + slack


REASONS = ["connect_refused", "connect_timeout", "dns", "tls", "client_gone", "upstream_closed", "short_body"]


@pytest.mark.parametrize("reason", REASONS)
def test_a_call_without_a_response_gets_a_response_record_with_the_reason(world: World, reason: str) -> None:
    call = world.relay.call(status=b"", reason=reason)
    response = world.record().response(call)
    assert (response.status, response.headers, response.complete, response.reason) == (
        None,
        None,
        False,
        reason,
    )
    assert response.timing.ttfb_ms is None


# ---------------------------------------------------------------- where it goes


def test_calls_of_one_client_on_several_connections_form_one_session(world: World) -> None:
    relay, own = world.relay, b"x-claude-code-session-id: 0b1c2d3e"
    models = request_head(b"/v1/models", method=b"GET")
    first = relay.call(connection=1, path=b"/v1/models", head=models)
    head = request_head(PATH, own)
    said = {"role": "user", "content": "hi"}
    answered = {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}
    calls = [
        relay.call(
            connection=number,
            head=head,
            body=[json.dumps({"model": "m", "messages": [said, *[answered, said] * number]}).encode()],
            answer=[json.dumps({"type": "message", "stop_reason": "end_turn", **answered}).encode()],
        )
        for number in range(3)
    ]
    later = relay.call(connection=1, path=b"/v1/models", head=request_head(b"/v1/models", own, method=b"GET"))
    other = relay.call(connection=1, head=request_head(PATH, b"x-claude-code-session-id: other"), body=[ASKED])
    found = world.record()
    assert found.logs[first] == "anthropic/unattributed"
    assert len({found.logs[call] for call in [*calls, later]}) == 1
    assert found.logs[other] != found.logs[calls[0]]
    assert [found.request(call).seq for call in [*calls, later]] == [1, 2, 3, 4]
    assert [found.response(call).seq for call in [*calls, later]] == [1, 2, 3, 4]
    assert found.starts == {found.logs[calls[0]]: 1, found.logs[other]: 1}
    assert found.request(first).head  # the log does not say which upstream it was


TRACKED = [
    ("/v1/chat/completions", ASKED),
    ("/v1/responses", b'{"input":"hi"}'),
    ("/v1beta/models/g:generateContent", b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'),
    ("/v1/messages?beta=true", ASKED),
]


@pytest.mark.parametrize(("path", "body"), TRACKED)
def test_calls_to_a_model_start_a_session(world: World, path: str, body: bytes) -> None:
    call = world.relay.call(path=path.encode(), head=request_head(path.encode()), body=[body])
    found = world.record()
    assert not found.logs[call].endswith("unattributed")
    assert found.request(call).thread == found.request(call).kind == "main"


def test_a_refused_request_is_recorded_separately_without_its_secrets(world: World) -> None:
    head = b"GET /x/evil.example/?key=" + KEY + b" HTTP/1.1\r\nAuthorization: Bearer " + KEY + b"\r\n\r\n"
    data, masks = masked(world.spool, head, KEY)
    world.relay.put(Refusal(1, now(), "01a1dedc-0e1e-767a-8d46-6f18ca2d7135", 7, 403, "host not allowed", data, masks))
    found = world.record()
    (call,) = found.requests
    assert found.logs[call] == "./refused"
    assert (found.response(call).status, found.response(call).reason) == (403, "refused")
    assert found.request(call).path == "/x/evil.example/?key=sk-ant-...wxyz"
    assert not [path for path, data in every_byte_under(world.log_dir) if KEY in data]


def test_dropped_frames_mark_their_call_or_leave_a_gap(world: World) -> None:
    relay = world.relay
    number = relay.begin(request_head())
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 200 OK\r\n\r\n"))
    relay.put(Dropped(number, now(), 3, 3000))
    relay.put(ResponseData(number, now(), b"the end"))
    relay.put(CallEnd(number, now()))
    relay.put(Dropped(number + 1, now(), 5, 5000))
    relay.put(CallEnd(number + 1, now()))
    found = world.record()
    response = found.response(relay.ids[number])
    assert (response.complete, response.reason, response_bytes(response)) == (False, "dropped", b"the end")
    (gap,) = [it for it in found.others if isinstance(it, Gap)]
    assert gap.lost == 5


def test_open_calls_of_a_dead_relay_end_with_the_reason_relay_died(world: World) -> None:
    relay = world.relay
    asked = relay.begin(request_head())
    relay.put(RequestData(asked, now(), b"half"))
    answered = relay.begin(request_head())
    relay.put(RequestEnd(answered, now()))
    relay.put(ResponseHead(answered, now(), b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"))
    relay.put(ResponseData(answered, now(), b"data: a\n\n"))
    found = world.record()
    assert request_bytes(found.request(relay.ids[asked])) == b"half"
    responses = [found.response(relay.ids[number]) for number in (asked, answered)]
    assert [(it.status, it.complete, it.reason) for it in responses] == [
        (None, False, "relay_died"),
        (200, False, "relay_died"),
    ]
    assert response_chunks(responses[1]) == [b"data: a\n\n"]


# ---------------------------------------------------------------- secrets

OWN = b"zK8" * 12 + b"-own_credential"
KINDS = {
    "anthropic": b"sk-ant-api03-" + b"aB3-" * 12,
    "openai": b"sk-proj-" + b"aB3x" * 12,
    "github": b"ghp_" + b"aB3x" * 10,
    "google": b"AIza" + b"aB3x" * 9,
    "aws": b"AKIA" + b"ABCD1234" * 2,
    "slack": b"xoxb-" + b"1234567890-" * 3,
    "jwt": b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "bearer": b"Bearer " + b"aB3x5" * 6,
    "own": OWN,
}


def _compress(encoding: str, pieces: Sequence[bytes]) -> list[bytes]:
    match encoding:
        case "gzip":
            stream = zlib.compressobj(wbits=31)
            packed = [stream.compress(piece) + stream.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
            return [*packed, stream.flush()]
        case "br":
            return [brotli.compress(b"".join(pieces))]
        case "zstd":
            return [zstd.compress(b"".join(pieces))]
    return list(pieces)


@pytest.mark.parametrize("encoding", ["identity", "gzip", "br", "zstd"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_secret_is_anywhere_under_the_log_folder(world: World, kind: str, encoding: str) -> None:
    secret = KINDS[kind]
    hidden = secret.removeprefix(b"Bearer ")
    pieces = [
        b'data: {"text": "look: ' + secret[:9],
        secret[9:] + b' there"}\n\n',
        b"event: message_stop\ndata: {}\n\n",
    ]
    packed = _compress(encoding, pieces)
    body = _compress(encoding, [b"".join(pieces)])
    head = request_head(
        PATH + b"?key=" + OWN,
        b"Authorization: Bearer " + OWN,
        b"X-Note: " + secret,
        b"Content-Encoding: " + encoding.encode(),
    )
    fields = [b"content-encoding: " + encoding.encode(), b"x-echo: " + secret]
    calls = [
        world.relay.call(
            path=PATH + b"?key=" + OWN,
            head=head,
            body=body,
            answer=answer,
            fields=[kind_field, *fields],
            secrets=[OWN],
        )
        for kind_field, answer in (
            (b"content-type: text/event-stream", packed),
            (b"content-type: application/json", body),
        )
    ]
    found = world.record()
    for path, data in every_byte_under(world.log_dir):
        assert hidden not in data, path
        assert base64.b64encode(hidden)[4:-4] not in data, path
    for call in calls:
        request, response = found.request(call), found.response(call)
        assert request.body_hmac == world.hmac(b"".join(body))
        assert response.body_hmac in (world.hmac(b"".join(packed)), world.hmac(b"".join(body)))
        assert request.recoded == response.recoded == (encoding != "identity")
        assert b"there" in request_bytes(request) and b"there" in response_bytes(response)
        assert response.complete
        if response.recoded:
            assert response.original and response.original.hmac == response.body_hmac
        assert {"path", "headers.authorization"} <= {it.place for it in request.redactions or []}


def test_a_compressed_body_without_secrets_is_stored_unchanged(world: World) -> None:
    packed = gzip.compress(b"nothing to see")
    call = world.relay.call(answer=[packed], fields=[b"content-encoding: gzip"])
    response = world.record().response(call)
    assert response_bytes(response) == packed
    assert (response.recoded, response.body_encoding) == (False, "base64")


def test_unknown_credential_values_are_shown_as_redacted(world: World) -> None:
    """Both processes died: nobody knows the values any more."""
    head = request_head(PATH + b"?key=" + KEY, b"x-api-key: " + KEY)
    call = world.relay.call(path=PATH + b"?key=" + KEY, head=head, body=[b"echo " + KEY])
    world.spool.close()
    record(world.log_dir, world.home)
    request = logged(world.log_dir).request(call)
    assert request.body == "echo [redacted]"
    assert request.path == "/v1/messages?key=[redacted]"
    assert request.headers["x-api-key"] == "[redacted]"
    assert request.body_hmac is None


# ---------------------------------------------------------------- WebSocket


def test_each_websocket_message_with_its_answer_is_one_call(world: World) -> None:
    relay = world.relay
    head = request_head(b"/v1/responses", b"Upgrade: websocket", b"Authorization: Bearer " + OWN, method=b"GET")
    number = relay.begin(head, path=b"/v1/responses", websocket=True, secrets=[OWN])
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"))
    for turn in range(3):
        asked = b'{"type":"response.create","turn":%d,"key":"%b"}' % (turn, OWN)
        relay.put(TunnelData(number, now(), websocket_frame(asked, mask=b"abcd"), from_client=True))
        for event in (b'{"type":"response.created"}', b'{"type":"response.completed","n":%d}' % turn):
            relay.put(TunnelData(number, now(), websocket_frame(event), from_client=False))
    relay.put(TunnelData(number, now(), websocket_frame(b'{"type":"response.create"}', mask=b"abcd"), from_client=True))
    relay.put(TunnelData(number, now(), websocket_frame(b'{"type":"response.created"}')[:9], from_client=False))
    relay.put(CallEnd(number, now(), "client_gone"))
    found = world.record()
    upgrade = relay.ids[number]
    calls = [call for call in found.requests if call != upgrade]
    assert len(calls) == 4
    assert {found.request(call).transport for call in found.requests} == {"websocket"}
    assert len(set(found.logs.values())) == 1
    for turn, call in enumerate(calls[:3]):
        assert request_bytes(found.request(call)) == b'{"type":"response.create","turn":%d,"key":"[redacted]"}' % turn
        assert response_chunks(found.response(call))[1] == b'{"type":"response.completed","n":%d}' % turn
        assert (found.response(call).status, found.response(call).complete) == (101, True)
    last = found.response(calls[3])
    assert (last.complete, last.reason) == (False, "client_gone")
    assert response_chunks(last) == [b'{"type"'[:7]]
    assert found.response(upgrade).reason == "client_gone"
    assert not [path for path, data in every_byte_under(world.log_dir) if OWN in data]
    assert sorted(found.request(call).seq for call in found.requests) == [1, 2, 3, 4, 5]
    assert all(found.request(call).seq == found.response(call).seq for call in found.requests)


def test_a_retry_after_a_websocket_error_stays_in_the_same_log(world: World) -> None:
    relay = world.relay
    head = request_head(b"/v1/responses", b"Upgrade: websocket", b"session-id: s", method=b"GET")
    number = relay.begin(head, path=b"/v1/responses", websocket=True, provider="openai")
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"))
    asked = b'{"type":"response.create","tools":[{"name":"t"}],"input":[{"role":"user","content":"x"}]}'
    for event in (b'{"type":"error","status":500,"error":{"message":"m"}}', b'{"type":"response.completed"}'):
        relay.put(TunnelData(number, now(), websocket_frame(asked, mask=b"abcd"), from_client=True))
        relay.put(TunnelData(number, now(), websocket_frame(event), from_client=False))
    relay.put(CallEnd(number, now(), "client_gone"))
    found = world.record()
    first, again = [call for call in found.requests if call != relay.ids[number]]
    assert (found.response(first).complete, found.response(first).reason) == (False, "no_stream_end")
    assert found.response(again).complete
    assert found.request(again).retry_of == found.request(first).seq
    assert len(set(found.logs.values())) == 1


@pytest.mark.parametrize("extensions", [b"", b"sec-websocket-extensions: permessage-deflate\r\n"])
def test_invalid_websocket_frames_are_stored_only_if_they_can_be_searched(world: World, extensions: bytes) -> None:
    relay = world.relay
    head = request_head(b"/v1/responses", b"Authorization: Bearer " + OWN, method=b"GET")
    number = relay.begin(head, path=b"/v1/responses", websocket=True, secrets=[OWN])
    relay.put(RequestEnd(number, now()))
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n" + extensions + b"\r\n"
    relay.put(ResponseHead(number, now(), upgrade))
    mask = b"abcd"
    for payload in (b"odd " + OWN, b"more " + KINDS["github"]):
        odd = websocket_frame(payload, mask=mask, opcode=3)
        relay.put(TunnelData(number, now(), odd, from_client=True))
        answer = b"\xb1" + websocket_frame(payload)[1:]  # all reserved bits
        data, masks = masked(world.spool, answer, OWN)
        relay.put(TunnelData(number, now(), data, from_client=False, masked=masks))
    relay.put(CallEnd(number, now()))
    found = world.record()
    asked = [request_bytes(it) for (it,) in found.requests.values()]
    assert asked == [b"", b"[redacted]", b"[redacted]"]
    chunks = [chunk for (it,) in found.responses.values() for chunk in response_chunks(it)]
    if extensions:
        assert chunks == [b"[redacted]"] * 2
    else:
        assert [b"odd [redacted]" in chunks[0], b"more ghp_...aB3x" in chunks[1]] == [True, True]
    xored = bytes(byte ^ mask[index % 4] for index, byte in enumerate(b"odd " + OWN))
    for path, data in every_byte_under(world.log_dir):
        assert OWN not in data and KINDS["github"] not in data, path
        assert xored[4:] not in data and base64.b64encode(xored)[8:-4] not in data, path


# ---------------------------------------------------------------- large bodies


def _large(total: int, secret: bytes, every: int) -> Iterator[bytes]:
    """Pieces of 64 KB with a secret in each `every`th border between two of them."""
    piece = (b"the quick brown fox jumps over the lazy dog. " * 1500)[: 64 << 10]
    secret = b" %b " % secret
    for index in range(total // len(piece)):
        if index % every == 0:
            yield piece[: -len(secret) // 2] + secret[: len(secret) // 2]
        elif index % every == 1:
            yield secret[len(secret) // 2 :] + piece[len(secret) // 2 :]
        else:
            yield piece


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_body_over_8_mb_is_redacted_while_written_to_a_file(world: World, stream: bool, encoding: str) -> None:
    secret = KINDS["github"]
    pieces = list(_large(20 << 20, secret, 7))
    if encoding == "gzip":
        pack = zlib.compressobj(level=0, wbits=31)
        packed = [pack.compress(piece) + pack.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
        packed[-1] += pack.flush()
    else:
        packed = pieces
    content = b"text/event-stream" if stream else b"application/json"
    fields = [b"content-type: " + content, b"content-encoding: " + encoding.encode()]
    head = request_head(b"/v1/files", b"content-encoding: " + encoding.encode())
    call = world.relay.call(path=b"/v1/files", head=head, body=packed, answer=packed, fields=fields)
    found = world.record()
    request, response = found.request(call), found.response(call)
    whole = b"".join(packed)
    expected = b"".join(pieces).replace(secret, b"ghp_...aB3x")
    assert request.bytes == response.bytes == len(whole)
    assert request.body_hmac == response.body_hmac == world.hmac(whole)
    assert request_bytes(request) == response_bytes(response) == expected
    assert len(response.chunks or []) == (len(pieces) if stream else 0)
    assert request.recoded == response.recoded == (encoding == "gzip")
    original = b"".join(pieces)
    for redaction in request.redactions or []:
        assert original[redaction.offset : redaction.offset + redaction.length] == secret
    assert len(request.redactions or []) == original.count(secret)
    for path, data in every_byte_under(world.log_dir):
        assert secret not in data, path
    assert not list(spool_folder(world.log_dir).glob("*.body"))


def test_a_body_of_300_mb_is_recorded_in_bounded_memory(tmp_path: Path) -> None:
    log_dir, home = tmp_path / "logs", tmp_path / "home"
    spool = Spool(spool_folder(log_dir), disk_bytes=1 << 30)
    relay = Relay(spool)
    number = relay.begin(request_head(b"/v1/files"), path=b"/v1/files")
    for piece in _large(300 << 20, KINDS["github"], 50):
        relay.put(RequestData(number, now(), piece))
        while spool.status().waiting_bytes > 16 << 20:
            time.sleep(0.005)
    relay.put(RequestEnd(number, now()))
    relay.put(CallEnd(number, now(), "client_gone"))
    assert spool.close(100)
    tracemalloc.start()
    try:
        record(log_dir, home)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20, f"{peak:,}"
    (body,) = (log_dir / "anthropic").rglob("*.bodies/*")
    assert body.stat().st_size > 290 << 20


# ---------------------------------------------------------------- a disk that fails


def test_recording_recovers_from_a_full_disk_without_loss_or_restart(
    tmp_path: Path, small_disk: Path, request: pytest.FixtureRequest
) -> None:
    log_dir = tmp_path / "logs"
    (log_dir / ".spool").mkdir(parents=True)
    (log_dir / "anthropic").mkdir()
    subprocess.run(["mount", "--move", str(small_disk), str(log_dir / "anthropic")], check=True)
    request.addfinalizer(
        lambda: subprocess.run(["mount", "--move", str(log_dir / "anthropic"), str(small_disk)], check=True)
    )
    ballast = log_dir / "anthropic" / "ballast"
    ballast.write_bytes(bytes(3500 << 10))
    spool = Spool(spool_folder(log_dir))
    relay = Relay(spool)
    recorder = Recorder(log_dir, tmp_path / "home")
    calls = [relay.call(body=[b"x" * 40_000], answer=[b"y" * 40_000], secrets=()) for _ in range(10)]
    state = spool_folder(log_dir) / "recorder.json"
    give_up = time.monotonic() + 60
    while not (state.exists() and b"No space" in state.read_bytes()):
        assert time.monotonic() < give_up, state.read_bytes()
        time.sleep(0.05)
    assert b'"degraded_since":"20' in state.read_bytes()
    pid = recorder.pid
    ballast.unlink()
    calls += [relay.call(body=[b"x" * 400], secrets=()) for _ in range(10)]
    assert spool.close()
    assert recorder.stop(60)
    assert (recorder.starts, recorder.pid) == (1, None)
    assert pid
    found = logged(log_dir)
    assert all(len(found.requests[call]) == len(found.responses[call]) == 1 for call in calls)
    assert found.others == []
    assert b'"degraded_since":null' in state.read_bytes()


# ---------------------------------------------------------------- the process


def test_a_dead_recorder_is_replaced_and_gets_all_credentials_again(tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    recorder = Recorder(log_dir, tmp_path / "home")
    spool = Spool(spool_folder(log_dir), send_credential=recorder.send)
    relay = Relay(spool)
    calls = [relay.call(body=[b"echo " + KEY])]
    for _ in range(2):
        give_up = time.monotonic() + 60
        while not (pid := recorder.pid):
            assert time.monotonic() < give_up
            time.sleep(0.02)
        time.sleep(0.3)
        starts = recorder.starts
        os.kill(pid, signal.SIGKILL)
        calls.append(relay.call(body=[b"echo " + KEY]))
        while recorder.starts == starts:
            assert time.monotonic() < give_up
            time.sleep(0.02)
    assert spool.close()
    assert recorder.stop(60)
    assert recorder.starts == 3
    found = logged(log_dir)
    key = install_key(tmp_path / "home")
    expected = "v1:" + hmac.digest(key, b"echo " + KEY, "sha256").hex()
    assert [found.request(call).body_hmac for call in calls] == [expected] * 3
    assert [found.request(call).seq for call in calls] == [1, 2, 3]
    assert not [path for path, data in every_byte_under(log_dir) if KEY in data]


def test_the_last_calls_are_shown_before_the_recorder_stops(tmp_path: Path) -> None:
    shown: list[CallLine] = []

    def slowly(line: CallLine) -> None:
        time.sleep(0.1)
        shown.append(line)

    recorder = Recorder(tmp_path / "logs", tmp_path / "home", show=slowly, shows_all=True)
    spool = Spool(spool_folder(tmp_path / "logs"), send_credential=recorder.send)
    relay = Relay(spool)
    for _ in range(5):
        relay.call()
    assert spool.close()
    assert recorder.stop(60)
    assert len(shown) == 5


def test_a_recorder_finishes_the_spool_after_its_proxy_was_killed(tmp_path: Path) -> None:
    """The pipe ends, the relay is gone: what is on the spool is recorded all the same."""
    log_dir = tmp_path / "logs"
    spool = Spool(spool_folder(log_dir))
    call = Relay(spool).call(secrets=())
    argv = [
        sys.executable,
        "-m",
        "agent_logger.proxy.recorder",
        str(log_dir),
        str(tmp_path / "home"),
    ]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE)
    assert child.stdin
    spool.close()
    child.stdin.close()
    assert child.wait(30) == 0
    assert logged(log_dir).response(call).complete


# ---------------------------------------------------------------- the folder


def test_the_log_folder_is_registered_once_in_the_home_folder(world: World) -> None:
    world.relay.call()
    world.record()
    record(world.log_dir, world.home)
    facts = (world.home / "facts.jsonl").read_text().splitlines()
    assert len(facts) == 1
    assert str(world.log_dir) in facts[0]


def test_a_recorded_spool_leaves_no_segments(world: World) -> None:
    for _ in range(5):
        world.relay.call(body=[b"x" * 1000])
    world.record()
    left = {path.name for path in spool_folder(world.log_dir).iterdir()}
    assert left == {".gitignore", "position.json", "recorder.json", "recorder.lock", "touched.jsonl"}
    modes = {oct(path.stat().st_mode & 0o777) for path, _ in every_byte_under(world.log_dir)}
    assert modes == {"0o600"}


def test_calls_after_the_log_folder_was_moved_are_logged_once_in_the_new_folder(world: World) -> None:
    """The old one's recorder leaves it alone from the first frame on: what that wrote were gone, or there twice."""
    away = world.log_dir.with_name("away")
    before = world.relay.call()
    ours, theirs = pipe_with(world.credentials, keep_open=True)
    ended: list[int] = []
    child = RecorderChild(world.log_dir, world.home, pipe=ours)
    running = threading.Thread(target=lambda: ended.append(child.run()))
    running.start()
    try:
        wait_until(lambda: before in logged(world.log_dir).responses)
        world.log_dir.rename(away)
        calls = [world.relay.call(body=[b"%d" % number]) for number in range(3)]
        running.join(30)
    finally:
        os.close(theirs)
        running.join(30)
        os.close(ours)
    assert ended == [1], "another is to be started"
    found = world.record()
    assert [request_bytes(found.request(call)) for call in calls] == [b"0", b"1", b"2"]
    assert set(logged(away).requests) == {before}


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_folder_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        world = World(tmp_path)
        world.relay.call()
        world.record()
    finally:
        os.umask(before)
    folders = [world.log_dir, *(path for path in world.log_dir.rglob("*") if path.is_dir())]
    assert {oct(path.stat().st_mode & 0o777) for path in folders} == {"0o700"}


def test_an_invalid_frame_affects_only_its_own_call(world: World, caplog: pytest.LogCaptureFixture) -> None:
    relay = world.relay
    good = relay.call()
    number = relay.begin(b"", path=b"/x")
    relay.ids[number] = "not a uuid"
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"\xff\xfe"))
    relay.put(CallEnd(number, now()))
    after = relay.call()
    found = world.record()
    assert found.response(good).complete and found.response(after).complete


def test_due_logs_are_sealed_and_open_logs_are_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "SEAL_FIRST_SECONDS", 1.5)
    old = world.relay.call(body=[ASKED.replace(b"hi", b"old")])
    logs = world.record().logs
    (world.log_dir / "anthropic" / "note.txt").write_text("not ours")
    done = world.log_dir / f"{logs[old]}.jsonl"
    os.utime(done, times=(time.time() - 90_000,) * 2)
    size = done.stat().st_size

    spool = Spool(spool_folder(world.log_dir), send_credential=world.credentials.append)
    relay = Relay(spool)
    calls = [relay.call(body=[ASKED], status=b"HTTP/1.1 529 Overloaded")]  # so that the next is a retry
    ours, theirs = pipe_with(world.credentials, keep_open=True)
    child = RecorderChild(world.log_dir, world.home, pipe=ours, seal_after_seconds=0.5)
    running = threading.Thread(target=child.run)
    running.start()
    try:
        wait_until(done.with_name(f"{done.name}.zst").exists)
        wait_until(lambda: not done.exists())
        calls.append(relay.call(body=[ASKED]))
        spool.close()
    finally:
        os.close(theirs)
        running.join(30)
        os.close(ours)
    found = logged(world.log_dir)
    assert request_bytes(found.request(old)) == ASKED.replace(b"hi", b"old")
    assert [request_bytes(found.request(call)) for call in calls] == [ASKED, ASKED]
    assert {found.logs[call] for call in calls} == {found.logs[calls[0]]}
    assert len(list((world.log_dir / "anthropic").glob("2*.jsonl"))) == 1
    assert [path.name for path in (world.log_dir / "anthropic").glob("*.zst")] == [f"{done.name}.zst"]
    assert done.with_name(f"{done.name}.zst").stat().st_size < size


@pytest.mark.parametrize("ends", [False, True], ids=["while it records", "when it ends"])
def test_full_parts_are_sealed(world: World, monkeypatch: pytest.MonkeyPatch, *, ends: bool) -> None:
    monkeypatch.setattr(sealing, "FULL_SECONDS", 600.0 if ends else 1.0)
    monkeypatch.setattr(sealing, "FINISH_SECONDS", 60.0 if ends else 0.0)
    folder = world.log_dir / "anthropic"
    spool = Spool(spool_folder(world.log_dir), send_credential=world.credentials.append, memory_bytes=1 << 28)
    relay = Relay(spool)
    bodies = [ASKED.replace(b"hi", b"%d " % number * 200_000) for number in range(100, 160)]
    ours, theirs = pipe_with(world.credentials, keep_open=True)
    child = RecorderChild(world.log_dir, world.home, pipe=ours)
    running = threading.Thread(target=child.run)
    running.start()
    try:
        head = request_head(PATH, b"x-claude-code-session-id: 0b1c2d3e")
        calls = [relay.call(head=head, body=[body]) for body in bodies]
        spool.close()
        if not ends:
            wait_until(lambda: len(list(folder.glob("*.zst"))) >= 2 and len(list(folder.glob("2*.jsonl"))) == 1)
    finally:
        os.close(theirs)
        running.join(30)
        os.close(ours)
    assert len(list(folder.glob("*.zst"))) >= 2 and len(list(folder.glob("2*.jsonl"))) == 1
    found = logged(world.log_dir)
    other = [call for call, body in zip(calls, bodies, strict=True) if request_bytes(found.request(call)) != body]
    assert other == []  # 60 bodies of 800 KB are not shown


def failing(monkeypatch: pytest.MonkeyPatch, method: str, bad: str) -> None:
    """As if we had a bug that one call meets."""
    works = getattr(RecordedCall, method)

    def fails(self: RecordedCall, *arguments: object, **named: object) -> object:
        if self.id == bad:
            raise ZeroDivisionError("a bug")
        return works(self, *arguments, **named)

    monkeypatch.setattr(RecordedCall, method, fails)


@pytest.mark.parametrize("end", ["ended", "relay died"])
@pytest.mark.parametrize("method", ["request_record", "response_head", "response_data", "response_record"])
def test_a_call_that_fails_to_be_recorded_is_counted_and_marked(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, method: str, end: str
) -> None:
    relay = world.relay
    before = relay.call()
    number = relay.begin(request_head())
    bad = relay.ids[number]
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 200 OK\r\n\r\n"))
    relay.put(ResponseData(number, now(), b"hello"))
    if end == "ended":
        relay.put(CallEnd(number, now()))
    other = relay.call()
    failing(monkeypatch, method, bad)
    found = world.record()
    assert found.response(before).complete and found.response(other).complete
    gaps = [it for it in found.others if isinstance(it, Gap)]
    if method == "request_record":
        assert bad not in found.requests
        assert [(gap.lost, bad in gap.reason) for gap in gaps] == [(1, True)]
    else:
        response = found.response(bad)
        assert (response.status, response.complete, response.reason) == (None, False, "dropped")
        assert response.seq == found.request(bad).seq
        assert gaps == []
    assert b'"lost":1,' in (spool_folder(world.log_dir) / "recorder.json").read_bytes()
    assert "a bug" in caplog.text


def test_a_recording_failure_on_a_websocket_leaves_no_request_without_a_response(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    relay = world.relay
    number = relay.begin(request_head(method=b"GET"), websocket=True)
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"))
    relay.put(TunnelData(number, now(), websocket_frame(b"one", mask=b"abcd"), from_client=True))
    relay.put(TunnelData(number, now(), websocket_frame(b"answer"), from_client=False))
    monkeypatch.setattr(RecordedCall, "response_data", lambda *_, **__: 1 / 0)
    found = world.record()
    assert len(found.requests) == len(found.responses) == 2
    assert {response.reason for (response,) in found.responses.values()} == {"dropped"}
    assert "ZeroDivisionError" in caplog.text
