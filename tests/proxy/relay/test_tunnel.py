"""WebSockets: a tunnel, byte for byte."""

import json
import os
import threading

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from agent_logger.config import Origin
from agent_logger.proxy.spool import frames
from tests.proxy.wires import Running, Upstream, Wire, answering, relaying, response

DOORS = ("base-url", "forward")
UPGRADE = b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
ACCEPTED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def tunnelled(relay: Running, *, from_client: bool) -> bytes:
    return b"".join(it.data for it in relay.tap.of(frames.TunnelData) if it.from_client is from_client)


@pytest.mark.parametrize("compression", ["deflate", None])
def test_a_real_websocket_client_and_server_exchange_messages(compression: str | None) -> None:
    def echo(websocket: ServerConnection) -> None:
        for message in websocket:
            websocket.send(message)

    with serve(echo, "127.0.0.1", 0, compression=compression) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port = server.socket.getsockname()[1]
        with relaying(Origin("http", "127.0.0.1", port)) as relay:
            url, how = relay.websocket(("127.0.0.1", port), "/v1/responses")
            with connect(url, compression=compression, **how) as websocket:
                messages: list[str | bytes] = [
                    "hello",
                    json.dumps({"type": "response.create"}),
                    os.urandom(200_000),
                ]
                for message in messages:
                    websocket.send(message)
                    assert websocket.recv(timeout=60) == message
            assert relay.tap.reason() is None
            [begun] = relay.tap.of(frames.RequestHeadFrame)
            assert begun.websocket
            assert tunnelled(relay, from_client=True)
        server.shutdown()
        thread.join()


def test_bytes_before_and_after_the_switch_belong_to_the_tunnel() -> None:
    def play(wire: Wire) -> None:
        head = wire.head()
        assert b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" in head
        wire.send(ACCEPTED + b"at once")
        assert wire.take(5) == b"early"
        wire.send(b"\x00\xff\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        assert wire.take(4) == b"late"
        wire.close()

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), method=b"GET", headers=UPGRADE) + b"early")
        assert client.head() == ACCEPTED
        assert client.take(7) == b"at once"
        assert client.take(24) == b"\x00\xff\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        client.send(b"late")
        assert client.end() == "closed"
        assert relay.tap.reason() is None
        assert tunnelled(relay, from_client=True) == b"earlylate"
        assert tunnelled(relay, from_client=False) == b"at once\x00\xff\r\n\r\nGET / HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_disconnect_ends_the_tunnel(leave: str) -> None:
    ends: list[str] = []

    def play(wire: Wire) -> None:
        wire.head()
        wire.send(ACCEPTED)
        ends.append(wire.end())

    with Upstream(play) as upstream, relaying(upstream.origin) as relay:
        client = relay.client()
        client.send(relay.request(upstream.path(), method=b"GET", headers=UPGRADE))
        client.head()
        getattr(client, leave)()
        assert relay.tap.reason() == "client_gone"
    assert len(ends) == 1


def test_an_upstream_that_resets_a_tunnel_resets_the_client() -> None:
    def play(wire: Wire) -> None:
        wire.head()
        wire.send(ACCEPTED + b"hello")
        wire.take(1)
        wire.reset()

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), method=b"GET", headers=UPGRADE))
        assert client.head() == ACCEPTED
        client.send(b"x")
        assert client.end() == "reset"
        assert client.read == ACCEPTED + b"hello"
        assert relay.tap.reason() == "upstream_reset"


def test_a_refused_upgrade_is_forwarded_as_a_normal_response_in_one_piece() -> None:
    refusal = response(b'{"error":"no"}', b"426 Upgrade Required", b"Upgrade: websocket\r\nConnection: Upgrade\r\n")

    with (
        Upstream(answering(refusal)) as upstream,
        relaying(upstream.origin) as relay,
        relay.client() as client,
    ):
        client.send(relay.request(upstream.path(), method=b"GET", headers=UPGRADE))
        assert client.more() == refusal
        url, how = relay.websocket(("127.0.0.1", upstream.port), "/v1/responses")
        with pytest.raises(InvalidStatus):
            connect(url, **how)
        assert relay.tap.reason() is None
