import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.protocols.jsonl import Damage, JsonEntry, decode
from agent_logger.protocols.lines import Line


def read(data: bytes) -> list[JsonEntry | Damage]:
    return decode(Line(number=7, offset=1000, length=len(data), data=data))


def values(data: bytes) -> list[Any]:
    return [item.value if isinstance(item, JsonEntry) else item.reason for item in read(data)]


GOOD = [
    pytest.param(b'{"a":1}', [{"a": 1}], id="plain"),
    pytest.param(b'{"a":1}\r', [{"a": 1}], id="CRLF"),
    pytest.param(b'\xef\xbb\xbf{"a":1}', [{"a": 1}], id="BOM"),
    pytest.param(b"", [], id="empty"),
    pytest.param(b" \t\r", [], id="blank"),
    pytest.param(b"[1,2]", [[1, 2]], id="array"),
    pytest.param(b"5", [5], id="scalar"),
    pytest.param(b'{"a":"\\ud800"}', [{"a": "\ud800"}], id="lone surrogate"),
    pytest.param(b'{"a":1e400}', [{"a": float("inf")}], id="beyond a double"),
    pytest.param(b'{"a":18446744073709551617}', [{"a": 2**64 + 1}], id="beyond 64 bits"),
    pytest.param(b'{"message":1,"message":2}', [{"message": 2}], id="a key twice"),
    pytest.param(b'{"__proto__":{"a":1}}', [{"__proto__": {"a": 1}}], id="__proto__"),
    pytest.param('{"a":"\u2028\x85"}'.encode(), [{"a": "\u2028\x85"}], id="U+2028"),
    pytest.param(b'{"type":5}', [{"type": 5}], id="a number as the type"),
    pytest.param(b'{"0":"{","1":"\\"","2":"t"}', [{"0": "{", "1": '"', "2": "t"}], id="absurd shape"),
    pytest.param(b'{"' + b"k" * 1_000_000 + b'":1}', [{"k" * 1_000_000: 1}], id="1 MB key"),
]


@pytest.mark.parametrize(("line", "expected"), GOOD)
def test_lines_written_by_agents_are_decoded(line: bytes, expected: list[Any]) -> None:
    assert values(line) == expected


def test_nan_is_read() -> None:
    [value] = values(b'{"a":NaN}')
    assert value["a"] != value["a"]


BAD = [
    pytest.param(b'{"a":{"role":"x"},"b":"cut', "not JSON: unterminated string", id="torn"),
    pytest.param(b'{"a":"\xff"}', "not UTF-8", id="not UTF-8"),
    pytest.param(b"\0" * 1000, "NUL bytes", id="NUL run"),
    pytest.param(b'{"a":"x\0y"}', "not JSON: invalid control character at", id="NUL inside"),
    pytest.param(b"[" * 100_000, "nested too deeply", id="100,000 brackets"),
    pytest.param(b'{"a":' * 100_000, "nested too deeply", id="100,000 objects"),
    pytest.param(b'{"a":' + b"9" * 5000 + b"}", "a number with too many digits", id="5,000 digits"),
    pytest.param(b"plain text", "not JSON: expecting value", id="text"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_undecodable_lines_are_reported_with_their_position(line: bytes, reason: str) -> None:
    assert read(line) == [Damage(line=7, offset=1000, length=len(line), reason=reason)]


def test_an_overlong_line_is_reported_as_damage() -> None:
    line = Line(number=3, offset=10, length=70_000_000, data=None)
    assert decode(line) == [Damage(3, 10, 70_000_000, "a line of 70,000,000 bytes")]


VALUES = st.text(max_size=9) | st.integers() | st.lists(st.text(max_size=3), max_size=3)
RECORDS = st.dictionaries(st.text(min_size=1, max_size=5), VALUES, min_size=1, max_size=3)


@given(st.lists(RECORDS, min_size=2, max_size=4))
def test_concatenated_records_on_one_line_are_split(records: list[dict[str, Any]]) -> None:
    line = b"".join(json.dumps(record).encode() for record in records)
    assert values(line) == records
    assert b"".join(item.raw for item in read(line) if isinstance(item, JsonEntry)) == line


@given(torn=RECORDS, whole=RECORDS, cut=st.floats(0.1, 0.9))
def test_a_record_after_a_torn_record_is_recovered(torn: dict[str, Any], whole: dict[str, Any], cut: float) -> None:
    first = json.dumps({"padding": "some text", **torn}).encode()
    first = first[: max(2, int(len(first) * cut))]
    second = json.dumps({"type": "x", **whole}).encode()
    items = read(first + second)
    saved = [item for item in items if isinstance(item, JsonEntry)]
    lost = sum(item.length for item in items if isinstance(item, Damage))
    assert lost + sum(len(item.raw) for item in saved) == len(first + second), "every byte is accounted for"
    assert lost > 0


def test_a_record_after_nul_bytes_is_recovered() -> None:
    assert read(b'\0\0\0{"a":1}') == [
        Damage(7, 1000, 3, "NUL bytes"),
        JsonEntry(7, 1003, {"a": 1}, b'{"a":1}'),
    ]


def test_offsets_after_a_torn_record_count_bytes_not_characters() -> None:
    torn, whole = '{"a":"üüü'.encode(), b'{"b":2}'
    damage, entry = read(torn + whole)
    assert (damage.offset, entry.offset) == (1000, 1000 + len(torn))


@given(st.binary(max_size=200))
def test_any_line_is_decoded_without_error_and_every_byte_is_reported(data: bytes) -> None:
    data = data.replace(b"\n", b"")
    items = read(data)
    covered = b"".join(
        item.raw if isinstance(item, JsonEntry) else data[item.offset - 1000 :][: item.length] for item in items
    )
    blank = str.maketrans("", "", " \t\r")
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    assert covered.decode("latin-1").translate(blank) == text.translate(blank)


HOSTILE = [
    pytest.param(b'{"' * 2_000_000, id="starts"),
    pytest.param(b'{"a":1}x' * 500_000, id="records and rubbish"),
    pytest.param(b'{"a":"' * 1_000_000, id="unfinished strings"),
    pytest.param(b'{"a":1,' * 1_000_000, id="unfinished objects"),
    pytest.param(b'{"a":[' * 500_000, id="deep"),
    pytest.param(b"\\" * 4_000_000, id="backslashes"),
]


@pytest.mark.parametrize("line", HOSTILE)
def test_a_hostile_line_is_decoded_within_two_seconds(line: bytes) -> None:
    started = time.process_time()
    assert any(isinstance(item, Damage) for item in read(line))
    assert time.process_time() - started < 2
