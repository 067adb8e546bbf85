"""What a client and an upstream see of each other through the relay."""

import contextlib
import threading
import time

import pytest

from agent_logger.proxy.spool import frames
from tests.proxy.wires import KEY, Upstream, Wire, answering, relaying, response, wait_for
from tests.pulse import Pulse

DOORS = ("base-url", "forward")


def test_a_call_is_forwarded_and_framed_in_order() -> None:
    body = b'{"model":"m"}'
    with Upstream(answering(response(b"fine"))) as upstream, relaying(upstream.origin) as relay:
        with relay.client() as client:
            client.send(relay.request(upstream.path(), body, headers=b"x-api-key: " + KEY + b"\r\n"))
            assert client.message() == response(b"fine")
        kinds = [type(frame) for frame in relay.tap.frames]
    assert kinds == [
        frames.RequestHeadFrame,
        frames.RequestData,
        frames.RequestEnd,
        frames.ResponseHead,
        frames.ResponseData,
        frames.CallEnd,
    ]
    [begun] = relay.tap.of(frames.RequestHeadFrame)
    assert (begun.provider, begun.upstream, begun.path) == (
        "anthropic",
        relay.upstream_host(upstream).decode(),
        b"/v1/messages",
    )
    assert KEY not in begun.head
    assert relay.tap.filled(begun.head, begun.masked).endswith(b"x-api-key: " + KEY + b"\r\nContent-Length: 13\r\n\r\n")
    assert relay.tap.request_body() == body
    assert relay.tap.reason() is None


REPORTED = (frames.RequestEnd, frames.ResponseData)


def test_an_answer_is_reported_before_the_request_that_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client continues at the last event, before the body has ended and before its frames are due."""
    monkeypatch.setattr("agent_logger.proxy.relay.call.FRAMING_SECONDS", 60)

    def play(wire: Wire) -> None:
        wire.message()
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nlast\r\n")
        with contextlib.suppress(EOFError, ConnectionError):
            wire.more()

    with (
        Upstream(play) as upstream,
        relaying(upstream.origin) as relay,
        relay.client() as first,
        relay.client() as second,
    ):
        for client in (first, second):
            client.send(relay.request(upstream.path(), b"{}"))
            client.until(b"last")
        relay.tap.wait(frames.RequestEnd, 2)
        calls = [(type(frame), frame.call) for frame in relay.tap.frames if isinstance(frame, REPORTED)]
    assert calls.index((frames.ResponseData, 1)) < calls.index((frames.RequestEnd, 2))


def test_calls_on_one_connection_share_an_upstream_connection() -> None:
    with (
        Upstream(answering(response())) as upstream,
        relaying(upstream.origin) as relay,
        relay.client() as client,
    ):
        for _ in range(3):
            client.send(relay.request(upstream.path(), b"{}"))
            client.message()
        assert len(upstream.wires) == 1


def test_an_idle_upstream_connection_is_reused_by_the_next_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_logger.proxy.relay.upstream._POOLED_SECONDS", 60)
    with Upstream(answering(response())) as upstream, relaying(upstream.origin) as relay:
        for _ in range(3):
            with relay.client() as client:
                client.send(relay.request(upstream.path(), b"{}"))
                client.message()
            wait_for(relay, lambda: not relay.relay.clients)
        assert len(upstream.wires) == 1


def test_pipelined_requests_are_answered_in_order() -> None:
    def play(wire: Wire) -> None:
        for _ in range(3):
            head = wire.head()
            wire.send(response(head.split(b" ")[1]))
            time.sleep(0.01)

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        paths = [upstream.path(f"/{name}") for name in "abc"]
        client.send(b"".join(relay.request(path, method=b"GET") for path in paths))
        assert [client.message() for _ in paths] == [response(name) for name in (b"/a", b"/b", b"/c")]


def test_a_client_that_half_closes_still_gets_its_response() -> None:
    def play(wire: Wire) -> None:
        wire.message()
        time.sleep(0.7)
        wire.send(response(b"late"))

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        client.half_close()
        assert client.rest() == response(b"late")
        assert relay.tap.reason() is None


@pytest.mark.alone
@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_disconnect_before_the_response_ends_the_upstream_call(leave: str) -> None:
    ended: list[float] = []

    def play(wire: Wire) -> None:
        wire.message()
        wire.end()
        ended.append(pulse.now())

    with Pulse() as pulse, Upstream(play) as upstream, relaying(upstream.origin) as relay:
        client = relay.client()
        client.send(relay.request(upstream.path(), b"{}"))
        relay.tap.wait(frames.RequestEnd)
        time.sleep(0.05)
        left = pulse.now()
        getattr(client, leave)()
        assert relay.tap.reason() == "client_gone"
    assert ended[0] - left < 0.5


def test_interim_responses_come_from_the_upstream() -> None:
    def play(wire: Wire) -> None:
        head = wire.head()
        assert b"Expect: 100-continue\r\n" in head
        time.sleep(0.1)
        wire.send(b"HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n")
        assert wire.body(head) == b"12345"
        wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response())

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        whole = relay.request(upstream.path(), b"12345", headers=b"Expect: 100-continue\r\n")
        client.send(whole[:-5])
        assert client.head() == b"HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n"
        client.send(whole[-5:])
        assert client.head() == b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        assert client.message() == response()
        assert [head.head[9:12] for head in relay.tap.of(frames.ResponseHead)] == [b"100", b"103", b"200"]


def test_an_upstream_that_closes_an_idle_connection_closes_the_client_connection() -> None:
    def play(wire: Wire) -> None:
        wire.message()
        wire.send(response())
        wire.close()

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        assert client.message() == response()
        assert client.end() == "closed"


def test_an_upstream_that_closes_on_connect_closes_the_client_connection() -> None:
    with Upstream(Wire.close) as upstream, relaying(upstream.origin) as relay:
        for number in range(1, 41):
            with relay.client(2) as client:
                client.send(relay.request(upstream.path(), b"{}"))
                assert client.end() in ("closed", "reset")
                assert client.read == b""
            assert relay.tap.reason(number) in ("upstream_closed", "upstream_reset")


@pytest.mark.door("base-url")
def test_a_refused_upstream_connection_gets_status_502() -> None:
    with Upstream(answering(b"")) as upstream:
        pass
    with relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        answer = client.rest()
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"\r\nx-agent-logger-error: upstream\r\n" in answer
        assert relay.tap.reason() == "connect_refused"


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_response_sent_before_the_request_ended_arrives_complete(leave: str) -> None:
    """413 and goodbye, while the client is still uploading."""
    refusal = response(b"too big", b"413 Content Too Large", b"Connection: close\r\n")

    def play(wire: Wire) -> None:
        wire.head()
        wire.send(refusal)
        time.sleep(0.05)
        getattr(wire, leave)()

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path()).replace(b"Length: 0", b"Length: 1000000") + b"x" * 1000)
        assert client.message() == refusal.replace(b"Connection: close\r\n", b"")
        assert client.end() == "closed"
        assert relay.tap.reason() in ("upstream_closed", "upstream_reset")


def test_a_response_sent_before_the_request_ended_does_not_end_the_call() -> None:
    def play(wire: Wire) -> None:
        head = wire.head()
        wire.send(response(b"early"))
        assert wire.body(head) == b"x" * 1000

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        request = relay.request(upstream.path(), b"x" * 1000)
        client.send(request[:-900])
        assert client.message() == response(b"early")
        client.send(request[-900:])
        assert relay.tap.reason() is None
        assert relay.tap.request_body() == b"x" * 1000


def test_a_client_disconnect_during_a_stalled_upload_is_noticed() -> None:
    ended = threading.Event()

    def play(wire: Wire) -> None:
        wire.head()
        assert ended.wait(60)

    with Upstream(play) as upstream, relaying(upstream.origin) as relay:
        client = relay.client()
        client.send(relay.request(upstream.path()).replace(b"Length: 0", b"Length: 100000000"))
        client.sock.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            client.send(bytes(50_000_000))
        client.close()
        left = time.monotonic()
        assert relay.tap.reason() == "client_gone"
        assert time.monotonic() - left < 5
        ended.set()


@pytest.mark.parametrize(
    ("version", "header", "stays"),
    [(b"1.1", b"", True), (b"1.1", b"Connection: close\r\n", False), (b"1.0", b"", False)],
)
def test_the_request_determines_whether_the_client_connection_stays_open(
    version: bytes, header: bytes, stays: bool
) -> None:
    with (
        Upstream(answering(response())) as upstream,
        relaying(upstream.origin) as relay,
        relay.client() as client,
    ):
        request = relay.request(upstream.path(), b"{}", headers=header).replace(b"HTTP/1.1", b"HTTP/" + version, 1)
        client.send(request)
        assert client.message() == response()
        if stays:
            client.send(request)
            assert client.message() == response()
        else:
            assert client.end() == "closed"
        assert b" HTTP/" + version + b"\r\n" in upstream.wires[0].read


def test_an_http_1_0_response_closes_the_client_connection() -> None:
    old = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with Upstream(answering(old)) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        assert client.rest() == old
        assert relay.tap.reason() is None


@pytest.mark.door("base-url")
def test_one_client_connection_may_call_several_upstreams() -> None:
    with (
        Upstream(answering(response(b"one"))) as one,
        Upstream(answering(response(b"two"))) as two,
        relaying(one.origin, two.origin) as relay,
        relay.client() as client,
    ):
        for upstream, body in [(one, b"one"), (two, b"two"), (one, b"one")]:
            client.send(relay.request(upstream.path(), b"{}"))
            assert client.message() == response(body)


def test_a_bad_request_chunk_closes_both_connections() -> None:
    arrived = threading.Event()

    def play(wire: Wire) -> None:
        wire.head()
        assert wire.take(10) == b"5\r\nhello\r\n"
        arrived.set()
        assert wire.end() in ("closed", "reset")
        assert b"bad" not in wire.read

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        head = relay.request(upstream.path(), headers=b"Transfer-Encoding: chunked\r\n", method=b"PUT")
        client.send(head + b"5\r\nhello\r\n")
        assert arrived.wait(60)
        client.send(b"3\nbad\r\n0\r\n\r\n")
        assert client.rest().startswith(b"HTTP/1.1 400 ")
        assert relay.tap.reason() == "bad_framing"


def test_an_unsolicited_response_is_not_used_for_the_next_request() -> None:
    answered = threading.Event()

    def play(wire: Wire) -> None:
        wire.message()
        wire.send(response(b"asked"))
        assert answered.wait(30)
        wire.send(response(b"poison"))
        wire.end()

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        assert client.message() == response(b"asked")
        answered.set()
        wait_for(relay, lambda: not relay.relay.connector.opened)
        client.send(relay.request(upstream.path(), b"{}"))
        assert client.message() == response(b"asked")
        assert len(upstream.wires) == 2


def test_stopping_waits_for_open_calls_and_then_cuts_them() -> None:
    def play(wire: Wire) -> None:
        head = wire.message()
        wire.send(response(b"slow")[:-2])
        if b"/soon" in head:
            time.sleep(0.3)
            wire.send(b"ow")
        wire.end()

    with Upstream(play) as upstream, relaying(upstream.origin) as relay:
        soon, never, idle = relay.client(), relay.client(), relay.client()
        with soon, never, idle:
            soon.send(relay.request(upstream.path("/soon"), b"{}"))
            never.send(relay.request(upstream.path("/never"), b"{}"))
            relay.tap.wait(frames.ResponseData, 2)
            relay.run(relay.relay.stop(1.5))
            assert soon.message() == response(b"slow")
            assert never.end() == "closed"
            assert idle.end() == "closed"
            assert {end.reason for end in relay.tap.of(frames.CallEnd)} == {None, "relay_died"}
            with pytest.raises(ConnectionRefusedError):
                relay.client()
