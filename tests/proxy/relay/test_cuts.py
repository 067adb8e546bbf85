"""An upstream that breaks off is a break for the client, and the frames hold what it got."""

import gzip
import time
from collections.abc import Iterator

import pytest

from agent_logger.proxy.spool import frames
from tests.proxy.wires import Running, Upstream, Wire, relaying

DOORS = ("base-url", "forward")
TEXT = "".join(f'data: {{"text":"Grüße, 世界 {number}"}}\n\n' for number in range(40)).encode()
ENCODINGS = {"plain": TEXT, "gzip": gzip.compress(TEXT, mtime=0)}
HEADS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n",
    "chunked": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    "close": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
}
POINTS = range(12)


def answer(framing: str, body: bytes) -> tuple[bytes, int]:
    """The whole response, and the length of its head."""
    if framing == "chunked":
        pieces = [body[at : at + 37] for at in range(0, len(body), 37)]
        raw = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        return HEADS[framing] + raw, len(HEADS[framing])
    head = HEADS[framing] % len(body) if framing == "length" else HEADS[framing]
    return head + body, len(head)


def place(point: int, whole: bytes, head: int) -> int:
    """Where to cut: before and in the head, at its end, in sizes, in characters, at the very end."""
    body = len(whole) - head
    fixed = [0, 7, head // 2, head - 2, head, head + 1, head + 2, head + 4, head + 18]
    return [*fixed, head + body // 3, head + body * 2 // 3, len(whole) - 1][point]


@pytest.fixture(scope="module")
def stage(door: str) -> Iterator[tuple[Running, Upstream, list[tuple[bytes, str]]]]:
    script: list[tuple[bytes, str]] = []

    def play(wire: Wire) -> None:
        wire.message()
        data, how = script[-1]
        wire.send(data)
        time.sleep(0.01)  # a reset may overtake what was sent before it
        wire.reset() if how == "reset" else wire.close()

    with Upstream(play) as upstream, relaying(upstream.origin) as relay:
        yield relay, upstream, script


def expected_reason(framing: str, how: str, *, in_head: bool) -> str:
    if how == "reset":
        return "upstream_reset"
    return "upstream_closed" if in_head or framing == "chunked" else "short_body"


def delivered(framing: str, sent: bytes, head: int) -> tuple[bytes, bytes]:
    """What the client must have of what was sent, and the payload in it: whole lines, and data as it came."""
    if len(sent) < head:
        return b"", b""
    if framing != "chunked":
        return sent, sent[head:]
    at, payload = head, b""
    while (end := sent.find(b"\r\n", at)) >= 0:
        size = int(sent[at:end], 16)
        data = sent[end + 2 : end + 2 + size]
        payload += data
        after = end + 2 + size + 2
        if not size:
            return sent[: end + 2], payload
        if after > len(sent):
            # A lone CR after the data is half a line.
            return sent[: min(len(sent), after - 2)], payload
        at = after
    return sent[:at], payload


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("framing", "how"),
    [
        ("length", "close"),
        ("length", "reset"),
        ("chunked", "close"),
        ("chunked", "reset"),
        ("close", "reset"),
    ],
)
def test_an_upstream_cut_is_passed_to_the_client_and_recorded(
    stage: tuple[Running, Upstream, list[tuple[bytes, str]]],
    framing: str,
    how: str,
    encoding: str,
    point: int,
) -> None:
    relay, upstream, script = stage
    whole, head = answer(framing, ENCODINGS[encoding])
    sent = whole[: place(point, whole, head)]
    script.append((sent, how))
    relay.tap.frames.clear()
    with relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        end = client.end()
    got, payload = delivered(framing, sent, head)
    assert client.read == got
    assert end == {"close": "closed", "reset": "reset"}[how]
    assert relay.tap.reason() == expected_reason(framing, how, in_head=len(sent) < head)
    assert relay.tap.response_body() == payload
    assert len(relay.tap.of(frames.ResponseHead)) == (len(sent) >= head)


def test_a_body_ended_by_connection_close_is_complete(
    stage: tuple[Running, Upstream, list[tuple[bytes, str]]],
) -> None:
    relay, upstream, script = stage
    whole, _ = answer("close", TEXT)
    script.append((whole, "close"))
    relay.tap.frames.clear()
    with relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        assert client.rest() == whole
    assert relay.tap.reason() is None


BAD = [
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", b"", id="two lengths"),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx", b"", id="signed length"),
    pytest.param(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"", id="both"
    ),
    pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", b"", id="other coding"),
    pytest.param(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"", id="chunked in 1.0"),
    pytest.param(b"HTTP/1.1 200 OK\nContent-Length: 1\n\nx", b"", id="bare LF"),
    pytest.param(b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", b"", id="folded"),
    pytest.param(b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", b"", id="space before colon"),
    pytest.param(b"HTTP/2 200 OK\r\n\r\n", b"", id="version"),
    pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", b"", id="not http"),
    pytest.param(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n", b"", id="101 unasked"),
    pytest.param(b"HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 1\r\n\r\nx", b"", id="named"),
    pytest.param(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2\nno\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        id="bad chunk after a good one",
    ),
    pytest.param(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokXX",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok",
        id="no CRLF after a chunk",
    ),
    pytest.param(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        id="more than its length",
    ),
    pytest.param(
        b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n",
        id="204 with a body",
    ),
    pytest.param(b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70000 + b"\r\n\r\n", b"", id="head too long"),
]


@pytest.mark.parametrize(("sent", "got"), BAD)
def test_a_response_with_bad_framing_is_cut_and_its_connection_is_not_reused(sent: bytes, got: bytes) -> None:
    def play(wire: Wire) -> None:
        wire.message()
        wire.send(sent)
        wire.end()

    with Upstream(play) as upstream, relaying(upstream.origin) as relay:
        with relay.client() as client:
            client.send(relay.request(upstream.path(), b"{}"))
            client.end()
            assert client.read == got
        assert relay.tap.reason() == "bad_framing"
        with relay.client() as client:
            client.send(relay.request(upstream.path(), b"{}"))
            client.end()
    assert len(upstream.wires) == 2
