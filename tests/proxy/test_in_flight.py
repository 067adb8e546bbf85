"""Answers are read from the spool while they come in, whoever is asked and however the bytes are cut."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect

from agent_logger.catalog.live.open_calls import OpenCalls
from agent_logger.providers.answer import Answer
from agent_logger.providers.blocks.registry import answer_blocks
from agent_logger.proxy.attached import attached
from agent_logger.proxy.in_flight import InFlight
from agent_logger.proxy.spool.folder import segment_path
from agent_logger.proxy.spool.frames import CallEnd, Dropped, ResponseData, ResponseHead
from agent_logger.proxy.spool.segments import segments_of
from agent_logger.proxy.spool.spool import Spool
from tests.fakeapi.server import FakeAPI
from tests.fakeapi.turns import answers
from tests.providers.captures import Capture, captures
from tests.proxy.process import wait_until
from tests.proxy.spooling import Relay, now, request_head

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
STREAMED = [it for it in captures() if it.dialect and it.streamed and it.truth["complete"]]
OF_EACH = list({(it.name.split("/")[0], it.dialect and it.dialect.name): it for it in STREAMED}.values())


class Calling:
    """A call in the making, and one who watches."""

    def __init__(self, folder: Path, **options: float) -> None:
        self.spool = Spool(folder, **options)  # type: ignore[arg-type] # numbers of seconds
        self.relay, self.watching = Relay(self.spool), InFlight(folder)

    def begin(self, capture: Capture, head: bytes = STREAM) -> tuple[int, str]:
        path = capture.path.encode()
        number = self.relay.begin(request_head(path), path=path, provider=capture.provider)
        self.relay.put(ResponseHead(number, now(), head))
        return number, self.relay.ids[number]

    def say(self, number: int, data: bytes) -> None:
        self.relay.put(ResponseData(number, now(), data))
        self.written()

    def written(self) -> None:
        wait_until(lambda: not self.spool.status().waiting_bytes)

    def answer(self, call: str) -> Answer | None:
        self.watching.poll()
        found = self.watching.answer(call)
        return found[1] if found else None


@pytest.fixture
def calling(tmp_path: Path) -> Iterator[Calling]:
    it = Calling(tmp_path)
    yield it
    it.spool.close()
    it.watching.close()


@pytest.mark.parametrize("capture", OF_EACH, ids=lambda it: it.name)
def test_polling_an_answer_in_flight_does_not_change_the_answer(calling: Calling, capture: Capture) -> None:
    assert capture.dialect
    number, call = calling.begin(capture)
    assert calling.answer(call) is None, "nothing has come yet"
    step = max(1, len(capture.body) // 5)
    for at in range(0, len(capture.body), step):
        calling.say(number, capture.body[at : at + step])
        assert calling.answer(call) is not None
    assert calling.answer(call) == capture.dialect.read(capture.body)
    calling.relay.put(CallEnd(number, now()))
    calling.written()
    assert calling.answer(call) == capture.dialect.read(capture.body), "its record may not be in the log yet"


def test_a_non_streamed_response_has_no_answer_in_flight(calling: Calling) -> None:
    plain = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    number, call = calling.begin(STREAMED[0], plain)
    calling.say(number, b'{"type":"message","content":[')
    assert calling.answer(call) is None


def test_calls_open_at_an_unattributed_drop_have_no_answer_in_flight(calling: Calling) -> None:
    """Of none of these the end may be told: they would be kept until their relay ends."""
    (number, call), (_, other) = calling.begin(STREAMED[0]), calling.begin(STREAMED[0])
    calling.say(number, STREAMED[0].body)
    assert calling.answer(call) is not None
    calling.relay.put(Dropped(0, now(), 7, 700))
    calling.written()
    assert calling.answer(call) is None
    calling.say(number, STREAMED[0].body)
    assert calling.answer(call) is calling.answer(other) is None
    later, new = calling.begin(STREAMED[0])
    calling.say(later, STREAMED[0].body)
    assert calling.answer(new) is not None


def test_polling_continues_after_segments_were_removed(tmp_path: Path) -> None:
    """The recorder removes segments that it does not need; one who did not look meanwhile must not wait for them."""
    calling, capture = Calling(tmp_path, segment_seconds=0.0), STREAMED[0]
    assert capture.dialect
    try:
        first, _ = calling.begin(capture)
        calling.say(first, capture.body)
        calling.watching.poll()
        while len(numbers := next(iter(segments_of(tmp_path).values()))) < 6:
            calling.say(first, b": " + bytes(80 << 10) + b"\n\n")
        for gone in numbers[:4]:
            segment_path(tmp_path, calling.spool.relay, gone).unlink()
        number, call = calling.begin(capture)
        calling.say(number, capture.body)
        assert calling.answer(call) == capture.dialect.read(capture.body)
    finally:
        calling.spool.close()
        calling.watching.close()


def test_websocket_calls_in_flight_have_the_same_ids_as_in_the_log(tmp_path: Path) -> None:
    scripted = answers({"text": "First."}, {"text": "one two three four", "pieces": 4, "stall_after": 7, "stall_s": 60})
    with FakeAPI(scripted) as api, attached(tmp_path / "logs", [api.url], home=tmp_path / "home") as port:
        url = f"ws://127.0.0.1:{port}/openai/{api.url.removeprefix('http://')}/v1/responses"
        # An API in the middle of an answer does not say goodbye.
        with connect(url, proxy=None, close_timeout=0.1) as websocket:
            ask(websocket)
            while json.loads(websocket.recv(timeout=60))["type"] != "response.completed":
                pass
            ask(websocket)
            watching, until = InFlight(tmp_path / "logs/.spool"), time.monotonic() + 60
            said: dict[str, list[str]] = {}
            # The recorder may be late, and the first answer still be in flight.
            while not any("".join(told).startswith("one") for told in said.values()) and time.monotonic() < until:
                watching.poll()
                logs = OpenCalls((tmp_path / "logs/openai").glob("*.jsonl"))
                said = {it.call: texts(watching, it.call) for it in logs.poll()}
                time.sleep(0.02)
            watching.close()
    (told,) = said.values()
    assert "".join(told).startswith("one")
    assert "four" not in "".join(told)


def ask(websocket: ClientConnection) -> None:
    websocket.send(json.dumps({"type": "response.create", "model": "m", "input": "Hi"}))


def texts(watching: InFlight, call: str) -> list[str]:
    found = watching.answer(call)
    return [it.text for it in answer_blocks(found[0], found[1].message)] if found and found[1].message else []
