"""A call, whatever order its pieces come in."""

import itertools

import pytest

from agent_logger.model.records import Chunk
from agent_logger.providers.ending import ends_answer
from agent_logger.proxy.call_state import (
    NEXT,
    CallEvent,
    CallPhase,
    CallState,
    Collected,
    chunk_records,
    chunks_of,
    field_of,
    head_lines,
    headers_of,
    is_interim,
    is_stream,
    status_line,
    stream_end,
    told_sizes,
)

FEEDS = {
    CallEvent.REQUEST_DATA: lambda call: call.request_data(b"q", 2),
    CallEvent.REQUEST_END: lambda call: call.request_end(),
    CallEvent.INTERIM: lambda call: call.response_head(b"HTTP/1.1 103 Early Hints\r\n\r\n", 3),
    CallEvent.RESPONSE_HEAD: lambda call: call.response_head(b"HTTP/1.1 200 OK\r\n\r\n", 4),
    CallEvent.RESPONSE_DATA: lambda call: call.response_data(b"a", 5),
    CallEvent.END: lambda call: call.end(6),
}


def test_every_state_can_be_reached_and_only_the_last_has_no_way_on() -> None:
    reached = {CallPhase.SENDING} | {state for ways in NEXT.values() for state in ways.values()}
    assert reached == set(CallPhase) == set(NEXT)
    assert [state for state, ways in NEXT.items() if not ways] == [CallPhase.ENDED]
    assert all(ways.get(CallEvent.END) == CallPhase.ENDED for state, ways in NEXT.items() if ways)


@pytest.mark.parametrize("events", list(itertools.permutations(FEEDS, 4)))
def test_no_order_is_refused_and_one_that_cannot_be_tells_of_holes(events: tuple[CallEvent, ...]) -> None:
    call, state, possible = CallState(1), CallPhase.SENDING, True
    for event in events:
        possible = possible and event in NEXT[state]
        state = NEXT[state].get(event, state)
        FEEDS[event](call)
    assert call.state == state
    assert call.holes is not possible
    assert (call.outcome(stream_ended=None) == "dropped") is not possible
    assert (b"".join(call.request.pieces) == b"q") is (CallEvent.REQUEST_DATA in events)
    assert (b"".join(call.response.pieces) == b"a") is (CallEvent.RESPONSE_DATA in events)


def test_an_answer_that_comes_before_the_request_is_whole() -> None:
    call = CallState(0)
    call.response_head(b"HTTP/1.1 413 Too Large\r\n\r\n", 2_000_000)
    call.request_data(b"more", 3_000_000)
    assert call.state is CallPhase.EARLY
    call.request_end()
    call.end(5_500_000)
    assert not call.holes
    assert (call.timing().ttfb_ms, call.timing().total_ms) == (2.0, 5.5)


def test_why_a_call_is_not_complete() -> None:
    call = CallState(0)
    assert call.outcome(stream_ended=None) is call.outcome(stream_ended=True) is None
    assert call.outcome(stream_ended=False) == "no_stream_end"
    call.end(1, "upstream_reset")
    assert call.outcome(stream_ended=False) == "upstream_reset"
    call.dropped()
    assert call.outcome(stream_ended=False) == "dropped"


def test_times_never_go_back() -> None:
    call = CallState(10)
    call.response_head(b"HTTP/1.1 200 OK\r\n\r\n", 5)
    call.end(3)
    assert (call.timing().ttfb_ms, call.timing().total_ms) == (0.0, 0.0)
    assert [chunk.delta_ms for chunk in chunk_records([b"a", b"b"], [9, 3])] == [0.0, 0.0]


def test_what_was_taken_out_goes_on_where_it_was_cut() -> None:
    body = Collected()
    body.add(b"a", 1, ends_chunk=False)
    assert body.take() == ([b"a"], [1])
    body.add(b"b", 2)
    body.add(b"c", 3)
    assert body.take() == ([b"b", b"c"], [-1, 3])
    assert body.size == 3


CHUNKS = [
    pytest.param([b"a", b"b"], [1, 2], [b"a", b"b"], [1, 2], id="whole"),
    pytest.param([b"a", b"b", b"c"], [1, -1, 3], [b"ab", b"c"], [1, 3], id="one in two pieces"),
    pytest.param([b"a", b"b"], [-1, 2], [b"a", b"b"], [0, 2], id="the beginning is missing"),
    pytest.param([], [], [], [], id="none"),
]


@pytest.mark.parametrize(("pieces", "times", "chunks", "starts"), CHUNKS)
def test_chunks(pieces: list[bytes], times: list[int], chunks: list[bytes], starts: list[int]) -> None:
    assert chunks_of(pieces, times) == (chunks, starts)


def test_the_first_chunk_has_delta_0_and_the_others_that_from_the_previous() -> None:
    starts = [5_000_000, 7_250_000, 7_250_000]
    assert chunk_records([b"a", b"\xff", b""], starts) == [
        Chunk(delta_ms=0.0, raw="a"),
        Chunk(delta_ms=2.25, raw="/w==", raw_encoding="base64"),
        Chunk(delta_ms=0.0, raw=""),
    ]
    assert [chunk.delta_ms for chunk in told_sizes([1, 2, 3], starts)] == [0.0, 2.25, 0.0]


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        (b"A: b", True),
        (b"A:b", False),
        (b"A:  b", False),
        (b"A: b ", False),
        (b"A: \xe9", False),
        (b"A :b", False),
    ],
)
def test_a_plain_field_is_one_that_name_and_value_give_back(line: bytes, plain: bool) -> None:
    field = field_of(line)
    assert field is not None
    assert (field.plain, field.name.strip(), field.value[:1]) == (plain, b"A", field.value[:1])
    assert plain is (b"%b: %b" % (field.name, field.value) == line and line.isascii())


@pytest.mark.parametrize("line", [b"no colon", b" folded: x", b"\tfolded: x", b": nameless", b""])
def test_what_is_no_field(line: bytes) -> None:
    assert field_of(line) is None


def test_headers_keep_order_case_and_repeats() -> None:
    headers, in_order = headers_of([("B", "1"), ("A", "2"), ("A", "3"), ("a", "4")])
    assert list(headers.items()) == [("B", "1"), ("A", ["2", "3"]), ("a", "4")]
    assert in_order
    assert headers_of([("A", "1"), ("B", "2"), ("A", "3")]) == ({"A": ["1", "3"], "B": "2"}, False)


def test_the_lines_of_a_head() -> None:
    assert head_lines(b"GET / HTTP/1.1\r\nA: b\r\n\r\n") == [b"GET / HTTP/1.1", b"A: b"]
    assert head_lines(b"GET / HTTP/1.1\r\nA: b") == [b"GET / HTTP/1.1", b"A: b"]


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_interim_heads(status: int) -> None:
    assert is_interim(b"HTTP/1.1 %d X\r\n\r\n" % status)
    assert not is_interim(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    assert not is_interim(b"HTTP/1.1 200 OK\r\n\r\n")


def test_status_lines() -> None:
    assert status_line(b"HTTP/1.0 404 Not Found") == ("HTTP/1.0", 404, "Not Found", True)
    assert status_line(b"HTTP/1.1 200") == ("HTTP/1.1", 200, None, True)
    assert status_line(b"rubbish") == (None, None, None, False)


def test_which_bodies_are_told_chunk_by_chunk() -> None:
    assert is_stream("Text/Event-Stream; charset=utf-8")
    assert is_stream("application/x-ndjson")
    assert not is_stream("application/json")
    assert not is_stream("")


def test_an_end_is_looked_for_in_event_streams_alone() -> None:
    assert stream_end(b"/v1/messages", "application/x-ndjson") is None
    assert stream_end(b"/v1/messages/count_tokens", "text/event-stream") is None
    end = stream_end(b"/v1/messages", "text/event-stream")
    assert end and end.search(b"event: message_stop\n") and not end.search(b'data: "event: message_stop"')


def test_the_last_message_of_an_answer() -> None:
    assert ends_answer(b'{"type": "response.completed", "response": {}}') == "response.completed"
    assert ends_answer(b'{"type": "error", "status": 500}') == "error"
    assert not ends_answer(b'{"type": "response.created"}')
    assert not ends_answer(b"[]")
    assert not ends_answer(b"\xff")
