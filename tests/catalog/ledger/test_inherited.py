"""What came before a fork, beside what clients count that no response tells of."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.metrics import metrics_of
from agent_logger.clock import Clock
from agent_logger.home.facts import register_log_folder
from agent_logger.messages import sdk
from agent_logger.model.session import Session, Usage
from agent_logger.recording.exchanges import Began
from agent_logger.recording.session_writer import SessionWriter
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user

TRUNK, FORK = ID.format(2), ID.format(1)
MODEL = "claude-haiku-4-5"


def usage_of(number: int) -> Usage:
    """As `assistant` has it in a transcript."""
    return Usage(input_tokens=10 + number, output_tokens=100 + number)


def printed_result(session: str, usage: Usage) -> dict[str, Any]:
    counted = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens, "costUSD": 0.1}
    whole = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {
        "type": "result", "subtype": "success", "is_error": False, "session_id": session, "total_cost_usd": 0.1,
        "usage": whole, "modelUsage": {MODEL: counted},
    }  # fmt: skip


def log_exchange(home: Path, session: str, number: int, total: Usage, resumed_from: str | None = None) -> None:
    """As an SDK is told of one exchange at its time: an early usage of its response, and a total at the end."""
    seconds = datetime(2026, 11, 15, 0, 0, number, 1000 * number, tzinfo=UTC).timestamp()
    folder, began = home / "sessions", Began("sdk", "claude-code")
    writer = SessionWriter(folder, resumed_from=resumed_from, began=began, clock=Clock(lambda: seconds))
    inner = {
        "id": f"msg_01{number:022d}",
        "model": MODEL,
        "content": [{"type": "text", "text": "answer"}],
        "usage": {"input_tokens": 10 + number, "output_tokens": 1},
    }
    messages = [
        {"type": "system", "subtype": "init", "session_id": session},
        {"type": "assistant", "session_id": session, "message": inner},
        printed_result(session, total),
    ]
    for message in messages:
        writer.message(sdk.read(json.dumps(message).encode()))
    writer.finish()
    register_log_folder(home / ".agent-logger", folder)


def recorded(home: Path) -> tuple[Usage, Usage]:
    """A trunk and a fork, in transcripts and by an SDK. Return what each took beyond its responses."""
    beyond = Usage(input_tokens=5, output_tokens=50), Usage(input_tokens=3, output_tokens=30)
    begun = [user(1, "one", TRUNK), assistant(2, "a", TRUNK)]
    copied = [{**line, "sessionId": FORK} for line in begun]
    claude_file(home, TRUNK, begun)
    claude_file(home, FORK, [*copied, user(3, "two", FORK), assistant(4, "b", FORK)])
    log_exchange(home, TRUNK, 2, usage_of(2) + beyond[0])
    log_exchange(home, FORK, 4, usage_of(4) + beyond[1], resumed_from=TRUNK)
    return beyond


def session_of(catalog: Catalog, name: str) -> Session:
    session = catalog.session(name)
    assert session
    return session


@pytest.mark.parametrize("has_trunk_transcript", [True, False], ids=["transcripts", "the trunk's log alone"])
def test_the_inherited_cost_of_a_fork_is_the_cost_of_its_inherited_turns(
    home: Path, has_trunk_transcript: bool
) -> None:
    of_trunk, of_fork = recorded(home)
    if not has_trunk_transcript:
        next(home.glob(f".claude/projects/*/{TRUNK}.jsonl")).unlink()
    with Catalog.open(home / ".agent-logger") as catalog:
        spent = {name: total.usage for name, total in catalog.usage("session").items()}
        assert spent == {TRUNK: usage_of(2) + of_trunk, FORK: usage_of(4) + of_fork}
        fork, trunk = session_of(catalog, FORK), session_of(catalog, TRUNK)
        before = fork.inherited
        assert before and (before.turns, before.counted_in) == (1, [TRUNK])
        assert before.usage == usage_of(2)
        inherited_turn = next(turn for turn in fork.turns if turn.counted_in)
        assert inherited_turn.cost and before.cost.nano_usd == inherited_turn.cost.nano_usd
        assert trunk.inherited is None
        assert [row.usage for row in fork.not_itemised] == [of_fork]
        if has_trunk_transcript:
            assert [row.usage for row in trunk.not_itemised] == [of_trunk]


def test_a_failed_attempt_at_the_end_of_an_inherited_exchange_is_inherited(home: Path) -> None:
    failed = {"model": "<synthetic>", "usage": {}}
    begun = [user(1, "one", TRUNK), assistant(2, "a", TRUNK), assistant(3, "API Error", TRUNK, **failed)]
    claude_file(home, TRUNK, begun)
    copied = [{**line, "sessionId": FORK} for line in begun]
    own = [user(4, "two", FORK), assistant(5, "b", FORK), assistant(6, "API Error", FORK, **failed)]
    claude_file(home, FORK, [*copied, *own])
    with Catalog.open(home / ".agent-logger") as catalog:
        catalog.refresh()
        fork = next(session for session in catalog.sessions() if session.id == FORK)
        assert (fork.parent, fork.exchanges, fork.inherited_exchanges, fork.turns) == (TRUNK, 1, 1, 2)


def test_the_tool_calls_of_a_fork_are_those_after_it(home: Path) -> None:
    begun = [user(1, "one", TRUNK), *tool(2, TRUNK, "Bash", {"command": "exit 3"}, "failed", failed=True)]
    begun += [*tool(4, TRUNK, "Read", {"file_path": "/p/shop/a"}, "text"), assistant(6, "a", TRUNK)]
    claude_file(home, TRUNK, begun)
    copied = [{**line, "sessionId": FORK} for line in begun]
    own = [user(7, "two", FORK), *tool(8, FORK, "Bash", {"command": "ls"}, "text"), assistant(10, "b", FORK)]
    claude_file(home, FORK, [*copied, *own])
    with Catalog.open(home / ".agent-logger") as catalog:
        catalog.refresh()
        listed = {session.id: (session.tool_calls, session.errors) for session in catalog.sessions()}
        assert listed == {TRUNK: (2, 1), FORK: (1, 0)}
        claude_file(home, FORK, [user(11, "three", FORK), *tool(12, FORK, "Bash", {"command": "ls"}, "text")])
        catalog.refresh()
        [fork] = (session for session in catalog.sessions() if session.id == FORK)
        assert (fork.tool_calls, fork.errors) == (2, 0)
        tools = metrics_of(session_of(catalog, FORK)).tools
        assert [(use.name, use.calls, use.errors) for use in tools] == [("Bash", 2, 0)]
