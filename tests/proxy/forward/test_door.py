"""Clients that take the relay for their proxy: who may, what is opened, what is passed on, and what is counted."""

import base64
import contextlib
import errno
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from agent_logger.config import Network, Origin
from agent_logger.proxy.forward import certificates
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.forward.traffic import HostTraffic
from agent_logger.proxy.spool import frames
from tests.proxy.tls_wire import TlsSocket
from tests.proxy.wires import (
    RECORDED,
    TOKEN,
    PlainConnector,
    Running,
    Upstream,
    Wire,
    answering,
    connect_request,
    pump,
    registered,
    relaying,
    response,
    trusting,
    wait_for,
)

HOST = f"api.{RECORDED}"
ECHO = b"\x00\xffSSH-2.0-echo\r\n"


def echo(wire: Wire) -> None:
    with contextlib.suppress(OSError):
        while data := wire.sock.recv(65536):
            wire.send(data)
        wire.send(b"the end")
    wire.close()


@contextlib.contextmanager
def opening(*origins: Origin, network: Network | None = None) -> Iterator[Running]:
    """A relay with a run that has these origins, and that reaches recorded hosts on this machine, without TLS."""
    with relaying() as relay:
        connector = PlainConnector(relay.relay.batch, Network())

        def begin() -> None:
            relay.relay.connector = connector
            registered(relay.relay, *origins, network=network or Network())

        relay.do(begin)
        yield relay


def counted(relay: Running, host: str) -> HostTraffic:
    found = relay.do(lambda: relay.relay.forward.hosts_of(TOKEN))
    return next((traffic for traffic in found if traffic.host == host), HostTraffic(host=host))


def wait_for_count(relay: Running, host: str, is_reached: Callable[[HostTraffic], bool]) -> HostTraffic:
    wait_for(
        relay,
        lambda: any(it.host == host and is_reached(it) for it in relay.relay.forward.hosts_of(TOKEN)),
    )
    return counted(relay, host)


# ---------------------------------------------------------------- the token


WITHOUT_TOKEN = {
    "none": "",
    "of nobody": "Proxy-Authorization: Basic " + base64.b64encode(b"agent-logger:alr_" + b"x" * 32).decode() + "\r\n",
    "of another user": "Proxy-Authorization: Basic " + base64.b64encode(f"root:{TOKEN}".encode()).decode() + "\r\n",
    "as the user": "Proxy-Authorization: Basic " + base64.b64encode(f"{TOKEN}:".encode()).decode() + "\r\n",
    "bearer": f"Proxy-Authorization: Bearer {TOKEN}\r\n",
    "not base64": "Proxy-Authorization: Basic !!!\r\n",
    "not ASCII": "Proxy-Authorization: Basic /////w==\r\n",
    "for the host": "Authorization: Basic " + base64.b64encode(f"agent-logger:{TOKEN}".encode()).decode() + "\r\n",
}


@pytest.mark.parametrize("name", WITHOUT_TOKEN)
@pytest.mark.parametrize("form", ["CONNECT", "URL"])
def test_without_a_token_a_client_is_asked_for_one_and_nothing_is_connected(name: str, form: str) -> None:
    with Upstream(echo) as upstream, opening() as relay, relay.client() as client:
        there = f"127.0.0.1:{upstream.port}"
        if form == "CONNECT":
            client.send(connect_request(there, None, WITHOUT_TOKEN[name]))
        else:
            client.send(f"GET http://{there}/ HTTP/1.1\r\nHost: {there}\r\n{WITHOUT_TOKEN[name]}\r\n".encode())
        answer = client.message()
        assert answer.startswith(b"HTTP/1.1 407 ")
        assert b'\r\nproxy-authenticate: Basic realm="agent-logger"\r\n' in answer
        assert b"\r\nconnection: close\r\n" not in answer
        client.send(connect_request(there))  # on the same connection
        assert client.head().startswith(b"HTTP/1.1 200 ")
        client.send(ECHO)
        assert client.take(len(ECHO)) == ECHO
        assert len(upstream.wires) == 1
        assert not relay.tap.frames
        assert relay.do(lambda: relay.relay.forward.without_token) == 1


def test_a_request_with_a_body_that_has_no_token_ends_the_connection() -> None:
    with opening() as relay, relay.client() as client:
        client.send(b"POST http://x.test/ HTTP/1.1\r\nHost: x.test\r\nContent-Length: 5\r\n\r\nhello")
        assert b"\r\nconnection: close\r\n" in client.message()
        assert client.end() == "closed"


def test_a_token_that_was_withdrawn_opens_nothing() -> None:
    with Upstream(echo) as upstream, opening() as relay, relay.client() as client:
        relay.do(lambda: relay.relay.forward.withdraw(TOKEN))
        client.send(connect_request(f"127.0.0.1:{upstream.port}"))
        assert client.message().startswith(b"HTTP/1.1 407 ")


BAD_REQUESTS = {
    "no port": "CONNECT 127.0.0.1 HTTP/1.1",
    "a path": "CONNECT /x HTTP/1.1",
    "a URL": "CONNECT http://127.0.0.1:80/ HTTP/1.1",
    "a user": "CONNECT user@127.0.0.1:80 HTTP/1.1",
    "port 0": "CONNECT 127.0.0.1:0 HTTP/1.1",
    "port 65536": "CONNECT 127.0.0.1:65536 HTTP/1.1",
    "https": "GET https://127.0.0.1/ HTTP/1.1",
    "ftp": "GET ftp://127.0.0.1/ HTTP/1.1",
    "a user in a URL": "GET http://user@127.0.0.1/ HTTP/1.1",
    "no host": "GET http:///x HTTP/1.1",
    "a fragment": "GET http://127.0.0.1/#x HTTP/1.1",
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_target_that_is_not_valid_is_refused(name: str) -> None:
    user = base64.b64encode(f"agent-logger:{TOKEN}".encode()).decode()
    with opening() as relay, relay.client() as client:
        client.send(f"{BAD_REQUESTS[name]}\r\nHost: x\r\nProxy-Authorization: Basic {user}\r\n\r\n".encode())
        assert client.rest().startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("framing", ["Content-Length: 3", "Transfer-Encoding: chunked"])
def test_a_request_for_a_tunnel_has_no_body(framing: str) -> None:
    with Upstream(echo) as upstream, opening() as relay, relay.client() as client:
        client.send(connect_request(f"127.0.0.1:{upstream.port}", headers=f"{framing}\r\n"))
        assert client.rest().startswith(b"HTTP/1.1 400 ")
        assert not upstream.wires


def test_an_old_client_may_ask_for_a_tunnel_with_http_1_0() -> None:
    with Upstream(echo) as upstream, opening() as relay, relay.client() as client:
        client.send(connect_request(f"127.0.0.1:{upstream.port}").replace(b" HTTP/1.1", b" HTTP/1.0"))
        assert client.head().startswith(b"HTTP/1.1 200 ")
        client.send(ECHO)
        assert client.take(len(ECHO)) == ECHO


# ---------------------------------------------------------------- tunnels


def test_a_tunnel_passes_bytes_unread_and_counts_them() -> None:
    block = bytes(range(256)) * 4096
    with Upstream(echo) as upstream, opening() as relay:
        there = f"127.0.0.1:{upstream.port}"
        with relay.tunnelled(there) as client:
            sender = threading.Thread(target=client.send, args=[8 * block])
            sender.start()
            for _ in range(8):
                assert client.take(len(block)) == block
            sender.join()
            assert counted(relay, there).sent_bytes == 8 * len(block)  # while it is open, too
            assert relay.do(lambda: relay.relay.forward.status().open_tunnels) == 1
        traffic = wait_for_count(relay, there, lambda it: it.received_bytes >= 8 * len(block))
        wait_for(relay, lambda: not relay.relay.forward.connections)
        assert (traffic.tunnels, traffic.opened, traffic.calls) == (1, 0, 0)
        assert not relay.tap.frames
        assert relay.do(lambda: relay.relay.forward.connections_of(TOKEN)) == 0


def test_bytes_sent_before_the_answer_belong_to_the_tunnel() -> None:
    with Upstream(echo) as upstream, opening() as relay, relay.client() as client:
        client.send(connect_request(f"127.0.0.1:{upstream.port}") + ECHO)
        assert client.head().startswith(b"HTTP/1.1 200 ")
        assert client.take(len(ECHO)) == ECHO


def test_tunnels_beyond_64_a_second_wait_for_their_turn() -> None:
    with Upstream(echo) as upstream, opening() as relay, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(relay.client()) for _ in range(96)]
        started = time.monotonic()
        for client in clients:
            client.send(connect_request(f"127.0.0.1:{upstream.port}"))
        for client in clients:
            assert client.head().startswith(b"HTTP/1.1 200 ")
        assert time.monotonic() - started > 0.45


def test_a_client_that_closes_its_side_still_gets_what_the_host_sends() -> None:
    with Upstream(echo) as upstream, opening() as relay, relay.tunnelled(f"127.0.0.1:{upstream.port}") as client:
        client.send(b"hello ")
        client.half_close()
        assert client.rest() == b"hello the end"


def test_a_host_that_closes_its_side_still_gets_what_the_client_sends() -> None:
    got: list[bytes] = []

    def play(wire: Wire) -> None:
        wire.send(b"bye")
        wire.half_close()
        got.append(wire.rest())

    with Upstream(play) as upstream, opening() as relay, relay.tunnelled(f"127.0.0.1:{upstream.port}") as client:
        assert client.rest() == b"bye"
        client.send(b"and thanks")
        client.half_close()
    assert got == [b"and thanks"]


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_that_leaves_ends_its_tunnel(leave: str) -> None:
    ends: list[str] = []

    def play(wire: Wire) -> None:
        wire.send(b"hello")
        ends.append(wire.end())

    with Upstream(play) as upstream, opening() as relay:
        client = relay.tunnelled(f"127.0.0.1:{upstream.port}")
        client.take(5)
        getattr(client, leave)()
        wait_for(relay, lambda: not relay.relay.forward.connections)
    assert ends == ["reset" if leave == "reset" else "closed"]


def test_a_reset_of_the_host_comes_after_what_it_sent() -> None:
    def play(wire: Wire) -> None:
        wire.send(b"x" * 300_000)
        wire.take(1)
        wire.reset()

    with Upstream(play) as upstream, opening() as relay, relay.tunnelled(f"127.0.0.1:{upstream.port}") as client:
        assert len(client.take(300_000)) == 300_000
        client.send(b"!")
        assert client.end() == "reset"


def test_a_slow_client_slows_the_host_down() -> None:
    sent: list[int] = []
    is_stuck = threading.Event()

    def play(wire: Wire) -> None:
        wire.sock.settimeout(1.0)
        with contextlib.suppress(TimeoutError):
            while sum(sent) < 100 << 20:
                sent.append(wire.sock.send(bytes(1 << 20)))
        is_stuck.set()

    with Upstream(play) as upstream, opening() as relay, relay.tunnelled(f"127.0.0.1:{upstream.port}") as client:
        assert is_stuck.wait(60)
        assert client.take(1) == b"\0"
    assert sum(sent) < 40 << 20


def test_a_host_that_cannot_be_reached_gets_status_502() -> None:
    with Upstream(echo) as upstream:
        pass
    there = f"127.0.0.1:{upstream.port}"
    with opening() as relay, relay.client() as client:
        client.send(connect_request(there))
        assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert (counted(relay, there).unreachable, counted(relay, there).tunnels) == (1, 0)


METADATA = [
    "169.254.169.254:80", "169.254.170.2:80", "[fe80::1]:80", "[fd00:ec2::254]:80", "[::ffff:169.254.169.254]:80",
    "[64:ff9b::a9fe:a9fe]:80", "2852039166:80", "0xa9fea9fe:80", "100.100.100.200:80",
]  # fmt: skip


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("target", METADATA)
def test_no_tunnel_leads_to_a_metadata_address(target: str, chained: bool) -> None:
    with Upstream(echo) as proxy:
        network = Network(https_proxy=f"http://127.0.0.1:{proxy.port}") if chained else Network()
        with opening(network=network) as relay, relay.client() as client:
            client.send(connect_request(target))
            assert client.rest().startswith(b"HTTP/1.1 403 ")
            assert not any(b"CONNECT" in wire.read for wire in proxy.wires)


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest", "http://[fd00:ec2::254]/"])
def test_no_url_leads_to_a_metadata_address(target: str) -> None:
    user = base64.b64encode(f"agent-logger:{TOKEN}".encode()).decode()
    with opening() as relay, relay.client() as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic {user}\r\n\r\n".encode())
        assert client.rest().startswith(b"HTTP/1.1 403 ")


# ---------------------------------------------------------------- hosts that are opened


def test_a_recorded_host_is_opened_and_the_certificate_is_ours() -> None:
    with Upstream(answering(response(b"fine"))) as upstream:
        with opening(Origin("https", HOST, upstream.port)) as relay, relay.opened(f"{HOST}:{upstream.port}") as client:
            secure = cast("TlsSocket", client.sock)
            assert (secure.version, secure.protocol) == ("TLSv1.3", "http/1.1")
            client.send(b"POST /v1/messages HTTP/1.1\r\nHost: %b:%d\r\nContent-Length: 2\r\n\r\n{}" % (
                HOST.encode(), upstream.port,
            ))  # fmt: skip
            assert client.message() == response(b"fine")
            assert relay.tap.reason() is None
            traffic = counted(relay, f"{HOST}:{upstream.port}")
        assert (traffic.opened, traffic.calls, traffic.tunnels, traffic.not_trusted) == (1, 1, 0, 0)
        [begun] = relay.tap.of(frames.RequestHeadFrame)
        assert (begun.door, begun.provider, begun.upstream) == ("forward", "anthropic", f"{HOST}:{upstream.port}")
        assert begun.run == f"run-{TOKEN[-4:]}"


def asked(host: str, port: int) -> bytes:
    return f"GET /v1/models HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1", "", f"{HOST}, evil.test"])
def test_a_request_for_another_host_in_an_opened_tunnel_is_refused(host: str) -> None:
    with Upstream(answering(response())) as upstream:
        with opening(Origin("https", HOST, upstream.port)) as relay, relay.opened(f"{HOST}:{upstream.port}") as client:
            client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
            assert client.rest().startswith(b"HTTP/1.1 421 ")
        assert not upstream.wires


@pytest.mark.parametrize("first", ["GET http://{host}/", "CONNECT {host}"])
def test_an_opened_tunnel_is_no_proxy(first: str) -> None:
    with Upstream(answering(response())) as upstream:
        there = f"{HOST}:{upstream.port}"
        with opening(Origin("https", HOST, upstream.port)) as relay, relay.opened(there) as client:
            client.send(f"{first.format(host=there)} HTTP/1.1\r\nHost: {there}\r\n\r\n".encode())
            assert client.rest().startswith(b"HTTP/1.1 40")
        assert not upstream.wires


@contextlib.contextmanager
def speaking(relay: Running, target: str, context: ssl.SSLContext, name: str | None) -> Iterator[TlsSocket]:
    """A client in a tunnel that has begun to speak TLS."""
    with relay.tunnelled(target) as wire:
        secure = TlsSocket(wire.sock, context, name)
        secure.shake_hands()
        yield secure


def test_a_client_that_speaks_only_tls_1_2_and_sends_no_name_is_recorded() -> None:
    context = ssl.create_default_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with Upstream(answering(response(b"fine"))) as upstream, opening(Origin("https", HOST, upstream.port)) as relay:
        with speaking(relay, f"{HOST}:{upstream.port}", context, None) as secure:
            assert secure.version == "TLSv1.2"
            client = Wire(cast("socket.socket", secure))
            client.send(asked(HOST, upstream.port))
            assert client.message() == response(b"fine")
        assert relay.tap.reason() is None


def over_tls(context: ssl.SSLContext) -> Upstream:
    """An upstream that speaks TLS with a certificate of somebody else."""

    def play(wire: Wire) -> None:
        with contextlib.suppress(OSError, EOFError), Wire(context.wrap_socket(wire.sock, server_side=True)) as secure:
            while True:
                secure.message()
                secure.send(response(b"unread"))

    return Upstream(play)


def test_a_client_that_distrusts_us_is_counted_and_its_next_connection_is_passed_on(
    foreign: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = foreign
    with over_tls(server) as upstream, opening(Origin("https", HOST, upstream.port)) as relay:
        there = f"{HOST}:{upstream.port}"
        with pytest.raises(ssl.SSLCertVerificationError), speaking(relay, there, client, HOST):
            pass
        assert wait_for_count(relay, there, lambda it: it.not_trusted == 1).opened == 0
        relay.do(lambda: resolve_to_this_machine(relay))
        with speaking(relay, there, client, HOST) as secure:
            wire = Wire(cast("socket.socket", secure))
            wire.send(asked(HOST, upstream.port))
            assert wire.message() == response(b"unread")
        traffic = counted(relay, there)
        assert (traffic.tunnels, traffic.tunnels_unopened, traffic.not_trusted) == (1, 1, 1)
        relay.opened(there).close()  # a client that trusts us still gets our certificate
        assert not relay.tap.frames


def resolve_to_this_machine(relay: Running) -> None:
    connector = relay.relay.connector
    real = connector.tunnel

    async def tunnel(host: str, *rest: object) -> None:
        await real("127.0.0.1", *rest)  # type: ignore[arg-type]

    connector.tunnel = tunnel  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_that_leaves_right_after_the_handshake_did_not_trust_us(leave: str) -> None:
    """As Node does, which verifies a certificate when the handshake is over."""
    with opening(Origin("https", HOST, 8443)) as relay:
        secure = cast("TlsSocket", relay.opened(f"{HOST}:8443").sock)
        getattr(Wire(secure.raw), leave)()
        assert wait_for_count(relay, f"{HOST}:8443", lambda it: it.not_trusted == 1).opened == 0
        wait_for(relay, lambda: not relay.relay.forward.connections and not relay.relay.clients)


def test_a_client_that_leaves_twice_in_silence_is_passed_on(foreign: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, client = foreign
    client.set_alpn_protocols(["h2", "http/1.1"])  # as that of `trusting` has it
    with over_tls(server) as upstream, opening(Origin("https", HOST, upstream.port)) as relay:
        there = f"{HOST}:{upstream.port}"
        for times in (1, 2):
            cast("TlsSocket", relay.opened(there).sock).close()
            wait_for_count(relay, there, lambda it, times=times: it.not_trusted == times)  # type: ignore[misc]
        relay.do(lambda: resolve_to_this_machine(relay))
        with speaking(relay, there, client, HOST):
            assert counted(relay, there).tunnels_unopened == 1


def test_a_client_that_was_recorded_is_recorded_again_whatever_others_of_its_kind_trust(
    foreign: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    _, distrusting = foreign
    distrusting.set_alpn_protocols(["h2", "http/1.1"])
    with Upstream(answering(response(b"fine"))) as upstream, opening(Origin("https", HOST, upstream.port)) as relay:
        there = f"{HOST}:{upstream.port}"
        for _ in range(2):
            with relay.opened(there) as client:
                client.send(asked(HOST, upstream.port))
                assert client.message() == response(b"fine")
            with pytest.raises(ssl.SSLCertVerificationError), speaking(relay, there, distrusting, HOST):
                pass
        traffic = wait_for_count(relay, there, lambda it: it.not_trusted == 2)
        assert (traffic.calls, traffic.opened, traffic.tunnels) == (2, 2, 0)


def test_a_client_without_a_version_in_common_is_counted() -> None:
    # A ClientHello of TLS 1.0: version, random, no session, one suite, no compression, no extensions.
    hello = b"\x03\x01" + bytes(32) + b"\x00" + b"\x00\x02\x00\x2f" + b"\x01\x00"
    message = b"\x01" + len(hello).to_bytes(3) + hello
    with opening(Origin("https", HOST, 8443)) as relay, relay.tunnelled(f"{HOST}:8443") as client:
        client.send(b"\x16\x03\x01" + len(message).to_bytes(2) + message)
        assert client.rest()[:1] == b"\x15"  # an alert
        assert wait_for_count(relay, f"{HOST}:8443", lambda it: it.no_handshake == 1).not_trusted == 0


def test_a_client_that_speaks_only_http_2_is_passed_on(foreign: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, client = foreign
    client.set_alpn_protocols(["h2"])
    with over_tls(server) as upstream, opening(Origin("https", HOST, upstream.port)) as relay:
        relay.do(lambda: resolve_to_this_machine(relay))
        with speaking(relay, f"{HOST}:{upstream.port}", client, HOST) as secure:
            assert secure.protocol is None  # the server that we did not replace offers none
        traffic = counted(relay, f"{HOST}:{upstream.port}")
        assert (traffic.tunnels_unopened, traffic.opened) == (1, 0)


def test_without_a_usable_ca_recorded_hosts_are_passed_on_and_the_status_has_the_reason(
    foreign: tuple[ssl.SSLContext, ssl.SSLContext], tmp_path: Path
) -> None:
    server, client = foreign
    (tmp_path / "ca").write_text("not a folder")
    authority = Authority(tmp_path, RecordedHosts.parse([f"*.{RECORDED}"]))
    with over_tls(server) as upstream, opening(Origin("https", HOST, upstream.port)) as relay:

        def begin() -> None:
            resolve_to_this_machine(relay)
            relay.relay.forward._certificates = authority

        relay.do(begin)
        assert relay.do(relay.relay.forward.status).certificate_problem is None
        with speaking(relay, f"{HOST}:{upstream.port}", client, HOST):
            pass
        assert counted(relay, f"{HOST}:{upstream.port}").tunnels_unopened == 1
        reason = relay.do(relay.relay.forward.status).certificate_problem
        assert reason and str(tmp_path / "ca") in reason


def test_a_host_whose_certificate_cannot_be_made_is_passed_on(
    foreign: tuple[ssl.SSLContext, ssl.SSLContext], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptor_left() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    server, client = foreign
    authority = Authority(tmp_path, RecordedHosts.parse([f"*.{RECORDED}"]))
    monkeypatch.setattr(certificates, "_memory_file", no_descriptor_left)
    with over_tls(server) as upstream, opening(Origin("https", HOST, upstream.port)) as relay:

        def begin() -> None:
            resolve_to_this_machine(relay)
            relay.relay.forward._certificates = authority

        relay.do(begin)
        with speaking(relay, f"{HOST}:{upstream.port}", client, HOST):
            pass
        assert counted(relay, f"{HOST}:{upstream.port}").tunnels_unopened == 1


def test_a_hello_in_small_pieces_is_understood() -> None:
    with Upstream(answering(response())) as upstream, opening(Origin("https", HOST, upstream.port)) as relay:
        wire = relay.tunnelled(f"{HOST}:{upstream.port}")
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trusting().wrap_bio(incoming, outgoing, server_hostname=HOST)
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        hello = outgoing.read()
        for at in range(0, len(hello), 40):
            wire.send(hello[at : at + 40])
        assert wire.take(1) == b"\x16"
        wire.close()


def test_plain_http_in_a_tunnel_to_an_origin_of_the_run_is_recorded() -> None:
    with Upstream(answering(response(b"fine"))) as upstream, opening(upstream.origin) as relay:
        there = f"127.0.0.1:{upstream.port}"
        with relay.tunnelled(there) as client:
            for _ in range(2):
                client.send(f"POST /v1/messages HTTP/1.1\r\nHost: {there}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
                assert client.message() == response(b"fine")
        assert len(relay.tap.wait(frames.CallEnd, 2)) == 2
        assert f"Host: {there}".encode() in upstream.wires[0].read
        assert (counted(relay, there).calls, counted(relay, there).opened) == (2, 1)


@pytest.mark.parametrize(
    "first", [b"SSH-2.0-OpenSSH_9\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x04\x01", b"\x00", b"GET /\r\n"]
)
def test_anything_else_in_such_a_tunnel_is_passed_on_unread(first: bytes) -> None:
    with Upstream(echo) as upstream, opening(upstream.origin) as relay:
        there = f"127.0.0.1:{upstream.port}"
        with relay.tunnelled(there) as client:
            client.send(first)
            assert client.take(len(first)) == first
        assert counted(relay, there).tunnels_unopened == 1
        assert not relay.tap.frames


def test_tls_to_an_address_is_passed_on_because_no_certificate_is_for_an_address(
    foreign: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, _ = foreign
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with over_tls(server) as upstream, opening(Origin("https", "127.0.0.1", upstream.port)) as relay:
        there = f"127.0.0.1:{upstream.port}"
        with speaking(relay, there, context, None):
            assert counted(relay, there).tunnels == 1


# ---------------------------------------------------------------- the upstream


def test_an_upstream_with_a_certificate_that_we_cannot_verify_is_a_failed_connection(
    foreign: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, _ = foreign
    with over_tls(server) as upstream, relaying() as relay:
        there = f"{HOST}:{upstream.port}"
        proxy_answers = Upstream(lambda wire: tunnel_to(wire, upstream.port))
        with proxy_answers as proxy:
            network = Network(https_proxy=f"http://127.0.0.1:{proxy.port}")
            relay.do(lambda: registered(relay.relay, Origin("https", HOST, upstream.port), network=network))
            with relay.opened(there) as client:
                client.send(asked(HOST, upstream.port))
                assert client.rest() == b""
                assert not cast("TlsSocket", client.sock).ended_cleanly
            assert relay.tap.reason() == "tls"
        assert (counted(relay, there).calls, counted(relay, there).unreachable) == (1, 1)


def tunnel_to(wire: Wire, port: int) -> None:
    """Play a proxy that leads everywhere to this port."""
    wire.head()
    wire.send(b"HTTP/1.1 200 OK\r\n\r\n")
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as there:
        thread = threading.Thread(target=pump, args=(there, wire.sock))
        thread.start()
        pump(wire.sock, there)
        thread.join()


@pytest.mark.parametrize("kind", ["unread", "opened"])
def test_a_run_with_a_proxy_of_its_own_reaches_hosts_through_it(
    kind: str, foreign: tuple[ssl.SSLContext, ssl.SSLContext], foreign_ca: str
) -> None:
    server, trust = foreign
    with over_tls(server) as upstream, Upstream(lambda wire: tunnel_to(wire, upstream.port)) as proxy:
        network = Network(https_proxy=f"http://user:secret@127.0.0.1:{proxy.port}", ca_file=foreign_ca)
        with relaying() as relay:
            origins = [Origin("https", HOST, 8443)] if kind == "opened" else []
            relay.do(lambda: registered(relay.relay, *origins, network=network))
            context = trusting() if kind == "opened" else trust
            with speaking(relay, f"{HOST}:8443", context, HOST) as secure:
                client = Wire(cast("socket.socket", secure))
                client.send(asked(HOST, 8443))
                assert client.message() == response(b"unread")
            assert bool(relay.tap.of(frames.RequestHeadFrame)) is (kind == "opened")
        head = proxy.wires[0].read.partition(b"\r\n\r\n")[0]
        basic = base64.b64encode(b"user:secret")
        assert head == b"CONNECT %b:8443 HTTP/1.1\r\nHost: %b:8443\r\nProxy-Authorization: Basic %b" % (
            HOST.encode(), HOST.encode(), basic,
        )  # fmt: skip


def test_hosts_in_no_proxy_of_the_run_are_reached_directly() -> None:
    with Upstream(echo) as upstream, Upstream(echo) as proxy:
        network = Network(https_proxy=f"http://127.0.0.1:{proxy.port}", no_proxy="127.0.0.1")
        with opening(network=network) as relay, relay.tunnelled(f"127.0.0.1:{upstream.port}") as client:
            client.send(ECHO)
            assert client.take(len(ECHO)) == ECHO
        assert not proxy.wires


def test_the_first_bytes_of_a_host_arrive_through_another_proxy() -> None:
    def play(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\n\r\nhello from the host")
        wire.end()

    with Upstream(play) as proxy:
        network = Network(https_proxy=f"http://127.0.0.1:{proxy.port}")
        with opening(network=network) as relay, relay.tunnelled("somewhere.test:22") as client:
            assert client.take(19) == b"hello from the host"


def test_a_proxy_that_refuses_is_an_upstream_that_cannot_be_reached() -> None:
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    with Upstream(answering(refusal)) as proxy:
        network = Network(https_proxy=f"http://127.0.0.1:{proxy.port}")
        with opening(network=network) as relay, relay.client() as client:
            client.send(connect_request("somewhere.test:22"))
            assert client.rest().startswith(b"HTTP/1.1 502 ")


# ---------------------------------------------------------------- requests with a URL


def with_token(first: str, host: str, *lines: str) -> bytes:
    user = base64.b64encode(f"agent-logger:{TOKEN}".encode()).decode()
    return "\r\n".join([first, f"Host: {host}", f"Proxy-Authorization: Basic {user}", *lines, "", ""]).encode()


def test_a_request_with_a_url_is_relayed_and_not_recorded() -> None:
    with Upstream(answering(response(b"page"))) as upstream, opening() as relay, relay.client() as client:
        there = f"127.0.0.1:{upstream.port}"
        client.send(with_token(f"GET http://{there}/a?b=c HTTP/1.1", "evil.test", "Proxy-Connection: keep-alive"))
        assert client.message() == response(b"page")
        client.send(with_token(f"POST http://{there} HTTP/1.1", there, "Content-Length: 2") + b"{}")
        assert client.message() == response(b"page")
        first, second = f"GET /a?b=c HTTP/1.1\r\nHost: {there}\r\n\r\n", f"POST / HTTP/1.1\r\nHost: {there}\r\n"
        assert upstream.wires[0].read == f"{first}{second}Content-Length: 2\r\n\r\n{{}}".encode()
        assert not relay.tap.frames
        assert counted(relay, there).plain_requests == 2


def test_a_request_with_a_url_of_an_origin_of_the_run_is_recorded() -> None:
    with Upstream(answering(response(b"fine"))) as upstream, opening(upstream.origin) as relay:
        there = f"127.0.0.1:{upstream.port}"
        with relay.client() as client:
            client.send(with_token(f"POST http://{there}/v1/messages HTTP/1.1", there, "Content-Length: 2") + b"{}")
            assert client.message() == response(b"fine")
        assert relay.tap.reason() is None
        [begun] = relay.tap.of(frames.RequestHeadFrame)
        assert (begun.door, begun.path) == ("forward", b"/v1/messages")
        assert TOKEN.encode() not in begun.head and base64.b64encode(TOKEN.encode())[4:-4] not in begun.head


def test_ambiguous_requests_with_a_url_are_refused() -> None:
    with Upstream(answering(response())) as upstream, opening() as relay, relay.client() as client:
        there = f"127.0.0.1:{upstream.port}"
        head = with_token(f"POST http://{there}/ HTTP/1.1", there, "Content-Length: 3", "Transfer-Encoding: chunked")
        client.send(head + b"0\r\n\r\n")
        assert client.rest().startswith(b"HTTP/1.1 400 ")
        assert not upstream.wires


def test_tunnels_and_opened_connections_count_towards_the_limit_of_clients() -> None:
    with Upstream(echo) as upstream, opening(Origin("https", HOST, 8443)) as relay:
        relay.relay.most_clients = 2
        with relay.tunnelled(f"127.0.0.1:{upstream.port}"), relay.opened(f"{HOST}:8443"):
            with relay.client() as third:
                third.send(connect_request(f"127.0.0.1:{upstream.port}"))
                assert third.rest().startswith(b"HTTP/1.1 503 ")
            assert relay.do(lambda: relay.relay.forward.connections_of(TOKEN)) == 2
        wait_for(relay, lambda: not relay.relay.forward.connections_of(TOKEN))
        with relay.tunnelled(f"127.0.0.1:{upstream.port}"):
            pass


# ---------------------------------------------------------------- the end


def test_stopping_cuts_idle_tunnels_and_leaves_time_to_those_in_use() -> None:
    done = threading.Event()

    def play(wire: Wire) -> None:
        while not done.wait(0.1):
            wire.send(b"x")
        wire.send(b"done")
        wire.close()

    with Upstream(play) as busy, Upstream(echo) as silent, opening() as relay:
        used = relay.tunnelled(f"127.0.0.1:{busy.port}")
        idle = relay.tunnelled(f"127.0.0.1:{silent.port}")
        with used, idle:
            stopping = threading.Thread(target=lambda: relay.run(relay.relay.stop(30)))
            stopping.start()
            assert idle.end() == "closed"
            done.set()
            assert used.rest().endswith(b"done")
            stopping.join()
