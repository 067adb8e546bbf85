"""What the ledger is given of Claude Code's files."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_logger.agents.claude_code.transcript.responses import responses_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Usage
from tests.agents.claude_code.claude_files import SESSION, assistant, fixture, source_of, user

ID = "msg_01abcdefghijklmn"


def rows(name: str, begins: str = "") -> list[ModelResponse]:
    found = [source for source in fixture(name).sources() if source.main.name.startswith(begins)]
    return [row for source in found for row in responses_of(source)]


def test_a_response_row_has_all_fields_needed_for_costs() -> None:
    (row,) = rows("claude-cli/1.0.3/resume_chain", "3839")
    assert row == ModelResponse(
        family="anthropic",
        message_id="msg_01d024149b40f35a8d071bb0e7",
        request_id=None,
        model="claude-sonnet-4-20250514",
        usage=Usage(input_tokens=10, output_tokens=20, cache_read_tokens=1000, cache_write_tokens=100),
        tier="standard",
        at=datetime(2026, 11, 15, 7, 13, 37, 262000, UTC),
        session="3839c1c7-77ec-49b8-a376-a9dba7a6c9d4",
        project="/home/user/project",
        agent="claude-code",
        thread="main",
        final=True,
        reported_cost_usd=0.001005,
    )


def test_response_copies_of_old_clients_report_a_cost_of_zero() -> None:
    assert [row.reported_cost_usd for row in rows("claude-cli/1.0.3/resume_chain", "ef57")] == [
        0,
        0,
        0.003015,
    ]
    lines = [assistant("a", ID, "x", costUSD=0.5), assistant("b", ID, "y", costUSD=0)]
    assert [row.reported_cost_usd for row in responses_of(source_of(lines))] == [0.5]


def test_an_interrupted_response_is_not_final() -> None:
    assert [row.final for row in rows("claude-cli/2.1.325/sigint")] == [True, False]
    (row,) = responses_of(source_of([assistant("a", ID, "x", stop=None)]))
    assert not row.final


def test_error_messages_written_by_the_client_are_synthetic() -> None:
    (row,) = rows("claude-cli/2.1.325/api_error_529")
    assert (row.is_synthetic, row.usage) == (True, None)


def test_subagents_and_warm_up_calls_are_separate_threads() -> None:
    threads = [row.thread.partition(":")[0] for row in rows("claude-cli/2.1.325/subagents")]
    assert sorted(threads) == ["agent"] * 4 + ["main"] * 2
    assert [row.thread for row in rows("claude-cli/2.1.4/tools_stream")].count("side") == 3


def test_a_response_has_its_earliest_time_and_its_own_folder() -> None:
    lines = [user("u", "hi"), assistant("a", ID, "x", at=9, cwd="/there"), assistant("b", ID, "y", at=4)]
    (row,) = responses_of(source_of(lines))
    assert (row.at and row.at.second, row.project, row.session) == (4, "/there", SESSION)


@pytest.mark.parametrize("spelling", [(", ", ": "), (",", ":")])
def test_spaces_between_json_fields_do_not_matter(spelling: tuple[str, str]) -> None:
    line = json.dumps(assistant("a", ID, "x"), separators=spelling).encode()
    assert len(list(responses_of(source_of([line])))) == 1


TWO = "msg_02abcdefghijklmn"
AT_ONCE = [
    *(json.dumps(it).encode() for it in (assistant("a", ID, "x"), assistant("b", ID, "y"), assistant("c", TWO, "z"))),
    *(json.dumps(it).encode() for it in (user("u", "hi"), user("w", "Warmup"), {"type": "new", "message": 1})),
    json.dumps(assistant("d", "7", "x")).encode(),  # a server that counts
    json.dumps(assistant("e", TWO, "x"), indent=1).encode(),  # over several lines
    json.dumps(assistant("f", ID, "x")).encode() + json.dumps(assistant("g", TWO, "x")).encode(),
    b'{"type":"assistant","message":{"usage":{"output_tokens":3}},"usage":7}',
    b'{"type":"assistant","message":"said"}',
    b'{"type":"user","message":{"content":"\xff"}}',
    b'{"type":"assistant","message":{"id":"' + ID.encode(),
    b"",
    b"[{}",
]


@given(st.lists(st.sampled_from(AT_ONCE)), st.sampled_from(["main.jsonl", "agent-1.jsonl"]))
@example([AT_ONCE[4], AT_ONCE[8]], "agent-1.jsonl")  # a warm-up, and two lines in one
def test_reading_lines_in_one_chunk_or_one_by_one_gives_the_same_responses(lines: list[bytes], name: str) -> None:
    data = b"".join(line + b"\n" for line in lines)
    apart = data.splitlines(keepends=True)
    told = [list(responses_of(SourceFiles(File(name, (), lambda it=it: it)))) for it in ([data], apart)]  # type: ignore[misc]
    assert told[0] == told[1]
