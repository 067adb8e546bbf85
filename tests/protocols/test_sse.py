"""Events come out of a stream as the standard frames them, however the stream was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.protocols.sse import EventSplitter, ServerSentEvent

STREAMS = [
    pytest.param(b"data: one\n\ndata: two\n\n", [(b"", b"one"), (b"", b"two")], id="two events"),
    pytest.param(b"event: a\ndata: 1\n\ndata: 2\n\n", [(b"a", b"1"), (b"", b"2")], id="a name is for one event"),
    pytest.param(b"event: a\r\ndata: 1\r\n\r\nevent: b\r\ndata: 2\r\n\r\n", [(b"a", b"1"), (b"b", b"2")], id="CRLF"),
    pytest.param(b"event: a\rdata: 1\r\rdata: 2\r\r", [(b"a", b"1"), (b"", b"2")], id="CR"),
    pytest.param(b"data: 1\r\n\rdata: 2\n\r\ndata: 3\r\r\n", [(b"", b"1"), (b"", b"2"), (b"", b"3")], id="mixed"),
    pytest.param(b"data: 1\r\n\ndata: 2\r\r\n\ndata: 3\n\n", [(b"", b"1"), (b"", b"2"), (b"", b"3")], id="CRLF, LF"),
    pytest.param(b"\xef\xbb\xbfdata: 1\n\n", [(b"", b"1")], id="BOM"),
    pytest.param(b"data: 0\n\n\xef\xbb\xbfdata: 1\n\n", [(b"", b"0")], id="a BOM later is a part of the name"),
    pytest.param(b": hello\n\n:\ndata: 1\n: x\ndata: 2\n\n", [(b"", b"1\n2")], id="comments, and data in two lines"),
    pytest.param(b"data:1\ndata:  2\ndata\ndata:\n\n", [(b"", b"1\n 2\n\n")], id="one blank is dropped, or none is"),
    pytest.param(b"event:  a\ndata: 1\n\n", [(b" a", b"1")], id="the second blank is the name's"),
    pytest.param(b"data\n\ndata:\n\nevent: a\n\n", [], id="no data is no event"),
    pytest.param(b"event: a\n\ndata: 1\n\n", [(b"", b"1")], id="a name without data is forgotten"),
    pytest.param(b" data: 1\nDATA: 2\ndatas: 3\n\n", [], id="other fields are ignored"),
    pytest.param(b"data: 1\n\ndata: 2\n", [(b"", b"1")], id="cut before the empty line"),
    pytest.param(b"data: 1\n\ndata: 2", [(b"", b"1")], id="cut in a line"),
    pytest.param(b"event: a\nevent: b\ndata: 1\n\n\n\n", [(b"b", b"1")], id="the last name counts"),
    pytest.param(
        "data: a\u2028b\u0085c\x0bd\n\n".encode(), [(b"", "a\u2028b\u0085c\x0bd".encode())], id="other breaks"
    ),
]


@pytest.mark.parametrize(("stream", "events"), STREAMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 4096])
def test_events_are_the_same_for_any_chunk_size(stream: bytes, events: list[tuple[bytes, bytes]], size: int) -> None:
    splitter = EventSplitter()
    got = [event for i in range(0, len(stream), size) for event in splitter.feed(stream[i : i + size])]
    assert got == [ServerSentEvent(*event) for event in events]


@given(
    st.lists(
        st.sampled_from((b"event: ", b"event:", b"data: ", b"data:", b"\n", b"\n\n", b"\r", b"a", b": ", b"id: 7"))
    )
)
def test_a_stream_has_the_same_events_whole_and_byte_by_byte(pieces: list[bytes]) -> None:
    stream = b"".join(pieces)
    whole, single = EventSplitter(), EventSplitter()
    for part in (stream, b"data: next\n\n"):
        events = [event for at in range(len(part)) for event in single.feed(part[at : at + 1])]
        assert whole.feed(part) == events
    assert whole.last_id == single.last_id


@pytest.mark.parametrize(
    ("stream", "last_id", "retry_ms"),
    [
        pytest.param(b"id: 7\nretry: 250\n\n", b"7", 250, id="both"),
        pytest.param(b"id: 7\n\nid\n\n", b"", None, id="reset"),
        pytest.param(b"id: 7\n\nid: a\0b\nretry: 1s\n\n", b"7", None, id="not valid"),
        pytest.param(b"retry: " + b"9" * 5000 + b"\n\n", b"", None, id="a number without end"),
    ],
)
def test_last_event_id_and_retry_are_read(stream: bytes, last_id: bytes, retry_ms: int | None) -> None:
    splitter = EventSplitter()
    splitter.feed(stream)
    assert (splitter.last_id, splitter.retry_ms) == (last_id, retry_ms)


def test_an_event_is_returned_when_its_blank_line_arrives() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: 1\r") == []
    assert splitter.feed(b"\r") == [ServerSentEvent(b"", b"1")]
    assert splitter.feed(b"\ndata: 2\n\n") == [ServerSentEvent(b"", b"2")]


def test_an_event_may_continue_in_the_next_chunk() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"event: a\ndata: 1\n") == []
    assert splitter.feed(b"data: 2\n\n") == [ServerSentEvent(b"a", b"1\n2")]
    assert splitter.feed(b"event: a\n") == []
    assert splitter.feed(b"data: 2\n\n") == [ServerSentEvent(b"a", b"2")]
