"""A tunnel is open when something is killed: each message that was answered by then is in the log once."""

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.relay.test_tunnel import ACCEPTED, UPGRADE
from tests.proxy.spooling import Logged, request_bytes, response_chunks, websocket_frame
from tests.proxy.wires import Upstream, Wire

DOORS = ("base-url", "forward")
WRITTEN_SECONDS = 0.5  # after which a message is on the spool, also where the machine is busy


def asked(number: int) -> bytes:
    return b'{"type":"response.create","number":%06d}' % number


def answers(number: int) -> list[bytes]:
    return [b'{"type":"response.created","number":%06d}' % number, b'{"type":"response.completed"}']


def play(wire: Wire) -> None:
    """A model that answers each message with two."""
    with contextlib.suppress(OSError, EOFError):
        wire.head()
        wire.send(ACCEPTED)
        size = len(websocket_frame(asked(0), mask=b"abcd"))
        for number in range(1_000_000):
            wire.take(size)
            for answer in answers(number):
                wire.send(websocket_frame(answer))


class Conversation(threading.Thread):
    """A client that talks until it is told to stop, or cut off."""

    def __init__(self, proxy: Process) -> None:
        super().__init__()
        self._client = proxy.client()
        headers = UPGRADE + b"Authorization: Bearer 0123456789abcdef0123\r\n"
        self._client.send(proxy.request("/v1/responses", method=b"GET", headers=headers, provider="openai"))
        assert self._client.head() == ACCEPTED
        self.answered: list[float] = []  # when
        self.stopping = threading.Event()

    def run(self) -> None:
        with self._client, contextlib.suppress(OSError, EOFError):
            while not self.stopping.is_set():
                number = len(self.answered)
                self._client.send(websocket_frame(asked(number), mask=b"abcd"))
                for answer in answers(number):
                    assert self._client.take(len(answer) + 2) == websocket_frame(answer)
                self.answered.append(time.monotonic())
                time.sleep(0.002)

    def before(self, moment: float) -> int:
        return sum(when < moment for when in self.answered)


def check(found: Logged, at_least: int) -> None:
    (upgrade,) = [call for call, (request,) in found.requests.items() if request.method == "GET" and request.headers]
    messages = {request_bytes(request): call for call, (request,) in found.requests.items() if call != upgrade}
    assert len(messages) == len(found.requests) - 1, "a message is there twice"
    assert sorted(messages) == [asked(number) for number in range(len(messages))]
    assert len(messages) >= at_least
    for number in range(at_least):
        answer = found.response(messages[asked(number)])
        assert (response_chunks(answer), answer.complete) == (answers(number), True)
    assert found.response(upgrade).status == 101
    assert sorted(request.seq for (request,) in found.requests.values()) == list(range(1, len(messages) + 2))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("victim", ["relay", "recorder", "both"])
def test_answered_websocket_messages_are_logged_once_after_a_kill(tmp_path: Path, victim: str, seed: int) -> None:
    with Upstream(play) as upstream:
        with proxying(tmp_path, upstream) as proxy:
            talk = Conversation(proxy)
            talk.start()
            wait_until(lambda: proxy.recorder().checkpoints > seed)
            wait_until(lambda: talk.before(time.monotonic() - WRITTEN_SECONDS) > 20)
            time.sleep(random.Random(seed).uniform(0.15, 0.9))
            if victim != "relay":
                os.kill(proxy.recorder_pid, signal.SIGKILL)
            if victim != "recorder":
                proxy.kill()
            safe = talk.before(time.monotonic() - WRITTEN_SECONDS)
            if victim == "recorder":
                time.sleep(0.5)
                assert talk.is_alive(), "the client noticed"
                safe = len(talk.answered)
            talk.stopping.set()
            talk.join(60)
            if victim == "recorder":
                assert proxy.stop() == 0
        with proxying(tmp_path, upstream) as again:
            assert again.stop() == 0
            found = again.logged()
    assert safe > 20
    check(found, safe)
