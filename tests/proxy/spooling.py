"""Calls as a relay would spool them, and what a log folder holds of them."""

import hashlib
import os
import random
import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from agent_logger.clock import CLOCK
from agent_logger.files.parts import PartFile, parts_in
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import Request, Response, Rewrite, WireStart, as_bytes
from agent_logger.proxy.recorder.child import RecorderChild
from agent_logger.proxy.spool.frames import (
    AnyFrame,
    CallEnd,
    CredentialFrame,
    Mask,
    RequestData,
    RequestEnd,
    RequestHeadFrame,
    ResponseData,
    ResponseHead,
)
from agent_logger.proxy.spool.spool import Spool

KEY = b"sk-ant-api03-" + b"Q9z" * 20 + b"wxyz"
PATH = b"/v1/messages"


def masked(spool: Spool, data: bytes, *secrets: bytes) -> tuple[bytes, tuple[Mask, ...]]:
    """With each secret taken out, as the relay does it."""
    masks: list[Mask] = []
    for secret in secrets:
        index = spool.credential(secret)
        start = data.find(secret)
        while start >= 0:
            masks.append(Mask(start, len(secret), index))
            data = data[:start] + bytes(len(secret)) + data[start + len(secret) :]
            start = data.find(secret, start)
    return data, tuple(masks)


def request_head(path: bytes = PATH, *fields: bytes, method: bytes = b"POST") -> bytes:
    lines = [b"%b /anthropic/api.anthropic.com%b HTTP/1.1" % (method, path), b"Host: 127.0.0.1:8080", *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n"


@dataclass
class Relay:
    """Puts calls on a spool, as fast as it is asked to."""

    spool: Spool
    number: int = 0
    ids: dict[int, str] = field(default_factory=dict)

    def call(
        self,
        *,
        head: bytes | None = None,
        path: bytes = PATH,
        body: Sequence[bytes] = (),
        status: bytes = b"HTTP/1.1 200 OK",
        fields: Sequence[bytes] = (b"content-type: application/json",),
        answer: Sequence[bytes] = (),
        connection: int = 1,
        reason: str | None = None,
        secrets: Sequence[bytes] = (KEY,),
        before: Sequence[bytes] = (),
        trailers: bytes = b"",
    ) -> str:
        head = head or request_head(path, b"x-api-key: " + KEY)
        number = self.begin(head, path=path, connection=connection, secrets=secrets)
        for piece in body:
            self.put(RequestData(number, now(), *masked(self.spool, piece, *secrets)))
        self.put(RequestEnd(number, now()))
        for interim in before:
            self.put(ResponseHead(number, now(), interim))
        answered = b"\r\n".join([status, *fields]) + b"\r\n\r\n"
        if status:
            self.put(ResponseHead(number, now(), *masked(self.spool, answered, *secrets)))
        for piece in answer:
            data, masks = masked(self.spool, piece, *secrets)
            self.put(ResponseData(number, now(), data, masked=masks))
        self.put(CallEnd(number, now(), reason, trailers))
        return self.ids[number]

    def begin(
        self,
        head: bytes,
        *,
        path: bytes = PATH,
        connection: int = 1,
        secrets: Sequence[bytes] = (KEY,),
        provider: str = "anthropic",
        upstream: str = "api.anthropic.com",
        websocket: bool = False,
    ) -> int:
        self.number += 1
        self.ids[self.number] = CLOCK.uuid7()
        data, masks = masked(self.spool, head, *secrets)
        path, _ = masked(self.spool, path, *secrets)
        self.put(
            RequestHeadFrame(
                self.number,
                now(),
                self.ids[self.number],
                connection,
                provider,
                upstream,
                path,
                data,
                masks,
                websocket,
            )
        )
        return self.number

    def put(self, frame: AnyFrame) -> None:
        self.spool.put(frame)


def now() -> int:
    return time.monotonic_ns()


def pipe_with(credentials: Sequence[CredentialFrame], *, keep_open: bool = False) -> tuple[int, int]:
    """A pipe that holds them, for a recorder to read, and its other end."""
    ours, theirs = os.pipe()
    for credential in credentials:
        message = msgspec.msgpack.encode(credential)
        os.write(theirs, struct.pack("<I", len(message)) + message)
    if not keep_open:
        os.close(theirs)
        theirs = -1
    return ours, theirs


def record(log_dir: Path, home: Path, credentials: Sequence[CredentialFrame] = (), **options: object) -> RecorderChild:
    """Record all that is on the spool, in this process."""
    ours, _ = pipe_with(credentials)
    try:
        child = RecorderChild(log_dir, home, pipe=ours, **options)  # type: ignore[arg-type]
        assert child.run() == 0
    finally:
        os.close(ours)
    return child


def websocket_frame(payload: bytes, *, mask: bytes = b"", opcode: int = 1) -> bytes:
    """A whole message in one frame; of the client if it has a mask."""
    length = len(payload)
    bits = 0x80 if mask else 0
    head = (
        bytes([0x80 | opcode, bits | length])
        if length < 126
        else bytes([0x80 | opcode, bits | 126]) + length.to_bytes(2, "big")
    )
    if mask:
        payload = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    return head + mask + payload


# ---------------------------------------------------------------- what the logs hold


@dataclass
class Logged:
    requests: dict[str, list[Request]] = field(default_factory=dict)
    responses: dict[str, list[Response]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)  # of a call
    starts: Counter[str] = field(default_factory=Counter)  # by log
    rewrites: list[tuple[str, Rewrite]] = field(default_factory=list)
    others: list[object] = field(default_factory=list)

    def request(self, call: str) -> Request:
        (found,) = self.requests[call]
        return found

    def response(self, call: str) -> Response:
        (found,) = self.responses[call]
        return found


def logged(log_dir: Path) -> Logged:
    found = Logged()
    for name in sorted({(part.folder, part.name) for part in _parts(log_dir)}):
        log = f"{name[0].relative_to(log_dir)}/{name[1]}"
        for item in read_log(*name):
            match item.value:
                case Request(call=str(call)) as request:
                    found.requests.setdefault(call, []).append(request)
                    found.logs[call] = log
                case Response(call=str(call)) as response:
                    found.responses.setdefault(call, []).append(response)
                    assert found.logs.get(call) == log, "a response before its request, or elsewhere"
                case WireStart():
                    found.starts[log] += 1
                case Rewrite() as rewrite:
                    found.rewrites.append((log, rewrite))
                case other:
                    found.others.append(other)
    return found


def _parts(log_dir: Path) -> Iterator[PartFile]:
    for folder in [log_dir, *(it for it in log_dir.iterdir() if it.is_dir() and it.name != ".spool")]:
        yield from parts_in(folder)


def request_bytes(record: Request) -> bytes:
    return as_bytes(record.body or "", record.body_encoding)


def response_chunks(record: Response) -> list[bytes]:
    return [as_bytes(chunk.raw or "", chunk.raw_encoding) for chunk in record.chunks or []]


def response_bytes(record: Response) -> bytes:
    if record.chunks is not None:
        return b"".join(response_chunks(record))
    return as_bytes(record.body or "", record.body_encoding)


def head_of(record: Request | Response, start: str) -> bytes:
    """The head a record gives back."""
    if record.head:
        return "\r\n".join(record.head).encode("latin-1") + b"\r\n\r\n"
    lines = [start]
    for name, values in (record.headers or {}).items():
        lines += [f"{name}: {value}" for value in ([values] if isinstance(values, str) else values)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def every_byte_under(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()


# ---------------------------------------------------------------- calls that can be told again from a number


@dataclass(frozen=True)
class Step:
    """One frame of a scripted run."""

    call: int
    kind: Literal["head", "body", "sent", "answer", "chunk", "end"]
    data: bytes = b""


@dataclass(frozen=True)
class Script:
    """The calls of a relay: all is known from the seed, so that nothing needs to be told by one who is killed."""

    seed: str
    calls: int = 400
    connections: int = 3
    chunks: tuple[int, ...] = (0, 1, 3, 12, 40)  # of an answer

    def id(self, call: int) -> str:
        digest = hashlib.sha256(f"{self.seed}:{call}".encode()).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-7{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"

    def steps(self) -> Iterator[Step]:
        """Several calls at once, each on a connection of its own."""
        rng = random.Random(self.seed)
        waiting = {lane: iter(()) for lane in range(self.connections)}
        lanes: dict[int, Iterator[Step]] = dict(waiting)
        call = 0
        while lanes:
            lane = rng.choice(list(lanes))
            for _ in range(rng.randint(1, 6)):
                step = next(lanes[lane], None)
                if step is None:
                    break
                yield step
            else:
                continue
            if call == self.calls:
                del lanes[lane]
            else:
                call += 1
                lanes[lane] = self._call(call, random.Random(f"{self.seed}:{call}"))

    def _call(self, call: int, rng: random.Random) -> Iterator[Step]:
        yield Step(call, "head")
        texts = [
            _filler(f"{self.seed}:{call}:{index}", rng.choice((10, 300, 3000, 20_000)))
            for index in range(rng.choice((0, 1, 1, 2, 5)))
        ]
        if texts:  # a question that has nothing to do with the one before: the session's history was rewritten
            texts[0] = b'{"tools":[{"name":"t"}],"messages":[{"role":"user","content":"' + texts[0]
            texts[-1] += b'"}]}'
        for text in texts:
            yield Step(call, "body", text)
        yield Step(call, "sent")
        yield Step(call, "answer")
        for index in range(rng.choice(self.chunks)):
            text = _filler(f"{self.seed}:{call}:c{index}", rng.choice((5, 80, 900)))
            yield Step(call, "chunk", b"event: ping\ndata: %b\n\n" % text)
        yield Step(call, "chunk", b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
        yield Step(call, "end")


def _filler(seed: str, size: int) -> bytes:
    block = hashlib.sha256(seed.encode()).hexdigest().encode().translate(_NO_DIGITS)
    return (block * (size // len(block) + 1))[:size]


_NO_DIGITS = bytes.maketrans(b"0123456789", b"qrstuvwxyz")  # so that no pattern takes it for a key


def frame_of(script: Script, step: Step, connection: int) -> AnyFrame:
    match step.kind:
        case "head":
            return RequestHeadFrame(
                step.call,
                now(),
                script.id(step.call),
                connection,
                "anthropic",
                "api.anthropic.com",
                PATH,
                request_head(PATH, f"x-claude-code-session-id: {script.seed}-{connection}".encode()),
            )
        case "body":
            return RequestData(step.call, now(), step.data)
        case "sent":
            return RequestEnd(step.call, now())
        case "answer":
            return ResponseHead(step.call, now(), b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n")
        case "chunk":
            return ResponseData(step.call, now(), step.data)
        case "end":
            return CallEnd(step.call, now())


def faults(script: Script, frames: int, found: Logged) -> list[str]:
    """What is wrong with the logs, given that so many frames of a run were on the spool."""
    wrong: list[str] = []
    bodies: dict[int, list[bytes]] = {}
    chunks: dict[int, list[bytes]] = {}
    ended: set[int] = set()
    seen: set[int] = set()
    everything = list(script.steps())
    for step in everything[:frames]:
        seen.add(step.call)
        if step.kind == "body":
            bodies.setdefault(step.call, []).append(step.data)
        elif step.kind == "chunk":
            chunks.setdefault(step.call, []).append(step.data)
        elif step.kind == "end":
            ended.add(step.call)
    for call in range(1, script.calls + 1):
        requests, responses = (
            found.requests.get(script.id(call), []),
            found.responses.get(script.id(call), []),
        )
        if call in seen and len(requests) != 1:
            wrong.append(f"call {call}: {len(requests)} requests")
        if len(requests) != len(responses) or len(requests) > 1:
            wrong.append(f"call {call}: {len(requests)} requests, {len(responses)} responses")
        if not requests or not responses:
            continue
        request, response = requests[0], responses[0]
        if not request_bytes(request).startswith(b"".join(bodies.get(call, []))):
            wrong.append(f"call {call}: the body lacks bytes")
        whole = [step.data for step in everything if step.call == call and step.kind == "chunk"]
        got = response_chunks(response)
        if got != whole[: len(got)] or len(got) < len(chunks.get(call, [])):
            wrong.append(f"call {call}: {len(got)} chunks, not {len(chunks.get(call, []))}")
        if call in ended and not response.complete:
            wrong.append(f"call {call}: ended, but {response.reason}")
        if response.reason not in (None, "relay_died") or request.seq != response.seq:
            wrong.append(f"call {call}: {response.reason}, {request.seq}, {response.seq}")
    return wrong


def numbering_faults(found: Logged) -> list[str]:
    """The calls of each log are counted from 1; each session has one start."""
    wrong: list[str] = []
    by_log: dict[str, list[int]] = {}
    for call, requests in found.requests.items():
        by_log.setdefault(found.logs[call], []).extend(request.seq for request in requests)
    for log, numbers in by_log.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            wrong.append(f"{log}: numbered {sorted(numbers)}")
        if found.starts[log] != 1:
            wrong.append(f"{log}: {found.starts[log]} starts")
    rewrites = Counter((log, it.seq) for log, it in found.rewrites)
    wrong += [f"{log}: {count} rewrites of {seq}" for (log, seq), count in rewrites.items() if count > 1]
    if set(found.starts) != set(by_log):
        wrong.append(f"sessions without calls: {set(found.starts) - set(by_log)}")
    return wrong
