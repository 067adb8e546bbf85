"""Connections to upstreams: how they are made, and kept.

A client keeps the upstream connection it has, and loses its own when that ends: so its view of
idle connections is the one it would have without us, and no request meets a connection that died of old age more often
than it would. Only what a client leaves behind goes into the pool, for the next one, and not for long.
"""

import asyncio
import base64
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast
from urllib.parse import unquote, urlsplit

import truststore

from agent_logger.capture.proxy.outgoing import Outgoing, Turn
from agent_logger.capture.proxy.route import Route, bracketed, check_addresses

CONNECT_SECONDS = 10.0
_NEXT_ADDRESS_SECONDS = 2.5  # then another address is tried, while there is one
_POOLED_SECONDS = 4.0  # servers that close idle connections wait for at least 5
_POOLED_PER_ORIGIN = 16
_PROXY_HEAD_LIMIT = 16 << 10

Key = tuple[str, int, bool]


class UnreachableError(Exception):
    """`reason` is a word of docs/proxy.md; the status is for the client."""

    def __init__(self, reason: str, told: str) -> None:
        super().__init__(told)
        self.reason = reason
        self.status = 504 if reason == "connect_timeout" else 502


# ---- one connection


class Downstream(Protocol):
    """Who a connection works for."""

    def response_received(self, data: bytes) -> None: ...

    def upstream_ended(self, *, reset: bool) -> None: ...

    def upstream_full(self, *, full: bool) -> None: ...


class Upstream(asyncio.Protocol):
    """A connection to an origin, with at most one client to work for."""

    transport: Outgoing

    def __init__(self, key: Key, everybody: set["Upstream"], turn: Turn) -> None:
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
        """After what was written; the downstream hears no more."""
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
        """Keep nothing from now on."""
        self._open = False
        for idle in self._idle.values():
            for upstream in idle:
                upstream.close()
        self._idle.clear()


# ---- connecting


@dataclass(frozen=True)
class HttpsProxy:
    """What `HTTPS_PROXY` and `NO_PROXY` say."""

    host: str
    port: int
    authorization: str = ""
    exceptions: tuple[str, ...] = ()

    @classmethod
    def parse(cls, url: str, no_proxy: str = "") -> "HttpsProxy | None":
        """None without a URL. `ValueError`: not one that we can use."""
        if not url:
            return None
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError("HTTPS_PROXY must be http://host:port")
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
        authorization = base64.b64encode(user.encode()).decode() if user else ""
        exceptions = tuple(item.strip().lower() for item in no_proxy.split(",") if item.strip())
        return cls(parts.hostname, parts.port or 80, authorization, exceptions)

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
        self, turn: Turn, tls: Callable[[], ssl.SSLContext], proxy: HttpsProxy | None = None
    ) -> None:
        self._turn, self._make_tls = turn, tls
        self._tls: ssl.SSLContext | None = None  # made when first needed: it reads the whole trust store
        self._proxy = proxy
        self.connect_seconds = CONNECT_SECONDS
        self.opened: set[Upstream] = set()

    async def connect(self, route: Route) -> Upstream:
        """`UnreachableError`, or `NotAllowedError` for the address."""
        try:
            async with asyncio.timeout(self.connect_seconds):
                return await self._start(route, await self._tcp(route))
        except TimeoutError as error:
            raise UnreachableError("connect_timeout", f"{route.name} did not answer") from error

    async def _tcp(self, route: Route) -> socket.socket:
        if route.tls and self._proxy and self._proxy.serves(route.host, route.port):
            return await self._through(self._proxy, route)
        addresses = check_addresses(route, await _resolve(route.host, route.port))
        return await _open(addresses, route.port, route.name)

    async def _through(self, proxy: HttpsProxy, route: Route) -> socket.socket:
        addresses = await _resolve(proxy.host, proxy.port)
        sock = await _open(addresses, proxy.port, "the HTTPS_PROXY")
        try:
            await _ask_proxy(sock, proxy.request(route))
        except BaseException:
            sock.close()
            raise
        return sock

    async def _start(self, route: Route, sock: socket.socket) -> Upstream:
        loop = asyncio.get_running_loop()
        if not route.tls:
            return (
                await loop.create_connection(lambda: Upstream(route.key, self.opened, self._turn), sock=sock)
            )[1]
        if self._tls is None:
            self._tls = self._make_tls()
        try:
            made = loop.create_connection(
                lambda: Upstream(route.key, self.opened, self._turn),
                sock=sock,
                ssl=self._tls,
                server_hostname=route.host,
            )
            return (await made)[1]
        except OSError as error:  # ssl.SSLError is one
            if isinstance(error, TimeoutError):
                raise
            raise UnreachableError("tls", f"no TLS connection to {route.name}") from error


async def _resolve(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise UnreachableError("dns", f"{host} has no address") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


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


async def _ask_proxy(sock: socket.socket, request: bytes) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, request)
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):  # what TLS says comes after we speak: nothing may follow here
        data = await loop.sock_recv(sock, 4096)
        answer += data
        if not data or len(answer) > _PROXY_HEAD_LIMIT:
            raise UnreachableError("connect_refused", "the HTTPS_PROXY did not answer CONNECT")
    if answer.split(b" ", 2)[1:2] != [b"200"]:
        raise UnreachableError("connect_refused", "the HTTPS_PROXY refused to connect")
