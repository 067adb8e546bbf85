"""The two ends of `proxy.py`, each run as a process of its own: an upstream, and clients that measure.

    python benches/_proxy_load.py upstream            prints its port
    python benches/_proxy_load.py relay PORT FILE     the least that can lie between them; prints its port
    python benches/_proxy_load.py calls '{...}'       the arguments of a client, as JSON; its answer is JSON too

Times are nanoseconds of the monotonic clock, which all processes of a machine share.
"""

import asyncio
import json
import os
import random
import re
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

import msgspec
import uvloop

HOST = "127.0.0.1"
SMALL_BYTES = 2048
HISTORY_BYTES = 500_000
TARGET = re.compile(rb"\w+ \S*/(v1/messages|stream|paced|idle|count)(?:\?events=(\d+)&ms=(\d+))? ")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CALL = re.compile(rb"\r\nx-bench: *bench-call-(\d+)", re.IGNORECASE)
# A session's requests, about HISTORY_BYTES each: every one holds the one before it.
SESSIONS, SESSION_CALLS = 10, 40


def small_body(role: str) -> bytes:
    frame = json.dumps({"type": "message", "role": role, "model": "claude-sonnet-4-5", "content": "%"})
    words = random.Random(len(role)).choices(["tool", "result", "line", "of", "code", "return", "42"], k=SMALL_BYTES)
    return frame.replace("%", " ".join(words)[: SMALL_BYTES - len(frame) + 1]).encode()


# The upstream

JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
ANSWER = small_body("assistant")
ANSWER_HEAD = JSON_HEAD % len(ANSWER)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" a few words more"}}\n\n'
)


def chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


EVENT_CHUNK = chunk(EVENT)


def answer_events(count: int, number: int) -> list[bytes]:
    """The events of one answer, as a model gives it. `number`: of the answer."""
    usage = b'"usage":{"input_tokens":9,"cache_read_input_tokens":200000,"output_tokens":%d}' % count
    start = b'{"type":"message_start","message":{"id":"msg_bench_%d","type":"message","role":"assistant",' % number
    start += b'"model":"claude-sonnet-4-5","content":[],"stop_reason":null,%b}}' % usage
    begin = b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
    end = b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},%b}' % usage
    events = [(b"message_start", start), (b"content_block_start", begin)]
    tail = [(b"content_block_stop", b'{"type":"content_block_stop","index":0}'), (b"message_delta", end)]
    tail.append((b"message_stop", b'{"type":"message_stop"}'))
    head, rest = ([b"event: %b\ndata: %b\n\n" % event for event in part] for part in (events, tail))
    return [*head, *[EVENT] * (count - len(events) - len(tail)), *rest]


def answer_text(count: int) -> str:
    """The text of that answer."""
    return " a few words more" * (count - 5)


class Upstream(asyncio.Protocol):
    """As little as possible per call: it must not be what is measured."""

    calls = 0
    transport: asyncio.Transport

    def __init__(self) -> None:
        self.buffer = b""
        self.head = b""
        self.left = 0  # bytes of this head's body that are still to come
        self.paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.left > len(data):
            self.left -= len(data)
            return
        self.buffer = self.buffer + data if self.buffer else data
        while True:
            if not self.head:
                end = self.buffer.find(b"\r\n\r\n")
                if end < 0:
                    return
                length = LENGTH.search(self.buffer, 0, end + 2)
                self.left = int(length[1]) if length else 0
                self.head, self.buffer = self.buffer[:end], self.buffer[end + 4 :]
            if self.left > len(self.buffer):
                self.left, self.buffer = self.left - len(self.buffer), b""
                return
            head, self.head, self.buffer, self.left = self.head, b"", self.buffer[self.left :], 0
            self.answer(head)

    def answer(self, head: bytes) -> None:
        if not (target := TARGET.match(head)):
            self.transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return
        if target[1] == b"count":
            body = b"%d" % Upstream.calls
            self.transport.write(JSON_HEAD % len(body) + b"\r\n" + body)
            return
        Upstream.calls += 1
        if target[1] == b"v1/messages" and target[2]:
            self.transport.write(STREAM_HEAD)
            self.send_answer(answer_events(int(target[2]), Upstream.calls))
            return
        if target[1] == b"v1/messages":
            call = CALL.search(head)
            mark = b"x-bench: bench-done-%b-\r\n" % call[1] if call else b""
            self.transport.write(ANSWER_HEAD + mark + b"\r\n" + ANSWER)
            return
        self.transport.write(STREAM_HEAD)
        if target[1] == b"idle":
            self.transport.write(chunk(EVENT))
        else:
            loop = asyncio.get_running_loop()
            loop.call_soon(self.send_event, loop, int(target[2]), int(target[3]))

    def send_event(self, loop: asyncio.AbstractEventLoop, left: int, every_ms: int) -> None:
        """One event, one write: so a proxy that holds one back, or joins them, is seen."""
        if self.transport.is_closing():
            return
        if not left:
            self.transport.write(b"0\r\n\r\n")
        elif self.paused:
            loop.call_later(0.001, self.send_event, loop, left, every_ms)
        else:
            self.transport.write(chunk(b"data: %d\n\n" % time.monotonic_ns()) if every_ms else EVENT_CHUNK)
            if every_ms:
                loop.call_later(every_ms / 1000, self.send_event, loop, left - 1, every_ms)
            else:
                loop.call_soon(self.send_event, loop, left - 1, every_ms)

    def send_answer(self, events: list[bytes]) -> None:
        """One event, one write, in turn with the other connections."""
        if self.transport.is_closing():
            return
        if not events:
            self.transport.write(b"0\r\n\r\n")
            return
        self.transport.write(chunk(events[0]))
        asyncio.get_running_loop().call_soon(self.send_answer, events[1:])

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False


async def serve(protocol: Callable[[], asyncio.Protocol]) -> None:
    server = await asyncio.get_running_loop().create_server(protocol, HOST, 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# What any relay in Python has to do at least: it reads nothing of what it passes on, and writes all of it down.


class Bare(asyncio.Protocol):
    """One side of a connection. What arrives before the other side is there is sent when it is."""

    transport: asyncio.Transport
    other: "Bare | None" = None

    def __init__(self, written: list[bytes], port: int = 0) -> None:
        self.written, self.port = written, port
        self.early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self.port:
            self.connecting = asyncio.get_running_loop().create_task(self.connect())

    async def connect(self) -> None:
        _, other = await asyncio.get_running_loop().create_connection(partial(Bare, self.written), HOST, self.port)
        self.other, other.other = other, self
        other.transport.write(self.early)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self.early += data
        else:
            self.other.transport.write(data)
        frame = msgspec.msgpack.encode((0, time.monotonic_ns(), data))
        self.written += (b"%08x" % zlib.crc32(frame), frame)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


def write_down(written: list[bytes], path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    while True:
        time.sleep(0.01)
        while batch := written[:512]:
            os.writev(file, batch)
            del written[: len(batch)]


async def bare(port: int, path: str) -> None:
    written: list[bytes] = []
    threading.Thread(target=write_down, args=(written, path), daemon=True).start()
    await serve(partial(Bare, written, port))


# The clients


@dataclass
class Load:
    """What a client is told. `first` is the number of its first call."""

    port: int
    path: str
    seconds: float = 0
    rate: int = 0
    first: int = 0
    history: bool = False
    streams: int = 0
    events: int = 0


@dataclass
class Answer:
    """What a client saw: the time each call took, by number when it was answered; or the sums of streams."""

    took_ns: list[int]
    finished_ns: dict[int, int]
    failed: int = 0
    seconds: float = 0
    events: int = 0


def bodies(history: bool) -> Iterator[bytes]:
    if not history:
        body = small_body("user")
        while True:
            yield body
    chance = random.Random(7)
    words = ["".join(chance.choices("etaoinshrdlucmfw", k=chance.randint(2, 9))) for _ in range(4000)]
    step = HISTORY_BYTES // 100
    for session in range(1_000_000):
        messages = [
            json.dumps({"role": "user", "content": " ".join(chance.choices(words, k=step // 7))}).encode()
            for _ in range(120)
        ]
        for call in range(SESSION_CALLS):
            head = b'{"model":"claude-sonnet-4-5","session":%d,"messages":[' % session
            yield head + b",".join(messages[: 80 + call]) + b"]}"


class Caller(asyncio.Protocol):
    """A connection that makes one call after the other and hears each answer out."""

    transport: asyncio.Transport

    def __init__(self, done: Callable[["Caller", int, int], None], lost: Callable[["Caller"], None]) -> None:
        self.done, self.lost = done, lost
        self.buffer = b""
        self.number: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def call(self, number: int, request: bytes) -> None:
        self.number, self.began = number, time.monotonic_ns()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0 or self.number is None or not (length := LENGTH.search(self.buffer, 0, end + 2)):
            return
        if len(self.buffer) >= end + 4 + int(length[1]):
            number, self.number = self.number, None
            good, self.buffer = self.buffer.startswith(b"HTTP/1.1 200"), b""
            self.done(self, number, time.monotonic_ns() - self.began if good else -1)

    def connection_lost(self, _exc: Exception | None) -> None:
        self.lost(self)


async def calls(load: Load) -> Answer:
    """Calls at a fixed rate, whether or not the ones before were answered."""
    loop = asyncio.get_running_loop()
    answer, idle = Answer([], {}), list[Caller]()

    def done(caller: Caller, number: int, took: int) -> None:
        idle.append(caller)
        if took < 0:
            answer.failed += 1
        else:
            answer.took_ns.append(took)
            answer.finished_ns[number] = time.monotonic_ns()

    def lost(caller: Caller) -> None:
        answer.failed += caller.number is not None
        if caller in idle:
            idle.remove(caller)

    async def connect() -> Caller:
        _, caller = await loop.create_connection(partial(Caller, done, lost), HOST, load.port)
        return caller

    idle += [await connect() for _ in range(8)]
    source = bodies(load.history)
    head = f"POST {load.path} HTTP/1.1\r\nHost: {HOST}:{load.port}\r\nContent-Type: application/json\r\n"
    began = loop.time()
    for number in range(int(load.rate * load.seconds)):
        body = next(source)
        mark = f"X-Bench: bench-call-{load.first + number}\r\nContent-Length: {len(body)}\r\n\r\n"
        await asyncio.sleep(max(0.0, began + number / load.rate - loop.time()))
        caller = idle.pop() if idle else await connect()
        caller.call(load.first + number, (head + mark).encode() + body)
    answer.seconds = loop.time() - began
    wanted = int(load.rate * load.seconds)
    while len(answer.took_ns) + answer.failed < wanted and loop.time() < began + load.seconds + 10:
        await asyncio.sleep(0.01)
    answer.failed = wanted - len(answer.took_ns)
    return answer


class Listener(asyncio.Protocol):
    """Reads one stream to its end."""

    def __init__(self, request: bytes, heard: Callable[[bytes], None]) -> None:
        self.request, self.heard = request, heard
        self.tail = b""
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.heard(data)
        self.tail = (self.tail + data)[-7:]
        if self.tail.endswith(b"\r\n0\r\n\r\n"):
            self._end(whole=True)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._end(whole=False)

    def _end(self, *, whole: bool) -> None:
        if not self.ended.done():
            self.ended.set_result(whole)


async def listen(load: Load, heard: Callable[[bytes], None]) -> list[Listener]:
    loop = asyncio.get_running_loop()
    request = f"GET {load.path} HTTP/1.1\r\nHost: {HOST}:{load.port}\r\n\r\n".encode()
    listeners = []
    for _ in range(load.streams):
        _, listener = await loop.create_connection(partial(Listener, request, heard), HOST, load.port)
        listeners.append(listener)
    return listeners


async def streams(load: Load) -> Answer:
    """All events of many streams, as fast as they come."""
    answer = Answer([], {})

    def heard(data: bytes) -> None:
        answer.events += data.count(b"\n\n")

    began = time.monotonic()
    listeners = await listen(load, heard)
    whole = await asyncio.gather(*(listener.ended for listener in listeners))
    answer.seconds, answer.failed = time.monotonic() - began, whole.count(False)
    return answer


async def paced(load: Load) -> Answer:
    """How long each event was under way."""
    answer = Answer([], {})

    def heard(data: bytes) -> None:
        now = time.monotonic_ns()
        answer.took_ns.extend(now - int(sent) for sent in re.findall(rb"data: (\d+)\n", data))

    listeners = await listen(load, heard)
    whole = await asyncio.gather(*(listener.ended for listener in listeners))
    answer.events, answer.failed = len(answer.took_ns), whole.count(False)
    return answer


async def idle(load: Load) -> Answer:
    """Holds streams open until its input ends. One line says that all of them are, and how many."""
    heard = 0

    def count(data: bytes) -> None:
        nonlocal heard
        heard += data.count(b"event: ")

    loop = asyncio.get_running_loop()
    listeners = await listen(load, count)
    until = loop.time() + 20
    while heard < load.streams and loop.time() < until:
        await asyncio.sleep(0.05)
    print(heard, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    return Answer([], {}, failed=sum(listener.ended.done() for listener in listeners), events=heard)


CLIENTS: Mapping[str, Callable[[Load], Awaitable[Answer]]] = {
    "calls": calls,
    "streams": streams,
    "paced": paced,
    "idle": idle,
}


async def client(role: str, load: Load) -> None:
    print(json.dumps(asdict(await CLIENTS[role](load))))


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "upstream":
        uvloop.run(serve(Upstream))
    elif role == "relay":
        uvloop.run(bare(int(arguments[0]), arguments[1]))
    else:
        uvloop.run(client(role, Load(**json.loads(arguments[0]))))
