"""A tunnelled WebSocket is read from one side: every message once, however its bytes were cut."""

import asyncio
import contextlib
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.extensions.permessage_deflate import (
    ClientPerMessageDeflateFactory,
    PerMessageDeflate,
    ServerPerMessageDeflateFactory,
)
from websockets.frames import Close, Frame, Opcode

from agent_logger.protocols.websocket import (
    ALLOWANCE_BYTES,
    USUAL_GROWTH,
    MessageKind,
    WebSocketMessage,
    WebSocketMessages,
)
from tests.memory import PEAK_KB

DEFLATE = "permessage-deflate"


def frame(opcode: Opcode, data: bytes, *, fin: bool = True, rsv1: bool = False, mask: bool = False) -> bytes:
    head = bytes([fin << 7 | rsv1 << 6 | opcode])
    return head + Frame(opcode, data).serialize(mask=mask)[1:]


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


def read(
    stream: bytes, places: Iterable[int] = (), *, extensions: str = "", masked: bool = False
) -> list[WebSocketMessage]:
    """All messages of a stream that is cut at these places, and then ends."""
    messages = WebSocketMessages(extensions=extensions, masked=masked)
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    got = [message for start, end in pairwise(edges) for message in messages.feed(stream[start:end])]
    return got + messages.finish()


# Real traffic


@dataclass
class Recording:
    """What passed a tunnel, handshake included."""

    client: bytearray = field(default_factory=bytearray)
    server: bytearray = field(default_factory=bytearray)

    @property
    def extensions(self) -> str:
        head = bytes(self.server).partition(b"\r\n\r\n")[0].decode()
        lines = [line.partition(":") for line in head.split("\r\n")]
        return ", ".join(value.strip() for name, _, value in lines if name.lower() == "sec-websocket-extensions")

    def stream(self, *, masked: bool) -> bytes:
        return bytes(self.client if masked else self.server).partition(b"\r\n\r\n")[2]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: bytearray) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            record += data
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def tunnel(port: int, recording: Recording) -> AsyncIterator[int]:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            _copy(reader, upstream_writer, recording.client), _copy(upstream_reader, writer, recording.server)
        )

    async with await asyncio.start_server(meet, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


EVENT = '{"type":"response.output_text.delta","delta":"Grüße 世界"}'
SENT: list[tuple[MessageKind, bytes]] = [
    (MessageKind.TEXT, EVENT.encode()),
    (MessageKind.TEXT, b""),
    (MessageKind.BINARY, bytes(range(256)) * 2),
    (MessageKind.TEXT, EVENT.encode() * 5000),
    (MessageKind.BINARY, b""),
    *[(MessageKind.TEXT, EVENT.encode() + b"%d" % number) for number in range(50)],
]
FRAGMENTS = ["{", '"history":', EVENT * 700, "", "}"]


async def record(
    server: ServerPerMessageDeflateFactory | None, client: ClientPerMessageDeflateFactory | None
) -> Recording:
    recording = Recording()

    async def answer(connection: ServerConnection) -> None:
        async for message in connection:  # an echo, and a ping of its own
            await connection.send(message)
            if message == "":
                await connection.ping(b"are you there")

    server_extensions, client_extensions = [server] if server else None, [client] if client else None
    async with serve(answer, "127.0.0.1", 0, compression=None, extensions=server_extensions) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        async with tunnel(port, recording) as tunnel_port:
            url = f"ws://127.0.0.1:{tunnel_port}"
            options = connect(url, compression=None, extensions=client_extensions, proxy=None, max_size=None)
            async with options as connection:
                for kind, data in SENT:
                    await connection.send(data.decode() if kind is MessageKind.TEXT else data)
                    await connection.recv()
                await connection.send(FRAGMENTS)
                await connection.recv()
                await (await connection.ping(b"hello"))
                await connection.close(1001, "going away")
    return recording


def settings(takeover: bool, bits: int) -> tuple[ServerPerMessageDeflateFactory, ClientPerMessageDeflateFactory]:
    return (
        ServerPerMessageDeflateFactory(not takeover, not takeover, bits, bits),
        ClientPerMessageDeflateFactory(not takeover, not takeover, bits, bits),
    )


TRAFFIC = [
    pytest.param(None, None, "", id="plain"),
    pytest.param(ServerPerMessageDeflateFactory(), None, "", id="deflate, not offered"),
    pytest.param(*settings(takeover=True, bits=15), "max_window_bits=15", id="deflate"),
    pytest.param(*settings(takeover=True, bits=9), "max_window_bits=9", id="a window of 512 bytes"),
    pytest.param(*settings(takeover=False, bits=15), "no_context_takeover", id="no takeover"),
    pytest.param(*settings(takeover=False, bits=9), "no_context_takeover", id="no takeover, 512 bytes"),
    pytest.param(
        ServerPerMessageDeflateFactory(server_no_context_takeover=True, client_max_window_bits=10),
        ClientPerMessageDeflateFactory(),
        "server_no_context_takeover",
        id="the two sides differ",
    ),
]


@pytest.mark.parametrize(("server", "client", "negotiated"), TRAFFIC)
def test_traffic_of_a_real_client_and_server_is_read_in_both_directions(
    server: ServerPerMessageDeflateFactory | None,
    client: ClientPerMessageDeflateFactory | None,
    negotiated: str,
) -> None:
    recording = asyncio.run(record(server, client))
    assert (DEFLATE in recording.extensions) == bool(negotiated)
    assert negotiated in recording.extensions
    whole = "".join(FRAGMENTS).encode()
    sent = [*SENT, (MessageKind.TEXT, whole)]
    for masked, controls in (
        (
            True,
            [
                WebSocketMessage(MessageKind.PONG, b"are you there"),
                WebSocketMessage(MessageKind.PING, b"hello"),
            ],
        ),
        (
            False,
            [
                WebSocketMessage(MessageKind.PING, b"are you there"),
                WebSocketMessage(MessageKind.PONG, b"hello"),
            ],
        ),
    ):
        stream = recording.stream(masked=masked)
        got = read(stream, extensions=recording.extensions, masked=masked)
        close = WebSocketMessage(MessageKind.CLOSE, b"\x03\xe9going away", code=1001, reason="going away")
        assert [(one.kind, one.data) for one in got if one.kind in ("text", "binary")] == sent
        assert [one for one in got if one.kind in ("ping", "pong")] == controls
        assert got[-1] == close
        assert all(one.complete for one in got)
        for size in (1, 7, 1460):
            assert read(stream, range(0, len(stream), size), extensions=recording.extensions, masked=masked) == got


# Generated traffic

PIECES = st.lists(st.binary(max_size=300), min_size=1, max_size=4)
CONTROLS = st.sampled_from([(Opcode.PING, b"p"), (Opcode.PONG, b""), (Opcode.CLOSE, b"\x03\xe8bye"), None])


@given(
    messages=st.lists(st.tuples(st.sampled_from([Opcode.TEXT, Opcode.BINARY]), PIECES, CONTROLS), max_size=5),
    masked=st.booleans(),
    deflate=st.sampled_from([None, (False, 15), (False, 9), (True, 12)]),
    places=st.lists(st.integers(0, 6000), max_size=10),
)
def test_messages_are_the_same_for_any_framing_and_read_size(
    messages: list[tuple[Opcode, list[bytes], tuple[Opcode, bytes] | None]],
    masked: bool,
    deflate: tuple[bool, int] | None,
    places: list[int],
) -> None:
    encoders = [PerMessageDeflate(deflate[0], deflate[0], deflate[1], deflate[1])] if deflate else []
    stream, sent = bytearray(), []
    for opcode, pieces, control in messages:
        for number, piece in enumerate(pieces):
            final = number == len(pieces) - 1
            one = Frame(Opcode.CONT if number else opcode, piece, fin=final)
            stream += one.serialize(mask=masked, extensions=encoders)
            if control and not final:  # control frames may come between the fragments of a message
                stream += Frame(*control).serialize(mask=masked, extensions=encoders)
                sent.append((control[0].name.lower(), control[1]))
        sent.append((opcode.name.lower(), b"".join(pieces)))
    got = read(bytes(stream), places, extensions=DEFLATE if deflate else "", masked=masked)
    assert [(one.kind.value, one.data) for one in got] == sent
    assert all(one.complete for one in got)


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65535, 65536, 200_000])
@pytest.mark.parametrize("masked", [True, False])
def test_frames_of_every_length_are_read(length: int, masked: bool) -> None:
    data = (b"0123456789" * (length // 10 + 1))[:length]
    stream = frame(Opcode.BINARY, data, mask=masked) * 2
    for place in range(30):
        assert read(stream, [place], masked=masked) == [WebSocketMessage(MessageKind.BINARY, data)] * 2


def test_a_message_is_returned_when_its_last_byte_arrives() -> None:
    messages = WebSocketMessages(masked=False)
    one = frame(Opcode.TEXT, b"one")
    assert messages.feed(one[:-1]) == []
    assert messages.feed(one[-1:] + one[:1]) == [WebSocketMessage(MessageKind.TEXT, b"one")]


def test_a_sender_may_end_its_deflate_stream_with_each_message() -> None:
    packed = [zlib.compressobj(wbits=-15) for _ in range(3)]
    bodies = [EVENT.encode() * number for number in (1, 2, 3)]
    payloads = [one.compress(body) + one.flush() + b"\0" for one, body in zip(packed, bodies, strict=True)]
    stream = b"".join(frame(Opcode.TEXT, payload, rsv1=True) for payload in payloads)
    assert [one.data for one in read(stream, extensions=DEFLATE)] == bodies


def test_uncompressed_messages_may_follow_compressed_messages() -> None:
    stream = frame(Opcode.TEXT, deflated(b"a"), rsv1=True) + frame(Opcode.TEXT, b"b") + frame(Opcode.TEXT, b"")
    assert [one.data for one in read(stream, extensions="Permessage-Deflate ; client_max_window_bits")] == [
        b"a",
        b"b",
        b"",
    ]


def test_text_that_is_not_utf_8_is_returned_unchanged() -> None:
    assert read(frame(Opcode.TEXT, b"\xff\xfe")) == [WebSocketMessage(MessageKind.TEXT, b"\xff\xfe")]


CLOSES = [
    pytest.param(Close(1000, "").serialize(), 1000, "", id="normal"),
    pytest.param(Close(4001, "Grüße").serialize(), 4001, "Grüße", id="of an application"),
    pytest.param(b"", None, "", id="no code"),
    pytest.param(b"\x03", None, "", id="half a code"),
    pytest.param(b"\x03\xe8\xff", 1000, "\ufffd", id="a reason that is not UTF-8"),
]


@pytest.mark.parametrize(("payload", "code", "reason"), CLOSES)
def test_a_close_message_has_its_code_and_reason(payload: bytes, code: int | None, reason: str) -> None:
    assert read(frame(Opcode.CLOSE, payload)) == [
        WebSocketMessage(MessageKind.CLOSE, payload, code=code, reason=reason)
    ]


# Cut and damaged traffic


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("extensions", ["", DEFLATE])
def test_a_cut_connection_is_read_up_to_the_cut(masked: bool, extensions: str) -> None:
    body = EVENT.encode() * 3
    payload = deflated(body) if extensions else body
    parts = [(Opcode.TEXT, payload[:40], False), (Opcode.CONT, payload[40:], True)]
    stream = b"".join(
        frame(opcode, data, fin=fin, rsv1=bool(extensions) and opcode is Opcode.TEXT, mask=masked)
        for opcode, data, fin in parts
    )
    last = b""
    for place in range(1, len(stream)):
        got = read(stream[:place], extensions=extensions, masked=masked)
        assert got
        assert {one.reason for one in got} == {"cut"}
        assert not any(one.complete for one in got)
        text = b"".join(one.data for one in got if one.kind is MessageKind.TEXT)
        assert body.startswith(text)
        assert len(text) >= len(last)
        last = text
    assert len(last) > len(body) // 2
    assert read(stream, extensions=extensions, masked=masked) == [WebSocketMessage(MessageKind.TEXT, body)]


GOOD = frame(Opcode.TEXT, b"good")
BEGUN = frame(Opcode.TEXT, b"begun", fin=False)
CORRUPT = frame(Opcode.TEXT, b"\xff\xff\xff\xff", rsv1=True)
DAMAGE = [
    pytest.param(frame(Opcode.TEXT, b"x", rsv1=True), "", "reserved bits", id="deflate, not negotiated"),
    pytest.param(b"\xa1\x01x", "", "reserved bits", id="a reserved bit"),
    pytest.param(frame(Opcode.PING, b"x", rsv1=True), DEFLATE, "reserved bits", id="a deflated ping"),
    pytest.param(b"\x83\x01x", "", "unknown opcode 3", id="an unknown opcode"),
    pytest.param(frame(Opcode.TEXT, b"x", mask=True), "", "masked frame from the server", id="a masked frame"),
    pytest.param(b"\x09\x00", "", "control frame in fragments", id="a ping in fragments"),
    pytest.param(b"\x89\x7e\x00\x7e" + b"x" * 126, "", "control frame that is too long", id="a long ping"),
    pytest.param(frame(Opcode.CONT, b"x"), "", "continuation without a message", id="a continuation without a message"),
    pytest.param(b"\x82\x7f" + b"\xff" * 8, "", "message of more than", id="a length of 16 exabytes"),
    pytest.param(CORRUPT, DEFLATE, "invalid", id="rubbish for deflate"),
    pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "", "reserved bits", id="another protocol"),
]


@pytest.mark.parametrize(("bad", "extensions", "reason"), DAMAGE)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_bytes_after_damage_are_returned_as_undecodable_with_the_reason(
    bad: bytes, extensions: str, reason: str, size: int
) -> None:
    stream = GOOD + bad + GOOD
    good, *rest = read(stream, range(0, len(stream), size), extensions=extensions)
    assert good == WebSocketMessage(MessageKind.TEXT, b"good")
    assert b"".join(one.data for one in rest if one.kind is MessageKind.UNDECODABLE) == bad + GOOD
    assert all(reason in one.reason and not one.complete for one in rest)


@pytest.mark.parametrize("bad", [GOOD, b"\x83\x01x"], ids=["another message", "an unknown opcode"])
def test_the_intact_start_of_a_damaged_message_is_returned(bad: bytes) -> None:
    first, second = read(BEGUN + bad)
    assert (first.kind, first.data, first.complete) == (MessageKind.TEXT, b"begun", False)
    assert (second.kind, second.data, second.complete) == (MessageKind.UNDECODABLE, bad, False)


def test_an_unmasked_frame_of_a_client_is_damage() -> None:
    [message] = read(GOOD, masked=True)
    assert (message.kind, message.data) == (MessageKind.UNDECODABLE, GOOD)
    assert "unmasked frame from the client" in message.reason


@given(
    data=st.binary(max_size=200),
    extensions=st.sampled_from(["", DEFLATE]),
    masked=st.booleans(),
    places=st.lists(st.integers(0, 200), max_size=4),
)
def test_arbitrary_bytes_raise_no_exception(data: bytes, extensions: str, masked: bool, places: list[int]) -> None:
    got = read(data, places, extensions=extensions, masked=masked)
    assert all(message.complete or message.reason for message in got)


def test_a_fragmented_message_over_the_limit_is_rejected() -> None:
    messages = WebSocketMessages(masked=False, limit=1000)
    assert messages.feed(frame(Opcode.BINARY, b"x" * 600, fin=False)) == []
    first, second = messages.feed(frame(Opcode.CONT, b"x" * 401))
    assert (first.kind, first.data, first.complete) == (MessageKind.BINARY, b"x" * 600, False)
    assert (second.kind, "more than 1,000 bytes" in second.reason) == (MessageKind.UNDECODABLE, True)
    assert messages.damage


@pytest.mark.parametrize("payload", [b"x" * 1000, deflated(b"x" * 1000)], ids=["plain", "deflated"])
def test_a_message_of_exactly_the_limit_is_read(payload: bytes) -> None:
    messages = WebSocketMessages(masked=False, limit=1000, extensions=DEFLATE)
    assert messages.feed(frame(Opcode.TEXT, payload, rsv1=len(payload) < 1000)) == [
        WebSocketMessage(MessageKind.TEXT, b"x" * 1000)
    ]


IN_A_PROCESS = f"""{PEAK_KB}
import sys
from agent_logger.protocols.websocket import WebSocketMessages
stream = sys.stdin.buffer.read()
messages = WebSocketMessages(masked=False, extensions="permessage-deflate")
before = peak_kb()
[message] = [one for at in range(0, len(stream), 65536) for one in messages.feed(stream[at : at + 65536])]
print(peak_kb() - before, len(message.data), message.reason)
"""


def test_a_decompression_bomb_is_rejected_within_bounded_memory() -> None:
    chunk = bytes(16 << 20)
    packer = zlib.compressobj(9, wbits=-15)
    first = packer.compress(chunk) + packer.flush(zlib.Z_FULL_FLUSH)
    payload = first + (packer.compress(chunk) + packer.flush(zlib.Z_FULL_FLUSH)) * 63
    stream = frame(Opcode.BINARY, payload[:-4], rsv1=True)
    assert len(stream) < 2 << 20
    command = [sys.executable, "-c", IN_A_PROCESS]
    done = subprocess.run(command, input=stream, stdout=subprocess.PIPE, check=True)
    grown_kb, length, reason = done.stdout.decode().split(maxsplit=2)
    assert int(length) == len(stream)  # as it came
    assert "inflate to more than 268,435,456 bytes" in reason
    assert int(grown_kb) < 150_000  # what may be inflated, its copy, and room for growth


# More comes out than went in

BOMB = bytes(20 << 20)  # inflated


class Noting:
    """A search that notes what it is given."""

    def __init__(self) -> None:
        self.given = bytearray()

    def feed(self, piece: bytes) -> None:
        self.given += piece

    def finish(self) -> bool:
        return b"secret" in self.given


def test_a_message_that_inflates_too_much_is_returned_deflated_and_searched() -> None:
    packer = zlib.compressobj(9, wbits=-15)

    def packed(data: bytes) -> bytes:
        return (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]

    said = [b"hello " * 10, BOMB, b"hello " * 20, BOMB + b"secret" + BOMB, b"hello " * 30, bytes(8 << 20)]
    sent = [packed(data) for data in said]
    messages = WebSocketMessages(masked=False, extensions=DEFLATE, search=Noting)
    got = [one for data in sent for one in messages.feed(frame(Opcode.TEXT, data, rsv1=True))]
    text, deflated_ = MessageKind.TEXT, MessageKind.DEFLATED
    assert [it.kind for it in got] == [text, deflated_, text, deflated_, text, text]
    assert [it.matched for it in got] == [False, False, False, True, False, False]
    assert [it.data for it in got if it.kind is text] == [said[0], said[2], said[4], said[5]]
    assert [it.data for it in got if it.kind is deflated_] == [sent[1], sent[3]]
    reader = zlib.decompressobj(wbits=-15, zdict=said[0])  # as docs/FORMATS.md says
    assert reader.decompress(sent[1] + b"\0\0\xff\xff") == BOMB


@given(st.lists(st.tuples(st.integers(0, 3 << 20), st.booleans()), max_size=12), st.booleans())
def test_decoded_data_is_bounded_relative_to_received_data(parts: list[tuple[int, bool]], fragments: bool) -> None:
    messages = WebSocketMessages(masked=False, extensions=DEFLATE)
    came = made = 0
    packer = zlib.compressobj(9, wbits=-15)
    for size, is_text in parts:
        data = (bytes(size) if not is_text else bytes(range(32, 127)) * (size // 3000)) + b"end"
        packed = (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
        frames = [frame(Opcode.BINARY, packed, rsv1=True)]
        if fragments:
            half = len(packed) // 2
            frames = [
                frame(Opcode.BINARY, packed[:half], rsv1=True, fin=False),
                frame(Opcode.CONT, packed[half:]),
            ]
        (message,) = [one for it in frames for one in messages.feed(it)]
        came += len(packed)
        made += len(message.data)
        assert message.data == (packed if message.kind is MessageKind.DEFLATED else data)
    assert made <= ALLOWANCE_BYTES + USUAL_GROWTH * came


@pytest.mark.parametrize("masked", [True, False])
def test_the_bytes_of_a_cut_message_are_returned_once(masked: bool) -> None:
    stream = frame(Opcode.TEXT, b"hello there", mask=masked)
    assert read(stream[:-6], masked=masked) == [
        WebSocketMessage(MessageKind.TEXT, b"hello", complete=False, reason="cut")
    ]
