"""The test internet plays any host, and notes what its clients offer."""

import base64
import http.client
import ssl
import time
from pathlib import Path

import pytest

from tests.fakeapi import FakeAPI

from . import ClientHello, Internet, Site


def _ask(internet: Internet, host: str, path: str, *, ca_file: Path | None, user: str = "") -> bytes:
    context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    connection = http.client.HTTPSConnection("127.0.0.1", internet.proxy_port, context=context, timeout=60)
    headers = {"Proxy-Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if user else {}
    connection.set_tunnel(host, 443, headers)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_any_host_is_the_server_that_plays_it(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "page.txt").write_text("a page")
    site = Site(tmp_path / "site")
    with FakeAPI("hello") as api, site, Internet(tmp_path, api.port, {"files.example.test": site.port}) as internet:
        assert b"claude-fake-1" in _ask(internet, "api.example.test", "/v1/models", ca_file=internet.ca_file)
        assert _ask(internet, "files.example.test", "/page.txt", ca_file=internet.ca_file) == b"a page"
        assert [call.path for call in api.calls] == ["/v1/models"]
    [first, second] = internet.tunnels
    assert (first.target, first.is_trusted) == ("api.example.test:443", True)
    assert first.hello and first.hello.server_name == "api.example.test"
    assert second.first.startswith(b"GET /page.txt")


def test_a_client_that_does_not_trust_the_authority_is_noted(tmp_path: Path) -> None:
    with FakeAPI("hello") as api, Internet(tmp_path, api.port) as internet:
        with pytest.raises(ssl.SSLCertVerificationError):
            _ask(internet, "api.example.test", "/v1/models", ca_file=None)
        give_up = time.monotonic() + 60
        while internet.tunnels[0].is_trusted is None and time.monotonic() < give_up:
            time.sleep(0.02)
        assert api.calls == []
    assert [tunnel.is_trusted for tunnel in internet.tunnels] == [False]


def test_a_user_and_a_password_may_be_demanded(tmp_path: Path) -> None:
    with FakeAPI("hello") as api, Internet(tmp_path, api.port, credentials="me:secret") as internet:
        with pytest.raises(OSError, match="407"):
            _ask(internet, "api.example.test", "/v1/models", ca_file=internet.ca_file)
        assert _ask(internet, "api.example.test", "/v1/models", ca_file=internet.ca_file, user="me:secret")
    assert [(tunnel.status, tunnel.credentials) for tunnel in internet.tunnels] == [(407, None), (200, "me:secret")]


def test_a_client_hello_tells_what_the_client_offers() -> None:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname="api.example.test")
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    data = outgoing.read()
    hello = ClientHello.parse(data)
    assert hello and (hello.server_name, hello.alpn) == ("api.example.test", ("h2", "http/1.1"))
    assert {"1.2", "1.3"} <= set(hello.versions)
    assert all(ClientHello.parse(data[:length]) in (None, hello) for length in range(len(data)))
    assert ClientHello.parse(b"GET / HTTP/1.1\r\n\r\n") is None
