"""Raw sockets on both sides of a relay, and a tap that keeps what it is given."""

import asyncio
import base64
import contextlib
import re
import socket
import ssl
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import uvloop

from agent_logger.config import Network, Origin
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.relay import refusals
from agent_logger.proxy.relay.relay import Relay
from agent_logger.proxy.relay.route import Route
from agent_logger.proxy.relay.upstream import Connector
from agent_logger.proxy.relay.upstream import Upstream as UpstreamConnection
from agent_logger.proxy.spool import frames
from tests.proxy.tls_wire import TlsSocket

T = TypeVar("T")
F = TypeVar("F", bound=frames.Frame)

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
KEY = b"sk-ant-api03-FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE-fakeAA"
TOKEN = "alr_" + "T0ken" * 6 + "Aa"
RECORDED = "recorded.test"  # the hosts below it are recorded
DOOR: ContextVar[str] = ContextVar("DOOR", default="base-url")  # by which the clients of `relaying` come


def connect_request(target: str, token: str | None = TOKEN, headers: str = "") -> bytes:
    if token is not None:
        user = base64.b64encode(f"agent-logger:{token}".encode()).decode()
        headers += f"Proxy-Authorization: Basic {user}\r\n"
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{headers}\r\n".encode()


class Wire:
    """One end of a connection, byte for byte."""

    def __init__(self, sock: socket.socket, seconds: float = 30.0) -> None:
        self.sock = sock
        self.sock.settimeout(seconds)
        self.read = b""  # all that came
        self._taken = 0

    @classmethod
    def to(cls, port: int, seconds: float = 30.0) -> "Wire":
        return cls(socket.create_connection(("127.0.0.1", port)), seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def more(self) -> bytes:
        data = self.sock.recv(1 << 16)
        self.read += data
        return data

    def take(self, count: int) -> bytes:
        while len(self.read) - self._taken < count:
            if not self.more():
                raise EOFError(self.read[self._taken :])
        start, self._taken = self._taken, self._taken + count
        return self.read[start : self._taken]

    def until(self, end: bytes) -> bytes:
        while (found := self.read.find(end, self._taken)) < 0:
            if not self.more():
                raise EOFError(self.read[self._taken :])
        return self.take(found + len(end) - self._taken)

    def head(self) -> bytes:
        return self.until(b"\r\n\r\n")

    def body(self, head: bytes) -> bytes:
        """By what the head says, chunk sizes included; none if it says nothing."""
        low = head.lower()
        if b"\r\ntransfer-encoding: chunked\r\n" in low:
            return self._chunks()
        at = low.find(b"\r\ncontent-length:")
        return self.take(int(low[at + 17 : low.index(b"\r\n", at + 2)])) if at >= 0 else b""

    def _chunks(self) -> bytes:
        raw = b""
        while True:
            line = self.until(b"\r\n")
            raw += line
            size = int(line.split(b";")[0], 16)
            if not size:
                break
            raw += self.take(size + 2)
        while (line := self.until(b"\r\n")) != b"\r\n":
            raw += line
        return raw + line

    def message(self) -> bytes:
        head = self.head()
        return head + self.body(head)

    def rest(self) -> bytes:
        """All until the other side closes. `ConnectionResetError`: it reset."""
        while self.more():
            pass
        start, self._taken = self._taken, len(self.read)
        return self.read[start:]

    def end(self) -> str:
        """How the connection ends: `closed` or `reset`; what comes before is in `read`."""
        try:
            self.rest()
        except ConnectionResetError:
            return "reset"
        return "closed"

    def half_close(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.sock.close()

    def close(self) -> None:
        self.sock.close()


Play = Callable[[Wire], None]


class Upstream:
    """Plays `play` on every connection, each in a thread of its own; what it raises is raised on leaving."""

    def __init__(self, play: Play, listener: socket.socket | None = None) -> None:
        self._play = play
        self._listener = listener or socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self.wires: list[Wire] = []
        self._threads = ThreadPoolExecutor(128)
        self._results: list[Callable[[], object]] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # A blocked accept does not see a close, but a shutdown.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(5)
        self._threads.shutdown(wait=True)
        for wire in self.wires:
            wire.close()
        if kind is None:
            for result in self._results:
                result()

    @property
    def origin(self) -> Origin:
        return Origin("http", "127.0.0.1", self.port)

    def path(self, rest: str = "/v1/messages", provider: str = "anthropic") -> bytes:
        return f"/{provider}/127.0.0.1:{self.port}{rest}".encode()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            wire = Wire(sock)
            self.wires.append(wire)
            self._results.append(self._threads.submit(self._play, wire).result)


class Collected:
    """A tap that keeps everything."""

    def __init__(self) -> None:
        self.frames: list[frames.AnyFrame] = []
        self.credentials: dict[bytes, int] = {}

    def put(self, *frames: frames.AnyFrame) -> None:
        self.frames += frames

    def put_if_room(self, frame: frames.AnyFrame) -> bool:
        self.frames.append(frame)
        return True

    def credential(self, value: bytes, *, lasting: bool = False) -> int:
        return self.credentials.setdefault(value, len(self.credentials))

    def of(self, kind: type[F]) -> list[F]:
        return [frame for frame in self.frames if isinstance(frame, kind)]

    def wait(self, kind: type[F], count: int = 1, seconds: float = 30.0) -> list[F]:
        """The frames of a kind, once there are so many."""
        deadline = time.monotonic() + seconds
        while len(found := self.of(kind)) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(found)} of {count} {kind.__name__}: {self.frames[-10:]}")
            time.sleep(0.002)
        return found

    def reason(self, call: int = 0) -> str | None:
        """Why a call ended; the last one unless a number is given."""
        ends = self.wait(frames.CallEnd)
        return next(end for end in reversed(ends) if not call or end.call == call).reason

    def filled(self, data: bytes, masked: tuple[frames.Mask, ...]) -> bytes:
        """The bytes of a frame with the credentials back in their places."""
        values = {index: value for value, index in self.credentials.items()}
        for mask in masked:
            end = mask.offset + mask.length
            assert data[mask.offset : end] == bytes(mask.length)
            data = data[: mask.offset] + values[mask.credential] + data[end:]
        return data

    def request_body(self, call: int | None = None) -> bytes:
        found = [it for it in self.of(frames.RequestData) if call in (None, it.call)]
        return b"".join(self.filled(it.data, it.masked) for it in found)

    def response_body(self, call: int | None = None) -> bytes:
        found = [it for it in self.of(frames.ResponseData) if call in (None, it.call)]
        return b"".join(self.filled(it.data, it.masked) for it in found)


class Running:
    """A relay on its own loop, in its own thread. `target`: the host that clients of the forward door connect to."""

    def __init__(
        self, relay: Relay, tap: Collected, loop: asyncio.AbstractEventLoop, target: str | None = None
    ) -> None:
        self.relay, self.tap, self._loop, self._target = relay, tap, loop, target

    @property
    def port(self) -> int:
        return self.relay.port

    def client(self, seconds: float = 30.0) -> Wire:
        """A client that may send requests: to the relay itself, or in a tunnel that the relay opens."""
        if self._target is None:
            return Wire.to(self.port, seconds)
        return self.opened(self._target, seconds)

    def tunnelled(self, target: str, seconds: float = 30.0, token: str = TOKEN) -> Wire:
        """A client that has asked for a tunnel and got it."""
        wire = Wire.to(self.port, seconds)
        wire.send(connect_request(target, token))
        assert wire.head().startswith(b"HTTP/1.1 200 "), wire.read
        return wire

    def opened(self, target: str, seconds: float = 30.0) -> Wire:
        """A client that speaks TLS in a tunnel, and trusts the relay's certificates."""
        wire = self.tunnelled(target, seconds)
        secure = TlsSocket(wire.sock, trusting(), target.rpartition(":")[0])
        secure.shake_hands()
        return Wire(cast("socket.socket", secure), seconds)

    def websocket(self, upstream: tuple[str, int], path: str) -> tuple[str, dict[str, Any]]:
        """URL and arguments for a client of the `websockets` package."""
        if self._target is None:
            return f"ws://127.0.0.1:{self.port}/openai/{upstream[0]}:{upstream[1]}{path}", {"proxy": None}
        tunnel = self.tunnelled(self._target).sock
        return f"wss://{self._target}{path}", {"sock": tunnel, "ssl": trusting(), "proxy": None}

    def host(self) -> bytes:
        """What a client writes into `Host`."""
        return (self._target or f"127.0.0.1:{self.port}").encode()

    def upstream_host(self, upstream: Upstream) -> bytes:
        """What an upstream finds there."""
        return (self._target or f"127.0.0.1:{upstream.port}").encode()

    def path(self, upstream: Upstream, rest: str) -> bytes:
        """The path that a client asks for."""
        return rest.encode() if self._target else upstream.path(rest)

    def do(self, work: Callable[[], T]) -> T:
        """Something done on the relay's loop."""

        async def done() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(60)

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def request(self, path: bytes, body: bytes = b"", *, method: bytes = b"POST", headers: bytes = b"") -> bytes:
        length = b"Content-Length: %d\r\n" % len(body) if body or method == b"POST" else b""
        if self._target is not None:
            path = re.sub(rb"^/[a-z]+/127\.0\.0\.1:\d+", b"", path) or b"/"
        host = b"Host: %b\r\n" % (self._target or f"127.0.0.1:{self.port}").encode()
        return method + b" " + path + b" HTTP/1.1\r\n" + host + headers + length + b"\r\n" + body


@contextlib.contextmanager
def _refusals_without_a_budget() -> Iterator[None]:
    """For the relays that are made meanwhile: a hundred tests share one, and each wants to see what was refused."""
    budget = refusals.PER_MINUTE, refusals.PER_DAY
    refusals.PER_MINUTE = refusals.PER_DAY = 1 << 30
    try:
        yield
    finally:
        refusals.PER_MINUTE, refusals.PER_DAY = budget


@cache
def _authority() -> Authority:
    folder = tempfile.TemporaryDirectory(prefix="agent-logger-test-")
    authority = Authority(Path(folder.name), RecordedHosts.parse([f"*.{RECORDED}"]))
    authority.certificates()
    folder.cleanup()  # those that are open already remain in use
    return authority


@cache
def trusting() -> ssl.SSLContext:
    """The TLS settings of a client of ours."""
    context = ssl.create_default_context(cadata="".join(pem.decode() for pem in _authority().certificates()))
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


class PlainConnector(Connector):
    """Reaches every recorded host at a port of this machine, without TLS: so the upstreams of a test may cut a
    connection at any byte."""

    async def connect(self, route: Route) -> UpstreamConnection:
        if not route.is_recorded:
            return await super().connect(route)
        there = replace(route, host="127.0.0.1", tls=False, any_address=True)
        upstream = await super().connect(there)
        upstream.key = route.key
        return upstream


def registered(relay: Relay, *origins: Origin, token: str = TOKEN, network: Network = Network()) -> None:  # noqa: B008
    """Register a run with these origins, and with the recorded hosts."""
    run = relay.routes.register(f"run-{token[-4:]}", token, origins, network)
    relay.forward.register(run, origins, [f"*.{RECORDED}"])


@contextlib.contextmanager
def relaying(*allow: Origin, **options: str) -> Iterator[Running]:
    """A relay that may call these origins. By the forward door, its clients are in tunnels to the first of them, under
    a name that is recorded."""
    is_forward = DOOR.get() == "forward"
    tap = Collected()
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with _refusals_without_a_budget():
        relay = Relay(0, allow, tap, network=Network(**options), certificates=_authority())
    target = None
    if is_forward:
        target = f"api.{RECORDED}:{allow[0].port}"
        relay.connector = PlainConnector(relay.batch, Network(**options))
        registered(relay, *(Origin("https", f"api.{RECORDED}", origin.port) for origin in allow))
    try:
        asyncio.run_coroutine_threadsafe(relay.start(), loop).result(60)
        yield Running(relay, tap, loop, target)
    finally:
        asyncio.run_coroutine_threadsafe(relay.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def pump(source: socket.socket, sink: socket.socket) -> None:
    """All that comes, until either side ends; then both do."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for sock in (source, sink):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def answering(response: bytes) -> Play:
    """Answer every request on the connection with these bytes."""

    def play(wire: Wire) -> None:
        with contextlib.suppress(EOFError, ConnectionResetError, TimeoutError):
            while True:
                wire.message()
                wire.send(response)

    return play


def response(body: bytes = b"ok", status: bytes = b"200 OK", headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


def wait_for(relay: Running, done: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not relay.do(done):
        assert time.monotonic() < deadline
        time.sleep(0.005)
