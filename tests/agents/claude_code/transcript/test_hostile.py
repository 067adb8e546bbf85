"""Nothing in a file makes the reader of Claude Code's lines raise, and no good line is lost to a bad one."""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.agents.claude_code.transcript.responses import responses_of
from agent_logger.agents.claude_code.transcript.session import Transcript, session_of, transcript_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.model.session import Usage
from tests.agents.claude_code.claude_files import (
    SESSION,
    assistant,
    damage_in,
    data_of,
    fixtures,
    result,
    source_of,
    use,
    user,
)

ID = "msg_01abcdefghijklmn"
GOOD = [user("u", "hi"), assistant("a", ID, "hello")]


def raw_source(data: bytes) -> SourceFiles:
    return SourceFiles(
        File(f"{SESSION}.jsonl", (), chunks=lambda: [data[at : at + 4096] for at in range(0, len(data), 4096)])
    )


def read(data: bytes) -> Transcript:
    """All that can be asked of it."""
    transcript = transcript_of(raw_source(data))
    session = transcript.session
    assert session.usage.input_tokens >= 0
    assert isinstance(session.files, list)
    assert len(session.tool_calls) >= 0
    texts = [block.text for turn in session.turns for block in turn.blocks]
    "".join([*texts, *(it.user_input or "" for it in session.exchanges), session.title or ""]).encode()
    rows = list(responses_of(raw_source(data)))
    assert sum((row.usage for row in rows if row.usage), Usage()) == sum(
        (turn.usage for turn in session.turns if turn.usage), Usage()
    )
    return transcript


def encoded(it: dict[str, Any]) -> bytes:
    return json.dumps(it).encode()


LINE = encoded(assistant("b", "msg_01cccccccccccccc", "there"))
BAD = [
    pytest.param(b"[" * 100_000, 1, id="brackets"),
    pytest.param(b'{"a":' * 100_000, 1, id="braces"),
    pytest.param(b"\0" * 5000, 1, id="NUL"),
    pytest.param(b"5", 1, id="a number"),
    pytest.param(b"[]", 1, id="a list"),
    pytest.param(LINE[:-9], 1, id="cut"),
    pytest.param(b'{"type":"user","message":"\xff\xfe"}', 1, id="not UTF-8"),
    pytest.param(b'{"type":"mode","nobody reads":"\xff"}', 1, id="not UTF-8 where nobody reads"),
    pytest.param(b'{"type":"user","message":{"role":"user","content":"x"},"nobody reads":"\xff"}', 1, id="in a prompt"),
    pytest.param(b"\r", 0, id="CR alone"),
]


@pytest.mark.parametrize(("bad", "damaged"), BAD)
def test_a_bad_line_is_reported_and_the_others_are_read(bad: bytes, damaged: int) -> None:
    data = data_of([GOOD[0], bad, GOOD[1]])
    transcript = read(data)
    assert [it.line for it in damage_in(raw_source(data))] == [2] * damaged
    assert [it.user_input for it in transcript.session.exchanges] == ["hi"]
    assert [it.message_id for it in transcript.session.turns] == [ID]


ODD = [
    pytest.param(lambda it: b"\xef\xbb\xbf" + it, id="BOM"),
    pytest.param(lambda it: it + b"\r", id="CRLF"),
    pytest.param(lambda it: it.replace(b"there", "the\u2028re\u0085".encode()), id="U+2028"),
    pytest.param(lambda it: it.replace(b"there", b"\\ud83dx"), id="half a character"),
    pytest.param(lambda it: it.replace(b'"timestamp": "2026', b'"timestamp": "99999'), id="no time"),
    pytest.param(lambda it: it.replace(b'"uuid": "b"', b'"uuid": {"0": "b", "1": "c"}'), id="numeric keys"),
    pytest.param(lambda it: it.replace(b'"cwd": "', b'"cwd": ["'[:-1] + b'"x"], "cwd2": "'), id="a list for a text"),
    pytest.param(lambda it: LINE.replace(b"msg_01c", b"msg_02d").replace(b'"b"', b'"z"')[:-20] + it, id="glued"),
    pytest.param(lambda it: b'{"type":"mode"}' + it, id="two in one line"),
]


@pytest.mark.parametrize("odd", ODD)
def test_a_line_with_one_invalid_field_keeps_its_other_fields(odd: Callable[[bytes], bytes]) -> None:
    transcript = read(data_of([*GOOD, odd(LINE)]))
    assert [it.message_id for it in transcript.session.turns] == [ID, "msg_01cccccccccccccc"]
    usage = transcript.session.turns[1].usage
    assert usage is not None
    assert usage.counts[:2] == (3, 7)


NOT_COUNTS = [
    pytest.param(lambda it: it.replace(b'"input_tokens": 3', b'"input_tokens": NaN'), id="NaN"),
    pytest.param(lambda it: it.replace(b'"input_tokens": 3', b'"input_tokens": 1e999'), id="infinity"),
    pytest.param(lambda it: it.replace(b'"input_tokens": 3', b'"input_tokens": %d' % 2**70), id="2^70"),
    pytest.param(lambda it: it.replace(b'"input_tokens": 3', b'"input_tokens": -7'), id="negative"),
    pytest.param(lambda it: it.replace(b'"input_tokens": 3', b'"input_tokens": "3"'), id="a text for a number"),
    pytest.param(lambda it: it.replace(b'"input_tokens": 3', b'"input_tokens": [3]'), id="a list"),
    pytest.param(lambda it: it.replace(b'"input_tokens": 3', b'"input_tokens": true'), id="a truth"),
]


@pytest.mark.parametrize("odd", NOT_COUNTS)
def test_usage_with_invalid_counts_is_unknown(odd: Callable[[bytes], bytes]) -> None:
    session = read(data_of([*GOOD, odd(LINE)])).session
    assert [it.message_id for it in session.turns] == [ID, "msg_01cccccccccccccc"]
    assert session.turns[1].usage is None
    assert session.cost.unpriced == 1


def test_a_line_of_100_mb_is_reported_by_offset_and_length() -> None:
    first = encoded(user("u", "hi")) + b"\n"
    chunk = b"x" * (1 << 20)

    def chunks() -> list[bytes]:
        return [first + b'{"type":"user","message":"', *[chunk] * 100, b'"}\n' + LINE + b"\n"]

    source = SourceFiles(File(f"{SESSION}.jsonl", (), chunks=chunks))
    (damage,) = damage_in(source)
    assert (damage.line, damage.offset, damage.length) == (2, len(first), (100 << 20) + 28)
    assert len(session_of(source).turns) == 1
    assert len(list(responses_of(source))) == 1


@cache
def real_lines() -> list[bytes]:
    files = [path for it in fixtures() for path in it.folder.glob("home/.claude/projects/**/*.jsonl")]
    lines = [line for path in files for line in path.read_bytes().split(b"\n") if line]
    return random.Random(5).sample(lines, 400)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=9),
    st.just([[]]),
    st.just({}),
)


def mutated(value: Any, draw: Callable[[st.SearchStrategy[Any]], Any], depth: int = 0) -> Any:
    """With one thing in it replaced by another, or gone."""
    if isinstance(value, dict) and value and depth < 5:
        key = draw(st.sampled_from(sorted(value)))
        change = draw(st.sampled_from(["deeper", "deeper", "replace", "drop", "rename"]))
        rest = {name: it for name, it in value.items() if name != key}
        if change == "drop":
            return rest
        if change == "rename":
            return {**rest, draw(st.text(max_size=5)): value[key]}
        return {**value, key: draw(VALUES) if change == "replace" else mutated(value[key], draw, depth + 1)}
    if isinstance(value, list) and value and depth < 5:
        return [mutated(value[0], draw, depth + 1), *value[1:]]
    return draw(VALUES)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_real_lines_with_arbitrary_field_values_are_read(data: st.DataObject) -> None:
    # Each once: of two copies of a line, spoilt in two ways, readers need not believe the same one.
    lines = data.draw(st.lists(st.sampled_from(real_lines()), min_size=1, max_size=6, unique=True))
    changed = [json.dumps(mutated(json.loads(it), data.draw)).encode() for it in lines]
    assert read(data_of([*changed, *GOOD])).session.exchanges


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_real_lines_with_corrupted_bytes_are_read(data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from(real_lines()), min_size=1, max_size=4))
    text = bytearray(data_of(lines))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=4))
    read(bytes(text) + b"\n" + data_of(GOOD))


@pytest.mark.parametrize(
    "ids", [("msg_01dddddddddddddd", "\x80sg_01dddddddddddddd"), ("other", "msg_01dddddddddddddd")]
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_copy_of_a_line_with_another_message_id_is_not_another_response(ids: tuple[str, str], swapped: bool) -> None:
    lines = [assistant("c", message_id, use("toolu_1")) for message_id in (ids[::-1] if swapped else ids)]
    text = data_of([*GOOD, *lines])
    assert len(read(text).session.turns) == len(read(data_of([*GOOD, lines[0]])).session.turns)


def test_reading_by_chunks_and_by_lines_gives_the_same_session() -> None:
    lines: list[dict[str, Any] | bytes] = [
        *GOOD,
        assistant("c", "msg_01dddddddddddddd", use("toolu_1")),
        user("r", [result("toolu_1")]),
        b"{bad",
    ]
    assert session_of(source_of(lines)) == session_of(source_of(lines, cut=False))
    assert list(responses_of(source_of(lines))) == list(responses_of(source_of(lines, cut=False)))


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda it: it.name)
def test_responses_of_yields_the_same_responses_as_the_full_session(fixture: Any) -> None:
    for source in fixture.sources():
        turns = session_of(source).turns
        rows = list(responses_of(source))
        wanted = {(it.message_id, it.thread, it.model, it.usage, it.service_tier, it.started) for it in turns}
        assert {(it.message_id, it.thread, it.model, it.usage, it.tier, it.at) for it in rows} == wanted
        assert len(rows) == len(turns)
        assert {row.session for row in rows} <= {session_of(source).id}
