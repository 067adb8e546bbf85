"""Answers are read from the spool while they come in, whoever is asked and however the bytes are cut."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_logger.capture.proxy.in_flight import InFlight
from agent_logger.capture.proxy.spool.frames import CallEnd, ResponseData, ResponseHead
from agent_logger.capture.proxy.spool.segments import segments_of
from agent_logger.capture.proxy.spool.spool import Spool, segment_path
from agent_logger.wire.answer import Answer
from tests.capture.proxy.spooling import Relay, now, request_head
from tests.wire.captures import Capture, captures

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
        until = time.monotonic() + 5
        while self.spool.status().waiting_bytes and time.monotonic() < until:
            time.sleep(0.002)

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
def test_looking_at_an_answer_changes_nothing_in_it(calling: Calling, capture: Capture) -> None:
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


def test_of_what_is_no_stream_nothing_is_told(calling: Calling) -> None:
    plain = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    number, call = calling.begin(STREAMED[0], plain)
    calling.say(number, b'{"type":"message","content":[')
    assert calling.answer(call) is None


def test_who_was_away_goes_on_with_what_is_there(tmp_path: Path) -> None:
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
