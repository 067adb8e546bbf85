"""Many calls, big ones, slow ones, and clients that leave: nothing piles up, and nobody waits for another."""

import contextlib
import gc
import hashlib
import os
import threading
import time

import pytest

from agent_logger.proxy.relay.client import Client
from agent_logger.proxy.relay.limits import raise_descriptors
from agent_logger.proxy.spool import frames
from tests.proxy.wires import Running, Upstream, Wire, answering, relaying, response, wait_for
from tests.pulse import Pulse

DOORS = ("base-url", "forward")
MB = 1 << 20


def rss() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n"


def test_five_hundred_client_disconnects_leak_no_resources() -> None:
    """Before the answer, in the middle of it, by reset, and after half a request."""
    gone: list[float] = []
    waits: list[float] = []
    pulse = Pulse()

    def play(wire: Wire) -> None:
        with contextlib.suppress(OSError, EOFError):
            head = wire.head()
            if b"/stream" in head:
                wire.send(STREAM)
        with contextlib.suppress(OSError):
            wire.end()
        gone.append(pulse.now())
        wire.close()

    def leave(relay: Running, upstream: Upstream, number: int) -> float:
        client = relay.client()
        path = upstream.path("/stream" if number % 2 else "/silent")
        request = relay.request(path, b"{}" * 50)
        client.send(request[:-10] if number % 5 == 0 else request)
        if number % 2:
            client.until(b"hello")
        else:
            relay.tap.wait(frames.RequestHeadFrame, number + 1)
        left = pulse.now()
        client.reset() if number % 3 == 0 else client.close()
        return left

    with pulse, Upstream(play) as upstream, relaying(upstream.origin) as relay:
        base = None
        for number in range(500):
            left = leave(relay, upstream, number)
            assert relay.tap.wait(frames.CallEnd, number + 1)[-1].reason == "client_gone"
            while len(gone) <= number:
                assert pulse.now() - left < 30
                time.sleep(0.001)
            waits.append(gone[number] - left)
            if number == 20:
                base = len(os.listdir("/proc/self/fd"))
        wait_for(relay, lambda: not relay.relay.clients and not relay.relay.connector.opened)
        assert max(waits) < 1
        assert base is not None
        assert len(os.listdir("/proc/self/fd")) <= base + 2  # fewer is no leak: some were still closing at the base
        assert not relay.relay._connecting
        gc.collect()
        assert sum(isinstance(it, Client) for it in gc.get_objects()) <= 2
        assert len(relay.tap.of(frames.CallEnd)) == 500


def test_a_client_that_does_not_read_pauses_the_upstream() -> None:
    sent = [0]

    def play(wire: Wire) -> None:
        wire.message()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (400 * MB))
        with contextlib.suppress(OSError):
            while sent[0] < 400 * MB:
                wire.send(bytes(MB))
                sent[0] += MB

    with Upstream(play) as upstream, relaying(upstream.origin) as relay:
        # The tap must not keep the bytes, or the test would measure itself.
        relay.tap.put = lambda *frames: None  # type: ignore[method-assign]
        before = rss()
        with relay.client() as client:
            client.send(relay.request(upstream.path(), b"{}"))
            time.sleep(1.5)
            assert sent[0] < 40 * MB  # what the kernel holds
            assert rss() - before < 16 * MB
            client.head()


def test_an_upstream_that_does_not_read_pauses_the_client() -> None:
    release = threading.Event()

    def play(wire: Wire) -> None:
        wire.head()
        release.wait(10)

    with Upstream(play) as upstream, relaying(upstream.origin) as relay:
        relay.tap.put = lambda *frames: None  # type: ignore[method-assign]
        before = rss()
        with relay.client() as client:
            head = relay.request(upstream.path(), headers=b"Expect: x\r\n").replace(b"Length: 0", b"Length: 400000000")
            client.send(head)
            client.sock.settimeout(0)
            sent, deadline = 0, time.monotonic() + 1.5
            while time.monotonic() < deadline:
                with contextlib.suppress(BlockingIOError):
                    sent += client.sock.send(bytes(MB))
            assert sent < 40 * MB
            assert rss() - before < 16 * MB
        release.set()


@pytest.mark.parametrize("size", [64 * MB])
def test_large_bodies_are_forwarded_intact_in_both_directions(size: int) -> None:
    block = os.urandom(MB)
    digests: list[str] = []

    def play(wire: Wire) -> None:
        wire.head()
        digest, left = hashlib.sha256(wire.read[wire.read.index(b"\r\n\r\n") + 4 :]), size
        left -= len(wire.read) - wire.read.index(b"\r\n\r\n") - 4
        while left:
            data = wire.sock.recv(MB)
            digest.update(data)
            left -= len(data)
        digests.append(digest.hexdigest())
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // MB):
            wire.send(block)

    expected = hashlib.sha256(block * (size // MB)).hexdigest()
    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        relay.tap.put = lambda *frames: None  # type: ignore[method-assign]
        before = rss()
        client.send(relay.request(upstream.path()).replace(b"Length: 0", b"Length: %d" % size))
        for _ in range(size // MB):
            client.send(block)
        client.head()
        digest, left = hashlib.sha256(), size
        rest = client.read[client.read.index(b"\r\n\r\n") + 4 :]
        digest.update(rest)
        left -= len(rest)
        while left:
            data = client.sock.recv(MB)
            digest.update(data)
            left -= len(data)
        assert rss() - before < 64 * MB
    assert digests == [expected]
    assert digest.hexdigest() == expected


ZOO = {
    b"/100": b"HTTP/1.1 100 Continue\r\n\r\n" + response(),
    b"/103": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response(),
    b"/204": b"HTTP/1.1 204 No Content\r\n\r\n",
    b"/205": response(b"", b"205 Reset Content"),
    b"/304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
    b"/head": b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
    b"/529": response(b'{"type":"error"}', b"529 Overloaded"),
}


@pytest.mark.alone
def test_unusual_responses_do_not_disturb_a_live_stream() -> None:
    stop = threading.Event()

    def play(wire: Wire) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                head = wire.message()
                path = head.split(b" ")[1]
                if path == b"/live":
                    wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    while not stop.is_set():
                        wire.send(b"3\r\nabc\r\n")
                        time.sleep(0.01)
                    wire.send(b"0\r\n\r\n")
                else:
                    wire.send(ZOO[path])

    def listen(client: Wire, pulse: Pulse, gaps: list[float]) -> None:
        last = pulse.now()
        while b"0\r\n\r\n" not in client.read[-5:]:
            client.more()
            now = pulse.now()
            gaps.append(now - last)
            last = now

    with (
        Pulse() as pulse,
        Upstream(play) as upstream,
        relaying(upstream.origin) as relay,
        relay.client() as live,
    ):
        live.send(relay.request(upstream.path("/live"), b"{}"))
        live.head()
        gaps: list[float] = []
        listener = threading.Thread(target=listen, args=(live, pulse, gaps))
        listener.start()
        for _ in range(200):
            with relay.client() as client:
                for path, answer in ZOO.items():
                    method = b"HEAD" if path == b"/head" else b"POST"
                    client.send(relay.request(upstream.path(path.decode()), method=method))
                    assert client.take(len(answer)) == answer
        stop.set()
        listener.join()
        ends = relay.tap.wait(frames.CallEnd, 200 * len(ZOO) + 1)
        assert {end.reason for end in ends} == {None}
    assert max(gaps) < 0.25


@pytest.mark.door("base-url")
@pytest.mark.alone
def test_two_thousand_partial_requests_do_not_slow_other_clients() -> None:
    raise_descriptors()
    with Pulse() as pulse, Upstream(answering(response())) as upstream, relaying(upstream.origin) as relay:
        halves = [relay.client() for _ in range(2000)]
        try:
            for half in halves:
                half.send(b"POST /anthropic/")
            times = []
            with relay.client() as client:
                for _ in range(200):
                    start = pulse.now()
                    client.send(relay.request(upstream.path(), b"{}"))
                    client.message()
                    times.append(pulse.now() - start)
            assert sorted(times)[197] < 0.1
        finally:
            for half in halves:
                half.close()


def test_an_incomplete_head_times_out_and_idle_connections_stay_open() -> None:
    with Upstream(answering(response())) as upstream, relaying(upstream.origin) as relay:
        relay.relay.head_seconds = 1.0
        with relay.client() as idle, relay.client() as used, relay.client() as slow:
            used.send(relay.request(upstream.path(), b"{}"))
            used.message()
            slow.send(relay.request(upstream.path(), b"{}")[:30])
            time.sleep(0.2)
            slow.send(b"x")  # more of it does not help
            answer = slow.rest()
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"\r\nx-agent-logger-error: head_timeout\r\n" in answer
            for client in (idle, used):
                client.send(relay.request(upstream.path(), b"{}"))
                assert client.message() == response()
        [refusal] = relay.tap.of(frames.Refusal)
        assert (refusal.status, refusal.head) == (408, relay.request(upstream.path(), b"{}")[:30] + b"x")


def test_the_head_timeout_does_not_apply_to_bodies_and_responses() -> None:
    def play(wire: Wire) -> None:
        wire.message()
        time.sleep(1.5)
        wire.send(response())

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        relay.relay.head_seconds = 1.0
        request = relay.request(upstream.path(), b"{}")
        client.send(request[:30])
        wait_for(relay, lambda: any(it._buffer for it in relay.relay.clients))
        client.send(request[30:-1])
        time.sleep(1.5)
        client.send(b"}")
        assert client.message() == response()


@pytest.mark.door("base-url")
def test_a_connection_over_the_limit_gets_status_503_until_others_close() -> None:
    with Upstream(answering(response())) as upstream, relaying(upstream.origin) as relay:
        relay.relay.most_clients = 3
        request = relay.request(upstream.path(), b"{}")
        with relay.client(), relay.client(), relay.client() as third:
            third.send(request)
            assert third.message() == response()
            with relay.client() as fourth:
                fourth.send(request)
                answer = fourth.rest()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nx-agent-logger-error: too_many_connections\r\n" in answer
            third.send(request)
            assert third.message() == response()
            with relay.client() as silent:
                assert silent.rest().startswith(b"HTTP/1.1 503 ")
        wait_for(relay, lambda: not relay.relay.clients and not relay.relay.excess)
        with relay.client() as later:
            later.send(request)
            assert later.message() == response()
        refusals = relay.tap.of(frames.Refusal)
        assert [it.status for it in refusals] == [503, 503]
        assert refusals[0].head == request[: request.index(b"\r\n\r\n") + 4]


@pytest.mark.door("base-url")
@pytest.mark.alone
def test_connections_far_over_the_limit_are_refused_and_counted() -> None:
    raise_descriptors()
    with Pulse() as pulse, Upstream(answering(response())) as upstream, relaying(upstream.origin) as relay:
        relay.relay.most_clients = 10
        crowd = [relay.client() for _ in range(500)]
        try:
            assert 0 < relay.do(lambda: len(relay.relay.excess)) <= 64
            wait_for(relay, lambda: len(relay.tap.of(frames.Refusal)) == 490)
            assert len(relay.relay.clients) == 10
            start = pulse.now()
            crowd[0].send(relay.request(upstream.path(), b"{}"))
            assert crowd[0].message() == response()
            assert pulse.now() - start < 0.1
        finally:
            for client in crowd:
                client.close()


def test_pipelined_bytes_are_buffered_up_to_a_limit() -> None:
    release = threading.Event()

    def play(wire: Wire) -> None:
        wire.message()
        release.wait(10)

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        client.sock.settimeout(0)
        sent, deadline = 0, time.monotonic() + 0.7
        while time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                sent += client.sock.send(bytes(MB))
        assert sent < 20 * MB  # what the kernel holds
        [held] = relay.do(lambda: [len(it._buffer) for it in relay.relay.clients])
        assert held <= MB
        release.set()
