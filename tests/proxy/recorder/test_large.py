"""Calls that are larger than the spool may be: they end, and so does what they hold."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agent_logger.platform import size_of
from agent_logger.proxy.recorder.status import RecorderStatus
from agent_logger.proxy.recorder_process import Recorder
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import (
    CallEnd,
    RequestData,
    RequestEnd,
    ResponseData,
    ResponseHead,
    TunnelData,
)
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.process import wait_until
from tests.proxy.spooling import (
    Logged,
    Relay,
    logged,
    now,
    request_bytes,
    request_head,
    response_bytes,
    websocket_frame,
)

PIECE = b"the quick brown fox jumps over the lazy dog. " * 200  # 9 KB
PIECES = 150  # a third of the disk; of a tenth of it, open calls may need a quarter


class World:
    """A relay's spool on a disk of 4 MB, and a recorder that can be killed."""

    def __init__(self, folder: Path, disk: Path) -> None:
        self.log_dir = disk / "logs"
        self.spool = Spool(spool_folder(self.log_dir))
        self.relay = Relay(self.spool)
        self.recorder = Recorder(self.log_dir, folder / "home")

    def status(self) -> RecorderStatus:
        path = spool_folder(self.log_dir) / "recorder.json"
        return msgspec.json.decode(path.read_bytes(), type=RecorderStatus)

    def spooled_bytes(self) -> int:
        return sum(map(size_of, spool_folder(self.log_dir).glob("*.spool")))  # the recorder may remove one meanwhile

    def wait_until_spooled(self) -> None:
        wait_until(lambda: self.spool.status().waiting_bytes == 0)

    def wait_until_let_go(self) -> None:
        """A checkpoint has it in a file that has less of it."""
        position = spool_folder(self.log_dir) / "position.json"
        wait_until(lambda: position.exists() and b".carried" in position.read_bytes())
        self.wait_until_spooled()

    def kill_recorder(self) -> None:
        pid = self.recorder.pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.recorder.pid not in (None, pid))

    def finish(self) -> Logged:
        assert self.spool.close()
        assert self.recorder.stop(30)
        assert self.spool.status().dropped_frames == 0
        return logged(self.log_dir)


@pytest.fixture
def world(tmp_path: Path, small_disk: Path) -> Iterator[World]:
    world = World(tmp_path, small_disk)
    yield world
    world.spool.close()
    world.recorder.stop(10)


def begin(relay: Relay, *, websocket: bool = False) -> int:
    method = b"GET" if websocket else b"POST"
    return relay.begin(request_head(method=method), secrets=(), websocket=websocket)


def upload(relay: Relay, number: int) -> None:
    for index in range(PIECES):
        relay.put(RequestData(number, now(), PIECE))
        if index % 5 == 0:
            time.sleep(0.015)  # so that it is not written at once


def test_a_call_larger_than_the_spool_is_recorded_completely(world: World) -> None:
    relay = world.relay
    number = begin(relay)
    upload(relay, number)
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 200 OK\r\n\r\n"))
    relay.put(ResponseData(number, now(), b"thanks"))
    world.wait_until_let_go()
    relay.put(CallEnd(number, now()))
    after = relay.call(secrets=())
    found = world.finish()
    call = relay.ids[number]
    assert request_bytes(found.request(call)) == PIECE * PIECES
    assert (found.response(call).complete, response_bytes(found.response(call))) == (True, b"thanks")
    assert found.response(after).complete
    assert world.status().lost == 0


def test_a_long_open_call_does_not_fill_the_spool(world: World) -> None:
    relay = world.relay
    number = begin(relay)
    calls = []
    for _ in range(PIECES):
        calls.append(relay.call(body=[PIECE], secrets=()))
        if len(calls) % 10 == 0:
            world.wait_until_spooled()
            wait_until(lambda: world.spooled_bytes() < 1 << 20)
    relay.put(RequestData(number, now(), b"late"))
    relay.put(CallEnd(number, now(), "client_gone"))
    found = world.finish()
    assert request_bytes(found.request(relay.ids[number])) == b"late"
    assert all(found.response(call).complete for call in calls)
    assert (world.status().lost, found.others) == (0, [])


def test_a_crash_loses_data_released_from_the_spool_and_counts_the_loss(world: World) -> None:
    relay = world.relay
    number = begin(relay)
    upload(relay, number)
    world.wait_until_let_go()
    world.kill_recorder()
    relay.put(RequestData(number, now(), b"the end"))
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 200 OK\r\n\r\n"))
    relay.put(CallEnd(number, now()))
    after = relay.call(secrets=())
    found = world.finish()
    response = found.response(relay.ids[number])
    body = request_bytes(found.request(relay.ids[number]))
    assert (response.status, response.complete, response.reason) == (200, False, "dropped")
    assert body.endswith(b"the end") and len(body) < len(PIECE) * PIECES
    assert world.status().lost == PIECES - body.count(PIECE)
    assert found.response(after).complete


def test_a_crash_duplicates_no_websocket_message_released_from_the_spool(world: World) -> None:
    relay = world.relay
    number = begin(relay, websocket=True)
    relay.put(RequestEnd(number, now()))
    relay.put(ResponseHead(number, now(), b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"))

    def say(text: bytes) -> None:
        message = b'{"say":"%b"}' % text
        relay.put(TunnelData(number, now(), websocket_frame(message, mask=b"abcd"), from_client=True))
        answer = b'{"type":"response.completed"}'
        relay.put(TunnelData(number, now(), websocket_frame(answer), from_client=False))

    for index in range(PIECES):
        say(b"%d %b" % (index, PIECE))
        if index % 10 == 0:
            world.wait_until_spooled()
    world.wait_until_let_go()
    wait_until(lambda: world.status().written == 2 * PIECES + 1)
    world.kill_recorder()
    say(b"late")
    relay.put(CallEnd(number, now()))
    after = relay.call(secrets=())
    found = world.finish()
    upgrade = relay.ids[number]
    bodies = [request_bytes(it[0]) for call, it in found.requests.items() if call not in (upgrade, after)]
    assert bodies == [b'{"say":"%d %b"}' % (index, PIECE) for index in range(PIECES)]
    assert {len(it) for it in found.requests.values()} == {len(it) for it in found.responses.values()} == {1}
    assert found.response(upgrade).reason == "dropped"
    assert found.response(after).complete
    assert world.status().lost > 0
