"""Goose's sessions, from recordings of the real client and from rows."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.goose import session as goose
from agent_logger.agents.goose.database import DATABASES
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.agents.source_files import Entries, File, SourceFiles
from agent_logger.catalog.catalog import Catalog
from agent_logger.files.sources import FIRST_BYTES
from agent_logger.model.session import Session, Usage
from agent_logger.protocols.jsonl import JsonEntry
from tests.agents.databases.recorded import recorded_database
from tests.agents.foreign import DATA, manifest, shown, total
from tests.agents.kilo.test_session import usage_in
from tests.hostile import ODD_VALUES

SCENARIOS = ["tools", "tree", "failures", "compaction", "anthropic"]
MAIN, FORK = "20261118_1", "20261118_2"


def sessions_of(scenario: str, home: Path) -> dict[str, Session]:
    path = recorded_database("goose", f"1.52.0/{scenario}", home)
    return {name: goose.session_of(DATABASES.source_of(path, name)) for name in DATABASES.session_ids(path)}


@pytest.mark.parametrize("scenario", ["tree", "failures", "compaction"])
def test_session_usage_matches_the_usage_billed_by_the_server_except_titles(scenario: str, tmp_path: Path) -> None:
    truth = manifest(DATA / "goose/1.52.0" / scenario).truth
    [session] = sessions_of(scenario, tmp_path).values()
    billed = [counts for kinds in truth.values() for kind, counts in kinds.items() if kind != "side"]
    assert session.usage == total(map(usage_in, billed))
    assert sum(turn.is_billed for turn in session.turns) == sum(counts["responses"] for counts in billed)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_fast_path_yields_the_same_usage(scenario: str, tmp_path: Path) -> None:
    path = recorded_database("goose", f"1.52.0/{scenario}", tmp_path)
    for name in DATABASES.session_ids(path):
        session = goose.session_of(DATABASES.source_of(path, name))
        responses = list(goose.responses_of(DATABASES.source_of(path, name)))
        assert sorted((it.thread, it.message_id or "", it.usage.counts) for it in responses if it.usage) == sorted(
            (turn.thread, turn.message_id or "", turn.usage.counts) for turn in session.turns if turn.usage
        )


def test_response_ids_are_those_of_the_vendor(tmp_path: Path) -> None:
    for number, scenario in enumerate(SCENARIOS):
        responses = json.loads((DATA / "goose/1.52.0" / scenario / "manifest.json").read_bytes())["responses"]
        vendor = {it["id"] for it in responses if it["complete"] and it["kind"] != "side"}
        turns = [turn for session in sessions_of(scenario, tmp_path / str(number)).values() for turn in session.turns]
        assert {turn.message_id for turn in turns if turn.usage} == vendor


def test_an_answer_with_two_tool_calls_is_one_turn(tmp_path: Path) -> None:
    [session] = sessions_of("tools", tmp_path).values()
    assert shown(session) == [
        (
            "List the files",
            [
                ["I will look.", ">shell", "<"],
                [">shell", "<failed", ">tree", "<"],
                ["Two files; missing.txt is not there."],
            ],
        ),
        ("What is the function called?", [["The function is greet."]]),
    ]
    assert session.usage == Usage(input_tokens=4712, output_tokens=540, cache_read_tokens=11264)
    assert (session.title, session.project) == ("Short title 0", "/home/user/project")
    assert resume_command(session.agent, session.id) == ["goose", "session", "--resume", "--session-id", "20261116_1"]


def test_sub_agents_are_threads_of_their_session(tmp_path: Path) -> None:
    [session] = sessions_of("tree", tmp_path).values()
    assert session.threads == ["main", "agent:20261118_2", "agent:20261118_3", "agent:20261118_4"]
    assert [len(exchange.turns) for exchange in session.exchanges] == [10, 2]
    assert {call.kind for call in session.tool_calls if call.name == "delegate"} == {"agent"}


def test_sub_agents_know_the_call_that_started_them(tmp_path: Path) -> None:
    [session] = sessions_of("tree", tmp_path).values()
    instructions = {call.id: call.input["instructions"] for call in session.tool_calls if call.name == "delegate"}
    assert [(agent.thread, agent.parent_thread, instructions[agent.tool_use_id]) for agent in session.agents] == [
        ("agent:20261118_2", "main", "Count the lines of file 1"),
        ("agent:20261118_3", "main", "Count the lines of file 2"),
        ("agent:20261118_4", "main", "Count the lines of file 3"),
    ]


def test_a_session_of_one_cut_stream_is_cut(tmp_path: Path) -> None:
    path = recorded_database("goose", "1.52.0/failures", tmp_path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM usage_ledger")
        database.execute("DELETE FROM messages WHERE message_id <> ?", ("chatcmpl-qn4ryStyNHvW3R5ZOp1WxkuiVJSIr",))
    [name] = DATABASES.session_ids(path)
    session = goose.session_of(DATABASES.source_of(path, name))
    assert [(turn.complete, turn.usage) for turn in session.turns] == [(False, None)]
    assert session.exchanges[-1].end_reason == "cut"


def test_a_cut_stream_is_incomplete_and_has_no_usage(tmp_path: Path) -> None:
    [session] = sessions_of("failures", tmp_path).values()
    cut = session.exchanges[1]
    assert [(turn.complete, turn.usage, turn.unread_usage) for turn in cut.turns] == [(False, None, False)]
    assert cut.turns[0].message_id == "chatcmpl-qn4ryStyNHvW3R5ZOp1WxkuiVJSIr"
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "cut", "result", "result", "result"]


def test_a_compaction_costs_its_call_and_repeats_nothing(tmp_path: Path) -> None:
    [session] = sessions_of("compaction", tmp_path).values()
    assert [(it.user_input, len(it.turns)) for it in session.exchanges] == [
        ("Read hello.py", 2),
        ("And then?", 1),
        ("More?", 1),
    ]
    assert [(turn.thread, turn.message_id) for turn in session.side_turns] == [
        ("side", "chatcmpl-v41PaLz17jsEcJTknBnZVrkrOjApA")
    ]
    assert [compaction.tokens_before for compaction in session.compactions] == [10100]


def test_a_fork_counts_what_is_new_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    truth = manifest(DATA / "goose/1.52.0/anthropic").truth
    recorded_database("goose", "1.52.0/anthropic", tmp_path)
    with Catalog.open(tmp_path / "own") as catalog:
        catalog.refresh()
        sessions = {session.id: session for session in catalog.sessions()}
        rows = list(catalog.ledger())
    assert {name: session.usage for name, session in sessions.items()} == {
        name: usage_in(kinds["main"]) for name, kinds in truth.items()
    }
    assert (sessions[FORK].parent, sessions[FORK].exchanges, sessions[FORK].turns) == (MAIN, 1, 1)
    assert sorted((row.session, row.copies, row.joined_by) for row in rows) == [
        (MAIN, 2, "message id"),
        (MAIN, 2, "message id"),
        (FORK, 1, None),
    ]


def test_a_database_is_recognised_under_any_name(tmp_path: Path) -> None:
    path = recorded_database("goose", "1.52.0/tree", tmp_path)
    found = recognise("/x/any.db", path.read_bytes()[:FIRST_BYTES])
    assert found and found.name == "goose"


# ---------------------------------------------------------------- rows


def entries(rows: list[Any]) -> Entries:
    for number, row in enumerate(rows, 1):
        yield JsonEntry(number, 0, row, b"")


def read(*rows: Any) -> SourceFiles:
    return SourceFiles(File("20261118_1", entries(list(rows))))


def message(role: str, content: Any, name: str | None = None, at: int = 1_000, **metadata: Any) -> dict[str, Any]:
    return {
        "table": "messages",
        "message_id": name,
        "role": role,
        "created_timestamp": at,
        "content_json": json.dumps(content).encode(),
        "metadata_json": json.dumps(metadata).encode(),
    }


def said(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def call(given: int, output: int, **more: Any) -> dict[str, Any]:
    return {"table": "usage_ledger", "input_tokens": given, "output_tokens": output, "created_timestamp": 1_000, **more}


SESSION = {"table": "sessions", "id": "20261118_1", "name": "", "working_dir": "/p"}


def test_calls_whose_messages_are_gone_still_count() -> None:
    rows = (SESSION, message("user", said("Go")), call(10, 2), call(20, 3, is_compaction=1))
    session = goose.session_of(read(*rows))
    assert session.usage == Usage(input_tokens=30, output_tokens=5)
    assert [it.usage.output_tokens for it in goose.responses_of(read(*rows)) if it.usage] == [2, 3]
    assert len(session.compactions) == 1


def test_messages_without_usage_get_that_of_the_ledger_in_order() -> None:
    rows = (
        SESSION,
        message("user", said("Go")),
        message("assistant", said("one")),
        message("user", said("On")),
        message("assistant", said("two")),
        call(10, 2, model="m", cost=0.5),
        call(20, 3, model="m"),
    )
    session = goose.session_of(read(*rows))
    assert [turn.usage and turn.usage.output_tokens for turn in session.turns] == [2, 3]
    assert [it.reported_cost_usd for it in goose.responses_of(read(*rows))] == [0.5, None]


def test_usage_without_counts_is_unknown_and_not_zero() -> None:
    rows = (SESSION, message("user", said("Go")), call(1, 1) | {"input_tokens": None, "output_tokens": None})
    assert [it.usage for it in goose.responses_of(read(*rows))] == [None]


def test_notices_of_goose_are_not_turns() -> None:
    own = "msg_1930fe4f-88ff-4861-ade4-64345d8918ea"
    rows = (
        SESSION,
        message("user", said("Go")),
        message("assistant", said("one"), "chatcmpl-1", inference={"provider": "openai"}, usage={"inputTokens": 1}),
        message("assistant", said("Network error"), own),
    )
    assert shown(goose.session_of(read(*rows))) == [("Go", [["one"]])]


VALUES = st.sampled_from([*ODD_VALUES, 1, "user", "assistant"])
PARTS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "toolRequest", "toolResponse", "thinking", "image", "x", None])},
        optional=dict.fromkeys(("text", "thinking", "id", "toolCall", "toolResult"), VALUES),
    ),
    max_size=3,
)
METADATA = st.fixed_dictionaries({}, optional=dict.fromkeys(("userVisible", "inference", "usage"), VALUES))
BYTES = st.sampled_from([b"", b"{", b"null", b"[" * 3_000, b"\0", b"\xff", b'[{"type":"text","text":"\\ud800"}]'])
FIELDS = ("id", "message_id", "created_timestamp", "input_tokens", "output_tokens", "cost", "is_compaction")
TEXTS = ("name", "working_dir", "created_at", "model")
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "table": st.sampled_from(["sessions", "messages", "messages", "usage_ledger", "x", None]),
            "role": st.sampled_from(["user", "assistant", "assistant", None]),
            "content_json": st.one_of(PARTS.map(lambda it: json.dumps(it).encode()), BYTES, VALUES),
            "metadata_json": st.one_of(METADATA.map(lambda it: json.dumps(it).encode()), BYTES, VALUES),
        },
        optional=dict.fromkeys((*FIELDS, *TEXTS), VALUES),
    ),
    max_size=10,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS)
def test_reading_malformed_rows_never_raises(rows: list[Any]) -> None:
    session = goose.session_of(read(*rows))
    responses = list(goose.responses_of(read(*rows)))
    assert total(it.usage for it in responses) == total(turn.usage for turn in session.turns)
    repr(session).encode()
