"""Connections to upstreams: how they are made, and kept.

A client keeps the upstream connection it has, and loses its own when that ends: so its view of idle connections is the
one it would have without us, and no request meets a connection that died of old age more often than it would. Only
connections that a client leaves behind go into the pool, for the next client, and not for long.
"""

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast
from urllib.parse import unquote, urlsplit

import truststore

from agent_logger.proxy.relay.route import Route, bracketed, check_addresses
from agent_logger.proxy.relay.write_batch import Outgoing, WriteBatch

CONNECT_SECONDS = 10.0
_NEXT_ADDRESS_SECONDS = 2.5  # then another address is tried, while there is one
_POOLED_SECONDS = 1.5  # of servers that close idle connections the hastiest (gunicorn) wait for 2
_POOLED_PER_ORIGIN = 16
_PROXY_HEAD_LIMIT = 16 << 10

Key = tuple[str, int, bool]
P = TypeVar("P", bound=asyncio.Protocol)


class UnreachableError(Exception):
    """An upstream that cannot be reached. `reason` is a word of docs/proxy.md; the status is for the client."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.status = 504 if reason == "connect_timeout" else 502


# ---- one connection


class Downstream(Protocol):
    """The user of a connection."""

    def response_received(self, data: bytes) -> None: ...

    def upstream_ended(self, *, reset: bool) -> None: ...

    def upstream_full(self, *, full: bool) -> None: ...


class Upstream(asyncio.Protocol):
    """A connection to an origin, used by at most one client."""

    transport: Outgoing

    def __init__(self, key: Key, everybody: set["Upstream"], turn: WriteBatch) -> None:
        self.key = key
        self._turn = turn
        self.downstream: Downstream | None = None
        self.ended = False
        self._everybody = everybody  # those that are open

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = Outgoing(cast("asyncio.Transport", transport), self._turn)
        self._everybody.add(self)

    def data_received(self, data: bytes) -> None:
        if self.downstream is not None:
            self.downstream.response_received(data)
        else:
            self.abort()  # nobody asked for anything

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
        """Close the connection after what was written; the downstream gets no more calls."""
        self.downstream, self.ended = None, True
        self.transport.close()

    def abort(self) -> None:
        self.downstream, self.ended = None, True
        self.transport.abort()


class Pool:
    """Connections whose client has left in good order."""

    def __init__(self) -> None:
        self._idle: dict[Key, list[Upstream]] = {}
        self._open = True

    def give(self, upstream: Upstream) -> None:
        idle = self._idle.setdefault(upstream.key, [])
        if upstream.ended or not self._open or len(idle) >= _POOLED_PER_ORIGIN:
            upstream.close()
            return
        upstream.downstream = None
        upstream.transport.resume_reading()  # its client may have been slow
        idle.append(upstream)
        asyncio.get_running_loop().call_later(_POOLED_SECONDS, self._expire, upstream)

    def take(self, key: Key) -> Upstream | None:
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
    tls: bool = False  # to the proxy itself
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

    def request(self, route: Route) -> bytes:
        target = f"{bracketed(route.host)}:{route.port}"
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


def tls_context(ca_file: str = "") -> ssl.SSLContext:
    """The system's trust store, or the certificates of `ca_file` (what `SSL_CERT_FILE` says) alone."""
    context = (
        ssl.create_default_context(cafile=ca_file)
        if ca_file
        else truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    context.set_alpn_protocols(["http/1.1"])
    return context


class Connector:
    """Makes connections. The address is checked here, and it is the checked one that is connected to."""

    def __init__(
        self, turn: WriteBatch, tls: Callable[[], ssl.SSLContext], proxy: HttpsProxy | None = None
    ) -> None:
        self._turn, self._make_tls = turn, tls
        self._tls: ssl.SSLContext | None = None  # made when first needed: it reads the whole trust store
        self._proxy = proxy
        self.connect_seconds = CONNECT_SECONDS
        self.opened: set[Upstream] = set()

    async def connect(self, route: Route) -> Upstream:
        """Connect to a route. Raises `UnreachableError`, or `NotAllowedError` for the address."""
        try:
            async with asyncio.timeout(self.connect_seconds):
                if route.tls and self._proxy and self._proxy.serves(route.host, route.port):
                    return await self._through(self._proxy, route)
                return await self._directly(route)
        except TimeoutError as error:
            raise UnreachableError("connect_timeout", f"{route.name} did not answer") from error

    async def _directly(self, route: Route) -> Upstream:
        addresses = check_addresses(route, await _resolve(route.host, route.port))
        sock = await _open(addresses, route.port, route.name)
        return await self._start(
            lambda: Upstream(route.key, self.opened, self._turn), sock, route.name, route.tls_host
        )

    async def _start(
        self, protocol: Callable[[], P], sock: socket.socket, name: str, tls_host: str | None
    ) -> P:
        """Start a protocol on the socket; over TLS if there is a host to verify."""
        with _tls_failures(name):
            made = asyncio.get_running_loop().create_connection(
                protocol, sock=sock, ssl=self._context() if tls_host else None, server_hostname=tls_host
            )
            return (await made)[1]

    async def _through(self, proxy: HttpsProxy, route: Route) -> Upstream:
        addresses = await _resolve(proxy.host, proxy.port)
        sock = await _open(addresses, proxy.port, "the HTTPS_PROXY")
        answer = await self._start(_Answer, sock, "the HTTPS_PROXY", proxy.host if proxy.tls else None)
        try:
            answer.transport.write(proxy.request(route))
            await answer.check()
            upstream = Upstream(route.key, self.opened, self._turn)
            with _tls_failures(route.name):
                secure = await asyncio.get_running_loop().start_tls(
                    answer.transport, upstream, self._context(), server_hostname=route.host
                )
        except BaseException:
            answer.transport.abort()
            raise
        if secure is None:
            raise UnreachableError("tls", f"no TLS connection to {route.name}")
        upstream.connection_made(secure)
        return upstream

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = self._make_tls()
        return self._tls


@contextlib.contextmanager
def _tls_failures(name: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise
    except OSError as error:  # ssl.SSLError is one
        raise UnreachableError("tls", f"no TLS connection to {name}") from error


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
        except TimeoutError as error:
            problem = error
        except OSError as error:
            problem = error
    raise UnreachableError("connect_refused", f"no connection to {name}") from problem


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
    """The answer of a proxy to CONNECT; then TLS takes the connection over."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._data = b""
        self._whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        # What TLS says comes after we speak: nothing may follow here.
        if self._data.endswith(b"\r\n\r\n") or len(self._data) > _PROXY_HEAD_LIMIT:
            self._end()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if not self._whole.done():
            self._whole.set_result(None)

    async def check(self) -> None:
        await self._whole
        if not self._data.endswith(b"\r\n\r\n"):
            raise UnreachableError("connect_refused", "the HTTPS_PROXY did not answer CONNECT")
        if self._data.split(b" ", 2)[1:2] != [b"200"]:
            raise UnreachableError("connect_refused", "the HTTPS_PROXY refused to connect")
