"""No web page may use the relay, by whatever name it reaches it."""

from collections.abc import Iterator

import pytest

from agent_logger.proxy.spool import frames
from tests.proxy.wires import Running, Upstream, answering, relaying, response

ROUTES = [
    "/anthropic/127.0.0.1:{port}/v1/messages",
    "/openai/127.0.0.1:{port}/v1",
    "/",
    "/nothing",
    "/anthropic/x/y",
]
METHODS = [b"GET", b"POST", b"OPTIONS", b"HEAD"]

BAD_HOSTS = [
    "evil.test", "evil.test:{ours}", "127.0.0.1", "localhost", "127.0.0.1:1", "127.0.0.1:{ours}0", "127.0.0.2:{ours}",
    "0.0.0.0:{ours}", "localhost.:{ours}", "localhost.evil.test:{ours}", "127.0.0.1.nip.io:{ours}", "[::]:{ours}",
    "127.0.0.1:{ours}@evil.test", "evil.test@127.0.0.1:{ours}", "127.1:{ours}", "2130706433:{ours}", "",
    "127.0.0.1:{ours}, evil.test", "127.0.0.1:0{ours}", "xlocalhost:{ours}", "::1:{ours}",
]  # fmt: skip
BAD_HEADERS = [
    "Origin: http://evil.test", "Origin: https://claude.ai", "Origin: null", "Origin: http://127.0.0.1",
    "Origin: http://localhost:1", "Origin: https://127.0.0.1:{ours}", "Origin: http://127.0.0.1:{ours}.evil.test",
    "Origin: file://", "Origin:", "ORIGIN: http://evil.test", "Origin: http://127.0.0.1:{ours} http://evil.test",
    "Origin: http://127.0.0.1:{ours}\r\nOrigin: http://evil.test", "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-site", "sec-fetch-site: CROSS-SITE", "Sec-Fetch-Site: what-is-new",
    "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site", "Sec-Fetch-Site:",
]  # fmt: skip
GOOD = [
    ("127.0.0.1:{ours}", ""),
    ("localhost:{ours}", ""),
    ("LocalHost:{ours}", ""),
    ("[::1]:{ours}", ""),
    ("127.0.0.1:{ours}", "Origin: http://127.0.0.1:{ours}\r\n"),
    ("localhost:{ours}", "Origin: http://localhost:{ours}\r\nSec-Fetch-Site: same-origin\r\n"),
    ("localhost:{ours}", "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: cors\r\n"),
]


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[Running, Upstream]]:
    with Upstream(answering(response())) as upstream, relaying(upstream.origin) as relay:
        yield relay, upstream


def ask(relay: Running, method: bytes, path: str, host: str, header: str) -> bytes:
    lines = f"{path} HTTP/1.1\r\nHost: {host}\r\n{header}Connection: close\r\n\r\n".format(ours=relay.port)
    with relay.client() as client:
        client.send(method + b" " + lines.encode())
        return client.rest()


def refused(stage: tuple[Running, Upstream], path: str, method: bytes, host: str, header: str) -> bytes:
    relay, upstream = stage
    relay.tap.frames.clear()
    before = len(upstream.wires)
    answer = ask(relay, method, path.format(port=upstream.port), host, header)
    assert b"\r\nx-agent-logger-error: " in answer
    assert b"access-control" not in answer.lower()
    assert [type(frame) for frame in relay.tap.frames] == [frames.Refusal]
    assert len(upstream.wires) == before
    return answer


@pytest.mark.parametrize("host", BAD_HOSTS)
@pytest.mark.parametrize("path", ROUTES)
def test_another_host_header_gets_status_421_on_every_route(
    stage: tuple[Running, Upstream], path: str, host: str
) -> None:
    for method in METHODS:
        assert refused(stage, path, method, host, "").startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("header", BAD_HEADERS)
@pytest.mark.parametrize("path", ROUTES)
def test_a_web_page_request_gets_status_403_on_every_route(
    stage: tuple[Running, Upstream], path: str, header: str
) -> None:
    for method in METHODS:
        answer = refused(stage, path, method, "127.0.0.1:{ours}", header + "\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(("host", "header"), GOOD)
def test_local_programs_are_served(stage: tuple[Running, Upstream], host: str, header: str) -> None:
    relay, upstream = stage
    assert ask(relay, b"GET", f"/anthropic/127.0.0.1:{upstream.port}/", host, header) == response()


def test_a_refused_head_request_gets_no_body(stage: tuple[Running, Upstream]) -> None:
    answer = refused(stage, "/", b"HEAD", "evil.test", "")
    assert answer.endswith(b"\r\n\r\n")


def test_the_relay_listens_on_loopback_only(stage: tuple[Running, Upstream]) -> None:
    relay, _ = stage
    server = relay.relay._server
    assert server is not None
    assert [sock.getsockname()[0] for sock in server.sockets] == ["127.0.0.1"]
