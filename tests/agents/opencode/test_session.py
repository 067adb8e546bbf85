"""opencode's sessions, from a dump of its real database and from rows."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.opencode import session as opencode
from agent_logger.agents.opencode.database import session_ids, source_of
from agent_logger.agents.opencode.output import OUTPUT
from agent_logger.agents.registry import resume_command
from agent_logger.agents.source_files import Entries, File, SourceFiles
from agent_logger.messages.sdk import SdkBlock
from agent_logger.model.session import Session, Usage
from agent_logger.protocols.jsonl import JsonEntry
from tests.agents.foreign import DATA, manifest, shown, total
from tests.hostile import ODD_VALUES

FOLDER = DATA / "opencode/1.18.33/agents_fork"
MAIN, FORK = "ses_e2090ac44ffeRxh9TZzNatan0E", "ses_e209093e4ffebVAVMYwIIYHZLz"
CHILD = "agent:ses_e2090a3a1ffetWAEKGMxCYMYhA"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("opencode") / "opencode.db"
    with closing(sqlite3.connect(path)) as new:
        new.executescript((FOLDER / "opencode.sql").read_text())
    return path


@pytest.fixture
def session(database: Path) -> Session:
    return opencode.session_of(source_of(database, MAIN))


def test_session_usage_matches_the_usage_billed_by_the_server_except_titles(database: Path) -> None:
    truth = manifest(FOLDER).truth
    assert set(session_ids(database)) == truth.keys()
    for name, kinds in truth.items():
        told = opencode.session_of(source_of(database, name))
        side = kinds.pop("side", None)
        assert side is None or side["responses"] == 1  # of the title; only the wire tells of it
        assert len(told.turns) == sum(kind["responses"] for kind in kinds.values())
        assert told.usage == Usage(
            input_tokens=sum(kind["input_tokens"] for kind in kinds.values()),
            output_tokens=sum(kind["output_tokens"] for kind in kinds.values()),
            cache_read_tokens=sum(kind["cache_read_input_tokens"] for kind in kinds.values()),
            cache_write_tokens=sum(kind["cache_creation_input_tokens"] for kind in kinds.values()),
        )


def test_the_conversation_matches_the_scripted_scenario(session: Session) -> None:
    assert shown(session) == [
        (
            '"How many files?"',  # the client quotes what has blanks in it
            [
                ["(A helper should count.)", "I ask a helper.", ">task", "<"],
                ["And I read one that is not there.", ">read", "<failed"],
                ["One file."],
                ["I look.", ">bash", "<"],
                ["There is 1 file."],
            ],
        ),
        ('"And then?"', [["Original goes on."]]),
        ('"Fail please"', []),
        ("After?", [["Summary of the work."]]),
    ]
    assert [(it.complete, it.end_reason) for it in session.exchanges] == [
        (True, "result"),
        (True, "result"),
        (False, "failed"),
        (True, "result"),
    ]


def test_a_session_has_its_title_project_threads_and_times(session: Session) -> None:
    assert (session.agent, session.title, session.project) == (
        "opencode",
        "Fake session title",
        "/home/user/project",
    )
    assert resume_command(session.agent, session.id) == ["opencode", "--session", MAIN]
    assert session.threads == ["main", CHILD]
    assert session.started and session.started.isoformat() == "2026-11-15T13:39:37.531000+00:00"
    task = session.tool_calls[0]
    assert (task.kind, task.input["subagent_type"]) == ("agent", "general")
    assert task.started and task.ended and (task.ended - task.started).total_seconds() == 1.285
    assert session.turns[0].stop_reason == "tool-calls"


def test_a_fork_has_its_own_turns_and_names_its_parent(database: Path) -> None:
    fork = opencode.session_of(source_of(database, FORK))
    assert (fork.parent, shown(fork)) == (MAIN, [('"In a fork?"', [["Forked answer."]])])


def test_a_fork_without_its_parent_keeps_the_copied_turns(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "opencode.db"
    copy.write_bytes(database.read_bytes())
    with closing(sqlite3.connect(copy)) as changed:
        for table, column in (("part", "session_id"), ("message", "session_id"), ("session", "id")):
            changed.execute(f"DELETE FROM {table} WHERE {column} = ?", (MAIN,))
        changed.commit()
    fork = opencode.session_of(source_of(copy, FORK))
    assert (fork.parent, len(fork.turns)) == (None, 4)


@pytest.mark.parametrize("name", [MAIN, FORK])
def test_the_fast_path_yields_the_same_usage(database: Path, name: str) -> None:
    told = opencode.session_of(source_of(database, name))
    turns = sorted(told.turns, key=lambda turn: turn.thread != "main")
    responses = list(opencode.responses_of(source_of(database, name)))
    assert [(it.usage, it.model, it.thread, it.final) for it in responses] == [
        (turn.usage, turn.model, turn.thread, turn.complete) for turn in turns
    ]
    assert {(it.session, it.family, it.message_id, it.reported_cost_usd) for it in responses} == {
        (name, "anthropic", None, None)
    }


# ---------------------------------------------------------------- rows


def entries(rows: list[Any]) -> Entries:
    for number, row in enumerate(rows, 1):
        data = row.get("data") if isinstance(row, dict) else None
        yield JsonEntry(number, 0, row, data if isinstance(data, bytes) else b"")


def row(table: str, name: str, data: Any = None, at: int = 2_000, **more: Any) -> dict[str, Any]:
    return {"table": table, "id": name, "time_created": at, "data": json.dumps(data).encode(), **more}


def user(name: str, *parts: Any, at: int = 2_000) -> list[dict[str, Any]]:
    return message(name, {"role": "user"}, *parts, at=at)


def message(name: str, data: Any, *parts: Any, at: int = 2_000) -> list[dict[str, Any]]:
    told = (row("part", f"{name}{at}", part, message_id=name) for at, part in enumerate(parts))
    return [row("message", name, data, at), *told]


def read(*rows: list[dict[str, Any]]) -> Session:
    return opencode.session_of(rows_source([it for several in rows for it in several]))


def rows_source(rows: list[Any]) -> SourceFiles:
    return SourceFiles(File("ses", entries(rows)))


SESSION = [row("session", "ses", title="T", directory="/p")]
START, TOKENS = (
    {"type": "step-start"},
    {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
)
FINISH = {"type": "step-finish", "reason": "stop", "tokens": TOKENS, "cost": 0.25}
ANSWER = {"role": "assistant", "modelID": "m", "providerID": "google", "time": {"created": 1}}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def test_every_step_is_a_response() -> None:
    rows = [SESSION, message("a", ANSWER, START, said("one"), FINISH, START, said("two"), FINISH)]
    session = read(*rows)
    assert [(turn.message_id, turn.usage and turn.usage.output_tokens) for turn in session.turns] == [
        ("a", 5),
        ("a#2", 5),
    ]
    responses = list(opencode.responses_of(rows_source([it for several in rows for it in several])))
    assert [(it.family, it.reported_cost_usd, it.final) for it in responses] == [("gemini", 0.25, True)] * 2


@pytest.mark.parametrize(("told", "output"), [(15, 5), (12, 2), (0, 5), (None, 5)])
def test_reasoning_tokens_are_counted_once_as_output(told: int | None, output: int) -> None:
    finish = {**FINISH, "tokens": {**TOKENS, "total": told}}
    usage = read(SESSION, message("a", ANSWER, START, said("one"), finish)).usage
    assert usage == Usage(input_tokens=1, output_tokens=output, cache_read_tokens=4, cache_write_tokens=5)


def test_a_step_without_a_finish_part_is_not_complete() -> None:
    session = read(SESSION, user("q", said("Go")), message("a", ANSWER, START, said("on")))
    [turn] = session.turns
    assert (turn.complete, turn.usage) == (False, None)
    assert [(it.complete, it.end_reason) for it in session.exchanges] == [(False, None)]


@pytest.mark.parametrize("kind", ["patch", "snapshot", "retry", "of-next-year"])
def test_bookkeeping_parts_are_not_responses(kind: str) -> None:
    note = {"type": kind, "hash": "0"}
    for place in range(4):
        parts = [START, said("one"), FINISH]
        parts.insert(place, note)
        session = read(SESSION, user("q", said("Go")), message("a", ANSWER, *parts))
        assert [[(it.kind, it.text) for it in turn.blocks] for turn in session.turns] == [[("text", "one")]]


def test_an_aborted_message_is_cut_and_keeps_its_usage() -> None:
    aborted = {**ANSWER, "error": {"name": "MessageAbortedError"}, "tokens": TOKENS}
    session = read(SESSION, user("q", said("Go")), message("a", aborted, START, said("on")))
    assert (session.exchanges[0].end_reason, session.usage.output_tokens) == ("cut", 5)


def test_rows_migrated_later_do_not_extend_the_session() -> None:
    answer = {**ANSWER, "time": {"created": 2_000, "completed": 5_000}}
    parts = [START, said("one", time={"start": 3_000}), said("two"), FINISH]
    rows = message("a", answer, *parts)
    session = read(SESSION, [{**it, "time_created": 9_000_000} if it["table"] == "part" else it for it in rows])
    assert session.ended and session.ended.timestamp() == 5.0
    assert [block.at.timestamp() for block in session.turns[0].blocks if block.at] == [3.0, 5.0]


def test_synthetic_parts_and_compactions_are_not_user_input() -> None:
    session = read(
        SESSION,
        user("q", said("Called the Read tool", synthetic=True), said("Go")),
        user("r", {"type": "compaction", "auto": True}),
    )
    assert [it.user_input for it in session.exchanges] == ["Go"]
    assert [it.trigger for it in session.compactions] == ["auto"]


def test_a_running_tool_has_no_result() -> None:
    tool = {
        "type": "tool",
        "tool": "bash",
        "callID": "c",
        "state": {"status": "running", "input": {"command": "ls"}},
    }
    [call] = read(SESSION, message("a", ANSWER, START, tool)).tool_calls
    assert (call.name, call.kind, call.result) == ("bash", "shell", None)


@pytest.mark.parametrize(("code", "failed"), [(0, False), (3, True), (-1, True), (None, False), ("1", False)])
def test_a_command_fails_with_its_exit_code(code: object, failed: bool) -> None:
    state = {"status": "completed", "input": {"command": "ls x"}, "output": "?", "metadata": {"exit": code}}
    tool = {"type": "tool", "tool": "bash", "callID": "c", "state": state}
    [call] = read(SESSION, message("a", ANSWER, START, tool)).tool_calls
    assert (call.result, call.is_error) == ("?", failed)
    line = {"type": "tool_use", "sessionID": "ses", "part": tool}
    _, printed = OUTPUT().read(json.dumps(line).encode())
    assert printed.inner
    assert [block.is_error for block in printed.inner.content if isinstance(block, SdkBlock)] == [failed]


REAL = [
    json.loads(part[part.index(",'{") + 2 :].removesuffix("');").replace("''", "'"))
    for part in (FOLDER / "opencode.sql").read_text().split("\n")
    if part.startswith(('INSERT INTO "part"', 'INSERT INTO "message"'))
]
VALUES = st.sampled_from([*ODD_VALUES, *REAL])
DATA_OF_ROWS = st.one_of(
    st.sampled_from(REAL).map(lambda it: json.dumps(it).encode()),
    st.builds(
        lambda it, key, value: json.dumps({**it, key: value}).encode(),
        st.sampled_from(REAL),
        st.sampled_from(["type", "role", "state", "tokens", "time", "error", "text", "cost", "cache"]),
        VALUES,
    ),
    st.sampled_from([b"", b"{", b"null", b'{"type":"text","text":"\\ud800"}', b"[" * 3_000, b"\0", b"\xff"]),
    st.sampled_from([None, 5, "text"]),
)
NAMES = st.sampled_from(["a", "b", "", None, 5])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "table": st.sampled_from(["session", "message", "part", "part", "x", None]),
            "id": NAMES,
            "message_id": NAMES,
            "time_created": st.sampled_from([1, 2, 1 << 70, -1, None, "x", float("nan"), float("inf")]),
            "data": DATA_OF_ROWS,
            "forked_from": st.sampled_from([None, "f", 5]),
        }
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS)
def test_reading_malformed_rows_never_raises(rows: list[Any]) -> None:
    session = opencode.session_of(rows_source(rows))
    responses = list(opencode.responses_of(rows_source(rows)))
    assert total(it.usage for it in responses) == total(turn.usage for turn in session.turns)
    repr(session).encode()
