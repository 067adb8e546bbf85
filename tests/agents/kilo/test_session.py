"""Kilo's sessions, from recordings of the real client."""

from pathlib import Path

import pytest

from agent_logger.agents.kilo import session as kilo
from agent_logger.agents.kilo.database import DATABASES
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import SessionSummary
from agent_logger.files.sources import FIRST_BYTES
from agent_logger.model.session import Session, Usage
from tests.agents.databases.recorded import recorded_database
from tests.agents.foreign import DATA, manifest, shown, total

TREE = "7.7.9/tree"
MAIN, CHILD, FORK = (
    "ses_e0fdd7e13ffesgR5gwMH3GQWLB",
    "ses_e0fdd45cfffehwpTB1LfsaSGwC",
    "ses_e0fdd1eebffeIiLE02bPQEuy9O",
)


def usage_in(counts: dict[str, int]) -> Usage:
    return Usage(
        input_tokens=counts["input"],
        output_tokens=counts["output"],
        cache_read_tokens=counts["cache_read"],
        cache_write_tokens=counts["cache_write"],
    )


def sessions_of(scenario: str, home: Path) -> dict[str, Session]:
    path = recorded_database("kilo", scenario, home)
    return {name: kilo.session_of(DATABASES.source_of(path, name)) for name in DATABASES.session_ids(path)}


@pytest.mark.parametrize("scenario", ["compaction", "costs", "failures"])
def test_session_usage_matches_the_usage_billed_by_the_server(scenario: str, tmp_path: Path) -> None:
    [(name, session)] = sessions_of(f"7.7.9/{scenario}", tmp_path).items()
    kinds = manifest(DATA / "kilo/7.7.9" / scenario).truth[name]
    assert session.usage == total(usage_in(kind) for kind in kinds.values())
    assert sum(turn.usage is not None for turn in session.turns) == sum(kind["responses"] for kind in kinds.values())


@pytest.mark.parametrize("scenario", ["tools", "tree", "compaction", "costs", "failures"])
def test_the_fast_path_yields_the_same_usage(scenario: str, tmp_path: Path) -> None:
    path = recorded_database("kilo", f"7.7.9/{scenario}", tmp_path)
    for name in DATABASES.session_ids(path):
        turns = kilo.session_of(DATABASES.source_of(path, name)).turns
        responses = list(kilo.responses_of(DATABASES.source_of(path, name)))
        assert sorted((it.thread, it.at, it.usage.counts) for it in responses if it.at and it.usage) == sorted(
            (turn.thread, turn.started, turn.usage.counts) for turn in turns if turn.started and turn.usage
        )


def test_rows_that_are_only_in_the_log_are_read(tmp_path: Path) -> None:
    [session] = sessions_of("7.7.9/tools", tmp_path).values()
    assert session.usage == Usage(input_tokens=3739, output_tokens=579, cache_read_tokens=14848)
    assert [exchange.user_input for exchange in session.exchanges] == [
        '"List the files"',
        '"What is the function called?"',
    ]
    assert [(call.name, call.is_error) for call in session.tool_calls] == [
        ("bash", False),
        ("read", False),
        ("read", True),
    ]
    assert (session.title, session.project) == ('"List the files"', "/home/user/project")
    assert resume_command(session.agent, session.id) == ["kilo", "--session", session.id]


def test_a_sub_agent_is_a_thread_of_its_session(tmp_path: Path) -> None:
    session = sessions_of(TREE, tmp_path)[MAIN]
    assert session.threads == ["main", f"agent:{CHILD}"]
    assert [(call.name, call.kind) for call in session.tool_calls if call.name == "task"] == [("task", "agent")]


def test_a_sub_agent_knows_the_call_that_started_it_also_in_a_fork(tmp_path: Path) -> None:
    sessions = sessions_of(TREE, tmp_path)
    for name in (MAIN, FORK):
        [task] = (call for call in sessions[name].tool_calls if call.name == "task")
        [agent] = sessions[name].agents
        assert (agent.thread, agent.parent_thread, agent.tool_use_id) == (f"agent:{CHILD}", "main", task.id)
        assert (agent.kind, agent.description) == ("general", "Count lines")


def test_a_cut_stream_ends_its_exchange_and_keeps_its_text(tmp_path: Path) -> None:
    [session] = sessions_of("7.7.9/failures", tmp_path).values()
    assert shown(session) == [
        ("First?", [["After the error."]]),
        ("Cut?", [["This is cut in "]]),
        ("Refused?", [["Whole again."]]),
        ("After?", []),
    ]
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "failed", "result", "failed"]


def test_a_compaction_is_no_user_input(tmp_path: Path) -> None:
    [session] = sessions_of("7.7.9/compaction", tmp_path).values()
    assert [exchange.user_input for exchange in session.exchanges] == ['"Read hello.py"', '"And then?"']
    assert [compaction.trigger for compaction in session.compactions] == ["auto"]


def test_costs_of_models_with_prices_are_reported(tmp_path: Path) -> None:
    path = recorded_database("kilo", "7.7.9/costs", tmp_path)
    [name] = DATABASES.session_ids(path)
    responses = list(kilo.responses_of(DATABASES.source_of(path, name)))
    assert [it.reported_cost_usd for it in responses] == [0.00155, 0.0016]
    assert [it.usage.output_tokens for it in responses if it.usage] == [100, 50]  # with reasoning


def test_a_database_is_recognised_under_any_name(tmp_path: Path) -> None:
    """opencode's has the same tables, but for one."""
    path = recorded_database("kilo", "7.7.9/tools", tmp_path)
    found = recognise("/x/any.db", path.read_bytes()[:FIRST_BYTES])
    assert found is None or found.name == "kilo"
    found = recognise(path.as_posix(), path.read_bytes()[:FIRST_BYTES])
    assert found and found.name == "kilo"


# ---------------------------------------------------------------- forks


@pytest.fixture
def catalog_sessions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, SessionSummary]:
    monkeypatch.setenv("HOME", str(tmp_path))
    recorded_database("kilo", TREE, tmp_path)
    with Catalog.open(tmp_path / "own") as catalog:
        catalog.refresh()
        return {session.id: session for session in catalog.sessions()}


def test_a_fork_counts_what_is_new_in_it(catalog_sessions: dict[str, SessionSummary]) -> None:
    truth = manifest(DATA / "kilo" / TREE).truth
    assert catalog_sessions.keys() == {MAIN, FORK}
    main, fork = catalog_sessions[MAIN], catalog_sessions[FORK]
    assert main.usage == total(map(usage_in, (truth[MAIN]["main"], truth[CHILD]["subagent"])))
    assert fork.usage == usage_in(truth[FORK]["main"])
    assert (fork.parent, fork.exchanges, fork.inherited_exchanges, fork.turns) == (MAIN, 1, 1, 1)
    assert (main.parent, main.exchanges, main.turns) == (None, 2, 5)


def test_copies_in_a_fork_are_marked_as_matched_by_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalog_sessions: dict[str, SessionSummary]
) -> None:
    with Catalog.open(tmp_path / "own") as catalog:
        rows = list(catalog.ledger())
        fork = catalog.session(FORK)
    assert sorted((row.session == MAIN, row.copies, row.joined_by) for row in rows) == [
        (False, 1, None),
        (True, 1, None),
        *[(True, 2, "time")] * 4,
    ]
    assert fork and [turn.counted_in for turn in fork.turns] == [MAIN] * 4 + [None]
