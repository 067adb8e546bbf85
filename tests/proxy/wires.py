"""Raw sockets on both sides of a relay, and a tap that keeps what it is given."""

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

import uvloop

from agent_logger.config import Origin
from agent_logger.proxy.relay import refusals
from agent_logger.proxy.relay.relay import Relay
from agent_logger.proxy.spool import frames

T = TypeVar("T")
F = TypeVar("F", bound=frames.Frame)

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
KEY = b"sk-ant-api03-FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE-fakeAA"


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
    """A relay on its own loop, in its own thread."""

    def __init__(self, relay: Relay, tap: Collected, loop: asyncio.AbstractEventLoop) -> None:
        self.relay, self.tap, self._loop = relay, tap, loop

    @property
    def port(self) -> int:
        return self.relay.port

    def client(self, seconds: float = 30.0) -> Wire:
        return Wire.to(self.port, seconds)

    def do(self, work: Callable[[], T]) -> T:
        """Something done on the relay's loop."""

        async def done() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(60)

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def request(
        self, path: bytes, body: bytes = b"", *, method: bytes = b"POST", headers: bytes = b""
    ) -> bytes:
        length = b"Content-Length: %d\r\n" % len(body) if body or method == b"POST" else b""
        host = b"Host: 127.0.0.1:%d\r\n" % self.port
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


@contextlib.contextmanager
def relaying(*allow: Origin, **options: str) -> Iterator[Running]:
    tap = Collected()
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with _refusals_without_a_budget():
        relay = Relay(0, allow, tap, **options)  # type: ignore[arg-type]
    try:
        asyncio.run_coroutine_threadsafe(relay.start(), loop).result(60)
        yield Running(relay, tap, loop)
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
