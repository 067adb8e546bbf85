"""TLS to the upstream, verified; and through an HTTPS_PROXY."""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent_logger.config import Origin
from agent_logger.proxy.relay import upstream as connecting
from agent_logger.proxy.relay.route import Routes
from agent_logger.proxy.relay.upstream import HttpsProxy
from tests.proxy.wires import Upstream, Wire, pump, relaying, response


@dataclass
class Authority:
    """A throw-away CA that has signed for `localhost`."""

    ca_file: str
    server: ssl.SSLContext
    names: list[str | None]  # what clients asked for, by SNI


def _signed(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey,
            *extensions: tuple[x509.ExtensionType, bool]) -> x509.Certificate:  # fmt: skip
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(1))
    builder = builder.not_valid_after(now + datetime.timedelta(1))
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(signer, hashes.SHA256())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("ca")
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root, leaf = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("test CA", "localhost")
    )
    usage = x509.KeyUsage(*([True] + [False] * 4 + [True, True] + [False] * 2))
    identifier = x509.SubjectKeyIdentifier.from_public_key(root_key.public_key())
    basic = x509.BasicConstraints(ca=True, path_length=None)
    ca = _signed(root, root, root_key, root_key, (basic, True), (usage, True), (identifier, False))
    names = x509.SubjectAlternativeName(
        [
            x509.DNSName("localhost"),
            x509.DNSName("api.openai.com"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
    )
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key())
    cert = _signed(leaf, root, key, root_key, (names, False), (issued_by, False))
    (folder / "ca.pem").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(pem + cert.public_bytes(serialization.Encoding.PEM))
    return _authority(folder)


def _authority(folder: Path) -> Authority:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    names: list[str | None] = []
    context.sni_callback = lambda _sock, name, _context: names.append(name)
    return Authority(str(folder / "ca.pem"), context, names)


def over_tls(authority: Authority, answer: bytes) -> "Upstream":
    def play(wire: Wire) -> None:
        with (
            contextlib.suppress(OSError, EOFError),
            Wire(authority.server.wrap_socket(wire.sock, server_side=True)) as secure,
        ):
            while True:
                secure.message()
                secure.send(answer)

    return Upstream(play)


def test_the_upstream_is_verified_against_the_given_certificates(authority: Authority) -> None:
    authority.names.clear()
    with over_tls(authority, response(b"secure")) as upstream:
        origin = Origin("https", "localhost", upstream.port)
        with relaying(origin, ca_file=authority.ca_file) as relay, relay.client() as client:
            for _ in range(2):
                client.send(relay.request(b"/anthropic/localhost:%d/v1" % upstream.port, b"{}"))
                assert client.message() == response(b"secure")
    assert authority.names == ["localhost"]  # one handshake


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_an_upstream_that_nobody_vouches_for_is_not_spoken_to(authority: Authority, host: str) -> None:
    with over_tls(authority, response(b"secure")) as upstream:
        with relaying(Origin("https", host, upstream.port)) as relay, relay.client() as client:
            client.send(relay.request(b"/anthropic/%b:%d/v1" % (host.encode(), upstream.port), b"{}"))
            assert client.rest().startswith(b"HTTP/1.1 502 ")
            assert relay.tap.reason() == "tls"
        assert upstream.wires[0].read == b""


def test_a_certificate_for_another_name_is_refused(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(connecting, "_resolve", resolve)
    with over_tls(authority, response(b"secure")) as upstream:
        origin = Origin("https", "other.test", upstream.port)
        with relaying(origin, ca_file=authority.ca_file) as relay, relay.client() as client:
            client.send(relay.request(b"/anthropic/other.test:%d/v1" % upstream.port, b"{}"))
            assert client.rest().startswith(b"HTTP/1.1 502 ")
            assert relay.tap.reason() == "tls"


def test_an_upstream_that_speaks_no_tls_is_a_failure_of_tls() -> None:
    def play(wire: Wire) -> None:
        wire.more()
        wire.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Upstream(play) as upstream, relaying(Origin("https", "127.0.0.1", upstream.port)) as relay:
        with relay.client() as client:
            client.send(relay.request(b"/anthropic/127.0.0.1:%d/v1" % upstream.port, b"{}"))
            assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert relay.tap.reason() == "tls"


def test_a_cut_inside_tls_is_a_cut(authority: Authority) -> None:
    def play(wire: Wire) -> None:
        secure = Wire(authority.server.wrap_socket(wire.sock, server_side=True))
        secure.message()
        secure.send(response(b"x" * 100)[:-50])
        secure.sock.shutdown(socket.SHUT_RDWR)
        secure.close()

    with Upstream(play) as upstream:
        origin = Origin("https", "localhost", upstream.port)
        with relaying(origin, ca_file=authority.ca_file) as relay, relay.client() as client:
            client.send(relay.request(b"/anthropic/localhost:%d/v1" % upstream.port, b"{}"))
            client.end()
            assert client.read == response(b"x" * 100)[:-50]
            assert relay.tap.reason() in ("short_body", "upstream_reset")


# ---- HTTPS_PROXY


class Proxy:
    """A forward proxy that connects everything to one port."""

    def __init__(
        self,
        port: int,
        answer: bytes,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._port, self._answer, self.tls = port, answer, tls
        self.heads: list[bytes] = []

    def play(self, wire: Wire) -> None:
        if self.tls:
            with (
                contextlib.suppress(OSError),
                Wire(self.tls.wrap_socket(wire.sock, server_side=True)) as secure,
            ):
                self._connect(secure)
        else:
            self._connect(wire)

    def _connect(self, wire: Wire) -> None:
        self.heads.append(wire.head())
        wire.send(self._answer)
        if b" 200 " not in self._answer:
            wire.close()
            return
        with socket.create_connection(("127.0.0.1", self._port)) as onward:
            back = threading.Thread(target=pump, args=(onward, wire.sock))
            back.start()
            pump(wire.sock, onward)
            back.join()


@contextlib.contextmanager
def forward_proxy(
    port: int,
    answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n",
    tls: ssl.SSLContext | None = None,
) -> Iterator[tuple[Proxy, str]]:
    proxy = Proxy(port, answer, tls)
    with Upstream(proxy.play) as listening:
        yield proxy, f"http{'s' if tls else ''}://us%65r:p%40ss@localhost:{listening.port}"


def test_known_hosts_are_reached_through_the_https_proxy(authority: Authority) -> None:
    """The name is not even resolved here: the allowlist of origins alone decides."""
    with (
        over_tls(authority, response(b"far away")) as upstream,
        forward_proxy(upstream.port) as (proxy, url),
        relaying(ca_file=authority.ca_file, https_proxy=url) as relay,
        relay.client() as client,
        relay.client() as other,
    ):
        client.send(relay.request(b"/openai/api.openai.com/v1/responses", b"{}"))
        assert client.message() == response(b"far away")
        other.send(relay.request(b"/openai/evil.test/v1/responses", b"{}"))
        assert other.rest().startswith(b"HTTP/1.1 403 ")
    basic = b"Proxy-Authorization: Basic dXNlcjpwQHNz\r\n"
    assert proxy.heads == [
        b"CONNECT api.openai.com:443 HTTP/1.1\r\nHost: api.openai.com:443\r\n" + basic + b"\r\n"
    ]


def test_a_proxy_may_be_spoken_to_over_tls(authority: Authority) -> None:
    """TLS inside TLS, with more in both directions than any buffer holds."""
    big = response(b"y" * 2_000_000)
    with (
        over_tls(authority, big) as upstream,
        forward_proxy(upstream.port, tls=authority.server) as (proxy, url),
        relaying(ca_file=authority.ca_file, https_proxy=url) as relay,
        relay.client() as client,
    ):
        assert url.startswith("https://")
        authority.names.clear()
        for _ in range(2):
            client.send(relay.request(b"/openai/api.openai.com/v1/responses", b"x" * 2_000_000))
            assert client.message() == big
        client.close()
        assert relay.tap.reason() is None
    assert authority.names == ["localhost", "api.openai.com"]
    assert len(proxy.heads) == 1


def test_a_proxy_that_nobody_vouches_for_is_not_told_anything(authority: Authority) -> None:
    with (
        forward_proxy(1, tls=authority.server) as (proxy, url),
        relaying(https_proxy=url) as relay,
        relay.client() as client,
    ):
        client.send(relay.request(b"/openai/api.openai.com/v1/responses", b"{}"))
        assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert relay.tap.reason() == "tls"
    assert proxy.heads == []


def test_an_upstream_behind_a_proxy_is_verified_too(authority: Authority) -> None:
    """The proxy leads to one that has no certificate for that name."""
    with (
        over_tls(authority, response(b"not it")) as upstream,
        forward_proxy(upstream.port, tls=authority.server) as (_, url),
        relaying(ca_file=authority.ca_file, https_proxy=url) as relay,
        relay.client() as client,
    ):
        client.send(relay.request(b"/openai/api.mistral.ai/v1/responses", b"{}"))
        assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert relay.tap.reason() == "tls"


def test_plain_http_and_what_no_proxy_names_go_directly(authority: Authority) -> None:
    with over_tls(authority, response(b"near")) as upstream, forward_proxy(1) as (proxy, url):
        origin = Origin("https", "localhost", upstream.port)
        options = {"ca_file": authority.ca_file, "https_proxy": url, "no_proxy": "example.com, localhost"}
        with relaying(origin, **options) as relay, relay.client() as client:
            client.send(relay.request(b"/openai/localhost:%d/v1" % upstream.port, b"{}"))
            assert client.message() == response(b"near")
    assert proxy.heads == []


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 407 No\r\n\r\n", b"HTTP/1.1 502 Bad\r\n\r\n", b"", b"nonsense\r\n\r\n"]
)
def test_a_proxy_that_does_not_connect_is_no_connection(answer: bytes) -> None:
    with (
        forward_proxy(1, answer=answer) as (_, url),
        relaying(https_proxy=url) as relay,
        relay.client() as client,
    ):
        client.send(relay.request(b"/openai/api.openai.com/v1", b"{}"))
        assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert relay.tap.reason() == "connect_refused"


@pytest.mark.parametrize(
    ("no_proxy", "direct"),
    [
        ("", []),
        ("*", ["a.test", "b.a.test", "other"]),
        ("a.test", ["a.test", "b.a.test"]),
        (".a.test", ["a.test", "b.a.test"]),
        ("A.TEST:443", ["a.test", "b.a.test"]),
        ("a.test:8443,other", ["other"]),
    ],
)
def test_no_proxy_names_hosts_and_what_is_under_them(no_proxy: str, direct: list[str]) -> None:
    proxy = HttpsProxy.parse("127.0.0.1:3128", no_proxy)
    assert proxy is not None
    assert [host for host in ("a.test", "b.a.test", "xa.test", "other") if not proxy.serves(host, 443)] == (
        [*direct[:2], "xa.test", *direct[2:]] if no_proxy == "*" else direct
    )


@pytest.mark.parametrize(
    ("no_proxy", "direct"),
    [("::1", True), ("[::1]", True), ("[::1]:443", True), ("[::1]:80", False), ("::2", False), ("1", False)],
)
def test_no_proxy_names_ipv6_addresses(no_proxy: str, direct: bool) -> None:
    proxy = HttpsProxy.parse("127.0.0.1:3128", no_proxy)
    assert proxy is not None
    assert proxy.serves("::1", 443) is not direct
    route = Routes([Origin.parse("https://[::1]")]).find(b"/openai/[::1]/v1")
    assert proxy.request(route).startswith(b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n")


@pytest.mark.parametrize("url", ["ftp://proxy.test:3128", "socks5://proxy.test", "http://", "https://"])
def test_a_proxy_we_cannot_use_is_an_error_at_start(url: str) -> None:
    with pytest.raises(ValueError, match="HTTPS_PROXY"):
        HttpsProxy.parse(url)
