"""Content encodings are undone as they arrive, as far as they came, and never beyond a bound."""

import gzip
import itertools
import random
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_logger.files.sealed import zstd
from agent_logger.protocols.encodings import LIMIT_BYTES, DecodeError, Decoder, decode, decoder
from tests.fakeapi.encodings import PACKERS, Packer, Zlib
from tests.memory import PEAK_KB

TEXT = 'event: delta\ndata: {"text":"Grüße, 世界 "}\n\n'.encode() * 40
ENCODERS: dict[str, Callable[[], Packer]] = {
    **PACKERS,
    "x-gzip": PACKERS["gzip"],
    "deflate, bare": lambda: Zlib(-15),
}
NAMES = pytest.mark.parametrize("name", ENCODERS)
PACKED = pytest.mark.parametrize("name", [name for name in ENCODERS if name != "identity"])


def packed(name: str, *events: bytes) -> bytes:
    packer = ENCODERS[name]()
    return b"".join([*(packer.feed(event) for event in events), packer.end()])


def begin(name: str, limit: int = LIMIT_BYTES) -> Decoder:
    started = decoder(name.split(",")[0], limit)
    assert started
    return started


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    for start, end in itertools.pairwise(edges):
        yield data[start:end]


@NAMES
def test_each_flushed_event_is_decoded_immediately(name: str) -> None:
    packer, unpack = ENCODERS[name](), begin(name)
    events = [
        b"data: one\n\n",
        b"data: two\n\n",
        TEXT,
        b"d",
        b"data: \xff\x00\n\n" * 20_000,
        b"data: end\n\n",
    ]
    assert [unpack.feed(packer.feed(event)) for event in events] == events
    assert unpack.feed(packer.end()) == b""
    assert unpack.complete


@PACKED
def test_a_body_can_be_split_anywhere(name: str) -> None:
    body = packed(name, TEXT, b"and more")
    for place in range(len(body) + 1):
        unpack = begin(name)
        assert unpack.feed(body[:place]) + unpack.feed(body[place:]) == TEXT + b"and more"
        assert unpack.complete


@NAMES
@given(events=st.lists(st.binary(max_size=300), max_size=6), places=st.lists(st.integers(0, 4000), max_size=8))
@example(events=[b"x" * 200_000], places=list(range(0, 400, 7)))
def test_encoded_data_round_trips_for_any_split(name: str, events: list[bytes], places: list[int]) -> None:
    body, unpack = packed(name, *events), begin(name)
    assert b"".join(unpack.feed(piece) for piece in cut(body, places)) == b"".join(events)
    assert unpack.complete


@given(
    names=st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd", "identity", "x-gzip"]), max_size=4),
    text=st.text(max_size=500),
    places=st.lists(st.integers(0, 2000), max_size=5),
)
@example(names=["gzip", "br"], text="abc", places=[])
def test_stacked_encodings_are_decoded_in_reverse_order(names: list[str], text: str, places: list[int]) -> None:
    body = text.encode()
    for name in names:
        body = packed(name, body)
    unpack = decoder(", ".join(names))
    assert unpack
    assert b"".join(unpack.feed(piece) for piece in cut(body, places)) == text.encode()
    assert unpack.complete


def test_stacked_encodings_decode_each_flushed_event_immediately() -> None:
    inner, outer = PACKERS["gzip"](), PACKERS["br"]()
    unpack = decoder("gzip, br")
    assert unpack
    for event in (b"data: one\n\n", TEXT, b"data: three\n\n"):
        assert unpack.feed(outer.feed(inner.feed(event))) == event
    assert not unpack.complete


@pytest.mark.parametrize("name", ["gzip", "zstd"])
@pytest.mark.parametrize("size", [1, 3, 1 << 20])
def test_concatenated_members_and_frames_are_decoded(name: str, size: int) -> None:
    parts = [b"first", b"", b"third" * 50_000]
    body = b"".join(packed(name, part) for part in parts)
    unpack = begin(name)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    assert b"".join(unpack.feed(piece) for piece in pieces) == b"".join(parts)
    assert unpack.complete


def test_skippable_zstd_frames_are_skipped() -> None:
    skippable = b"\x5e\x2a\x4d\x18\x04\x00\x00\x00abcd"
    assert decode(skippable + packed("zstd", b"one") + skippable + packed("zstd", b"two"), "zstd") == b"onetwo"


HEADS = [
    pytest.param(zlib.compressobj(level, zlib.DEFLATED, bits), id=f"level {level}, {bits} bits")
    for level in (0, 1, 6, 9)
    for bits in (9, 12, 15, -9, -12, -15)
]


@pytest.mark.parametrize("compressor", HEADS)
def test_deflate_is_decoded_with_and_without_the_zlib_header(compressor: "zlib._Compress") -> None:
    packer = compressor.copy()
    body = packer.compress(TEXT) + packer.flush()
    assert decode(body, "deflate") == TEXT


HEADERS = [
    pytest.param("", True, id="empty"),
    pytest.param("identity", True, id="identity"),
    pytest.param("GZip", True, id="upper case"),
    pytest.param(" br ,\tgzip ,, ", True, id="spaces and empty elements"),
    pytest.param("gzip,gzip,gzip,gzip,gzip", True, id="five"),
    pytest.param("gzip,gzip,gzip,gzip,gzip,gzip", False, id="six"),
    pytest.param("compress", False, id="compress"),
    pytest.param("gzip, aws-chunked", False, id="one known, one not"),
    pytest.param("gzip;q=1", False, id="with a parameter"),
    pytest.param("dcz", False, id="a dictionary"),
]


@pytest.mark.parametrize(("header", "known"), HEADERS)
def test_an_unknown_encoding_raises_a_decode_error(header: str, known: bool) -> None:
    assert (decoder(header) is not None) == known
    if not known:
        with pytest.raises(DecodeError, match="unsupported encoding"):
            decode(b"", header)


@PACKED
def test_a_truncated_stream_is_decoded_up_to_the_cut(name: str) -> None:
    packer = ENCODERS[name]()
    events = [packer.feed(b"data: %d\n\n" % number) for number in range(5)]
    body = b"".join(events)
    whole = body + packer.end()
    for place in range(1, len(whole)):
        unpack = begin(name)
        got = unpack.feed(whole[:place])
        arrived = sum(1 for number in range(5) if len(b"".join(events[: number + 1])) <= place)
        sent = b"".join(b"data: %d\n\n" % number for number in range(5))
        assert sent.startswith(got)
        assert len(got) >= arrived * len(b"data: 0\n\n")
        assert not unpack.complete, place


@pytest.mark.parametrize("size", [65_000, 65_536, 65_700, 131_072, 140_000])
def test_decodable_bytes_are_returned_without_waiting_for_more_input(size: int) -> None:
    """Whatever sizes we take from zlib at once, it has given all it would give to one who takes everything."""
    body = gzip.compress(b"a" * size)
    for place in range(len(body)):
        assert begin("gzip").feed(body[:place]) == zlib.decompressobj(wbits=31).decompress(body[:place])


@NAMES
def test_an_empty_body_is_complete(name: str) -> None:
    unpack = begin(name)
    assert unpack.feed(b"") == b""
    assert unpack.complete


RUBBISH = [
    pytest.param("gzip", b"plain text, not gzip", id="gzip: plain text"),
    pytest.param("gzip", b"\x1f\x8b\x08\x00" + b"\xff" * 40, id="gzip: a head alone"),
    pytest.param("gzip", packed("gzip", b"x") + b"more", id="gzip: bytes behind"),
    pytest.param("deflate", b"\xff\xff\xff\xff\xff", id="deflate: plain rubbish"),
    pytest.param("deflate", packed("deflate", b"x") + b"more", id="deflate: bytes behind"),
    pytest.param("br", b"\xff" * 40, id="br: rubbish"),
    pytest.param("br", packed("br", b"x") + b"more", id="br: bytes behind"),
    pytest.param("zstd", b"plain text, not zstd", id="zstd: plain text"),
    pytest.param("zstd", packed("zstd", b"x") + b"more", id="zstd: bytes behind"),
]


@pytest.mark.parametrize(("name", "body"), RUBBISH)
@pytest.mark.parametrize("size", [1, 1000])
def test_invalid_data_raises_and_the_decoder_stays_failed(name: str, body: bytes, size: int) -> None:
    unpack = begin(name)
    with pytest.raises(DecodeError):
        for at in range(0, len(body), size):
            unpack.feed(body[at : at + size])
    assert not unpack.complete
    with pytest.raises(DecodeError):
        unpack.feed(packed(name, b"x"))


@given(name=st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br"]), body=st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_decode_error(name: str, body: bytes) -> None:
    try:
        decode(body, name, limit=100_000)
    except DecodeError as error:
        assert str(error)


@pytest.mark.parametrize("name", ["gzip", "br", "zstd", "gzip, zstd"])
def test_data_before_the_damage_is_attached_to_the_error(name: str) -> None:
    """A wrong checksum must not hide what stood before it: a secret, say."""
    text = TEXT * 500 + random.Random(7).randbytes(50_000) + TEXT
    body = text
    for one in name.split(", "):
        body = packed(one, *(body[at : at + 999] for at in range(0, len(body), 999)))
    damaged = body[:-1] + bytes([body[-1] ^ 0x55]) if name == "gzip" else body + b"rubbish"
    with pytest.raises(DecodeError) as caught:
        decode(damaged, name)
    assert caught.value.decoded == text


@PACKED
def test_exactly_the_limit_is_allowed_and_one_byte_more_is_not(name: str) -> None:
    body = packed(name, b"a" * 100_000)
    assert begin(name, limit=100_000).feed(body) == b"a" * 100_000
    with pytest.raises(DecodeError, match="more than 99,999 bytes") as caught:
        begin(name, limit=99_999).feed(body)
    assert caught.value.decoded == b"a" * 99_999


@PACKED
def test_the_limit_applies_to_all_feeds_together(name: str) -> None:
    packer, unpack = ENCODERS[name](), begin(name, limit=25_000)
    unpack.feed(packer.feed(b"a" * 10_000))
    unpack.feed(packer.feed(b"b" * 10_000))
    with pytest.raises(DecodeError, match="more than 25,000 bytes"):
        unpack.feed(packer.feed(b"c" * 10_000))


def test_identity_encoding_has_no_limit() -> None:
    assert begin("identity", limit=10).feed(b"x" * 100) == b"x" * 100


GIGABYTE = 1 << 30


def bomb(name: str) -> bytes:
    """A gigabyte of zeros."""
    chunk = bytes(16 << 20)
    if name in ("gzip", "deflate", "deflate, bare"):
        packer = zlib.compressobj(9, wbits={"gzip": 31, "deflate": 15}.get(name, -15))
        first = packer.compress(chunk) + packer.flush(zlib.Z_FULL_FLUSH)
        again = packer.compress(chunk) + packer.flush(zlib.Z_FULL_FLUSH)  # depends on nothing before it
        return first + again * (GIGABYTE // len(chunk) - 1)
    if name == "br":
        brotli_packer = brotli.Compressor(quality=1)
        pieces = [brotli_packer.process(chunk) for _ in range(GIGABYTE // len(chunk))]
        return b"".join([*pieces, brotli_packer.finish()])
    frame = zstd.compress(chunk, 1)
    if name == "zstd, many frames":
        return frame * (GIGABYTE // len(chunk))
    zstd_packer = zstd.ZstdCompressor(1)
    pieces = [zstd_packer.compress(chunk) for _ in range(GIGABYTE // len(chunk))]
    return b"".join([*pieces, zstd_packer.flush()])


IN_A_PROCESS = f"""{PEAK_KB}
import sys
from agent_logger.protocols.encodings import DecodeError, decoder
body = sys.stdin.buffer.read()
unpack = decoder(sys.argv[1])
before = peak_kb()
try:
    for at in range(0, len(body), 65536):
        unpack.feed(body[at : at + 65536])
except DecodeError as error:
    print(peak_kb() - before, error)
"""
BOMBS = ["gzip", "deflate", "deflate, bare", "br", "zstd", "zstd, many frames"]


@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_is_rejected_within_bounded_memory(name: str) -> None:
    body = bomb(name)
    assert len(body) < GIGABYTE / 100
    command = [sys.executable, "-c", IN_A_PROCESS, name.split(",")[0]]
    done = subprocess.run(command, input=body, stdout=subprocess.PIPE, check=True)
    grown_kb, _, reason = done.stdout.decode().partition(" ")
    assert "more than 67,108,864 bytes" in reason
    assert int(grown_kb) < 200_000  # what may be decoded, and its copy


def test_a_nested_decompression_bomb_is_rejected_at_the_outer_layer() -> None:
    """A megabyte that becomes a gigabyte of gzip, which would become nothing at all."""
    empty_members = gzip.compress(b"") * 50_000
    body = gzip.compress(empty_members)
    assert len(body) < len(empty_members) / 100
    with pytest.raises(DecodeError, match="more than 500,000 bytes"):
        decode(body, "gzip, gzip", limit=500_000)


def test_feed_uses_little_memory_beyond_its_output() -> None:
    body, unpack = bomb("gzip"), begin("gzip", limit=1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            unpack.feed(body)
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.timeout(15)
def test_many_tiny_members_are_decoded_in_linear_time() -> None:
    """A library copies what lies behind a member: of 4 MB of them at once that would be 400 GB."""
    assert decode(gzip.compress(b"") * 200_000, "gzip") == b""
