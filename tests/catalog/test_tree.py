"""Forks and sub-agents as a tree."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript.session import session_of
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import SessionSummary
from agent_logger.catalog.tree import AgentNode, SessionNode, TreeDetails, agents_of, branches_of, tree
from agent_logger.home.facts import register_log_folder
from agent_logger.model.session import Cost, Exchange, Session, SubAgent, Turn, Usage
from tests.agents.claude_code.claude_files import fixture
from tests.agents.foreign import DATA
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.journal.wire_logs import calls, fork, own, start, write
from tests.logs.wire_log.wire_records import talks

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
    details = TreeDetails(known.get, lambda _: None, lambda _: ())
    return tree(asked, {it.id: it.parent for it in sessions}, details)


Shape = tuple[str, list["Shape"]]


def shape(node: SessionNode | None) -> Shape:
    assert node
    return node.id + ("*" if node.is_selected else ""), [shape(it) for it in node.forks]


SESSIONS = (
    summary("a"),
    summary("late", "a", 9),
    summary("early", "a", 3),
    summary("below", "late", 10),
    summary("other"),
    summary("orphan", "gone"),
)


def test_forks_are_placed_under_their_parent_for_any_requested_session() -> None:
    assert shape(built("a", *SESSIONS)) == ("a*", [("early", []), ("late", [("below", [])])])
    assert shape(built("below", *SESSIONS)) == ("a", [("early", []), ("late", [("below*", [])])])
    assert shape(built("other", *SESSIONS)) == ("other*", [])
    assert shape(built("orphan", *SESSIONS)) == ("orphan*", [])
    assert built("nothing", *SESSIONS) is None


def test_sessions_that_are_each_others_parent_do_not_form_a_cycle() -> None:
    assert shape(built("a", summary("a", "b"), summary("b", "a", 1))) in (
        ("a*", [("b", [])]),
        ("b", [("a*", [])]),
    )
    assert shape(built("a", summary("a", "a"))) == ("a*", [])


def test_only_sessions_of_the_tree_are_read() -> None:
    asked: list[str] = []

    def read(name: str) -> None:
        asked.append(name)

    tree("a", {it.id: it.parent for it in SESSIONS}, TreeDetails(summary, read, lambda _: ()))
    assert sorted(asked) == ["a", "below", "early", "late"]


def names(nodes: list[AgentNode]) -> list[Shape]:
    return [(it.thread, names(list(it.agents))) for it in nodes]


def test_subagents_of_a_real_session_are_nested_as_started() -> None:
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


def test_each_subagent_appears_once_even_if_only_its_turns_name_it() -> None:
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
def test_forks_of_real_clients_are_placed_under_their_session(home: Path, scenario: str, folder: str) -> None:
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


# Of the fixture, in the order in which the sessions began.
TRUNK, FORK, FORK_OF_FORK, SECOND_FORK = "64c46467", "59378c67", "c67b7cc2", "82dbfdb3"
WENT_ON: Shape = (TRUNK, [(FORK, [(FORK_OF_FORK, [])]), (SECOND_FORK, [])])


def trees_of(home: Path) -> list[Shape]:
    """As each of the sessions that are there prints it."""

    def short(node: SessionNode) -> Shape:
        return node.id[:8], [short(it) for it in node.forks]

    with Catalog.open(home / ".agent-logger") as catalog:
        return [short(node) for it in catalog.sessions() if (node := catalog.tree(it.id))]


def test_a_trunk_and_its_forks_are_distinguished_when_all_continue(home: Path) -> None:
    shutil.copytree(DATA / "claude-cli/2.1.325/forks_go_on/home/.claude", home / ".claude")
    assert trees_of(home) == [WENT_ON] * 4


def test_an_unanswered_fork_is_not_the_parent_of_its_trunk(home: Path) -> None:
    shutil.copytree(DATA / "claude-cli/2.1.325/forks_go_on/home/.claude", home / ".claude")
    for path in home.glob(".claude/projects/*/*.jsonl"):
        lines = path.read_text().splitlines(keepends=True)
        prompt = next((at for at, line in enumerate(lines) if '"role":"user","content":"Fork"' in line), None)
        if path.name.startswith(FORK):
            path.write_text("".join(lines[:prompt]))
        elif not path.name.startswith(TRUNK):
            path.unlink()
    assert trees_of(home) == [(TRUNK, [(FORK, [])])] * 2


def copied(lines: Sequence[dict[str, Any]], session: str, **more: Any) -> list[dict[str, Any]]:
    return [{**it, "sessionId": session, **more} for it in lines]


NOTE = {"type": "last-prompt", "lastPrompt": "x", "leafUuid": "u"}


def test_a_fork_with_unchanged_times_is_recognised_by_lines_it_did_not_copy(home: Path) -> None:
    trunk, fork = ID.format(2), ID.format(1)
    shared = [user(1, "one", trunk), assistant(2, "a", trunk)]
    claude_file(home, trunk, [*shared, NOTE, user(9, "trunk", trunk), assistant(10, "c", trunk), NOTE])
    claude_file(home, fork, [*copied(shared, fork), user(5, "fork", fork), assistant(6, "d", fork), NOTE])
    assert trees_of(home) == [(trunk[:8], [(fork[:8], [])])] * 2


def test_a_copied_response_counts_for_the_session_it_was_copied_from(home: Path) -> None:
    """A copy of a copy, too; all of them at the same time, and the first session has the last name."""
    trunk, fork, second = ID.format(3), ID.format(2), ID.format(1)
    shared = [user(1, "one", trunk), assistant(2, "a", trunk)]
    own = [user(5, "fork", fork), assistant(6, "d", fork)]
    claude_file(home, trunk, [*shared, NOTE, user(9, "trunk", trunk), assistant(10, "c", trunk), NOTE])
    claude_file(home, fork, [*copied(shared, fork), *own, NOTE])
    claude_file(home, second, [*copied([*shared, *own], second), user(7, "second", second), assistant(8, "e", second)])
    with Catalog.open(home / ".agent-logger") as catalog:
        counted = {int((row.message_id or "")[6:]): row.session for row in catalog.ledger()}
    assert counted == {2: trunk, 10: trunk, 6: fork, 8: second}


def test_a_fork_of_a_branch_has_the_branch_as_parent_although_it_names_the_trunk(home: Path) -> None:
    """`/branch` writes into each line where it was copied from, and `--fork-session` copies that too."""
    trunk, branch, fork = ID.format(3), ID.format(2), ID.format(1)
    named = {"forkedFrom": {"sessionId": trunk, "messageUuid": "u"}}
    shared = [user(1, "one", trunk), assistant(2, "a", trunk)]
    own = [user(5, "branch", branch), assistant(6, "b", branch)]
    claude_file(home, trunk, [*shared, NOTE, user(3, "trunk", trunk), assistant(4, "c", trunk)])
    claude_file(home, branch, [*copied(shared, branch, **named), NOTE, *own, NOTE])
    queued = {"type": "queue-operation", "timestamp": user(50, "", "")["timestamp"], "sessionId": fork}
    claude_file(home, fork, [queued, *copied(shared, fork, **named), *copied(own, fork), user(51, "x", fork)])
    claude_file(home, fork, [assistant(52, "d", fork)])
    claude_file(home, branch, [user(60, "on", branch), assistant(61, "e", branch)])
    names = trunk[:8], branch[:8], fork[:8]
    with Catalog.open(home / ".agent-logger") as catalog:
        parents = {it.id[:8]: (it.parent or "")[:8] for it in catalog.sessions()}
    assert parents == {names[0]: "", names[1]: names[0], names[2]: names[1]}


def test_the_wire_log_takes_precedence_in_deciding_the_parent_of_a_fork(home: Path) -> None:
    """The log of one names the other's; that is not a fork of the first, whatever its file looks like."""
    shutil.copytree(DATA / "claude-cli/2.1.325/forks_go_on/home/.claude", home / ".claude")
    kept = {TRUNK: "later", SECOND_FORK: "first"}  # against the files
    spoken = {it.client_id[:8]: it for it in talks() if it.name.endswith("forks_go_on") and it.client_id}
    for name, log in kept.items():
        begins, *records = spoken[name].records()
        fork_record = [fork("first", 1)] if log == "later" else []
        renamed = replace(begins, session=log)
        write(home / "logs/anthropic", log, [renamed, *fork_record, *records])
    register_log_folder(home / ".agent-logger", home / "logs")
    with Catalog.open(home / ".agent-logger") as catalog:
        parents = {it.id[:8]: it.parent and it.parent[:8] for it in catalog.sessions()}
        spent = catalog.usage("session")
    assert (parents[SECOND_FORK], parents[TRUNK]) == (None, SECOND_FORK)
    assert {tree[0] for tree in trees_of(home)} == {SECOND_FORK}
    assert sum(it.responses for it in spent.values()) == 9


def test_sessions_that_name_each_other_as_parents_form_one_tree(home: Path) -> None:
    one, two = ID.format(1), ID.format(2)
    for name, other, at in ((one, two, 1), (two, one, 5)):
        lines = [user(at, "x", name), assistant(at + 1, "y", name)]
        named = {"forkedFrom": {"sessionId": other, "messageUuid": "u"}}
        claude_file(home, name, copied(lines, name, **named))
    with Catalog.open(home / ".agent-logger") as catalog:
        parents = {it.id: it.parent for it in catalog.sessions()}
    assert parents in ({one: None, two: one}, {one: two, two: None})


def test_branches_of_a_session_are_listed_with_their_parent(tmp_path: Path) -> None:
    first = write(tmp_path, "log", [start("log"), *calls(1, 2)])
    second = write(tmp_path, "log_b1", own("log_b1", "log", 1, 3))
    lost = write(tmp_path, "log_b2", [start("log_b2"), fork("gone", 1), *calls(3)])
    found = branches_of([first, second, second, lost])
    assert [(it.log, it.parent, it.from_call) for it in found] == [("log_b1", "log", 1)]


@pytest.mark.parametrize("earlier", [1, 2])
def test_of_two_files_of_a_session_the_one_that_began_first_names_the_parent(home: Path, earlier: int) -> None:
    fork = ID.format(3)
    for parent in (1, 2):
        name = ID.format(parent)
        claude_file(home, name, [user(parent, "x", name), assistant(parent, "y", name)], f"-p-{parent}")
        named = {"forkedFrom": {"sessionId": name, "messageUuid": "u"}}
        at = 20 if parent == earlier else 40
        lines = [user(at + parent, "x", fork), assistant(at + parent, "y", fork)]
        claude_file(home, fork, copied(lines, fork, **named), f"-p-{parent}")
    with Catalog.open(home / ".agent-logger") as catalog:
        assert {it.id: it.parent for it in catalog.sessions()}[fork] == ID.format(earlier)
