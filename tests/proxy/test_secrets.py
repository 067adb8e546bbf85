"""Secrets of every kind, in every place, through the whole proxy: the upstream gets them, and nobody else does."""

import base64
import contextlib
import gzip
import hashlib
import time
import zlib
from pathlib import Path

import pytest

from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.relay.test_tunnel import ACCEPTED, UPGRADE
from tests.proxy.spooling import every_byte_under, request_bytes, response_bytes, websocket_frame
from tests.proxy.wires import Upstream, Wire, response

DOORS = ("base-url", "forward")


def _random(prefix: str, length: int) -> bytes:
    """A key that no other has a piece of."""
    digest = hashlib.sha512(prefix.encode()).digest() * 2
    return prefix.encode() + base64.b64encode(digest).translate(None, b"+/=")[:length]


FOUND = {  # wherever they stand, by their form
    "anthropic": _random("sk-ant-api03-", 48),
    "openai": _random("sk-proj-", 48),
    "openai service": _random("sk-svcacct-", 48),
    "openrouter": _random("sk-or-v1-", 64),
    "sk": _random("sk-", 48),
    "stripe": _random("sk_live_", 24),
    "stripe restricted": _random("rk_live_", 24),
    "github": _random("ghp_", 40),
    "github app": _random("ghs_", 40),
    "github fine-grained": _random("github_pat_", 64),
    "gitlab": _random("glpat-", 24),
    "groq": _random("gsk_", 48),
    "google": _random("AIza", 35),
    "aws": b"AKIA" + _random("", 64).upper()[:16],
    "google oauth": _random("ya29.", 48),
    "slack": _random("xoxb-123456789012-", 24),
    "xai": _random("xai-", 48),
    "huggingface": _random("hf_", 34),
    "agent_logger": _random("alr_", 32),
    "npm": _random("npm_", 36),
    "pypi": _random("pypi-", 64),
    "jwt": b"eyJhbGciOiJIUzI1NiJ9." + _random("eyJ", 40) + b"." + _random("s", 42),
}
OPAQUE = b"0paque.Value~9f8e7d6c5b4a39281706-tail"
OWN = {  # of no form at all: known because the request, or the answer, carries them
    "bearer": b"Authorization: Bearer " + OPAQUE,
    "x-api-key": b"x-api-key: " + OPAQUE,
    "cookie": b"Cookie: theme=dark; session=" + OPAQUE,
}
KINDS = [*FOUND, *OWN]


def secret_of(kind: str) -> bytes:
    return FOUND.get(kind, OPAQUE)


def test_twenty_five_kinds_of_secrets_are_tested() -> None:
    assert len(KINDS) == 25


def play(wire: Wire) -> None:
    """Echoes what is asked for, in the way the path says."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            head = wire.head()
            body = wire.body(head)
            way = head.split(b" ")[1].partition(b"?")[0].rpartition(b"/")[2]
            if way == b"socket":
                _play_socket(wire)
            else:
                WAYS[way](wire, body)


def _plain(wire: Wire, body: bytes) -> None:
    wire.send(response(body, headers=b"X-Echo: " + body.strip() + b"\r\n"))


def _gzip(wire: Wire, body: bytes) -> None:
    wire.send(response(gzip.compress(body), headers=b"Content-Encoding: gzip\r\n"))


def _error(wire: Wire, body: bytes) -> None:
    page = b"<html><h1>401</h1>wrong key <code>" + body + b"</code></html>"
    wire.send(response(page, b"401 Unauthorized", b"Content-Type: text/html\r\n"))


def _stream(wire: Wire, body: bytes) -> None:
    """Server-sent events, in pieces of seven bytes, each its own chunk and its own packet."""
    events = b'data: {"text":"%b"}\n\nevent: message_stop\ndata: {}\n\n' % body
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for at in range(0, len(events), 7):
        piece = events[at : at + 7]
        wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        time.sleep(0.001)
    wire.send(b"0\r\n\r\n")


WAYS = {b"plain": _plain, b"gzip": _gzip, b"error": _error, b"stream": _stream, b"slow": _plain}


def _play_socket(wire: Wire) -> None:
    """Each message comes back twice: as it is, and compressed."""
    wire.send(ACCEPTED.replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"))
    start = wire.take(2)
    payload = wire.take((start[1] & 0x7F) + 4)
    text = bytes(byte ^ payload[index % 4] for index, byte in enumerate(payload[4:]))
    wire.send(websocket_frame(text) + deflated_frame(text))
    wire.end()


def deflated_frame(text: bytes, mask: bytes = b"") -> bytes:
    pack = zlib.compressobj(wbits=-15)
    packed = pack.compress(text) + pack.flush(zlib.Z_SYNC_FLUSH)
    frame = websocket_frame(packed[:-4], mask=mask)
    return bytes([frame[0] | 0x40]) + frame[1:]


def say(proxy: Process, kind: str) -> None:
    """One secret in every place."""
    secret, own = secret_of(kind), OWN.get(kind, b"X-Note: note " + secret_of(kind))
    headers = own + b"\r\nReferer: http://x.test/?token=" + secret + b"\r\n"
    with proxy.client() as client:
        for way in ("plain", "gzip", "error", "stream", "slow"):
            body = gzip.compress(secret) if way == "gzip" else b"%b" % secret
            encoding = b"Content-Encoding: gzip\r\n" if way == "gzip" else b""
            request = proxy.request(f"/v1/{way}?note={secret.decode()}", body, headers=headers + encoding)
            cut = len(request) - len(body) // 2 if way == "slow" else len(request)
            client.send(request[:cut])
            if cut < len(request):
                time.sleep(0.05)
                client.send(request[cut:])
            answer = client.message()
            assert answer.startswith(b"HTTP/1.1 ")
            if way == "plain":
                assert answer.count(secret) == 2
    with proxy.client() as client:
        client.send(proxy.request("/v1/socket", method=b"GET", headers=UPGRADE + headers, provider="openai"))
        client.head()
        text = b'{"key":"%b"}' % secret
        client.send(websocket_frame(text, mask=b"\x01\x02\x03\x04"))
        client.take(len(websocket_frame(text)) + len(deflated_frame(text)))
    for host in (b"127.0.0.1:%d" % proxy.port, b"evil.example"):
        with proxy.client() as client:
            target = b"/openai/evil.example/%b?key=%b" % (secret, secret)
            client.send(b"GET %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (target, host, headers))
            assert secret not in client.rest()


@pytest.mark.timeout(300)
def test_no_secret_of_any_kind_is_in_any_file(tmp_path: Path) -> None:
    with Upstream(play) as upstream, proxying(tmp_path, upstream) as proxy:
        for kind in KINDS:
            say(proxy, kind)
        assert proxy.stop() == 0
        found = proxy.logged()
        got = b"".join(wire.read for wire in upstream.wires)
    for kind in KINDS:
        # In each of five calls: twice in the head, once in the query, once in the body; twice in the upgrade.
        assert got.count(secret_of(kind)) >= 4 * 5 - 1 + 2, kind
    left = {
        (kind, path.name)
        for path, data in every_byte_under(tmp_path)
        for kind in KINDS
        for form in forms(secret_of(kind))
        if form in data
    }
    assert left == set()
    bodies = [request_bytes(it) for (it,) in found.requests.values()]
    bodies += [response_bytes(it) for (it,) in found.responses.values()]
    unpacked = [gzip.decompress(body) for body in bodies if body.startswith(b"\x1f\x8b")]
    assert not [kind for kind in KINDS for text in unpacked if secret_of(kind) in text]
    assert len(found.responses) == len(KINDS) * (5 + 2 + 2)
    assert all(len(it) == 1 for it in found.responses.values())


def forms(secret: bytes) -> list[bytes]:
    """As it is, and within base64 at any of three places; the end of it alone."""
    encoded = [base64.b64encode(bytes(shift) + secret)[8:-8] for shift in range(3)]
    return [secret, secret[-20:], *encoded]


@pytest.mark.timeout(120)
def test_the_spool_contains_no_credential_of_an_open_call(tmp_path: Path) -> None:
    """In a head, a query, a body that came in one piece, an echo."""
    with Upstream(play) as upstream, proxying(tmp_path, upstream) as proxy, proxy.client() as client:
        for kind in OWN:
            headers = OWN[kind] + b"\r\nX-Note: " + OPAQUE + b"\r\n"
            path = f"/v1/plain?access_token={OPAQUE.decode()}"
            client.send(proxy.request(path, OPAQUE, headers=headers))
            assert client.message().count(OPAQUE) == 2
            time.sleep(0.1)
            assert b"X-Note" in _spooled(proxy)
            assert OPAQUE not in _spooled(proxy)
        assert proxy.stop() == 0


KEYS = {  # one for each place
    place: _random("sk-ant-api03-" + place.replace(" ", ""), 48)
    for place in (
        "method",
        "name",
        "name in answer",
        "bare LF",
        "version",
        "overlong body",
        "its name",
        "piece by piece",
    )
}


def _own(place: str) -> bytes:
    return _random("0wn." + place.replace(" ", ""), 40)


def _play_odd_places(wire: Wire) -> None:
    with contextlib.suppress(OSError, EOFError):
        while True:
            head = wire.head()
            wire.body(head)
            if b"/v1/messages" in head:
                _tell_in_pieces(wire, KEYS["piece by piece"], _own("piece by piece"))
            elif b"/trailers" in head:
                wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
                wire.send(b"X-Echo: %b\r\n\r\n" % _own("trailer"))
            else:
                wire.send(response(headers=KEYS["name in answer"] + b": 1\r\n"))


def _tell_in_pieces(wire: Wire, *secrets: bytes) -> None:
    """As a model does: a few characters with each event."""
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    start = b'{"type":"message_start","message":{"id":"msg_1","model":"m","role":"assistant","content":[]}}'
    events = [start, b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}']
    for text in (secret[at : at + 17] for secret in secrets for at in range(0, len(secret), 17)):
        told = b'{"type":"text_delta","text":"%b"}' % text
        events.append(b'{"type":"content_block_delta","index":0,"delta":%b}' % told)
    for event in [*events, b'{"type":"message_stop"}']:
        data = b"event: %b\ndata: %b\n\n" % (event.split(b'"')[3], event)
        wire.send(b"%x\r\n%b\r\n" % (len(data), data))
    wire.send(b"0\r\n\r\n")


def _spooled(proxy: Process) -> bytes:
    return b"".join(data for path, data in every_byte_under(proxy.log_dir) if path.suffix == ".spool")


def test_no_secret_in_an_unusual_place_is_in_any_file(tmp_path: Path) -> None:
    """Methods, names of headers, trailers, what follows a body that is longer than it says, deltas."""
    with Upstream(_play_odd_places) as upstream, proxying(tmp_path, upstream) as proxy:

        def said(request: bytes) -> bytes:
            with proxy.client() as client:
                client.send(request)
                return client.rest()

        def asked(*headers: bytes, path: str = "/v1/odd", method: bytes = b"POST") -> bytes:
            lines = b"".join(header + b"\r\n" for header in (*headers, b"Connection: close"))
            return proxy.request(path, b'{"messages":[]}', method=method, headers=lines)

        host = b"Host: 127.0.0.1:%d" % proxy.port
        said(asked(method=KEYS["method"][:32]))
        assert KEYS["name in answer"] in said(asked(KEYS["name"] + b": 1"))
        said(b"GET / HTTP/1.1\nAuthorization: Bearer %b\n%b\n\n" % (KEYS["bare LF"], host))
        said(b"GET / HTTP/1.1\nx-api-key: short\n%b\n\n" % host)
        said(b"GET / HTTP/%b\r\n%b\r\n\r\n" % (KEYS["version"], host))
        surplus = b'{"key":"%b"} HTTP/1.1\r\n"%b": 1\r\n\r\n' % (KEYS["overlong body"], KEYS["its name"])
        said(proxy.request("/v1/odd", b"{}") + surplus)
        said(asked(b"x-api-key: " + _own("piece by piece"), path="/v1/messages"))
        said(asked(b"x-api-key: " + _own("trailer"), path="/v1/trailers"))
        ends = b"2\r\n{}\r\n0\r\nX-Echo: %b\r\n\r\n" % _own("trailer")
        chunked = asked(b"x-api-key: " + _own("trailer"), b"Transfer-Encoding: chunked", path="/v1/trailers")
        said(chunked.partition(b"Content-Length")[0] + b"\r\n" + ends)
        wait_until(lambda: _spooled(proxy).count(b"X-Echo") >= 2)
        assert _own("trailer") not in _spooled(proxy)
        assert proxy.stop() == 0
        left = [
            (path.name, place)
            for path, data in every_byte_under(tmp_path)
            for place in (*KEYS, "trailer", "own piece by piece")
            for secret in [KEYS.get(place, _own(place.removeprefix("own ")))[20:]]
            if any(secret[at : at + 8] in data for at in range(len(secret) - 7)) or b"short" in data
        ]
        assert left == []
        refused = [it for (it,) in proxy.logged().responses.values() if it.reason == "refused"]
        assert len(refused) == 4
