"""No credential stands in a frame, and each can be put back where it stood."""

import pytest

from agent_logger.proxy.spool import frames
from tests.proxy.wires import KEY, Collected, Upstream, answering, relaying, response

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
