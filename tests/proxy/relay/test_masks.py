"""No credential stands in a frame, and each can be put back where it stood."""

import threading

import pytest

from agent_logger.proxy.spool import frames
from tests.proxy.wires import KEY, Collected, Upstream, Wire, answering, relaying, response

DOORS = ("base-url", "forward")

PLACES = [
    b"x-api-key: " + KEY,
    b"X-API-KEY:" + KEY,
    b"Authorization: Bearer " + KEY,
    b"authorization: bearer  " + KEY + b" ",
    b"x-goog-api-key: " + KEY,
    b"api-key: " + KEY,
    b"Cookie: theme=dark; session=" + KEY,
]


def ask(headers: bytes, body: bytes, answer: bytes, path: str = "/v1/messages") -> tuple[Collected, bytes]:
    """One call; the tap, and the head as it was sent."""
    with Upstream(answering(answer)) as upstream, relaying(upstream.origin) as relay:
        request = relay.request(upstream.path(path), body, headers=headers)
        with relay.client() as client:
            client.send(request)
            assert client.message() == answer
        relay.tap.wait(frames.CallEnd)
        assert upstream.wires[0].read.count(KEY) == request.count(KEY)
        return relay.tap, request[: request.index(b"\r\n\r\n") + 4]


def written(tap: Collected) -> bytes:
    return b"".join(b"".join(frames.pack(frame)) for frame in tap.frames)


@pytest.mark.parametrize("line", PLACES)
def test_a_credential_is_masked_wherever_it_is_repeated(line: bytes) -> None:
    answer = response(b'{"you":"' + KEY + b'","twice":"' + KEY + b'"}', headers=b"X-Echo: <" + KEY + b">\r\n")
    tap, head = ask(line + b"\r\nX-Other: " + KEY + b"\r\n", b'{"mine":"' + KEY + b'"}', answer)
    assert KEY not in written(tap)
    [begun], [replied] = tap.of(frames.RequestHeadFrame), tap.of(frames.ResponseHead)
    assert tap.filled(begun.head, begun.masked) == head
    assert tap.filled(replied.head, replied.masked) + tap.response_body() == answer
    assert tap.request_body() == b'{"mine":"' + KEY + b'"}'


@pytest.mark.parametrize("name", ["key", "api_key", "access_token"])
def test_a_credential_in_the_query_is_masked_in_head_and_path(name: str) -> None:
    path = f"/v1/x?a=b&{name}={KEY.decode()}&c=d"
    tap, head = ask(b"", b"", response(KEY), path)
    [begun] = tap.of(frames.RequestHeadFrame)
    assert KEY not in written(tap)
    assert tap.filled(begun.head, begun.masked) == head
    assert begun.path == path.encode().replace(KEY, bytes(len(KEY)))


def test_short_credentials_are_masked_in_their_header_but_not_in_bodies() -> None:
    tap, head = ask(b"Cookie: a=1; theme=dark\r\nx-api-key: dummy\r\n", b'{"a":1,"dark":"dummy"}', response(b"dark 1"))
    [begun] = tap.of(frames.RequestHeadFrame)
    assert b"dark" not in begun.head
    assert b"dummy" not in begun.head
    assert begun.head.startswith(b"POST ") and b"/v1/messages HTTP/1.1\r\n" in begun.head
    assert tap.filled(begun.head, begun.masked) == head
    assert tap.of(frames.RequestData)[0].masked == ()
    assert tap.of(frames.ResponseData)[0].masked == ()


def test_a_cookie_is_masked_after_set_cookie() -> None:
    cookie = b"s3cr3tS3ssi0nC00kie"
    answer = response(b'{"sid":"' + cookie + b'"}', headers=b"Set-Cookie: sid=" + cookie + b"; Path=/; HttpOnly\r\n")
    tap, _ = ask(b"", b"{}", answer)
    assert cookie not in written(tap)
    [replied] = tap.of(frames.ResponseHead)
    assert b"Path=/; HttpOnly" in replied.head
    assert tap.filled(replied.head, replied.masked) + tap.response_body() == answer


def test_equal_header_lines_are_both_masked() -> None:
    tap, head = ask(b"x-api-key: " + KEY + b"\r\nx-api-key: " + KEY + b"\r\n", b"", response())
    [begun] = tap.of(frames.RequestHeadFrame)
    assert len(begun.masked) == 2
    assert tap.filled(begun.head, begun.masked) == head


@pytest.mark.parametrize(
    "path",
    [
        "/oauth/token",
        "/v1/oauth/token",
        "/v1/oauth/token?x=y",
        "/token",
        "/OAuth2/v2.0/token",
        "/oauth/token/",
        "/copilot_internal/v2/token",
        "/login/oauth/access_token",
    ],
)
def test_the_bodies_of_token_endpoints_are_not_framed(path: str) -> None:
    tap, _ = ask(b"", b"refresh_token=abcdefgh12345678", response(b'{"access_token":"ijklmnop12345678"}'), path)
    assert b"12345678" not in written(tap)
    kinds = [type(frame) for frame in tap.frames]
    assert kinds == [frames.RequestHeadFrame, frames.RequestEnd, frames.ResponseHead, frames.CallEnd]


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/token_count", "/v1/tokens", "/v1/x/token"])
def test_the_bodies_of_other_paths_are_framed(path: str) -> None:
    tap, _ = ask(b"", b"{}", response(), path)
    assert tap.of(frames.RequestData)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /anthropic/evil.test/?key=%b HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: %b\r\n\r\n",
        b"GET /?key=%b HTTP/1.1\nAuthorization: Bearer %b\n\n",
        b"BAD /?api_key=%b\r\nAuthorization:\r\n Bearer %b\r\n\r\n",
        b"GET http://x/?access_token=%b HTTP/1.1\r\nx-api-key : %b\r\n\r\n",
    ],
)
@pytest.mark.door("base-url")
def test_credentials_in_refused_requests_are_masked(request_bytes: bytes) -> None:
    sent = request_bytes % (KEY, KEY)
    with relaying() as relay, relay.client() as client:
        client.send(sent)
        assert KEY not in client.rest()
        [refusal] = relay.tap.of(frames.Refusal)
        assert KEY not in b"".join(frames.pack(refusal))
        assert relay.tap.filled(refusal.head, refusal.masked) == sent


def events(*texts: bytes) -> list[bytes]:
    return [b"%x\r\n%b\r\n" % (len(text), text) for text in texts]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_events_are_reported_one_by_one_while_the_answer_goes_on() -> None:
    texts = [b"data: %d\n\n" % number for number in range(50)]
    goes_on = threading.Event()

    def play(wire: Wire) -> None:
        wire.message()
        wire.send(CHUNKED)
        for event in events(*texts):
            wire.send(event)
        assert goes_on.wait(30)
        wire.send(b"0\r\n\r\n")

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path(), b"{}"))
        client.until(texts[-1])
        reported = relay.tap.wait(frames.ResponseData, len(texts))
        assert [(frame.data, frame.ends_chunk) for frame in reported] == [(text, True) for text in texts]
        assert [frame.ns for frame in reported] == sorted(frame.ns for frame in reported)
        assert not relay.tap.of(frames.CallEnd)
        goes_on.set()
        client.until(b"0\r\n\r\n")
        relay.tap.wait(frames.CallEnd)
    assert len(relay.tap.of(frames.ResponseData)) == len(texts)


def test_a_credential_in_one_of_many_events_is_masked_there() -> None:
    texts = [b"data: %d %b\n\n" % (number, KEY if number == 7 else b"") for number in range(20)]
    answer = CHUNKED + b"".join(events(*texts)) + b"0\r\n\r\n"
    tap, _ = ask(b"x-api-key: " + KEY + b"\r\n", b"{}", answer)
    assert KEY not in written(tap)
    reported = tap.of(frames.ResponseData)
    assert [number for number, frame in enumerate(reported) if frame.masked] == [7]
    assert [tap.filled(frame.data, frame.masked) for frame in reported] == texts


@pytest.mark.parametrize("size", [100, 10_000, 300_000])
def test_a_credential_is_masked_wherever_it_stands_in_a_large_body(size: int) -> None:
    body = KEY + bytes(size) + KEY + b"x" * size + KEY
    tap, _ = ask(b"x-api-key: " + KEY + b"\r\n", body, response(body))
    assert KEY not in written(tap)
    assert tap.request_body() == body
    assert response(tap.response_body()) == response(body)
