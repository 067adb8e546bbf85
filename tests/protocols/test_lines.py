import pytest

from agent_logger.protocols.lines import Line, LineSplitter

STREAMS = [
    pytest.param(b'{"n":1}\n{"n":2}\n', [b'{"n":1}', b'{"n":2}'], b"", id="two records"),
    pytest.param(b'{"n":1}\n{"n"', [b'{"n":1}'], b'{"n"', id="torn by a crash"),
    pytest.param('"a\u2028b"\n'.encode(), ['"a\u2028b"'.encode()], b"", id="U+2028 in a string"),
    pytest.param('"a\x85\x1c\x0c"\r\n'.encode(), ['"a\x85\x1c\x0c"\r'.encode()], b"", id="other line ends"),
    pytest.param(b"\n\n\n", [b"", b"", b""], b"", id="empty lines"),
    pytest.param(b"", [], b"", id="nothing"),
]


@pytest.mark.parametrize(("stream", "lines", "torn"), STREAMS)
@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_lines_are_the_same_for_any_chunk_size(stream: bytes, lines: list[bytes], torn: bytes, size: int) -> None:
    splitter = LineSplitter()
    chunks = [stream[i : i + size] for i in range(0, len(stream), size)]
    got = [line for chunk in chunks for line in splitter.feed(chunk)]
    rest = splitter.torn()
    assert [line.data for line in got] == lines
    assert (rest.data if rest else b"") == torn


@pytest.mark.parametrize("size", [1, 3, 100])
def test_every_line_has_its_number_and_offset(size: int) -> None:
    stream = b"one\n\nthree\nfour"
    splitter = LineSplitter()
    got = [line for i in range(0, len(stream), size) for line in splitter.feed(stream[i : i + size])]
    torn = splitter.torn()
    assert torn is not None
    for line in [*got, torn]:
        assert stream[line.offset : line.offset + line.length] == line.data
    assert [line.number for line in got] == [1, 2, 3]
    assert torn.number == 4


@pytest.mark.parametrize("size", [1, 5, 64])
def test_a_line_over_the_limit_has_position_and_length_but_no_data(size: int) -> None:
    stream = b"ok\n" + b"x" * 20 + b"\nfine\n"
    splitter = LineSplitter(longest=8)
    got = [line for i in range(0, len(stream), size) for line in splitter.feed(stream[i : i + size])]
    assert got == [Line(1, 0, 2, b"ok"), Line(2, 3, 20, None), Line(3, 24, 4, b"fine")]


def test_a_line_over_the_limit_is_not_held_in_memory() -> None:
    splitter = LineSplitter(longest=1000)
    for _ in range(100):
        splitter.feed(b"x" * 100)
    assert sum(map(len, splitter._held)) <= 1000
    torn = splitter.torn()
    assert torn is not None
    assert (torn.length, torn.data) == (10_000, None)
