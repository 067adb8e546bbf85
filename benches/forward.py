"""The forward door: what an unread tunnel and an opened one cost, and whether many of both work at once.

    ./dev bench forward [ROUNDS]

A tunnel is compared with the least that can lie between two sockets, a recorded call in an opened tunnel with the same
call by a base URL. Both are measured in turns in one run, as CPU time of the proxy's processes, and the best round of
each counts, for relay and recorder each: other work on the machine can only add to it. Fails if a budget is exceeded.
"""

import asyncio
import contextlib
import multiprocessing
import os
import resource
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import uvloop

from _figures import Figures, arguments_parser

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.proxy.foreign import foreign_files, foreign_server
from tests.proxy.process import Process, proxying
from tests.proxy.wires import RECORDED, Upstream, connect_request

from agent_logger.config import Network
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.runs.messages import new_token

MB = 1 << 20
HOST = f"api.{RECORDED}"
TUNNELS, OPENED, TOKENS = 1000, 200, 20
TUNNEL_MB = 400
CALLS = {2048: 1500, 500_000: 120}  # by the size of a request's body
BUDGETS_MS = {2048: 0.5, 500_000: 1.5}
TUNNEL_BUDGET = 1.25
ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2048\r\n\r\n" + b'"' + b"x" * 2046 + b'"'
)

# ---------------------------------------------------------------- other processes


class Source(asyncio.Protocol):
    """Sends as many MB as the client's first line asks for, or counts what comes after `0` until it ends."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.left = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.left < 0 and data.startswith(b"echo"):
            self.transport.write(data)
        elif self.left < 0:
            self.left = int(data.partition(b"\n")[0]) * MB
            self.resume_writing()

    def resume_writing(self) -> None:
        block = bytes(256 << 10)
        while self.left > 0 and self.transport.get_write_buffer_size() == 0:
            self.left -= len(block)
            self.transport.write(block)
        if self.left > 0:
            asyncio.get_running_loop().call_soon(self.resume_writing)

    def eof_received(self) -> bool:
        self.transport.close()
        return False


class Relayed(asyncio.Protocol):
    """One end of the least that can lie between two sockets."""

    transport: asyncio.Transport
    other: "Relayed"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.other.transport.resume_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.other.transport.close()


class Accepted(Relayed):
    """The end that a client has connected to."""

    def __init__(self, port: int) -> None:
        self.port, self.early = port, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.task = asyncio.ensure_future(self.connect())

    async def connect(self) -> None:
        _, self.other = await asyncio.get_running_loop().create_connection(Relayed, "127.0.0.1", self.port)
        self.other.transport.write(self.early)
        self.transport.set_protocol(end := Relayed())
        end.transport, end.other, self.other.other = self.transport, self.other, end

    def data_received(self, data: bytes) -> None:
        self.early += data


class Answering(asyncio.Protocol):
    """A model API that answers each request with 2 KB."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end]).lower()
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            if len(self.buffer) < end + 4 + length:
                return
            del self.buffer[: end + 4 + length]
            self.transport.write(ANSWER)


class Internet(asyncio.Protocol):
    """A proxy for which each host is the model API, over TLS."""

    transport: asyncio.Transport
    context: ssl.SSLContext

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, _data: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        self.task = asyncio.ensure_future(self.secure())

    async def secure(self) -> None:
        protocol = Answering()
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self.transport, protocol, self.context, server_side=True)
        if transport is not None:
            protocol.connection_made(transport)


def serve(kind: str, port: int, told: Connection) -> None:
    async def run() -> None:
        Internet.context = foreign_server()
        protocols: dict[str, Callable[[], asyncio.Protocol]] = {
            "source": Source,
            "relay": lambda: Accepted(port),
            "internet": Internet,
        }
        server = await asyncio.get_running_loop().create_server(protocols[kind], "127.0.0.1", 0, backlog=2048)
        told.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    _raise_limit()
    uvloop.run(run())


@contextlib.contextmanager
def serving(kind: str, port: int = 0) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and its process id."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(kind, port, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv(), process.pid or 0
    finally:
        process.kill()
        process.join()


def _raise_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# ---------------------------------------------------------------- measuring


def cpu_seconds(*pids: int) -> float:
    """The CPU time of processes, in the kernel too, to the nanosecond."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def connected(port: int, target: str, token: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(connect_request(target, token))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += sock.recv(1)
    assert b" 200 " in head, head
    return sock


def drained(sock: socket.socket, size: int) -> None:
    buffer = bytearray(MB)
    while size:
        count = sock.recv_into(buffer)
        assert count, "the connection ended"
        size -= count


def bulk(sock: socket.socket, pid: int) -> float:
    """The CPU time that a relay takes for a MB."""
    with sock:
        before = cpu_seconds(pid)
        sock.sendall(b"%d\n" % TUNNEL_MB)
        drained(sock, TUNNEL_MB * MB)
        return (cpu_seconds(pid) - before) / TUNNEL_MB


def called(sock: socket.socket, head: bytes, size: int, count: int) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * size + b'"}]}'
    request = head + b"content-length: %d\r\n\r\n" % len(body) + body
    for _ in range(count):
        sock.sendall(request)
        drained(sock, len(ANSWER))


def calls(proxy: Process, sock: socket.socket, head: bytes, size: int) -> tuple[float, float]:
    """The CPU time, in ms, that the relay and the recorder take for a call on a connection that stays."""
    pids = proxy.relay_pid, proxy.recorder_pid
    with sock:
        called(sock, head, size, 10)
        settled(proxy)
        before = [cpu_seconds(pid) for pid in pids]
        called(sock, head, size, CALLS[size])
        settled(proxy)
        relay, recorder = (cpu_seconds(pid) - start for pid, start in zip(pids, before, strict=True))
        return relay * 1000 / CALLS[size], recorder * 1000 / CALLS[size]


def settled(proxy: Process) -> None:
    """Wait until all calls are in the logs."""
    seen = -1
    while True:
        time.sleep(1.2)  # the status is written once a second
        status = proxy.recorder()
        if status.backlog_bytes == 0 and status.calls == seen:
            return
        seen = status.calls


# ---------------------------------------------------------------- what is measured


def many(proxy: Process, tokens: list[str], trusts: ssl.SSLContext, source: int) -> tuple[float, float]:
    """Open all tunnels and all recorded connections, and use each once while all are open.

    Returns the seconds that took, and the MB of memory that the relay has then.
    """
    started = time.monotonic()
    tunnels = [connected(proxy.port, f"127.0.0.1:{source}", tokens[n % TOKENS]) for n in range(TUNNELS)]
    opened = []
    for number in range(OPENED):
        sock = connected(proxy.port, f"{HOST}:443", tokens[number % TOKENS])
        opened.append(trusts.wrap_socket(sock, server_hostname=HOST))
    for number, sock in enumerate(tunnels):
        sock.sendall(b"echo %d" % number)
    for sock in opened:
        sock.sendall(b"GET /v1/models HTTP/1.1\r\nhost: %b\r\n\r\n" % HOST.encode())
    for number, sock in enumerate(tunnels):
        assert sock.recv(100) == b"echo %d" % number
    for sock in opened:
        drained(sock, len(ANSWER))
    seconds = time.monotonic() - started
    statm = Path(f"/proc/{proxy.relay_pid}/statm").read_text().split()
    for sock in (*tunnels, *opened):
        sock.close()
    return seconds, int(statm[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def main() -> int:
    parser = arguments_parser(__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    arguments = parser.parse_args()
    rounds: int = arguments.rounds
    _raise_limit()
    figures = Figures("forward")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ca_file, _ = foreign_files()  # first: the other processes are to have the same
        source, _ = stack.enter_context(serving("source"))
        least, least_pid = stack.enter_context(serving("relay", source))
        internet, _ = stack.enter_context(serving("internet"))
        nothing = stack.enter_context(Upstream(lambda wire: wire.close()))
        proxy = stack.enter_context(proxying(folder, nothing))
        trusts = ssl.create_default_context(
            cadata=Authority(proxy.home, RecordedHosts.parse([f"*.{RECORDED}"])).certificates()[0].decode()
        )
        trusts.set_alpn_protocols(["http/1.1"])
        tokens = [new_token() for _ in range(TOKENS)]
        network = Network(https_proxy=f"http://127.0.0.1:{internet}", no_proxy="127.0.0.1", ca_file=str(ca_file))
        for token in tokens:
            proxy.register(origins=[f"https://{HOST}"], token=token, network=network)

        seconds, megabytes = many(proxy, tokens, trusts, source)
        name = f"{TUNNELS:,} tunnels and {OPENED} recorded connections at once"
        figures.add(f"{name}: all used", seconds, "s")
        figures.add(f"{name}: memory of the relay", megabytes, "MB")

        there = f"127.0.0.1:{source}"
        ours, other = [], []
        for number in range(3 * rounds):
            token = tokens[number % TOKENS]
            other.append(bulk(socket.create_connection(("127.0.0.1", least)), least_pid) * 1000)
            ours.append(bulk(connected(proxy.port, there, token), proxy.relay_pid) * 1000)
        ratio = min(ours) / min(other)
        figures.add("a MB in an unread tunnel, CPU, of the least that lies between", ratio, "x", at_most=TUNNEL_BUDGET)

        for size, budget in BUDGETS_MS.items():
            by_door, by_url = [], []
            for number in range(rounds):
                token = tokens[number % TOKENS]
                head = b"POST /%b/anthropic/%b/v1/messages HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n" % (
                    token.encode(), HOST.encode(), proxy.port,
                )  # fmt: skip
                by_url.append(calls(proxy, socket.create_connection(("127.0.0.1", proxy.port)), head, size))
                secure = trusts.wrap_socket(connected(proxy.port, f"{HOST}:443", token), server_hostname=HOST)
                head = b"POST /v1/messages HTTP/1.1\r\nhost: %b\r\n" % HOST.encode()
                by_door.append(calls(proxy, secure, head, size))
            best, usual = (sum(map(min, zip(*rounds_of, strict=True))) for rounds_of in (by_door, by_url))
            name = f"a recorded call of {size // 1000} KB inside TLS, CPU above one by base URL"
            figures.add(name, best - usual, "ms", at_most=budget)
        assert proxy.stop() == 0
    return figures.finish(write=arguments.write)


if __name__ == "__main__":
    sys.exit(main())
