"""Connections to upstreams: how they are made, and kept.

A client keeps its upstream connection, and when the upstream closes it, the relay closes the client's connection. So a
client sees idle connections end as it would without the relay, and its requests do not meet a closed connection more
often. When a client leaves, its upstream connection is pooled for a short time, for the next client.
"""

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import unquote, urlsplit

import truststore

from agent_logger.config import Network
from agent_logger.proxy.relay.route import (
    Route,
    UpstreamKey,
    check_addresses,
    check_tunnel_addresses,
    check_tunnel_name,
)
from agent_logger.proxy.relay.write_batch import Outgoing, WriteBatch

if TYPE_CHECKING:
    from agent_logger.proxy.relay.client import Client

CONNECT_SECONDS = 10.0
_NEXT_ADDRESS_SECONDS = 2.5  # after this, the next address is tried, if there is one
_POOLED_SECONDS = 1.5  # less than any server waits before it closes an idle connection (gunicorn: 2)
_POOLED_PER_ORIGIN = 16
_PROXY_HEAD_LIMIT = 16 << 10
_NO_LINES = b"\r\n\r\n"  # the end of a head
_MOST_WAYS = 64  # networks whose certificates are in memory

P = TypeVar("P", bound=asyncio.Protocol)


class UnreachableError(Exception):
    """An upstream that cannot be reached. `reason` is a word of docs/proxy.md; the status is for the client."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.status = 504 if reason == "connect_timeout" else 502


# ---- one connection


class Upstream(asyncio.Protocol):
    """A connection to an origin, used by at most one client."""

    transport: Outgoing

    def __init__(self, key: UpstreamKey, everybody: set["Upstream"], batch: WriteBatch) -> None:
        self.key = key
        self._batch = batch
        self.downstream: Client | None = None
        self.ended = False
        self._everybody = everybody  # the open connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = Outgoing(cast("asyncio.Transport", transport), self._batch)
        self._everybody.add(self)

    def data_received(self, data: bytes) -> None:
        if self.downstream is not None:
            self.downstream.response_received(data)
        else:
            self.abort()  # there was no request

    def eof_received(self) -> None:
        self._end(reset=False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._everybody.discard(self)
        self._end(reset=exc is not None)

    def _end(self, *, reset: bool) -> None:
        ended, self.ended = self.ended, True
        if not ended and self.downstream is not None:
            self.downstream.upstream_ended(reset=reset)

    def pause_writing(self) -> None:
        if self.downstream is not None:
            self.downstream.upstream_full(full=True)

    def resume_writing(self) -> None:
        if self.downstream is not None:
            self.downstream.upstream_full(full=False)

    def close(self) -> None:
        """Close the connection when everything is written; the downstream is not called any more."""
        self.downstream, self.ended = None, True
        self.transport.close()

    def abort(self) -> None:
        self.downstream, self.ended = None, True
        self.transport.abort()


class Pool:
    """Connections whose client has left in good order."""

    def __init__(self) -> None:
        self._idle: dict[UpstreamKey, list[Upstream]] = {}
        self._open = True

    def give(self, upstream: Upstream) -> None:
        idle = self._idle.setdefault(upstream.key, [])
        if upstream.ended or not self._open or len(idle) >= _POOLED_PER_ORIGIN:
            upstream.close()
            return
        upstream.downstream = None
        upstream.transport.resume_reading()  # the client may have been slow
        idle.append(upstream)
        asyncio.get_running_loop().call_later(_POOLED_SECONDS, self._expire, upstream)

    def take(self, key: UpstreamKey) -> Upstream | None:
        idle = self._idle.get(key, [])
        while idle:
            upstream = idle.pop()
            if not upstream.ended and not upstream.transport.is_closing():
                return upstream
        return None

    def _expire(self, upstream: Upstream) -> None:
        idle = self._idle.get(upstream.key, [])
        if upstream in idle:
            idle.remove(upstream)
            upstream.close()

    def close(self) -> None:
        """Close the pool: keep nothing from now on."""
        self._open = False
        for idle in self._idle.values():
            for upstream in idle:
                upstream.close()
        self._idle.clear()


# ---- connecting


@dataclass(frozen=True)
class HttpsProxy:
    """The settings of `HTTPS_PROXY` and `NO_PROXY`."""

    host: str
    port: int
    tls: bool = False  # whether the connection to the proxy itself uses TLS
    authorization: str = ""
    exceptions: tuple[str, ...] = ()

    @classmethod
    def parse(cls, url: str, no_proxy: str = "") -> "HttpsProxy | None":
        """Read the settings; `None` without a URL. Raises `ValueError` for a URL that we cannot use."""
        if not url:
            return None
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("HTTPS_PROXY must be http://host:port or https://host:port")
        tls = parts.scheme == "https"
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
        authorization = base64.b64encode(user.encode()).decode() if user else ""
        exceptions = tuple(item.strip().lower() for item in no_proxy.split(",") if item.strip())
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls, authorization, exceptions)

    def serves(self, host: str, port: int) -> bool:
        return not any(_covers(exception, host, port) for exception in self.exceptions)

    def request(self, host: str, port: int) -> bytes:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self.authorization:
            lines.append(f"Proxy-Authorization: Basic {self.authorization}")
        return "\r\n".join([*lines, "", ""]).encode()


def _covers(exception: str, host: str, port: int) -> bool:
    if exception.startswith("["):
        name, _, only_port = exception[1:].partition("]")
        only_port = only_port.removeprefix(":")
    elif exception.count(":") > 1:
        name, only_port = exception, ""
    else:
        name, _, only_port = exception.partition(":")
    name = name.removeprefix("*").removeprefix(".")
    fits = not name or host == name or host.endswith("." + name)
    return fits and (not only_port or only_port == str(port))


def tls_context(network: Network) -> ssl.SSLContext:
    """The system's trust store, or the certificates of `SSL_CERT_FILE` instead; and those of `NODE_EXTRA_CA_CERTS`,
    unless they cannot be read: Node only warns then."""
    ca_file = network.ca_file
    context = ssl.create_default_context(cafile=ca_file) if ca_file else truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if network.extra_ca_file:
        with contextlib.suppress(OSError):  # ssl.SSLError is one
            context.load_verify_locations(network.extra_ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


class Way:
    """The way that a network gives to upstreams: the proxy on it, and the certificates to trust."""

    def __init__(self, network: Network) -> None:
        """Raise `ValueError` for a proxy that we cannot use."""
        self.proxy = HttpsProxy.parse(network.https_proxy, network.no_proxy)
        self._network = network
        self._tls: ssl.SSLContext | None = None

    def tls(self) -> ssl.SSLContext:
        """Make the context when it is first needed: it reads the whole trust store."""
        if self._tls is None:
            self._tls = tls_context(self._network)
        return self._tls


class Connector:
    """Makes connections. It checks the addresses of a host, and connects to a checked address only."""

    def __init__(self, batch: WriteBatch, network: Network) -> None:
        self._batch, self._network = batch, network
        self._ways = {network: Way(network)}
        self.connect_seconds = CONNECT_SECONDS
        self.opened: set[Upstream] = set()

    async def connect(self, route: Route) -> Upstream:
        """Connect to a route. Raises `UnreachableError`, or `NotAllowedError` for the address."""
        way = self._way(route.network or self._network)
        try:
            async with asyncio.timeout(self.connect_seconds):
                if route.tls and way.proxy and way.proxy.serves(route.host, route.port):
                    return await self._through(way, way.proxy, route)
                return await self._directly(way, route)
        except TimeoutError as error:
            raise UnreachableError("connect_timeout", f"{route.name} did not respond") from error

    def _way(self, network: Network) -> Way:
        if network not in self._ways:
            if len(self._ways) >= _MOST_WAYS:
                self._ways = {self._network: self._ways[self._network]}
            self._ways[network] = Way(network)
        return self._ways[network]

    async def _directly(self, way: Way, route: Route) -> Upstream:
        addresses = check_addresses(route, await _resolve(route.host, route.port))
        sock = await _open(addresses, route.port, route.name)
        tls_host = route.host if route.tls else None
        return await self._start(lambda: Upstream(route.key, self.opened, self._batch), way, sock, route.name, tls_host)

    async def _start(
        self, protocol: Callable[[], P], way: Way, sock: socket.socket, name: str, tls_host: str | None
    ) -> P:
        """Start a protocol on the socket; over TLS if there is a host to verify."""
        with _tls_failures(name):
            made = asyncio.get_running_loop().create_connection(
                protocol, sock=sock, ssl=way.tls() if tls_host else None, server_hostname=tls_host
            )
            return (await made)[1]

    async def _through(self, way: Way, proxy: HttpsProxy, route: Route) -> Upstream:
        answer = await self._ask(way, proxy, route.host, route.port)
        try:
            answer.check_is_all()
            upstream = Upstream(route.key, self.opened, self._batch)
            with _tls_failures(route.name):
                secure = await asyncio.get_running_loop().start_tls(
                    answer.transport, upstream, way.tls(), server_hostname=route.host
                )
        except BaseException:
            answer.transport.abort()
            raise
        if secure is None:
            raise UnreachableError("tls", f"cannot make a TLS connection to {route.name}")
        upstream.connection_made(secure)
        return upstream

    async def _ask(self, way: Way, proxy: HttpsProxy, host: str, port: int) -> "_Answer":
        """Have the other proxy connect to a host."""
        addresses = await _resolve(proxy.host, proxy.port)
        sock = await _open(addresses, proxy.port, "the HTTPS_PROXY")
        answer = await self._start(_Answer, way, sock, "the HTTPS_PROXY", proxy.host if proxy.tls else None)
        try:
            answer.transport.write(proxy.request(host, port))
            await answer.check()
        except BaseException:
            answer.transport.abort()
            raise
        return answer

    async def tunnel(self, host: str, port: int, network: Network, end: asyncio.Protocol) -> None:
        """Connect a protocol to a host, for bytes that we do not read. Raises `UnreachableError`, or `NotAllowedError`
        for the address."""
        way = self._way(network)
        try:
            async with asyncio.timeout(self.connect_seconds):
                if way.proxy and way.proxy.serves(host, port):
                    check_tunnel_name(host)
                    (await self._ask(way, way.proxy, host, port)).hand_over(end)
                    return
                addresses = check_tunnel_addresses(host, await _resolve(host, port))
                sock = await _open(addresses, port, host)
                await self._start(lambda: end, way, sock, host, None)
        except TimeoutError as error:
            raise UnreachableError("connect_timeout", f"{host} did not respond") from error


@contextlib.contextmanager
def _tls_failures(name: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise
    except OSError as error:  # ssl.SSLError is one
        raise UnreachableError("tls", f"cannot make a TLS connection to {name}") from error


async def _resolve(host: str, port: int) -> list[str]:
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise UnreachableError("dns", f"{host} has no address") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


async def _open(addresses: list[str], port: int, name: str) -> socket.socket:
    problem: Exception | None = None
    for number, address in enumerate(addresses, 1):
        last = number == len(addresses)
        try:
            async with asyncio.timeout(None if last else _NEXT_ADDRESS_SECONDS):
                return await _dial(address, port)
        except OSError as error:  # a timeout is one
            problem = error
    raise UnreachableError("connect_refused", f"cannot connect to {name}") from problem


async def _dial(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    sock.settimeout(0)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, (address, port))
    except BaseException:
        sock.close()
        raise
    return sock


class _Answer(asyncio.Protocol):
    """The answer of a proxy to CONNECT; then somebody else takes the connection over."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._data = b""
        self._is_lost = False
        self._whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        if _NO_LINES in self._data or len(self._data) > _PROXY_HEAD_LIMIT:
            self._end()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._is_lost = True
        self._end()

    def _end(self) -> None:
        if not self._whole.done():
            self._whole.set_result(None)

    async def check(self) -> None:
        await self._whole
        if self._is_lost or _NO_LINES not in self._data:
            raise UnreachableError("connect_refused", "the HTTPS_PROXY did not respond to CONNECT")
        if self._data.split(b" ", 2)[1:2] != [b"200"]:
            raise UnreachableError("connect_refused", "the HTTPS_PROXY refused to connect")

    def check_is_all(self) -> None:
        """Check that nothing follows the answer: in TLS the client speaks first."""
        if self._rest():
            raise UnreachableError("connect_refused", "the HTTPS_PROXY did not respond to CONNECT")

    def _rest(self) -> bytes:
        return self._data.partition(_NO_LINES)[2]

    def hand_over(self, end: asyncio.Protocol) -> None:
        """Give the connection to another protocol."""
        self.transport.set_protocol(end)
        end.connection_made(self.transport)
        if rest := self._rest():
            end.data_received(rest)
