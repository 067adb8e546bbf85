"""The search of the C library finds what Python's finds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.protocols import byte_search
from agent_logger.protocols.byte_search import contains

LONG = 5_000  # bytes of a text that is searched with the C library


@given(
    data=st.binary(max_size=40),
    part=st.binary(min_size=1, max_size=12),
    filler=st.sampled_from([b"", b"\0", b"a", b"\xff\xd8"]),
    at=st.integers(0, LONG),
)
def test_a_part_is_found_exactly_where_python_finds_it(data: bytes, part: bytes, filler: bytes, at: int) -> None:
    text = filler * LONG
    for where in (
        data,
        text[:at] + data + text[at:],
        text[:at] + part + data + text[at:],
        text + part,
        text + part[:-1],
    ):
        assert contains(where, part) == (part in where)


@given(part=st.binary(min_size=200, max_size=600))
def test_long_parts_are_found_at_both_ends_and_not_beyond(part: bytes) -> None:
    text = bytes(LONG)
    assert contains(part + text, part)
    assert contains(text + part, part)
    assert contains((text + part)[:-1], part) == (part in (text + part)[:-1])
    assert not contains(part[:1], part)


def test_without_glibc_python_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_search, "_memmem", None)
    assert contains(bytes(LONG) + b"key", b"key")
    assert not contains(bytes(LONG), b"key")
