"""The captured calls of real clients find their sessions, by name and without."""

from collections.abc import Iterable

import pytest

from agent_logger.proxy.tracking.index import root_of
from tests.proxy.tracking.captures import Capture, captures, replay, runs

TRACKED = ("main", "subagent", "compact")

# Calls under a new name that go on with another session's history, and whose that was. 1.0.3 names no session.
FORKS = {
    ("claude-cli/2.1.325/resume_chain", 4): "656a4701-791f-445e-ba7c-a7a76bed4e5f",
    ("claude-cli/2.1.325/resume_chain", 6): "656a4701-791f-445e-ba7c-a7a76bed4e5f",
    ("claude-cli/2.1.325/forks_go_on", 2): "64c46467-354d-48b5-af25-2116d9ce1d01",
    ("claude-cli/2.1.325/forks_go_on", 5): "59378c67-7b0d-4a1c-94cd-d3739637cb13",
    ("claude-cli/2.1.325/forks_go_on", 7): "64c46467-354d-48b5-af25-2116d9ce1d01",
    ("claude-cli/2.1.197/resume_chain", 6): "9401cd92-c750-4e5e-a161-185afedb8803",
}
# After a compaction nothing of the history is as it was; without the session's name nothing tells whose it is.
MISSED = {("claude-cli/2.1.325/compact_and_slash", 9)}


def goes_on(it: Capture) -> bool:
    """Whether the client sent an answer of the model back."""
    body = it.line["body"]
    if it.truth["kind"] not in TRACKED:
        return False
    units = body.get("messages") or body.get("contents") or body.get("input")
    said = isinstance(units, list) and any(unit.get("role") in ("assistant", "model") for unit in units)
    return said or bool(body.get("previous_response_id"))


@pytest.mark.parametrize("run", runs())
def test_kinds_and_threads_match_the_manifest(run: str) -> None:
    kinds = {"warmup": "side"}
    for it, decision in replay(runs()[run]):
        kind, agent = it.truth["kind"], it.truth["agent_id"]
        thread = f"agent:{agent}" if agent else "main" if kind in TRACKED else "side"
        assert (decision.kind, decision.thread) == (kinds.get(kind, kind), thread), it.place


def test_every_named_call_is_in_the_log_of_its_session() -> None:
    logs: dict[str, set[str]] = {}  # by the client's name
    forks = {}
    for it, decision in replay(captures()):
        if session := it.truth["session_id"]:
            assert decision.session, it.place
            logs.setdefault(session, set()).add(decision.session)
            assert decision.identity.id == session
        if decision.fork and session:
            forks[it.place] = decision.fork.parent
    assert {place: logs[session] for place, session in FORKS.items()} == {
        place: {parent} for place, parent in forks.items()
    }
    assert all(len(names) == 1 for names in logs.values())
    assert len({name for names in logs.values() for name in names}) == len(logs)


def unnamed(calls: Iterable[Capture]) -> tuple[int, list[tuple[str, int]], list[tuple[str, int]]]:
    """How many calls go on with a conversation, which of them were not found, and which were put elsewhere.

    A call is where it belongs if a call of its session is in that log, or in one that was as good: runs with the same
    prompts in the same folder are twins.
    """
    count, missed, wrong = 0, [], []
    owners: dict[str, set[tuple[str, str | None]]] = {}
    for it, decision in replay(calls, named=False):
        if it.truth["kind"] not in TRACKED:
            continue
        assert decision.session
        if goes_on(it):
            count += 1
            session = it.run, FORKS.get(it.place, it.truth["session_id"])
            candidates = decision.identity.candidates or [decision.session]
            if decision.link == "start":
                missed.append(it.place)
            elif not any(session in owners.get(root_of(name), ()) for name in candidates):
                wrong.append(it.place)
        owners.setdefault(root_of(decision.session), set()).add((it.run, it.truth["session_id"]))
    return count, missed, wrong


def test_unnamed_calls_are_matched_within_their_run() -> None:
    found = [unnamed(calls) for calls in runs().values()]
    count = sum(it[0] for it in found)
    missed = [place for it in found for place in it[1]]
    assert [place for it in found for place in it[2]] == []
    assert set(missed) == MISSED
    assert len(missed) <= 0.03 * count


def test_unnamed_calls_of_different_runs_are_not_mixed() -> None:
    count, missed, wrong = unnamed(captures())
    assert wrong == []
    assert set(missed) == MISSED
    assert len(missed) <= 0.05 * count


def test_an_unnamed_first_call_is_a_retry_only_of_a_failed_call() -> None:
    """A first message that was asked in another run, and not answered there, is a retry of it by the rule; any other
    first message begins a session."""
    failed = set()
    for it, decision in replay(captures(), named=False):
        first = it.truth["kind"] in TRACKED and not goes_on(it)
        if first and decision.link != "start":
            assert decision.link == "retry"
            assert decision.fingerprint in failed
        if it.truth["status"] != 200 or not it.truth["complete"]:
            failed.add(decision.fingerprint)
