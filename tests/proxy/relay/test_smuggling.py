"""One request stays one: what two readers could understand in two ways is refused.

The payloads are those of RFC 9112, of the HTTP Garden's classes and of the parsers' CVEs. h11 is the second opinion,
on what the client sent and on what the upstream got.
"""

import contextlib
from collections.abc import Iterator
from itertools import count

import h11
import pytest

from agent_logger.proxy.spool import frames
from tests.proxy.wires import Running, Upstream, Wire, relaying, response

DOORS = ("base-url", "forward")

NUMBERS = count()
SECOND = b"GET {path}/smuggled HTTP/1.1\r\n{host}\r\n\r\n"
GET = b"GET {path} HTTP/1.1\r\n{host}\r\n%b\r\n"
POST = b"POST {path} HTTP/1.1\r\n{host}\r\n%b\r\n"
CHUNKED = POST % b"Transfer-Encoding: chunked\r\n"
END = b"0\r\n\r\n"

REFUSED = {
    # two framings
    "CL.TE": POST % b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n" + END + b"G",
    "TE.CL": POST % b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n" + b"5c\r\n" + SECOND + END,
    "CL.CL differing": POST % b"Content-Length: 0\r\nContent-Length: 44\r\n" + SECOND,
    "CL.CL same": POST % b"Content-Length: 0\r\nContent-Length: 0\r\n",
    "CL list same": POST % b"Content-Length: 3, 3\r\n" + b"abc",
    "CL list differing": POST % b"Content-Length: 0, 44\r\n" + SECOND,
    "TE.TE": POST % b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" + END,
    "TE twice": POST % b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" + END,
    "TE list": POST % b"Transfer-Encoding: chunked, chunked\r\n" + END,
    "TE then identity": POST % b"Transfer-Encoding: chunked, identity\r\n" + END,
    "TE gzip first": POST % b"Transfer-Encoding: gzip, chunked\r\n" + END,
    "TE identity": POST % b"Transfer-Encoding: identity\r\nContent-Length: 3\r\n" + b"abc",
    "TE identity alone": POST % b"Transfer-Encoding: identity\r\n",
    "TE unknown": POST % b"Transfer-Encoding: xchunked\r\n" + END,
    "TE quoted": POST % b'Transfer-Encoding: "chunked"\r\n' + END,
    "TE empty": POST % b"Transfer-Encoding:\r\n" + END,
    "TE with parameter": POST % b"Transfer-Encoding: chunked;a=b\r\n" + END,
    "TE with comma": POST % b"Transfer-Encoding: ,chunked\r\n" + END,
    "TE vertical tab": POST % b"Transfer-Encoding: \x0bchunked\r\n" + END,
    "TE NUL": POST % b"Transfer-Encoding: chunked\x00\r\n" + END,
    "TE high byte": POST % b"Transfer-Encoding: \xa0chunked\r\n" + END,
    "TE space before colon": POST % b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n" + END,
    "TE tab before colon": POST % b"Transfer-Encoding\t: chunked\r\n" + END,
    "TE folded": POST % b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n" + END,
    "TE folded name": POST % b"X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" + END,
    "TE after bare CR": POST % b"X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n" + END,
    "TE after bare LF": POST % b"X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n" + END,
    "TE in 1.0": b"POST {path} HTTP/1.0\r\n{host}\r\nTransfer-Encoding: chunked\r\n\r\n" + END,
    # lengths
    "CL plus": POST % b"Content-Length: +3\r\n" + b"abc",
    "CL minus": POST % b"Content-Length: -1\r\n" + b"abc",
    "CL hex": POST % b"Content-Length: 0x3\r\n" + b"abc",
    "CL underscore": POST % b"Content-Length: 1_0\r\n" + b"0123456789",
    "CL exponent": POST % b"Content-Length: 1e1\r\n" + b"0123456789",
    "CL empty": POST % b"Content-Length:\r\n",
    "CL with space": POST % b"Content-Length: 1 1\r\n" + b"01234567890",
    "CL Arabic digit": POST % b"Content-Length: \xd9\xa3\r\n" + b"abc",
    "CL huge": POST % b"Content-Length: 99999999999999999999999999\r\n" + b"abc",
    "CL semicolon": POST % b"Content-Length: 3;x\r\n" + b"abc",
    "CL space before colon": POST % b"Content-Length : 3\r\n" + b"abc",
    # lines
    "LF request line": b"GET {path} HTTP/1.1\n{host}\r\n\r\n",
    "LF everywhere": b"GET {path} HTTP/1.1\n{host}\n\n",
    "LF at the end of the head": b"GET {path} HTTP/1.1\r\n{host}\r\n\n",
    "LF in a header": GET % b"A: b\nC: d\r\n",
    "CR in a header": GET % b"A: b\rC: d\r\n",
    "CR CR LF": GET % b"A: b\r\r\n",
    "NUL in a header": GET % b"A: b\x00c\r\n",
    "NUL in a name": GET % b"A\x00: b\r\n",
    "DEL in a header": GET % b"A: b\x7fc\r\n",
    "folded": GET % b"A: b\r\n c\r\n",
    "folded first": b"GET {path} HTTP/1.1\r\n A: b\r\n{host}\r\n\r\n",
    "no colon": GET % b"Abc\r\n",
    "no name": GET % b": b\r\n",
    "name with space": GET % b"A b: c\r\n",
    "name with high byte": GET % b"\xc3\xa9: c\r\n",
    "name with bracket": GET % b"[a]: c\r\n",
    "leading CRLF": b"\r\n" + GET % b"",
    "leading space": b" " + GET % b"",
    # request lines
    "version 0.9": b"GET {path}\r\n\r\n",
    "version 2": b"GET {path} HTTP/2.0\r\n{host}\r\n\r\n",
    "version 1.2": b"GET {path} HTTP/1.2\r\n{host}\r\n\r\n",
    "version lower": b"GET {path} http/1.1\r\n{host}\r\n\r\n",
    "version padded": b"GET {path} HTTP/01.1\r\n{host}\r\n\r\n",
    "two spaces": b"GET  {path} HTTP/1.1\r\n{host}\r\n\r\n",
    "tab for space": b"GET\t{path} HTTP/1.1\r\n{host}\r\n\r\n",
    "space in target": b"GET {path} x HTTP/1.1\r\n{host}\r\n\r\n",
    "trailing space": b"GET {path} HTTP/1.1 \r\n{host}\r\n\r\n",
    "bad method": b"G(T {path} HTTP/1.1\r\n{host}\r\n\r\n",
    "no method": b" {path} HTTP/1.1\r\n{host}\r\n\r\n",
    "high byte in target": b"GET {path}/\xc3\xa9 HTTP/1.1\r\n{host}\r\n\r\n",
    "NUL in target": b"GET {path}/\x00 HTTP/1.1\r\n{host}\r\n\r\n",
    "fragment": b"GET {path}#x HTTP/1.1\r\n{host}\r\n\r\n",
    "absolute form, https": b"GET https://127.0.0.1{path} HTTP/1.1\r\n{host}\r\n\r\n",
    "asterisk form": b"OPTIONS * HTTP/1.1\r\n{host}\r\n\r\n",
    "CONNECT to a path": b"CONNECT {path} HTTP/1.1\r\n{host}\r\n\r\n",
    "CONNECT without a port": b"CONNECT 127.0.0.1 HTTP/1.1\r\n{host}\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    # hosts, and what Connection may name
    "no Host": b"GET {path} HTTP/1.1\r\nA: b\r\n\r\n",
    "two Hosts": GET % b"{host}\r\n",
    "two Hosts, other case": GET % b"hOST: evil.test\r\n",
    "Host list": b"GET {path} HTTP/1.1\r\n{host}, evil.test\r\n\r\n",
    "Connection names Content-Length": POST % b"Connection: content-length\r\nContent-Length: 40\r\n" + b"x" * 40,
    "Connection names Transfer-Encoding": POST % b"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n"
    + END,
    "Connection names Host": GET % b"Connection: close, Host\r\n",
    # chunks
    "chunk size not hex": CHUNKED + b"g\r\nabc\r\n" + END,
    "chunk size signed": CHUNKED + b"+3\r\nabc\r\n" + END,
    "chunk size negative": CHUNKED + b"-3\r\nabc\r\n" + END,
    "chunk size 0x": CHUNKED + b"0x3\r\nabc\r\n" + END,
    "chunk size underscore": CHUNKED + b"1_0\r\n" + b"a" * 16 + b"\r\n" + END,
    "chunk size empty": CHUNKED + b"\r\nabc\r\n" + END,
    "chunk size overflow": CHUNKED + b"10000000000000003\r\nabc\r\n" + END,
    "chunk size trailing space": CHUNKED + b"3 \r\nabc\r\n" + END,
    "chunk size leading space": CHUNKED + b" 3\r\nabc\r\n" + END,
    "chunk size LF": CHUNKED + b"3\nabc\r\n" + END,
    "chunk size CR": CHUNKED + b"3\rabc\r\n" + END,
    "chunk ext with LF": CHUNKED + b"3;a\nabc\r\n" + END,
    "chunk ext with CR": CHUNKED + b"3;a\rb\r\nabc\r\n" + END,
    "chunk ext with NUL": CHUNKED + b"3;a\x00\r\nabc\r\n" + END,
    "chunk ext quoted CRLF": CHUNKED + b'3;a="\r\nabc\r\n"' + END,
    "chunk ext too long": CHUNKED + b"3;a=" + b"b" * 5000 + b"\r\nabc\r\n" + END,
    "chunk data too long": CHUNKED + b"3\r\nabcd\r\n" + END,
    "chunk data ends in LF": CHUNKED + b"3\r\nabc\n" + END,
    "chunk data without CRLF": CHUNKED + b"3\r\nabc" + END,
    "last chunk with LF": CHUNKED + b"0\n\n",
    "trailer folded": CHUNKED + b"0\r\nA: b\r\n c\r\n\r\n",
    "trailer without colon": CHUNKED + b"0\r\nabc\r\n\r\n",
    "trailer with LF": CHUNKED + b"0\r\nA: b\n\r\n",
    "trailer Content-Length": CHUNKED + b"0\r\nContent-Length: 40\r\n\r\n",
    "trailer Transfer-Encoding": CHUNKED + b"0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "trailer Host": CHUNKED + b"0\r\nHost: evil.test\r\n\r\n",
    # sizes
    "head too long": GET % (b"A: " + b"b" * 70000 + b"\r\n"),
    "request line too long": b"GET {path}/" + b"a" * 70000 + b" HTTP/1.1\r\n{host}\r\n\r\n",
    "headers without end": GET[:-2] % b"" + b"A: b\r\n" * 20000,
}
# How many requests there really are.
FINE = {
    "plain": (GET % b"", 1),
    "chunked": (CHUNKED + b"3;a=b\r\nabc\r\n" + END, 1),
    "two": (GET % b"" + GET % b"", 2),
    "body like a request": (POST % b"Content-Length: 20\r\n" + b"GET / HTTP/1.1\r\nA: b\r\n"[:20], 1),
    "chunk like a request": (CHUNKED + b"12\r\nGET / HTTP/1.1\r\n\r\n\r\n" + END, 1),
    "upgrade with a second behind it": (
        GET % b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + GET % b"",
        2,
    ),
    "upgrade to h2c": (
        GET % b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n",
        1,
    ),
}


def requests_in(data: bytes) -> int | None:
    """How many requests h11 reads from a client's bytes. None: it finds them wrong."""
    server, count = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 17), 0
    server.receive_data(data)
    while True:
        try:
            event = server.next_event()
        except h11.RemoteProtocolError:
            return None
        if event is h11.NEED_DATA or isinstance(event, h11.ConnectionClosed):
            return count
        if isinstance(event, h11.EndOfMessage):
            count += 1
        if event is h11.PAUSED or (isinstance(event, h11.EndOfMessage) and server.our_state is h11.SEND_RESPONSE):
            with contextlib.suppress(h11.LocalProtocolError):
                server.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                server.send(h11.EndOfMessage())
                server.start_next_cycle()
                continue
            return count


class Canary:
    """An upstream that believes h11: it answers as many requests as that sees."""

    def __init__(self) -> None:
        self.wires: list[Wire] = []

    def play(self, wire: Wire) -> None:
        self.wires.append(wire)
        answered = 0
        with contextlib.suppress(ConnectionResetError, TimeoutError):
            while wire.more():
                count = requests_in(wire.read) or 0
                wire.send(response(b"") * (count - answered))
                answered = count

    def got(self) -> bytes:
        return b"".join(wire.read for wire in self.wires)

    def requests(self) -> int:
        return sum(requests_in(wire.read) or 0 for wire in self.wires)


@pytest.fixture(scope="module")
def stage(door: str) -> Iterator[tuple[Running, Upstream, Canary]]:
    canary = Canary()
    with Upstream(canary.play) as upstream, relaying(upstream.origin) as relay:
        yield relay, upstream, canary


def placed(payload: bytes, relay: Running, upstream: Upstream, path: str = "/v1") -> bytes:
    host = b"Host: " + relay.host()
    return payload.replace(b"{path}", relay.path(upstream, path)).replace(b"{host}", host)


def test_at_least_80_smuggling_payloads_are_tested() -> None:
    assert len(REFUSED) >= 80


@pytest.mark.parametrize("name", REFUSED)
def test_ambiguous_requests_are_refused_and_not_forwarded(stage: tuple[Running, Upstream, Canary], name: str) -> None:
    relay, upstream, canary = stage
    relay.tap.frames.clear()
    path = f"/v1/{next(NUMBERS)}/"
    with relay.client(5) as client:
        client.send(placed(REFUSED[name], relay, upstream, path) + placed(SECOND, relay, upstream, path))
        client.rest()
    assert client.read.startswith(b"HTTP/1.1 4") or client.read.startswith(b"HTTP/1.1 505 ")
    assert b"\r\nx-agent-logger-error: " in client.read
    assert client.read.count(b"HTTP/1.1 ") == 1
    assert path.encode() not in canary.got()
    assert [type(frame) for frame in relay.tap.frames] == [frames.Refusal]


@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("size", [1 << 20, 1])
def test_relay_and_upstream_see_the_same_number_of_requests(
    stage: tuple[Running, Upstream, Canary], name: str, size: int
) -> None:
    relay, upstream, canary = stage
    payload, count = placed(FINE[name][0], relay, upstream), FINE[name][1]
    before = canary.requests()
    relay.tap.frames.clear()
    with relay.client() as client:
        for at in range(0, len(payload), size):
            client.send(payload[at : at + size])
        for _ in range(count):
            assert client.message() == response(b"")
    ends = relay.tap.wait(frames.CallEnd, count)
    assert [end.reason for end in ends] == [None] * count
    assert canary.requests() - before == count
    assert b"h2c" not in canary.got()


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_request_sent_byte_by_byte_never_becomes_two_requests(
    stage: tuple[Running, Upstream, Canary], name: str
) -> None:
    """Sent byte by byte its beginning may go upstream; a second request never does."""
    relay, upstream, canary = stage
    payload = placed(REFUSED[name], relay, upstream) + placed(SECOND, relay, upstream)
    pieces = [payload[at : at + 1] for at in range(len(payload))] if len(payload) < 600 else [payload]
    with relay.client(5) as client:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                client.send(piece)
        with contextlib.suppress(ConnectionError):
            client.rest()
    assert client.read.count(b"HTTP/1.1 ") == 1
    assert b"smuggled" not in canary.got()
