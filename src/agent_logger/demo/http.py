"""A small HTTP/1.1 server for loopback, strict about what it reads.

It is also the upstream that tests put behind the proxy, so it forgives nothing: framing that a lenient server would
guess at is a 400 here. Header names keep their case and their order.
"""

import asyncio
import contextlib
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http.client import responses
from typing import Self

HEAD_LIMIT = 64 * 1024  # bytes; the proxy's limit too
FRAMING = ("content-length", "transfer-encoding")

Headers = Sequence[tuple[str, str]]


class ProtocolError(Exception):
    """The client broke the protocol. It gets an answer that says so, and the connection ends."""


@dataclass(frozen=True)
class DemoRequest:
    head: bytes  # as received, the empty line included
    method: str
    target: str  # path and query, as received
    version: str
    headers: Headers
    body: bytes = b""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def keeps_alive(self) -> bool:
        return self.version == "HTTP/1.1" and "close" not in self.header("connection").lower()

    def header(self, name: str) -> str:
        """All values under a name given in lower case, joined; empty if there is none."""
        return ", ".join(value for key, value in self.headers if key.lower() == name)


def parse_head(head: bytes) -> DemoRequest:
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match first.split(" "):
        case [method, target, "HTTP/1.1" | "HTTP/1.0" as version] if method and target:
            return DemoRequest(head, method, target, version, [_header(line) for line in lines])
    raise ProtocolError(f"not a request line: {first!r}")


def _header(line: str) -> tuple[str, str]:
    match = re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*", line)
    if match is None:
        raise ProtocolError(f"not a header line: {line!r}")
    return match[1], match[2]


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> DemoRequest | None:
    """The next request on the connection; None if the client closed it between two."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as end:
        if end.partial:
            raise
        return None
    request = parse_head(head)
    if request.header("expect").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return replace(request, body=await _body(request, reader))


async def _body(request: DemoRequest, reader: asyncio.StreamReader) -> bytes:
    framing = [(name.lower(), value) for name, value in request.headers if name.lower() in FRAMING]
    match framing:
        case []:
            return b""
        case [("transfer-encoding", coding)] if coding.lower() == "chunked":
            return b"".join([chunk async for chunk in _chunks(reader)])
        case [("content-length", length)] if re.fullmatch("[0-9]+", length):
            return await reader.readexactly(int(length))
    raise ProtocolError(f"the length of the body is unclear: {framing}")


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        size = (await reader.readuntil(b"\r\n"))[:-2].partition(b";")[0]
        if not re.fullmatch(b"[0-9A-Fa-f]{1,8}", size):
            raise ProtocolError(f"not a chunk size: {size!r}")
        chunk = await reader.readexactly(int(size, 16))
        if not chunk:
            break
        if await reader.readexactly(2) != b"\r\n":
            raise ProtocolError("a chunk longer than its size")
        yield chunk
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers


class Reply:
    """The answer to one request, whole or piece by piece."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.status: int | None = None  # until a head is written
        self.headers: Headers = ()
        self.complete = False
        self._chunked = False

    async def send(self, status: int, headers: Headers = (), body: bytes = b"") -> None:
        """A whole answer in one write: Codex reads an error's body only if it comes with the head."""
        self.status, self.headers, self.complete = status, headers, True
        self.writer.write(_head(status, [*headers, ("content-length", str(len(body)))]) + body)
        await self.writer.drain()

    def start(self, status: int, headers: Headers, *, length: int | None = None) -> None:
        """Write the head; a body without `length` is sent in chunks, one per `write`."""
        self.status, self.headers, self._chunked = status, headers, length is None
        framing = ("transfer-encoding", "chunked") if length is None else ("content-length", str(length))
        self.writer.write(_head(status, [*headers, framing]))

    async def write(self, data: bytes) -> None:
        if data:  # an empty chunk would be the last one
            self.writer.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            await self.writer.drain()

    async def end(self) -> None:
        self.complete = True  # before the last bytes, because a reader of them may check at once
        if self._chunked:
            self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()


def _head(status: int, headers: Headers) -> bytes:
    lines = [f"HTTP/1.1 {status} {responses.get(status, 'Unknown')}", *(f"{k}: {v}" for k, v in headers)]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")


class LoopbackServer(ABC):
    """Listens on 127.0.0.1 as soon as it exists; answers while entered, from a thread of its own.

    An exception in `handle` stops the server and is raised again on exit.
    """

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        # Connections inherit it. Without it, what follows a head waits up to 40 ms for the client's acknowledgement.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    @abstractmethod
    async def handle(self, request: DemoRequest, reply: Reply) -> None:
        """Answer one request. A reply left incomplete ends the connection."""

    def __enter__(self) -> Self:
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="loopback-server")
        self._running = self._pool.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: `handle` failed
            self._loop.call_soon_threadsafe(self._stop.set)
        self._pool.shutdown()
        self._running.result()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        connections: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:

            def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = group.create_task(self._connection(reader, writer))
                connections.add(task)
                task.add_done_callback(connections.discard)

            server = await asyncio.start_server(accept, sock=self._socket, limit=HEAD_LIMIT)
            try:
                await self._stop.wait()
            finally:
                server.close()
                for task in connections:
                    task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._requests(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            writer.transport.abort()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_request(reader, writer):
                reply = Reply(reader, writer)
                await self.handle(request, reply)
                if not (reply.complete and request.keeps_alive):
                    break
        except (ProtocolError, asyncio.LimitOverrunError) as refusal:
            await Reply(reader, writer).send(400, [("connection", "close")], f"{refusal}\n".encode())
