"""Hermes' sessions, from recordings of the real client and from rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.hermes import AGENT
from agent_logger.agents.hermes import session as hermes
from agent_logger.agents.hermes.copies import copies_among
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.agents.source_files import Entries, File, SourceFiles
from agent_logger.catalog.catalog import Catalog
from agent_logger.files.sources import FIRST_BYTES
from agent_logger.model.session import Session, SubAgent, Usage
from agent_logger.protocols.jsonl import JsonEntry
from tests.agents.databases.recorded import recorded_database
from tests.agents.foreign import scenarios, shown, total
from tests.agents.recorded import read_home, recording
from tests.hostile import ODD_VALUES

FOLDERS = scenarios("hermes")
IN_FILE = ("main", "subagent", "compact", "side")


def read_all(scenario: str, home: Path) -> dict[str, Session]:
    recorded_database("hermes", f"0.19.0/{scenario}", home)
    return {name: session for name, (session, _) in read_home(AGENT, home).items()}


def read_real(scenario: str, home: Path) -> Session:
    [session] = read_all(scenario, home).values()
    return session


# ---------------------------------------------------------------- recordings


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_tokens_of_all_sessions_are_those_that_the_server_billed(folder: Path, home: Path) -> None:
    sessions = read_all(folder.name, home)
    expected = recording(folder).usage(IN_FILE)
    assert total(session.usage for session in sessions.values()) == expected
    with Catalog.open() as catalog:
        catalog.refresh()
        assert total(row.usage for row in catalog.ledger()) == expected
        assert {session.id for session in catalog.sessions()} == set(sessions)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_response_has_tokens_or_an_id_of_its_own(folder: Path, home: Path) -> None:
    for session in read_all(folder.name, home).values():
        assert all(turn.usage is None and turn.message_id is None and turn.cost is None for turn in session.turns)
        assert all(part.usage for part in session.not_itemised)


def test_a_resumed_session_is_one_conversation(home: Path) -> None:
    session = read_real("tools", home)
    assert shown(session) == [
        (
            "List the files",
            [
                ["I will look.", ">terminal", ">read_file", "<", "<"],
                [">read_file", "<failed"],
                ["Two files; missing.txt is not there."],
            ],
        ),
        ("What is the function called?", [["The function is greet."]]),
    ]
    assert (session.title, session.project) == ("List the files", "/home/user/project")
    assert {turn.model for turn in session.turns} == {"gpt-fake-1"}
    assert resume_command(session.agent, session.id) == ["hermes", "chat", "--resume", "20261116_051103_f60ad2"]


def test_a_failed_tool_is_known_by_its_result(home: Path) -> None:
    calls = read_real("errors", home).tool_calls
    assert {call.name for call in calls if call.is_error} == {"terminal", "patch", "read_file", "no_such_tool"}
    assert [call.is_error for call in calls if call.name == "patch"] == [True, False]
    kinds = {"terminal": "shell", "execute_code": "shell", "patch": "edit", "search_files": "search", "todo": "other"}
    assert {call.name: call.kind for call in calls if call.name in kinds} == kinds


def test_sub_agents_are_threads_of_the_session_that_called_them(home: Path) -> None:
    session = read_real("tree", home)
    [call] = [call for call in session.tool_calls if call.name == "delegate_task"]
    assert call.kind == "agent"
    assert session.agents == [
        SubAgent(
            thread=f"agent:20261119_04174{number}",
            tool_use_id=call.id,
            description=f"Count the lines of file {file}",
        )
        for number, file in (("1_8ec8ab", 1), ("2_ad4c41", 2))
    ]
    assert [len(exchange.turns) for exchange in session.exchanges] == [7, 1]


def test_a_cut_answer_is_incomplete_and_an_unanswered_prompt_stays(home: Path) -> None:
    session = read_real("failures", home)
    assert [exchange.user_input for exchange in session.exchanges] == ["One", "Two", "Three", "Four"]
    assert [[turn.complete for turn in exchange.turns] for exchange in session.exchanges] == [
        [True],
        [False, True],
        [],
        [],
    ]
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "result", "input", None]


def test_a_compaction_repeats_nothing(home: Path) -> None:
    session = read_real("compaction", home)
    assert [(exchange.user_input, len(exchange.turns)) for exchange in session.exchanges] == [
        ("Begin", 2),
        ("More", 1),
        ("More again", 1),
        ("And now?", 1),
        ("Last", 1),
    ]
    assert len(session.compactions) == 1


def test_a_session_that_continues_under_another_id_has_what_is_new(home: Path) -> None:
    new, old = read_all("rotation", home).values()
    assert (new.parent, old.parent) == (old.id, None)
    assert [exchange.user_input for exchange in old.exchanges] == ["Begin", "More", "More again", "And now?"]
    assert [(exchange.user_input, len(exchange.turns)) for exchange in new.exchanges] == [("And now?", 1), ("Last", 1)]
    assert (len(old.compactions), len(new.compactions)) == (0, 1)


def test_a_branch_has_what_came_after_it(home: Path) -> None:
    branch, source = read_all("branch", home).values()
    assert (branch.parent, branch.title, branch.project) == (source.id, "A short title #2", "/home/user/project")
    assert [(exchange.user_input, exchange.left) for exchange in branch.exchanges] == [
        ("Second question", True),
        ("Second question/quit", False),
    ]
    assert [len(exchange.turns) for exchange in source.exchanges] == [2]


def test_thoughts_and_tokens_written_to_the_cache_are_read(home: Path) -> None:
    session = read_real("anthropic", home)
    assert shown(session) == [("List", [["(Let me see.)", "I will look.", ">terminal", "<"], ["Done."]])]
    assert session.usage.cache_write_tokens == 35


def test_a_database_is_recognised_under_any_name(home: Path) -> None:
    path = recorded_database("hermes", "0.19.0/tools", home)
    assert recognise("/x/any.db", path.read_bytes()[:FIRST_BYTES]) is AGENT


# ---------------------------------------------------------------- rows


def entries(rows: list[Any]) -> Entries:
    for number, row in enumerate(rows, 1):
        yield JsonEntry(number, 0, row, b"")


def read(*rows: Any) -> SourceFiles:
    return SourceFiles(File("20261118_101112_abcdef", entries(list(rows))))


SESSION = {"table": "sessions", "id": "20261118_101112_abcdef", "model": "m", "started_at": 1_000.5}


def message(role: str, content: str | None, at: float = 1_001.0, **more: Any) -> dict[str, Any]:
    return {"table": "messages", "role": role, "content": content, "timestamp": at, **more}


def use(model: str, given: int, output: int, task: str = "", calls: int = 1) -> dict[str, Any]:
    counts = {"input_tokens": given, "output_tokens": output, "cache_read_tokens": 0, "cache_write_tokens": 0}
    return {"table": "session_model_usage", "model": model, "task": task, "api_call_count": calls, **counts}


def totals(*rows: Any) -> list[tuple[str | None, tuple[int, int] | None]]:
    session = hermes.session_of(read(*rows))
    _, reported = hermes.billed_of(read(*rows))
    assert [item.total for item in reported] == list(session.totals)
    return [
        (model.model, (model.usage.input_tokens, model.usage.output_tokens) if model.usage else None)
        for whole in session.totals
        for model in whole.models
    ]


def test_a_session_with_several_models_has_a_total_for_each() -> None:
    rows = (SESSION, use("a", 10, 1), use("b", 20, 2), use("b", 5, 1, "title_generation"), message("assistant", "x"))
    assert totals(*rows) == [("a", (10, 1)), ("b", (25, 3))]
    assert [turn.model for turn in hermes.session_of(read(*rows)).turns] == [None]


def test_tokens_that_only_the_row_of_the_session_counts_are_added() -> None:
    row = SESSION | {"input_tokens": 30, "output_tokens": 5, "api_call_count": 3}
    assert totals(row) == [("m", (30, 5))]
    assert totals(row, use("m", 10, 5), use("v", 1, 1, "vision")) == [("m", (30, 5)), ("v", (1, 1))]


def test_calls_without_reported_tokens_are_unknown_and_no_calls_are_nothing() -> None:
    row = SESSION | {"input_tokens": 0, "output_tokens": 0, "api_call_count": 2}
    assert totals(row) == [("m", None)]
    assert totals(row | {"api_call_count": 0}) == []
    assert hermes.session_of(read(row)).usage == Usage()


def test_messages_of_hermes_itself_begin_no_exchange_or_name_their_origin() -> None:
    rows = (
        SESSION,
        message("user", "Go"),
        message("assistant", "one"),
        message("user", "[Your active task list was preserved across context compression]\n- a"),
        message("user", "[ASYNC DELEGATION BATCH COMPLETE — deleg_1]\nDone."),
        message("assistant", "two"),
    )
    session = hermes.session_of(read(*rows))
    assert [(exchange.origin, len(exchange.turns)) for exchange in session.exchanges] == [(None, 1), ("subagent", 1)]


def test_messages_that_the_user_took_back_are_marked_as_left() -> None:
    rows = (
        SESSION,
        message("user", "Wrong", active=0, compacted=0),
        message("assistant", "no", active=0, compacted=0),
        message("user", "Right", active=1),
    )
    assert [exchange.left for exchange in hermes.session_of(read(*rows)).exchanges] == [True, False]


def test_contents_of_several_parts_are_read() -> None:
    parts = "\0json:" + json.dumps([{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {}}])
    session = hermes.session_of(read(SESSION, message("user", parts), message("assistant", "hm", reasoning="I see.")))
    assert shown(session) == [("Look", [["(I see.)", "hm"]])]


SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] ..."


def talk(*texts: str) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [message(roles[number % 2], text, at=1_000.0 + number) for number, text in enumerate(texts)]


def later(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"timestamp": row["timestamp"] + 500} for row in rows]


def test_copies_are_known_by_their_order_and_not_by_their_time() -> None:
    source = talk("a", "1", "b", "2", "a", "3")
    new = [message("user", "a", at=2_000.0)]
    assert copies_among([*later(source), *new], source) == {0, 1, 2, 3, 4, 5}
    assert copies_among([*new, *source]) == set()


def test_each_compaction_of_a_session_begins_a_run_of_copies() -> None:
    first = talk("a", "1", "b", "2")
    summary = message("assistant", SUMMARY, at=3_000.0)
    second = [*later(first[:1]), summary, *later(first[3:]), message("user", "c", at=3_001.0)]
    another = message("assistant", f"{SUMMARY} more", at=4_000.0)
    third = [*later(first[:1]), another, *later(second[3:]), message("assistant", "3", at=4_001.0)]
    rows = [*first, *second, *third]
    assert [row["content"] for number, row in enumerate(rows) if number not in copies_among(rows)] == [
        *("a", "1", "b", "2", SUMMARY, "c", another["content"], "3")
    ]


TEXTS = st.lists(st.sampled_from(["a", "b", "c", SUMMARY]), max_size=8)


@given(TEXTS, TEXTS)
def test_a_new_message_is_never_taken_for_a_copy(old: list[str], new: list[str]) -> None:
    source = talk(*old)
    fresh = [message("user", f"new {text}", at=9_000.0 + number) for number, text in enumerate(new)]
    copies = copies_among([*later(source), *fresh], source)
    assert copies.isdisjoint(range(len(source), len(source) + len(fresh)))


VALUES = st.sampled_from([*ODD_VALUES, 1, 1.5, "user", "assistant", "\0json:[", '{"error":'])
CALLS = st.sampled_from([b"", b"{", b"null", b"[" * 3_000, b'[{"function":{"name":1}}]', b'[{"id":"\\ud800"}]', "x", 7])
FIELDS = ("id", "timestamp", "model", "input_tokens", "output_tokens", "api_call_count", "active", "title", "is_copy")
TEXT_FIELDS = ("content", "tool_call_id", "tool_name", "finish_reason", "reasoning", "last_seen", "task", "cwd")
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "table": st.sampled_from(["sessions", "messages", "messages", "session_model_usage", "x", None]),
            "role": st.sampled_from(["user", "assistant", "assistant", "tool", None]),
            "tool_calls": CALLS,
        },
        optional=dict.fromkeys((*FIELDS, *TEXT_FIELDS), VALUES),
    ),
    max_size=10,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS)
def test_reading_malformed_rows_never_raises(rows: list[Any]) -> None:
    session = hermes.session_of(read(*rows))
    _, reported = hermes.billed_of(read(*rows))
    assert [item.total for item in reported] == list(session.totals)
    repr(session).encode()
