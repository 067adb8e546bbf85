"""Only what was allowed is connected to: by the spelling in the URL, and by the address it resolves to."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from agent_logger.config import Origin
from agent_logger.proxy.relay import upstream
from agent_logger.proxy.relay.route import KNOWN_HOSTS, NotAllowedError, Routes, is_public
from agent_logger.proxy.spool import frames
from tests.proxy.wires import Running, Upstream, Wire, answering, relaying, response

# `{port}` is one that a canary listens on, on all of loopback.
SPELLINGS = [
    "127.0.0.1:{port}", "127.0.0.2:{port}", "127.1:{port}", "127.0.1:{port}", "2130706433:{port}", "0x7f000001:{port}",
    "0x7f.0.0.1:{port}", "0177.0.0.1:{port}", "017700000001:{port}", "127.0.0.1.:{port}", "127.000.000.001:{port}",
    "0:{port}", "0.0.0.0:{port}", "00.0.0.0:{port}", "localhost:{port}", "LOCALHOST:{port}", "localhost.:{port}",
    "localhost.localdomain:{port}", "ip6-localhost:{port}", "[::1]:{port}", "[::]:{port}", "[::ffff:127.0.0.1]:{port}",
    "[::ffff:7f00:1]:{port}", "[0:0:0:0:0:ffff:7f00:1]:{port}", "[::127.0.0.1]:{port}", "[64:ff9b::7f00:1]:{port}",
    "::1:{port}", "::ffff:127.0.0.1", "user@127.0.0.1:{port}", "api.anthropic.com@127.0.0.1:{port}",
    "api.anthropic.com:x@127.0.0.1:{port}", "127.0.0.1:{port}@api.anthropic.com",
    "api.anthropic.com%40127.0.0.1:{port}",
    "%31%32%37.0.0.1:{port}", "127%2e0%2e0%2e1:{port}", "127.0.0.1%3a{port}", "api.anthropic.com%2f@127.0.0.1:{port}",
    "api.anthropic.com\\@127.0.0.1:{port}", "127.0.0.1:{port}\\.api.anthropic.com", "api.anthropic.com:{port}",
    "api.anthropic.com.", "api.anthropic.com.:{port}", "api.anthropic.com:443", "api.anthropic.com:80",
    "api.anthropic.com:0443", "api.anthropic.com:", "api.anthropic.com:22", "xapi.anthropic.com",
    "api.anthropic.com.evil.test", "api-anthropic.com", "api..anthropic.com", ".api.anthropic.com",
    "-api.anthropic.com",
    "api.anthropic.com;127.0.0.1", "api.anthropic.com,127.0.0.1", "169.254.169.254", "169.254.169.254:80", "2852039166",
    "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:a9fe:a9fe]", "metadata.google.internal", "10.0.0.1", "192.168.0.1",
    "172.16.0.1", "100.64.0.1", "224.0.0.1", "xn--pi-5ia.anthropic.com", "file:", "http:", "https:", "..", ".", "", "*",
    "%00", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:0x50", "127.0.0.1:{port}:{port}", "localhost:{port}%23",
]  # fmt: skip


@pytest.fixture(scope="module")
def canary() -> Iterator[socket.socket]:
    """Listens on every address of this machine, and hears nothing."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        listener.settimeout(0)
        yield listener


@pytest.fixture(scope="module")
def relay() -> Iterator[Running]:
    with relaying(Origin.parse("http://127.0.0.1:1"), Origin.parse("https://llm.example.com")) as running:
        yield running


def test_at_least_60_host_spellings_are_tested() -> None:
    assert len(SPELLINGS) >= 60


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_a_host_that_is_not_allowed_is_refused(
    relay: Running, canary: socket.socket, monkeypatch: pytest.MonkeyPatch, spelling: str, provider: str
) -> None:
    touched: list[object] = []
    monkeypatch.setattr(upstream, "_resolve", lambda *name: touched.append(name))
    host = spelling.format(port=canary.getsockname()[1])
    relay.tap.frames.clear()
    with relay.client() as client:
        client.send(relay.request(f"/{provider}/{host}/latest/meta-data".encode(), method=b"GET"))
        answer = client.rest()
    assert answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 404 ", b"HTTP/1.1 400 "))
    assert b"\r\nx-agent-logger-error: " in answer
    assert [type(frame) for frame in relay.tap.frames] == [frames.Refusal]
    with pytest.raises(BlockingIOError):
        canary.accept()
    assert not touched


@pytest.mark.parametrize(
    "target",
    [
        "/", "/anthropic", "/anthropic/", "//127.0.0.1/", "/Anthropic/api.anthropic.com/", "/mistral/api.mistral.ai/v1",
        "/anthropic//api.anthropic.com/", "/../anthropic/api.anthropic.com/", "/anthropic%2fapi.anthropic.com/",
        "/health", "/anthropic?/api.anthropic.com/", "/anthropic/\\api.anthropic.com/",
    ],
)  # fmt: skip
def test_a_path_without_provider_and_host_is_not_allowed(target: str) -> None:
    with pytest.raises(NotAllowedError):
        Routes().find(target.encode())


@pytest.mark.parametrize("host", KNOWN_HOSTS)
def test_known_hosts_use_https_on_port_443(host: str) -> None:
    route = Routes().find(f"/openai/{host.upper()}/v1/%2F?x=%20".encode())
    assert (route.host, route.port, route.tls, route.name) == (host, 443, True, host)
    assert (route.path, route.any_address) == (b"/v1/%2F?x=%20", False)


def test_an_allowed_origin_includes_its_port_unless_the_port_is_443() -> None:
    routes = Routes(map(Origin.parse, ["https://llm.example.com", "http://127.0.0.1:11434", "https://x.test:8443"]))
    found = [
        routes.find(f"/openai/{name}/v1".encode()) for name in ("llm.example.com", "127.0.0.1:11434", "x.test:8443")
    ]
    assert [(route.port, route.tls, route.any_address) for route in found] == [
        (443, True, True),
        (11434, False, True),
        (8443, True, True),
    ]
    for other in ("llm.example.com:443", "127.0.0.1", "x.test", "x.test:443"):
        with pytest.raises(NotAllowedError):
            routes.find(f"/openai/{other}/v1".encode())


OTHERWISE = [
    "[0:0::1]:{}", "[0:0:0:0:0:0:0:1]:{}", "[::01]:{}", "[::1%25lo]:{}", "[::1%lo]:{}", "::1:{}", "[::1]", "[::1]:",
    "[::1]:0{}", "[::1].:{}", "[[::1]]:{}", "[::1]]:{}", "[]:{}", "[:]:{}", "[::ffff:127.0.0.1]:{}", "[::1.]:{}",
    "127.0.0.1:{}", "localhost:{}", "x@[::1]:{}", "%5B::1%5D:{}", "[::1]:{}@evil.test", "[v1.x]:{}",
]  # fmt: skip


@pytest.fixture
def over_ipv6() -> Iterator[Upstream]:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=512)
    except OSError as error:
        pytest.skip(f"needs IPv6: {error}")
    with Upstream(answering(response(b"six")), listener) as upstream:
        yield upstream


def test_an_ipv6_origin_is_allowed_only_in_canonical_form(over_ipv6: Upstream) -> None:
    port = over_ipv6.port
    with relaying(Origin.parse(f"http://[0:0::1]:{port}")) as relay:
        with relay.client() as client:
            client.send(relay.request(b"/openai/[::1]:%d/v1" % port, b"{}"))
            assert client.message() == response(b"six")
        assert b"\r\nHost: [::1]:%d\r\n" % port in over_ipv6.wires[0].read
        for other in OTHERWISE:
            with relay.client() as client:
                client.send(relay.request(f"/openai/{other.format(port)}/v1".encode(), method=b"GET"))
                assert client.rest().startswith(b"HTTP/1.1 40"), other
        assert len(over_ipv6.wires) == 1


PRIVATE = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.0.8", "198.18.0.1", "192.0.2.1", "::1", "::",
    "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1",
    "ff02::1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::", "2001:db8::1",
    "2001:0:7f00:1::", "100::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_a_known_name_that_resolves_to_a_private_address_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Rebinding: the name is right, its address is ours."""
    dialled: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        return [address]

    async def dial(address: str, port: int) -> socket.socket:
        dialled.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(upstream, "_resolve", resolve)
    monkeypatch.setattr(upstream, "_dial", dial)
    with relaying() as relay, relay.client() as client:
        client.send(relay.request(b"/openai/api.openai.com/v1/models", method=b"GET"))
        assert client.rest().startswith(b"HTTP/1.1 403 ")
        assert relay.tap.reason() == "refused"
    assert dialled == []
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "160.79.104.10", "2606:4700::1111", "64:ff9b::808:808"])
def test_only_public_addresses_of_a_known_name_are_connected_to(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    dialled: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        return ["10.0.0.1", address, "127.0.0.1"]

    async def dial(address: str, port: int) -> socket.socket:
        dialled.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(upstream, "_resolve", resolve)
    monkeypatch.setattr(upstream, "_dial", dial)
    with relaying() as relay, relay.client() as client:
        client.send(relay.request(b"/openai/api.openai.com/v1/models", method=b"GET"))
        assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert relay.tap.reason() == "connect_refused"
    assert dialled == [address]


def test_a_redirect_is_passed_to_the_client() -> None:
    moved = response(b"", b"302 Found", b"Location: http://127.0.0.1:1/steal\r\n")
    with Upstream(answering(moved)) as target, relaying(target.origin) as relay, relay.client() as client:
        client.send(relay.request(target.path(), b"{}"))
        assert client.message() == moved
        assert len(target.wires) == 1


def test_dns_failures_get_status_502_and_connect_timeouts_504(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silence(address: str, port: int) -> socket.socket:
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr(upstream, "_dial", silence)
    with relaying(Origin.parse("http://10.255.255.1:81"), Origin.parse("http://no.such.invalid:80")) as relay:
        relay.relay.connector.connect_seconds = 0.2
        for host, status, reason in [
            ("10.255.255.1:81", 504, "connect_timeout"),
            ("no.such.invalid:80", 502, "dns"),
        ]:
            with relay.client() as client:
                client.send(relay.request(f"/openai/{host}/v1".encode(), method=b"GET"))
                assert client.rest().startswith(b"HTTP/1.1 %d " % status)
            assert relay.tap.reason() == reason


def test_the_upstream_gets_its_own_host_header() -> None:
    def play(wire: Wire) -> None:
        head = wire.head()
        wire.send(response(head))

    with Upstream(play) as target, relaying(target.origin) as relay, relay.client() as client:
        client.send(relay.request(target.path("/x"), method=b"GET"))
        assert client.message().endswith(b"\r\n\r\nGET /x HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % target.port)
