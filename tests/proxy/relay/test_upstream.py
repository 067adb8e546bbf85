"""TLS to the upstream, verified; and through an HTTPS_PROXY."""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent_logger.config import Network, Origin
from agent_logger.proxy.relay import upstream as connecting
from agent_logger.proxy.relay.upstream import HttpsProxy
from agent_logger.proxy.spool import frames
from tests.proxy.wires import Upstream, Wire, answering, pump, relaying, response


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
    root, leaf = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("test CA", "localhost"))
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
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
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
def test_an_upstream_with_an_untrusted_certificate_gets_no_request(authority: Authority, host: str) -> None:
    with over_tls(authority, response(b"secure")) as upstream:
        with relaying(Origin("https", host, upstream.port)) as relay, relay.client() as client:
            client.send(relay.request(b"/anthropic/%b:%d/v1" % (host.encode(), upstream.port), b"{}"))
            assert client.rest().startswith(b"HTTP/1.1 502 ")
            assert relay.tap.reason() == "tls"
        assert upstream.wires[0].read == b""


def test_a_certificate_for_another_name_is_rejected(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(connecting, "_resolve", resolve)
    with over_tls(authority, response(b"secure")) as upstream:
        origin = Origin("https", "other.test", upstream.port)
        with relaying(origin, ca_file=authority.ca_file) as relay, relay.client() as client:
            client.send(relay.request(b"/anthropic/other.test:%d/v1" % upstream.port, b"{}"))
            assert client.rest().startswith(b"HTTP/1.1 502 ")
            assert relay.tap.reason() == "tls"


def test_an_upstream_without_tls_fails_with_the_reason_tls() -> None:
    def play(wire: Wire) -> None:
        wire.more()
        wire.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Upstream(play) as upstream, relaying(Origin("https", "127.0.0.1", upstream.port)) as relay:
        with relay.client() as client:
            client.send(relay.request(b"/anthropic/127.0.0.1:%d/v1" % upstream.port, b"{}"))
            assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert relay.tap.reason() == "tls"


def test_a_cut_inside_tls_is_passed_to_the_client(authority: Authority) -> None:
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
    assert proxy.heads == [b"CONNECT api.openai.com:443 HTTP/1.1\r\nHost: api.openai.com:443\r\n" + basic + b"\r\n"]


def test_the_https_proxy_may_itself_use_tls(authority: Authority) -> None:
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


def test_an_https_proxy_with_an_untrusted_certificate_gets_no_request(authority: Authority) -> None:
    with (
        forward_proxy(1, tls=authority.server) as (proxy, url),
        relaying(https_proxy=url) as relay,
        relay.client() as client,
    ):
        client.send(relay.request(b"/openai/api.openai.com/v1/responses", b"{}"))
        assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert relay.tap.reason() == "tls"
    assert proxy.heads == []


def test_an_upstream_behind_an_https_proxy_is_verified(authority: Authority) -> None:
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


def test_hosts_in_no_proxy_are_connected_directly(authority: Authority) -> None:
    with over_tls(authority, response(b"near")) as upstream, forward_proxy(1) as (proxy, url):
        origin = Origin("https", "localhost", upstream.port)
        options = {"ca_file": authority.ca_file, "https_proxy": url, "no_proxy": "example.com, localhost"}
        with relaying(origin, **options) as relay, relay.client() as client:
            client.send(relay.request(b"/openai/localhost:%d/v1" % upstream.port, b"{}"))
            assert client.message() == response(b"near")
    assert proxy.heads == []


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 No\r\n\r\n", b"HTTP/1.1 502 Bad\r\n\r\n", b"", b"nonsense\r\n\r\n"])
def test_a_failed_connect_through_the_https_proxy_gets_status_502(answer: bytes) -> None:
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
def test_no_proxy_matches_hosts_and_their_subdomains(no_proxy: str, direct: list[str]) -> None:
    proxy = HttpsProxy.parse("127.0.0.1:3128", no_proxy)
    assert proxy is not None
    assert [host for host in ("a.test", "b.a.test", "xa.test", "other") if not proxy.serves(host, 443)] == (
        [*direct[:2], "xa.test", *direct[2:]] if no_proxy == "*" else direct
    )


@pytest.mark.parametrize(
    ("no_proxy", "direct"),
    [("::1", True), ("[::1]", True), ("[::1]:443", True), ("[::1]:80", False), ("::2", False), ("1", False)],
)
def test_no_proxy_matches_ipv6_addresses(no_proxy: str, direct: bool) -> None:
    proxy = HttpsProxy.parse("127.0.0.1:3128", no_proxy)
    assert proxy is not None
    assert proxy.serves("::1", 443) is not direct
    assert proxy.request("::1", 443).startswith(b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n")


@pytest.mark.parametrize("url", ["ftp://proxy.test:3128", "socks5://proxy.test", "http://", "https://"])
def test_an_unsupported_https_proxy_url_raises_at_start(url: str) -> None:
    with pytest.raises(ValueError, match="HTTPS_PROXY"):
        HttpsProxy.parse(url)


# ---------------------------------------------------------------- connections


def test_a_connection_that_the_upstream_does_not_keep_is_closed() -> None:
    """It announces the end, and leaves it to its client to close."""
    ends: list[str] = []

    def play(wire: Wire) -> None:
        wire.message()
        wire.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        ends.append(wire.end())

    with Upstream(play) as upstream, relaying(upstream.origin) as relay, relay.client() as client:
        client.send(relay.request(upstream.path()))
        assert client.message().endswith(b"ok")
        give_up = time.monotonic() + 20
        while not ends and time.monotonic() < give_up:
            time.sleep(0.01)
        assert ends == ["closed"]


def test_an_upstream_that_accepts_no_connection_delays_no_other_call() -> None:
    with socket.socket() as deaf, contextlib.ExitStack() as stack:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        while True:  # until its queue is full, and the system answers no more
            filling = stack.enter_context(socket.socket())
            filling.settimeout(0.3)
            try:
                filling.connect(deaf.getsockname())
            except TimeoutError:
                break
        origin = Origin.parse(f"http://127.0.0.1:{deaf.getsockname()[1]}")
        with (
            Upstream(answering(response())) as upstream,
            relaying(upstream.origin, origin) as relay,
            relay.client() as waiting,
            relay.client(5.0) as client,
        ):
            waiting.send(relay.request(b"/anthropic/127.0.0.1:%d/v1/messages" % origin.port))
            time.sleep(0.2)
            client.send(relay.request(upstream.path()))
            assert client.message().startswith(b"HTTP/1.1 200")


# ---------------------------------------------------------------- registered runs

ONE, OTHER = "alr_" + "1" * 32, "alr_" + "2" * 32


def test_each_registered_run_goes_its_own_way(authority: Authority) -> None:
    """To the same host, through different proxies, with certificates that the relay itself does not trust."""
    with (
        over_tls(authority, response(b"secure")) as upstream,
        forward_proxy(upstream.port) as (first, first_url),
        forward_proxy(upstream.port) as (second, second_url),
        relaying() as relay,
    ):
        for token, url in ((ONE, first_url), (OTHER, second_url)):
            relay.relay.routes.register(
                token[-4:], token, (), Network(https_proxy=url, extra_ca_file=authority.ca_file)
            )
        for token, count in ((ONE, 1), (OTHER, 2), (ONE, 3)):
            for _ in range(count):
                with relay.client() as client:
                    client.send(relay.request(f"/{token}/openai/api.openai.com/v1/models".encode()))
                    assert client.message() == response(b"secure")
        assert (len(first.heads), len(second.heads)) == (1, 1)  # connections are kept, each for its own run
        heads = [frame for frame in relay.tap.frames if isinstance(frame, frames.RequestHeadFrame)]
        assert [head.run for head in heads] == ["1111"] + ["2222"] * 2 + ["1111"] * 3
        assert not any(b"alr_" in head.head + head.path for head in heads)


def test_the_token_of_an_ended_run_is_refused(authority: Authority) -> None:
    with (
        over_tls(authority, response(b"secure")) as upstream,
        relaying() as relay,
        relay.client() as client,
    ):
        origin = Origin("https", "localhost", upstream.port)
        relay.relay.routes.register("1", ONE, [origin], Network(ca_file=authority.ca_file))
        target = f"/{ONE}/openai/localhost:{upstream.port}/v1/models".encode()
        client.send(relay.request(target))
        assert client.message() == response(b"secure")
        relay.relay.routes.withdraw(ONE)
        client.send(relay.request(target))
        assert client.rest().startswith(b"HTTP/1.1 403 ")


def test_a_certificate_file_of_a_run_that_cannot_be_read_is_ignored(authority: Authority) -> None:
    """As Node does with NODE_EXTRA_CA_CERTS."""
    with over_tls(authority, response(b"secure")) as upstream, relaying() as relay, relay.client() as client:
        network = Network(ca_file=authority.ca_file, extra_ca_file="/no/such/file")
        relay.relay.routes.register("1", ONE, [Origin("https", "localhost", upstream.port)], network)
        client.send(relay.request(f"/{ONE}/openai/localhost:{upstream.port}/v1/models".encode()))
        assert client.message() == response(b"secure")
