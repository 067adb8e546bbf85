"""Bytes arrive as they were sent, but for what is taken out; and the frames hold the same bytes."""

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_logger.proxy.spool import frames
from tests.proxy.wires import KEY, Running, Upstream, Wire, relaying

DOORS = ("base-url", "forward")

# ---- messages, generated

TOKEN = "!#$%&'*+.^_`|~-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MEANT = {
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "content-length",
}
MEANT |= {"transfer-encoding", "upgrade", "origin", "sec-fetch-site"}

names = st.one_of(
    st.sampled_from(["anthropic-beta", "Anthropic-Beta", "X-Dup", "x-dup", "X-Stainless-Lang", "accept", "Trailer"]),
    st.text(TOKEN, min_size=1, max_size=12).filter(lambda name: name.lower() not in MEANT),
).map(str.encode)
texts = st.binary(max_size=20).map(lambda raw: bytes(b for b in raw if (b >= 32 and b != 127) or b == 9))
lines = st.builds(
    lambda name, gap, text, tail: name + b":" + gap + text + tail,
    names,
    st.sampled_from([b" ", b"", b"  ", b"\t"]),
    texts,
    st.sampled_from([b"", b"", b" ", b"\t"]),
)
secrets = st.sampled_from(
    [b"x-api-key: " + KEY, b"AUTHORIZATION: Bearer " + KEY, b"Cookie: a=1; theme=dark", b"X-Echo: " + KEY]
)
headers = st.lists(st.one_of(lines, lines, lines, secrets), max_size=8)
# (line, what it names): taken out, both.
hops = st.lists(
    st.sampled_from(
        [
            b"Keep-Alive: timeout=5",
            b"proxy-connection: keep-alive",
            b"Proxy-Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==",
            b"TE: trailers",
            b"Connection: keep-alive",
            b"CONNECTION: x-Hop, keep-alive",
        ]
    ),
    max_size=3,
    unique=True,
)
paths = st.one_of(
    st.sampled_from(["", "/", "/v1/a%2fb/../c//d/./e;f=g", '/v1/x?y=%zz&q=a|b{}"<>^`\\', "?only=query"]),
    st.text([chr(c) for c in range(33, 127) if c != ord("#")], max_size=30).map(lambda text: "/" + text),
)
chunkings = st.lists(
    st.tuples(
        st.binary(min_size=1, max_size=40),
        st.sampled_from([b"", b"", b";a", b'; name = "quo;ted\\""', b";x=1;y=2"]),
        st.sampled_from([b"%x", b"%X", b"%04x"]),
    ),
    max_size=5,
)


@dataclass
class Message:
    """What is sent, and what should arrive."""

    sent: bytes
    expected: bytes
    head: bytes
    chunks: list[bytes] = field(default_factory=list)
    trailers: bytes = b""
    until_close: bool = False


@st.composite
def bodies(draw: st.DrawFn, kinds: tuple[str, ...]) -> tuple[list[bytes], bytes, list[bytes], bytes, bool]:
    """Header lines, raw body, its chunks, its trailers, whether only the end of the connection ends it."""
    kind = draw(st.sampled_from(kinds))
    if kind == "none":
        return [], b"", [], b"", False
    if kind == "chunked":
        chunks = draw(chunkings)
        trailers = b"".join(line + b"\r\n" for line in draw(st.lists(lines, max_size=2)))
        raw = b"".join(form % len(data) + extension + b"\r\n" + data + b"\r\n" for data, extension, form in chunks)
        last = draw(st.sampled_from([b"0", b"000", b"0;last=1"]))
        coding = draw(st.sampled_from([b"Transfer-Encoding: chunked", b"transfer-encoding: Chunked"]))
        return (
            [coding],
            raw + last + b"\r\n" + trailers + b"\r\n",
            [data for data, *_ in chunks],
            trailers,
            False,
        )
    data = draw(st.one_of(st.binary(max_size=300), st.just(b'{"key":"' + KEY + b'"}')))
    if kind == "close":
        return [], data, [data], b"", True
    return (
        [draw(st.sampled_from([b"Content-Length: %d", b"content-length:%d"])) % len(data)],
        data,
        [data],
        b"",
        False,
    )


@st.composite
def requests(draw: st.DrawFn) -> Message:
    method = draw(st.sampled_from(["POST", "GET", "PUT", "DELETE", "OPTIONS", "M-SEARCH", "get", "HEADY"]))
    path = draw(paths)
    framing, body, chunks, trailers, _ = draw(bodies(("none", "length", "chunked")))
    kept, taken = [*draw(headers), *framing], [*draw(hops), b"X-HOP: gone"]
    if b"CONNECTION: x-Hop, keep-alive" not in taken:
        taken.pop()
    marked = [(line, True) for line in kept] + [(line, False) for line in taken] + [(b"hOsT: HERE", True)]
    marked = draw(st.permutations(marked))
    first = f"{method} PREFIX{path} HTTP/1.1".encode()
    upstream_path = path if path.startswith("/") else "/" + path
    forwarded = [line for line, stays in marked if stays]
    head = b"\r\n".join([first, *(line for line, _ in marked), b"", b""])
    expected = b"\r\n".join([f"{method} {upstream_path} HTTP/1.1".encode(), *forwarded, b"", b""])
    return Message(head + body, expected + body, head, chunks, trailers)


@st.composite
def responses(draw: st.DrawFn) -> Message:
    interim = draw(st.sampled_from([b"", b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=a\r\n\r\n"]))
    status = draw(st.sampled_from([b"200", b"201", b"204", b"304", b"404", b"418", b"529", b"999"]))
    reason = draw(st.sampled_from([b" OK", b" ", b"", b" Okey  Dokey", b" \xc3\xa9t\xe9"]))
    bare = status in (b"204", b"304")
    framing, body, chunks, trailers, until_close = draw(bodies(("none",) if bare else ("length", "chunked", "close")))
    marked = [(line, True) for line in [*draw(headers), *framing]]
    marked += [
        (line, False) for line in draw(st.lists(st.sampled_from([b"Keep-Alive: max=3", b"connection: x-no-such"])))
    ]
    marked += draw(st.sampled_from([[], [(b"Set-Cookie: sid=s3cr3tsessi0n; Path=/", True)]]))
    marked = draw(st.permutations(marked))
    first = b"HTTP/1.1 " + status + reason
    head = b"\r\n".join([first, *(line for line, _ in marked), b"", b""])
    expected = b"\r\n".join([first, *(line for line, stays in marked if stays), b"", b""])
    return Message(interim + head + body, interim + expected + body, interim + head, chunks, trailers, until_close)


# ---- the world


class Stage:
    """One relay and one upstream for all examples; the upstream plays the response it is given."""

    def __init__(self, relay: Running, upstream: Upstream) -> None:
        self.relay, self.upstream = relay, upstream
        self.message = Message(b"", b"", b"")
        self.sizes = [1 << 20]
        self.got = b""
        self.done = threading.Event()

    def play(self, wire: Wire) -> None:
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                self.got = wire.message()
                send(wire, self.message.sent, self.sizes)
                if self.message.until_close:
                    wire.sock.shutdown(1)
                self.done.set()


def send(wire: Wire, data: bytes, sizes: list[int]) -> None:
    """In pieces of these sizes, over and over."""
    at = 0
    while at < len(data):
        for size in sizes:
            if at < len(data):
                wire.send(data[at : at + size])
            at += size


@pytest.fixture(scope="module")
def stage(door: str) -> Iterator[Stage]:
    played: list[Stage] = []
    with Upstream(lambda wire: played[0].play(wire)) as upstream, relaying(upstream.origin) as relay:
        played.append(Stage(relay, upstream))
        yield played[0]


def placed(stage: Stage, message: Message) -> Message:
    """With the addresses of this run, which no generated text holds."""
    prefix, ours = b" " + stage.relay.path(stage.upstream, ""), stage.relay.host()
    sent, head = (
        re.sub(rb" PREFIX(?!/)", b" PREFIX/" if prefix == b" " else b" PREFIX", raw)
        .replace(b" PREFIX", prefix, 1)
        .replace(b"hOsT: HERE", b"hOsT: " + ours, 1)
        for raw in (message.sent, message.head)
    )
    theirs = b"hOsT: " + stage.relay.upstream_host(stage.upstream)
    expected = message.expected.replace(b"hOsT: HERE", theirs, 1)
    return Message(sent, expected, head, message.chunks, message.trailers)


# Not made smaller: each attempt at a byte that does not come takes seconds.
@settings(
    max_examples=150,  # by each of both doors
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
@given(
    asked=requests(),
    answer=responses(),
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=3),
    back=st.lists(st.integers(1, 200), min_size=1, max_size=3),
)
def test_every_byte_is_forwarded_and_framed_unchanged(
    stage: Stage, asked: Message, answer: Message, sizes: list[int], back: list[int]
) -> None:
    request = placed(stage, asked)
    stage.message, stage.sizes, tap = answer, back, stage.relay.tap
    stage.done.clear()
    tap.frames.clear()
    with stage.relay.client(5) as client:
        send(client, request.sent, sizes)
        got = client.rest() if answer.until_close else client.take(len(answer.expected))
        tap.wait(frames.CallEnd)
    assert stage.done.wait(60)
    assert stage.got == request.expected
    assert got == answer.expected
    told(stage, request, answer)


def told(stage: Stage, request: Message, answer: Message) -> None:
    tap = stage.relay.tap
    [begun] = tap.of(frames.RequestHeadFrame)
    [asked] = tap.of(frames.RequestEnd)
    [ended] = tap.of(frames.CallEnd)
    assert tap.filled(begun.head, begun.masked) == request.head
    assert tap.request_body() == b"".join(request.chunks)
    assert asked.trailers == request.trailers
    heads = b"".join(tap.filled(it.head, it.masked) for it in tap.of(frames.ResponseHead))
    assert heads == answer.head
    assert tap.response_body() == b"".join(answer.chunks)
    assert (ended.reason, ended.trailers) == (None, answer.trailers)
    if b"chunked" in answer.head.lower():
        assert chunks(tap.of(frames.ResponseData)) == answer.chunks
    kept = [begun.head, *(it.head for it in tap.of(frames.ResponseHead))]
    kept += [it.data for it in tap.of(frames.RequestData)] + [it.data for it in tap.of(frames.ResponseData)]
    if b"x-api-key: " + KEY in request.head or b"AUTHORIZATION" in request.head:
        assert not any(KEY in data for data in kept)


def chunks(data: list[frames.ResponseData]) -> list[bytes]:
    found, chunk = [], b""
    for frame in data:
        chunk += frame.data
        if frame.ends_chunk:
            found.append(chunk)
            chunk = b""
    return found
