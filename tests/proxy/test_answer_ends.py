"""An answer has ended with the last event of its dialect, whatever its client or its upstream does next."""

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from agent_logger.model.records import Response
from tests.proxy.process import Process, proxying
from tests.proxy.streams import DIALECTS, Spoken, event
from tests.proxy.wires import Upstream, Wire

DELAYS_MS = (0, 1, 2, 5, 20, 50)  # from the last event to the chunk that ends the body
LAST_CHUNK = b"0\r\n\r\n"
ERRORS = {
    "messages": event({"type": "error", "error": {"type": "overloaded_error"}}, "error"),
    "chat": event({"error": {"message": "overloaded", "type": "server_error"}}),
    "responses": event({"type": "error", "code": "server_error", "message": "overloaded"}, "error"),
}


@dataclass(frozen=True)
class Case:
    """`pieces` are sent, each as a chunk. Then the client closes, or the upstream ends as `cut` says."""

    name: str
    spoken: Spoken
    pieces: tuple[bytes, ...]
    delay_ms: int | None = None  # none: the body is never ended
    cut: str = ""  # of the upstream: `close` or `reset`


def at_the_last_event() -> Iterator[Case]:
    for name, spoken in DIALECTS.items():
        for delay_ms in DELAYS_MS:
            yield Case(f"{name}, {delay_ms} ms", spoken, tuple(spoken.events), delay_ms)


def before_the_last_event() -> Iterator[Case]:
    """After each of the events before it, and within it; the last bytes alone may be missing."""
    for name, spoken in DIALECTS.items():
        *before, last = spoken.events
        for count in range(1, len(before) + 1):
            yield Case(f"{name}, {count} events", spoken, tuple(before[:count]))
        short = len(last.rstrip()) - 1  # a line or a document lacks its last byte; what ends a line is not asked for
        for size in {1, short // 2, short}:
            yield Case(f"{name}, {size} bytes of the last event", spoken, (*before, last[:size]))


def cut_by_the_upstream() -> Iterator[Case]:
    for name, spoken in DIALECTS.items():
        for cut in ("close", "reset"):
            yield Case(f"{name}, {cut}", spoken, tuple(spoken.events), cut=cut)


def with_an_error() -> Iterator[Case]:
    for name, error in ERRORS.items():
        begun = DIALECTS[name].events[:3]
        yield Case(f"{name}, an error", DIALECTS[name], (*begun, error))
        yield Case(f"{name}, an error, ended", DIALECTS[name], (*begun, error), delay_ms=0)


CASES = [
    replace(it, name=f"{kind}: {it.name}")
    for kind, cases in (
        ("at", at_the_last_event()),
        ("before", before_the_last_event()),
        ("cut", cut_by_the_upstream()),
        ("error", with_an_error()),
    )
    for it in cases
]


def of_kind(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [it.name for it in CASES if it.name.startswith(f"{kind}: ")])


@dataclass(frozen=True)
class Ended:
    response: Response
    read: bytes  # by the client


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Ended]:
    """What became of all cases, by name."""
    folder = tmp_path_factory.mktemp("ends")
    with Upstream(play) as upstream, proxying(folder, upstream) as proxy:
        with ThreadPoolExecutor(16) as clients:
            read = list(clients.map(lambda number: ask(proxy, number), range(len(CASES))))
        assert proxy.stop() == 0
        found = proxy.logged()
    calls = {int(it.path.rpartition("case=")[2]): call for call, [it] in found.requests.items()}
    return {it.name: Ended(found.response(calls[number]), read[number]) for number, it in enumerate(CASES)}


def play(wire: Wire) -> None:
    """The upstream's side: call after call, until the proxy closes."""
    with contextlib.suppress(EOFError, ConnectionError):
        while answer(wire, wire.message()):
            pass


def answer(wire: Wire, asked: bytes) -> bool:
    """Whether the connection goes on."""
    found = re.search(rb"[?&]case=(\d+) ", asked)
    assert found
    case = CASES[int(found[1])]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire.send(head % case.spoken.content_type + b"".join(map(chunk, case.pieces)))
    if case.cut:
        time.sleep(0.02)  # a reset may overtake what was sent before it
        wire.reset() if case.cut == "reset" else wire.close()
        return False
    if case.delay_ms is not None:
        time.sleep(case.delay_ms / 1000)
        is_whole = case.spoken.events[-1] in case.pieces
        wire.send((chunk(case.spoken.behind) if is_whole and case.spoken.behind else b"") + LAST_CHUNK)
    return True


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def ask(proxy: Process, number: int) -> bytes:
    """The client's side: it closes at once when it has read what is sent."""
    case = CASES[number]
    mark = "&" if "?" in case.spoken.path else "?"
    path = f"{case.spoken.path}{mark}case={number}"
    with proxy.client() as client:
        client.send(proxy.request(path, case.spoken.asked(f"case {number}"), provider=case.spoken.provider))
        client.head()
        for piece in case.pieces:
            client.until(b"%x\r\n" % len(piece))
            assert client.take(len(piece)) == piece
        if case.cut:
            client.end()
        return client.read


@of_kind("at")
def test_a_response_is_complete_when_the_client_closes_at_the_last_event(name: str, ended: Mapping[str, Ended]) -> None:
    response = ended[name].response
    assert (response.status, response.complete) == (200, True)
    assert response.reason in (None, "client_gone")  # a fact beside it; who was first is chance


@of_kind("before")
def test_a_response_is_incomplete_when_the_client_closes_before_the_last_event(
    name: str, ended: Mapping[str, Ended]
) -> None:
    response = ended[name].response
    assert (response.status, response.complete, response.reason) == (200, False, "client_gone")


@of_kind("cut")
def test_a_response_is_complete_when_the_upstream_cuts_after_the_last_event(
    name: str, ended: Mapping[str, Ended]
) -> None:
    """The client still sees the cut: nothing ends its body."""
    response, read = ended[name].response, ended[name].read
    assert (response.status, response.complete) == (200, True)
    assert response.reason in ("upstream_closed", "upstream_reset")
    assert not read.endswith(LAST_CHUNK)


@of_kind("error")
def test_a_stream_that_ends_with_an_error_is_incomplete(name: str, ended: Mapping[str, Ended]) -> None:
    response = ended[name].response
    assert (response.status, response.complete) == (200, False)
    assert response.reason in ("client_gone", "no_stream_end")


def test_every_received_event_of_a_complete_response_is_recorded(ended: Mapping[str, Ended]) -> None:
    cases: Sequence[Case] = [it for it in CASES if it.name.startswith("at: ")]
    for case in cases:
        response = ended[case.name].response
        assert response.bytes in (len(case.spoken.body), len(case.spoken.body + case.spoken.behind))
