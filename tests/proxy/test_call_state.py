"""A call, whatever order its pieces come in."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model.records import Chunk
from agent_logger.providers.ending import ends_answer
from agent_logger.proxy.call_state import (
    NEXT,
    CallEvent,
    CallPhase,
    CallState,
    Collected,
    chunk_records,
    chunk_size_records,
    chunks_of,
    is_stream,
    stream_end,
)
from agent_logger.proxy.head import ParsedHead, field_of, headers_of, is_interim, status_line

FEEDS = {
    CallEvent.REQUEST_DATA: lambda call: call.request_data(b"q", 2),
    CallEvent.REQUEST_END: lambda call: call.request_end(),
    CallEvent.INTERIM: lambda call: call.response_head(b"HTTP/1.1 103 Early Hints\r\n\r\n", 3),
    CallEvent.RESPONSE_HEAD: lambda call: call.response_head(b"HTTP/1.1 200 OK\r\n\r\n", 4),
    CallEvent.RESPONSE_DATA: lambda call: call.response_data([b"a"], [5], [True]),
    CallEvent.END: lambda call: call.end(6),
}


def test_every_phase_is_reachable_and_only_ended_is_final() -> None:
    reached = {CallPhase.SENDING} | {state for ways in NEXT.values() for state in ways.values()}
    assert reached == set(CallPhase) == set(NEXT)
    assert [state for state, ways in NEXT.items() if not ways] == [CallPhase.ENDED]
    assert all(ways.get(CallEvent.END) == CallPhase.ENDED for state, ways in NEXT.items() if ways)


@pytest.mark.parametrize("events", list(itertools.permutations(FEEDS, 4)))
def test_any_event_order_is_accepted_and_an_impossible_order_marks_holes(
    events: tuple[CallEvent, ...],
) -> None:
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


def test_an_early_response_has_no_holes() -> None:
    call = CallState(0)
    call.response_head(b"HTTP/1.1 413 Too Large\r\n\r\n", 2_000_000)
    call.request_data(b"more", 3_000_000)
    assert call.state is CallPhase.EARLY
    call.request_end()
    call.end(5_500_000)
    assert not call.holes
    assert (call.timing().ttfb_ms, call.timing().total_ms) == (2.0, 5.5)


def test_outcome_gives_the_reason_a_call_is_incomplete() -> None:
    call = CallState(0)
    assert call.outcome(stream_ended=None) is call.outcome(stream_ended=True) is None
    assert call.outcome(stream_ended=False) == "no_stream_end"
    call.end(1, "upstream_reset")
    assert call.outcome(stream_ended=False) == "upstream_reset"
    call.dropped()
    assert call.outcome(stream_ended=False) == "dropped"


def test_timings_are_never_negative() -> None:
    call = CallState(10)
    call.response_head(b"HTTP/1.1 200 OK\r\n\r\n", 5)
    call.end(3)
    assert (call.timing().ttfb_ms, call.timing().total_ms) == (0.0, 0.0)
    assert [chunk.delta_ms for chunk in chunk_records([b"a", b"b"], [9, 3], ["", ""])] == [0.0, 0.0]


def test_a_chunk_continues_after_take() -> None:
    body = Collected()
    body.add(b"a", 1, ends_chunk=False)
    assert body.take() == ([b"a"], [1])
    body.add(b"b", 2)
    body.add(b"c", 3)
    assert body.take() == ([b"b", b"c"], [-1, 3])
    assert body.size == 3


@given(st.lists(st.lists(st.tuples(st.binary(max_size=2), st.integers(0, 9), st.booleans()), min_size=1)))
def test_pieces_may_be_added_one_by_one_or_together(batches: list[list[tuple[bytes, int, bool]]]) -> None:
    single, together = Collected(), Collected()
    for batch in batches:
        for piece, ns, ends_chunk in batch:
            single.add(piece, ns, ends_chunk=ends_chunk)
        together.extend(*map(list, zip(*batch, strict=True)))
    assert vars(together) == vars(single)


CHUNKS = [
    pytest.param([b"a", b"b"], [1, 2], [b"a", b"b"], [1, 2], id="whole"),
    pytest.param([b"a", b"b", b"c"], [1, -1, 3], [b"ab", b"c"], [1, 3], id="one in two pieces"),
    pytest.param([b"a", b"b"], [-1, 2], [b"a", b"b"], [0, 2], id="the beginning is missing"),
    pytest.param([], [], [], [], id="none"),
]


@pytest.mark.parametrize(("pieces", "times", "chunks", "starts"), CHUNKS)
def test_chunks_of_joins_pieces_into_chunks(
    pieces: list[bytes], times: list[int], chunks: list[bytes], starts: list[int]
) -> None:
    assert chunks_of(pieces, times) == (chunks, starts)


def test_chunk_deltas_count_from_the_previous_chunk() -> None:
    starts = [5_000_000, 7_250_000, 7_250_000]
    times = ["first", "second", "third"]
    assert chunk_records([b"a", b"\xff", b""], starts, times) == [
        Chunk(ts="first", delta_ms=0.0, raw="a"),
        Chunk(ts="second", delta_ms=2.25, raw="/w==", raw_encoding="base64"),
        Chunk(ts="third", delta_ms=0.0, raw=""),
    ]
    assert chunk_size_records([1, 2, 3], starts, times) == [
        Chunk(ts="first", delta_ms=0.0, bytes=1),
        Chunk(ts="second", delta_ms=2.25, bytes=2),
        Chunk(ts="third", delta_ms=0.0, bytes=3),
    ]


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
def test_a_field_is_plain_if_name_and_value_restore_the_line(line: bytes, plain: bool) -> None:
    field = field_of(line)
    assert field is not None
    assert (field.plain, field.name.strip(), field.value[:1]) == (plain, b"A", field.value[:1])
    assert plain is (b"%b: %b" % (field.name, field.value) == line and line.isascii())


@pytest.mark.parametrize("line", [b"no colon", b" folded: x", b"\tfolded: x", b": nameless", b""])
def test_malformed_header_lines_are_not_fields(line: bytes) -> None:
    assert field_of(line) is None


def test_headers_keep_order_case_and_repeats() -> None:
    headers, in_order = headers_of([("B", "1"), ("A", "2"), ("A", "3"), ("a", "4")])
    assert list(headers.items()) == [("B", "1"), ("A", ["2", "3"]), ("a", "4")]
    assert in_order
    assert headers_of([("A", "1"), ("B", "2"), ("A", "3")]) == ({"A": ["1", "3"], "B": "2"}, False)


HEADS = [
    pytest.param(b"GET / HTTP/1.1\r\nA: b\r\nc: d e\r\n\r\n", [("A", "b"), ("c", "d e")], True, id="plain"),
    pytest.param(b"GET / HTTP/1.1\r\nA: b", [("A", "b")], False, id="cut"),
    pytest.param(b"GET / HTTP/1.1\r\nA:  b \r\n\r\n", [("A", "b")], False, id="more blanks"),
    pytest.param(b"GET / HTTP/1.1\r\nA: \xe9\r\nodd\r\n\r\n", [("A", "\xe9")], False, id="odd lines"),
    pytest.param(b"GET / HTTP/1.1", [], True, id="no field"),
]


@pytest.mark.parametrize(("data", "fields", "plain"), HEADS)
def test_a_head_is_its_first_line_and_its_fields(data: bytes, fields: list[tuple[str, str]], plain: bool) -> None:
    head = ParsedHead(data)
    assert (head.start, head.method, head.target) == (b"GET / HTTP/1.1", "GET", b"/")
    assert (head.fields, head.is_plain) == (fields, plain)


def test_values_of_a_field_in_several_lines_are_joined() -> None:
    head = ParsedHead(b"X\r\nA: 1\r\nB: 2\r\na: 3\r\n\r\n")
    assert (head.value("a"), head.value("b"), head.value("c")) == ("1, 3", "2", "")
    assert head.by_name() == {"a": "3", "b": "2"}


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_is_interim_recognizes_interim_statuses_except_101(status: int) -> None:
    assert is_interim(b"HTTP/1.1 %d X\r\n\r\n" % status)
    assert not is_interim(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    assert not is_interim(b"HTTP/1.1 200 OK\r\n\r\n")


def test_status_line_parses_version_status_and_reason() -> None:
    assert status_line(b"HTTP/1.0 404 Not Found") == ("HTTP/1.0", 404, "Not Found", True)
    assert status_line(b"HTTP/1.1 200") == ("HTTP/1.1", 200, None, True)
    assert status_line(b"rubbish") == (None, None, None, False)


def test_is_stream_recognizes_event_streams_and_ndjson() -> None:
    assert is_stream("Text/Event-Stream; charset=utf-8")
    assert is_stream("application/x-ndjson")
    assert not is_stream("application/json")
    assert not is_stream("")


def test_stream_end_applies_only_to_event_streams() -> None:
    assert stream_end(b"/v1/messages", "application/x-ndjson") is None
    assert stream_end(b"/v1/messages/count_tokens", "text/event-stream") is None
    end = stream_end(b"/v1/messages", "text/event-stream")
    assert end and end.search(b"event: message_stop\n") and not end.search(b'data: "event: message_stop"')


def test_ends_answer_recognizes_the_last_websocket_message() -> None:
    assert ends_answer(b'{"type": "response.completed", "response": {}}') == "response.completed"
    assert ends_answer(b'{"type": "error", "status": 500}') == "error"
    assert not ends_answer(b'{"type": "response.created"}')
    assert not ends_answer(b"[]")
    assert not ends_answer(b"\xff")


def test_pieces_of_one_chunk_count_as_one() -> None:
    body = Collected()
    for piece, ends in ((b"a", False), (b"b", True), (b"c", True), (b"d", False)):
        body.add(piece, 1, ends_chunk=ends)
    assert (body.chunks, body.size) == (3, 4)
