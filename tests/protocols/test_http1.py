"""Heads and bodies are read in one way only, however they arrive."""

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.protocols.http1 import HOST, RequestHead, ResponseReader, head_end
from agent_logger.protocols.http_bodies import ChunkedBody, MalformedError

HEAD = b"POST /v1/x?y HTTP/1.1\r\nHost: here\r\nA: b\r\na:c \r\nContent-Length: 5\r\n\r\n"
CHUNKS = b"5;a=b\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n"


def fed(stream: bytes, size: int) -> tuple[bytes, list[bytes], ChunkedBody, bytes]:
    """What is forwarded, the chunks, the body, and what follows it."""
    body, forwarded, rest = ChunkedBody(), b"", b""
    for at in range(0, len(stream), size):
        if body.done or body.error:
            rest += stream[at : at + size]
            continue
        out, after = body.feed(stream[at : at + size])
        forwarded, rest = forwarded + out, rest + after
    chunks, chunk = [], b""
    for data, ends in body.pieces:
        chunk += data
        if ends:
            chunks.append(chunk)
            chunk = b""
    return forwarded, chunks, body, rest


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096])
def test_chunked_bodies_parse_the_same_for_any_read_size(size: int) -> None:
    forwarded, chunks, body, rest = fed(CHUNKS + b"next", size)
    assert (forwarded, chunks, rest) == (CHUNKS, [b"hello", b" ", b"world"], b"next")
    assert (body.done, body.error, body.trailers) == (True, "", b"X-Sum: 1\r\nX-Sum: 2\r\n")


@pytest.mark.parametrize("size", [1, 2, 4096])
@pytest.mark.parametrize("bad", [b"x\r\n", b"5\nhello", b"5\r\nhelloworld", b"0\r\nno colon\r\n", b"5;\r\nhello"])
def test_a_malformed_chunk_line_is_not_forwarded(bad: bytes, size: int) -> None:
    forwarded, _, body, _ = fed(b"2\r\nok\r\n" + bad, size)
    assert body.error
    assert (b"2\r\nok\r\n" + bad).startswith(forwarded)
    assert forwarded in (b"2\r\nok\r\n", b"2\r\nok\r\n5\r\nhello", b"2\r\nok\r\n0\r\n")


def test_a_head_ends_at_the_empty_line() -> None:
    assert head_end(HEAD + b"12345") == len(HEAD)
    assert head_end(HEAD[:-1]) == -1
    for data in (b"a" * 65537, b"a" * 65537 + b"\r\n\r\n"):
        with pytest.raises(MalformedError) as caught:
            head_end(data)
        assert caught.value.status == 431
    with pytest.raises(MalformedError):
        head_end(b"GET / HTTP/1.1\nHost: x")


def test_hop_by_hop_headers_are_not_forwarded() -> None:
    raw = (
        b"GET /p HTTP/1.1\r\nhost:  a\r\nConnection: x-gone, Keep-Alive\r\nX-Gone: 1\r\nTE: trailers\r\n"
        b"Kept:  as\tit is \r\nkeep-alive: 5\r\nTrailer: X\r\nProxy-Connection: a\r\nProxy-Authorization: b\r\n\r\n"
    )
    head = RequestHead(raw)
    expected = b"GET /q HTTP/1.1\r\nhost: b\r\nKept:  as\tit is \r\nTrailer: X\r\n\r\n"
    assert head.forwarded(b"GET /q HTTP/1.1", host=b"b") == expected


def test_the_host_header_is_replaced_with_any_padding() -> None:
    head = RequestHead(b"GET / HTTP/1.1\r\nA: b\r\nhOST:" + b" " * 5000 + b"a\t\r\nC: d\r\n\r\n")
    assert head.forwarded(head.first, host=b"b") == b"GET / HTTP/1.1\r\nA: b\r\nhOST: b\r\nC: d\r\n\r\n"


@pytest.mark.parametrize(
    ("connection", "kept"),
    [
        (b"Connection: Upgrade\r\n", b"Connection: Upgrade\r\n"),
        (b"connection:  upgrade \r\n", b"connection:  upgrade \r\n"),
        (b"Connection: keep-alive, Upgrade\r\n", b"Connection: Upgrade\r\n"),
        (b"Connection: close\r\nConnection: upgrade\r\n", b"Connection: upgrade\r\n"),
    ],
)
def test_an_upgrade_request_keeps_its_upgrade_headers(connection: bytes, kept: bytes) -> None:
    head = RequestHead(b"GET / HTTP/1.1\r\n" + connection + b"Upgrade: WebSocket\r\n\r\n")
    assert head.websocket
    forwarded = head.forwarded(head.first, upgrade=True)
    assert forwarded == b"GET / HTTP/1.1\r\n" + kept + b"Upgrade: WebSocket\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "response", "done", "eof"),
    [
        (b"GET", b"HTTP/1.1 200 OK\r\n\r\nabc", False, None),
        (b"GET", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", False, "short_body"),
        (b"GET", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", True, None),
        (
            b"GET",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
            False,
            "upstream_closed",
        ),
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", True, None),
        (b"GET", b"HTTP/1.1 304 No\r\nContent-Length: 4\r\n\r\n", True, None),
        (b"GET", b"HTTP/1.1 100 Continue\r\n\r\n", False, "upstream_closed"),
        (b"GET", b"HTTP/1.1 20", False, "upstream_closed"),
    ],
)
@pytest.mark.parametrize("size", [1, 4096])
def test_the_response_head_determines_where_the_response_ends(
    method: bytes, response: bytes, done: bool, eof: str | None, size: int
) -> None:
    reader = ResponseReader(method)
    for at in range(0, len(response), size):
        reader.feed(response[at : at + size])
    assert (reader.done, reader.eof(), reader.error) == (done, eof, "")


# ---- the second opinion


def ours(data: bytes) -> tuple[bytes, bytes] | None:
    """Target and body of the first request, if it is whole and valid."""
    try:
        end = head_end(data)
        if end < 0:
            return None
        head = RequestHead(data[:end])
    except MalformedError:
        return None
    if len(head.values(HOST)) != 1:
        return None  # the guard's to refuse
    if head.framing is None:
        return head.target, b""
    head.framing.feed(data[end:])
    if head.framing.error or not head.framing.done:
        return None
    return head.target, b"".join(piece for piece, _ in head.framing.pieces)


def theirs(data: bytes) -> tuple[bytes, bytes] | None:
    server = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 17)
    server.receive_data(data)
    target, body = b"", b""
    try:
        while True:
            event = server.next_event()
            if isinstance(event, h11.Request):
                target = event.target
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return target, body
            else:
                return None
    except h11.RemoteProtocolError:
        return None


SEEDS = [
    HEAD + b"12345",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    b"GET /a HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nConnection: close\r\n\r\n",
]
BYTES = [
    b"\r",
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"0",
    b"\x00",
    b"\x0b",
    b"\xa0",
    b"chunked",
    b"\r\n ",
    b"+",
]


@settings(max_examples=3000, deadline=None)
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3), st.sampled_from(BYTES)), min_size=1, max_size=3),
)
def test_accepted_messages_parse_the_same_in_h11(seed: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    data = seed
    for at, count, new in edits:
        at %= len(data) + 1
        data = data[:at] + new + data[at + count :]
    read = ours(data)
    assert read is None or read == theirs(data)
