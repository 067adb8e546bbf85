"""`agent_logger.claude_code.decode`: one line of a session file as a record, for programs of others."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.claude_code import (
    RECORDS,
    AnyRecord,
    OtherRecord,
    SessionRecord,
    TitleRecord,
    UserRecord,
    decode,
)

DATA = Path(__file__).parents[3] / "data/claude-cli"
VERSIONS = sorted(path for path in DATA.iterdir() if any(path.rglob("projects/**/*.jsonl")))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda it: it.name)
def test_every_line_of_real_files_decodes_to_its_type(version: Path) -> None:
    lines = [line for path in version.rglob("projects/**/*.jsonl") for line in path.read_bytes().split(b"\n") if line]
    assert lines
    for line in lines:
        fields = json.loads(line)
        record = decode(line)
        assert type(record) is RECORDS.get(fields["type"], OtherRecord)
        if isinstance(record, SessionRecord):
            assert (record.uuid, record.session_id) == (fields.get("uuid"), fields.get("sessionId"))


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (b'{"type":"ai-title","aiTitle":"A timer"}', TitleRecord(type="ai-title", ai_title="A timer")),
        (b'{"type":"user","isMeta":3,"cwd":"/work"}', UserRecord(type="user", cwd="/work")),
        (b'{"type":"of-tomorrow","uuid":"1"}', OtherRecord(type="of-tomorrow", uuid="1")),
        (b'{"type":"user"}{"type":"ai-title"}', UserRecord(type="user")),
        (b"[1]", None),
        (b'{"type":"us', None),
        (b"", None),
    ],
    ids=["whole", "an odd field", "unknown type", "two objects", "no object", "cut", "empty"],
)
def test_a_line_decodes_to_the_fields_that_fit(line: bytes, record: AnyRecord | None) -> None:
    assert decode(line) == record


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted({"type", "message", "usage", "content", "role", "cwd", "uuid", "snapshot", "toolUseResult"})


@given(
    st.binary(max_size=40)
    | st.builds(
        lambda kind, fields: json.dumps({**fields, "type": kind}).encode(),
        st.sampled_from(sorted(RECORDS)),
        st.dictionaries(st.sampled_from(FIELDS), VALUES),
    )
)
def test_no_line_makes_decode_raise(line: bytes) -> None:
    record = decode(line)
    if line.startswith(b'{"') and line.endswith(b"}") and b'"type"' in line:
        assert record is not None
