"""Forks and sub-agents as a tree."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import SessionSummary
from agent_logger.catalog.tree import AgentNode, Details, SessionNode, agents_of, branches_of, tree
from agent_logger.formats.claude_code.session import session_of
from agent_logger.session import Cost, Exchange, Session, SubAgent, Turn, Usage
from tests.formats.claude_files import fixture
from tests.formats.foreign import DATA
from tests.store.wire_logs import calls, fork, own, start, write

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def summary(name: str, parent: str | None = None, minute: int = 0) -> SessionSummary:
    return SessionSummary(
        id=name,
        agent="claude-code",
        project=None,
        title=f"title of {name}",
        models=(),
        started=NOON + timedelta(minutes=minute),
        ended=None,
        exchanges=1,
        turns=1,
        tool_calls=0,
        errors=0,
        active_seconds=None,
        usage=Usage(output_tokens=7),
        cost=Cost(nano_usd=10**9),
        reported_cost_usd=None,
        context_tokens=None,
        peak_context_tokens=None,
        witnesses=frozenset(),
        parent=parent,
        live=False,
        paths=(),
    )


def built(asked: str, *sessions: SessionSummary) -> SessionNode | None:
    known = {it.id: it for it in sessions}
    details = Details(known.get, lambda _: None, lambda _: ())
    return tree(asked, {it.id: it.parent for it in sessions}, details)


Shape = tuple[str, list["Shape"]]


def shape(node: SessionNode | None) -> Shape:
    assert node
    return node.id + ("*" if node.asked else ""), [shape(it) for it in node.forks]


SESSIONS = (
    summary("a"),
    summary("late", "a", 9),
    summary("early", "a", 3),
    summary("below", "late", 10),
    summary("other"),
    summary("orphan", "gone"),
)


def test_forks_are_under_what_they_are_of_whoever_is_asked_for() -> None:
    assert shape(built("a", *SESSIONS)) == ("a*", [("early", []), ("late", [("below", [])])])
    assert shape(built("below", *SESSIONS)) == ("a", [("early", []), ("late", [("below*", [])])])
    assert shape(built("other", *SESSIONS)) == ("other*", [])
    assert shape(built("orphan", *SESSIONS)) == ("orphan*", [])
    assert built("nothing", *SESSIONS) is None


def test_files_that_say_they_come_from_each_other_are_no_circle() -> None:
    assert shape(built("a", summary("a", "b"), summary("b", "a", 1))) in (
        ("a*", [("b", [])]),
        ("b", [("a*", [])]),
    )
    assert shape(built("a", summary("a", "a"))) == ("a*", [])


def test_only_the_tree_is_read() -> None:
    asked: list[str] = []

    def read(name: str) -> None:
        asked.append(name)

    tree("a", {it.id: it.parent for it in SESSIONS}, Details(summary, read, lambda _: ()))
    assert sorted(asked) == ["a", "below", "early", "late"]


def names(nodes: list[AgentNode]) -> list[Shape]:
    return [(it.thread, names(list(it.agents))) for it in nodes]


def test_sub_agents_of_a_real_session_nest_as_they_were_started() -> None:
    [source] = fixture("claude-cli/2.1.325/nested_subagents").sources()
    session = session_of(source)
    [outer] = agents_of(session)
    [inner] = outer.agents
    assert {outer.thread, inner.thread} | {"main"} == set(session.threads)
    assert inner.agents == []
    total = sum(it.usage.output_tokens for it in session.turns if it.thread == inner.thread and it.usage)
    assert (inner.turns, inner.output_tokens) == (
        sum(it.thread == inner.thread for it in session.turns),
        total,
    )
    assert inner.cost_usd


def test_agents_that_nobody_tells_of_but_their_turns_are_there_and_none_twice() -> None:
    turns = [Turn(message_id=f"m{it}", thread=f"agent:{it}", usage=Usage(output_tokens=1)) for it in "abcd"]
    told = [
        SubAgent(thread="agent:b", parent_thread="agent:c"),  # these two say they started each other
        SubAgent(thread="agent:c", parent_thread="agent:b"),
        SubAgent(thread="agent:d", parent_thread="agent:nobody"),
    ]
    session = Session(id="s", exchanges=[Exchange(number=1, turns=turns)], agents=told)
    found = str(names(agents_of(session)))
    assert [found.count(f"agent:{it}") for it in "abcd"] == [1, 1, 1, 1]


FORKED = [
    ("claude-cli/2.1.325/resume_chain", ".claude"),
    ("codex/0.166.0/tools_fork_failure", ".codex"),
    ("codex/0.166.0/app_server", ".codex"),
]


@pytest.mark.parametrize(("scenario", "folder"), FORKED)
def test_forks_of_real_clients_are_under_their_session(home: Path, scenario: str, folder: str) -> None:
    shutil.copytree(DATA / scenario / "home" / folder, home / folder)
    with Catalog.open(home / ".agent-logger") as catalog:
        ids = [it.id for it in catalog.sessions()]
        told = {it: catalog.tree(it) for it in ids}
    with Catalog.open(home / "another") as fresh:  # that nobody has asked anything yet
        assert fresh.tree(ids[0]) == told[ids[0]]
    roots = {it.id for it in told.values() if it}
    below = {fork.id for it in told.values() if it for fork in it.forks}
    assert below
    assert not roots & below
    assert roots | below == set(ids)


def test_branches_of_a_session_are_named(tmp_path: Path) -> None:
    first = write(tmp_path, "log", [start("log"), *calls(1, 2)])
    second = write(tmp_path, "log_b1", own("log_b1", "log", 1, 3))
    lost = write(tmp_path, "log_b2", [start("log_b2"), fork("gone", 1), *calls(3)])
    found = branches_of([first, second, second, lost])
    assert [(it.log, it.parent, it.from_call) for it in found] == [("log_b1", "log", 1)]
