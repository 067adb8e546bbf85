"""A WebSocket whose messages inflate to a thousand times their size: what they take of the disk and of time."""

import contextlib
import json
import time
import zlib
from pathlib import Path

import pytest

from agent_logger.model.records import as_bytes
from agent_logger.proxy.spool.frames import CallEnd, RequestEnd, ResponseHead, TunnelData
from tests.proxy.process import proxying, wait_until
from tests.proxy.recorder.test_recording import KINDS, OWN, World
from tests.proxy.spooling import every_byte_under, now, request_head, response_chunks
from tests.proxy.wires import Upstream, Wire, response

MB = 1 << 20
UPGRADE = (
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-extensions: permessage-deflate; server_no_context_takeover\r\n\r\n"
)


def packed(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


def unpacked(data: bytes) -> bytes:
    return zlib.decompressobj(wbits=-15).decompress(data + b"\0\0\xff\xff")


def frame(payload: bytes, mask: bytes = b"") -> bytes:
    head = b"\xc1" + bytes([127 | (0x80 if mask else 0)]) + len(payload).to_bytes(8, "big")
    return head + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload)) if mask else head + payload


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_messages_that_inflate_too_much_are_stored_deflated(world: World) -> None:
    relay = world.relay
    head = request_head(b"/v1/responses", b"Authorization: Bearer " + OWN, method=b"GET")
    number = relay.begin(head, path=b"/v1/responses", websocket=True, secrets=[OWN])
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), UPGRADE))
    bomb = b'{"type":"x","y":"' + b" " * (20 * MB) + b'"}'
    github = KINDS["github"]
    for data in (b'{"type":"response.create"}', bomb):
        relay.put(TunnelData(number, now(), frame(packed(data), b"abcd"), from_client=True))
        for said in (b'{"type":"response.created"}', bomb, bomb[:-2] + OWN, bomb[:-2] + github):
            relay.put(TunnelData(number, now(), frame(packed(said)), from_client=False))
        relay.put(TunnelData(number, now(), frame(packed(b'{"type":"response.completed"}')), from_client=False))
    relay.put(CallEnd(number, now()))
    found = world.record()
    first, second = [call for call in found.requests if call != relay.ids[number]]
    assert not found.request(first).deflated
    asked = found.request(second)
    assert asked.deflated and unpacked(as_bytes(asked.body or "", asked.body_encoding)) == bomb
    for call in (first, second):
        answer = found.response(call)
        chunks = response_chunks(answer)
        assert answer.deflated == [1]
        assert unpacked(chunks[1]) == bomb
        assert chunks[2:4] == [b"[redacted]"] * 2
        assert chunks[4] == b'{"type":"response.completed"}'
        assert answer.complete
    for path, data in every_byte_under(world.log_dir):
        assert OWN not in data and github not in data, path
        assert len(data) < MB, path


def test_deflate_bombs_fill_no_disk_and_delay_no_call(tmp_path: Path) -> None:
    """Twenty frames of 60 KB, each of which is 60 MB."""
    bomb = frame(packed(bytes(60 * MB)))

    def play(wire: Wire) -> None:
        with contextlib.suppress(EOFError, OSError):
            if b"websocket" in wire.message():
                wire.send(UPGRADE)
                for _ in range(20):
                    wire.send(bomb)
                wire.half_close()
                wire.rest()
            while True:
                wire.send(response())
                wire.message()

    with Upstream(play) as upstream, proxying(tmp_path, upstream) as proxy:
        proxy.recorder()  # is there
        with proxy.client() as client:
            fields = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            fields += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            client.send(proxy.request("/v1/responses", method=b"GET", headers=fields, provider="openai"))
            begun = time.monotonic()
            for _ in range(5):
                with proxy.client() as other:
                    other.send(proxy.request())
                    other.message()
            with contextlib.suppress(OSError):
                client.rest()
        proxy.recording_status()  # from now on it stays so
        while (report := json.loads(proxy.command("status", "--json"))[0])["calls"] != 6:
            assert (report["recording"], report["problem"]) == (True, None)
            assert time.monotonic() < begun + 60
        wait_until(lambda: proxy.recorder().backlog_bytes == 0)
        assert proxy.stop() == 0
        found = proxy.logged()
        taken = sum(path.stat().st_size for path in proxy.log_dir.rglob("*") if path.is_file())
    assert taken < 4 * MB
    assert len(found.responses) == 6
