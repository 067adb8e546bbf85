"""A proxy on loopback that is the internet: it answers CONNECT to any host with the server that plays that host.

Clients reach it by `HTTPS_PROXY`, or a recording proxy does that has it as its own `HTTPS_PROXY`. TLS is ended here,
with certificates of an authority made for the test, and what is inside goes to a server on loopback. It notes what each
client offered: how it named itself to the proxy, its ALPN, its versions of TLS, and whether it took the certificate.
"""

import asyncio
import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from .authority import TestAuthority
from .client_hello import ClientHello

HEAD_BYTES = 1 << 14
HELLO_SECONDS = 10.0
PIECE = 1 << 16


@dataclass
class Tunnel:
    """One request to the proxy, and what became of it."""

    method: str
    target: str
    headers: Mapping[str, str]  # names in lower case
    status: int = 0
    hello: ClientHello | None = None
    is_trusted: bool | None = None  # whether the client took the certificate; `None`: it did not say
    error: str | None = None  # of the handshake
    first: bytes = b""  # of what the client sent inside

    @property
    def host(self) -> str:
        return self.target.rpartition(":")[0]

    @property
    def credentials(self) -> str | None:
        """The user and password that came with it, as `user:password`."""
        kind, _, value = self.headers.get("proxy-authorization", "").partition(" ")
        return base64.b64decode(value).decode() if kind.lower() == "basic" else None


@dataclass
class Internet:
    """`with Internet(folder, api.port) as internet: ... internet.url ... internet.tunnels`.

    `port`: the server on loopback that plays all hosts which are not among `sites`. `credentials`: a `user:password`
    that it demands, by a 407. `is_tls_12`: its servers speak nothing newer.
    """

    folder: Path
    port: int
    sites: Mapping[str, int] = field(default_factory=dict)  # ports of the servers that play these hosts
    credentials: str | None = None
    is_tls_12: bool = False

    def __post_init__(self) -> None:
        self.authority = TestAuthority(self.folder)
        self.tunnels: list[Tunnel] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self._listener.settimeout(0)
        self.proxy_port: int = self._listener.getsockname()[1]
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def ca_file(self) -> Path:
        return self.authority.path

    @property
    def url(self) -> str:
        user = f"{self.credentials}@" if self.credentials else ""
        return f"http://{user}127.0.0.1:{self.proxy_port}"

    def hosts(self) -> set[str]:
        return {tunnel.host for tunnel in self.tunnels}

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._accepting: Future[None] | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-internet", daemon=True)
        self._thread.start()
        self._accepting = asyncio.run_coroutine_threadsafe(self._accept(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._listener.close()

    async def _end(self) -> None:
        assert self._accepting
        self._accepting.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            connection, _ = await self._loop.sock_accept(self._listener)
            connection.settimeout(0)
            task = self._loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await self._request(connection):
                    pass
        finally:
            connection.close()

    async def _request(self, connection: socket.socket) -> bool:
        """Answer one request to the proxy. Returns whether another one may follow."""
        head = await self._head(connection)
        if head is None:
            return False
        self.tunnels.append(tunnel := head)
        tunnel.status = self._status(tunnel)
        if tunnel.status != 200:
            challenge = 'Proxy-Authenticate: Basic realm="internet"\r\n' if tunnel.status == 407 else ""
            answer = f"HTTP/1.1 {tunnel.status} Refused\r\n{challenge}Content-Length: 0\r\n\r\n"
            await self._loop.sock_sendall(connection, answer.encode())
            return True
        await self._loop.sock_sendall(connection, b"HTTP/1.1 200 Connection established\r\n\r\n")
        tunnel.hello = await self._hello(connection)
        if tunnel.hello:
            await self._inside(connection, tunnel)
        return False

    def _status(self, tunnel: Tunnel) -> int:
        if tunnel.method != "CONNECT":
            return 501
        return 407 if self.credentials and tunnel.credentials != self.credentials else 200

    async def _head(self, connection: socket.socket) -> Tunnel | None:
        data = b""
        while b"\r\n\r\n" not in data and len(data) < HEAD_BYTES:
            piece = await self._loop.sock_recv(connection, PIECE)
            if not piece:
                return None
            data += piece
        first, *lines = data.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        method, target, *_ = [*first.split(" "), "", ""]
        pairs = (line.partition(":") for line in lines)
        return Tunnel(method, target, {name.lower(): value.strip() for name, _, value in pairs})

    async def _hello(self, connection: socket.socket) -> ClientHello | None:
        """Look at what the client says first; it stays to be read."""
        async with asyncio.timeout(HELLO_SECONDS):
            seen = 0
            while True:
                await self._readable(connection)
                data = connection.recv(PIECE, socket.MSG_PEEK)
                if (hello := ClientHello.parse(data)) or not data:
                    return hello
                if len(data) == seen:
                    await asyncio.sleep(0.01)  # the rest is on its way
                seen = len(data)

    async def _readable(self, connection: socket.socket) -> None:
        ready = asyncio.Event()
        self._loop.add_reader(connection, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(connection)

    async def _inside(self, connection: socket.socket, tunnel: Tunnel) -> None:
        """End TLS as the host, and carry what is inside to the server that plays it."""
        context = self.authority.context(tunnel.host)
        if self.is_tls_12:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        reader = asyncio.StreamReader(limit=PIECE)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, connection, ssl=context)
        except (ssl.SSLError, OSError) as error:
            tunnel.is_trusted, tunnel.error = False, str(error)
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
        try:
            first = await reader.read(PIECE)  # an alert about the certificate may come now, in TLS 1.3
            if first:  # otherwise it closed without a word: it may not have trusted us
                tunnel.is_trusted, tunnel.first = True, first[:HEAD_BYTES]
                await self._carry(reader, writer, first, self.sites.get(tunnel.host, self.port))
        except (ssl.SSLError, OSError) as error:
            if tunnel.is_trusted is None:
                tunnel.is_trusted, tunnel.error = False, str(error)
        finally:
            transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes, port: int) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        server_writer.write(first)
        sent = self._loop.create_task(_copy(reader, server_writer))
        received = self._loop.create_task(_copy(server_reader, writer))
        try:
            await asyncio.wait([sent, received], return_when=asyncio.FIRST_COMPLETED)
            if sent.done():  # the client has left; what the server still says is for nobody
                server_writer.close()
            else:
                await asyncio.wait([sent], timeout=1)
        finally:
            for task in (sent, received):
                task.cancel()
            await asyncio.gather(sent, received, return_exceptions=True)
            for end in (server_writer, writer):
                end.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()
        writer.close()
        await writer.wait_closed()
