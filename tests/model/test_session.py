from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger import Block, Cost, Exchange, Session, Turn, Usage
from agent_logger.model.session import ToolKind, tool_kind

T1, T2 = datetime(2026, 11, 15, 8, tzinfo=UTC), datetime(2026, 11, 15, 9, tzinfo=UTC)


def usage(n: int) -> Usage:
    return Usage(input_tokens=n, output_tokens=2 * n, cache_read_tokens=3 * n, cache_write_tokens=4 * n)


def turn(message_id: str | None, n: int = 1, thread: str = "main", *blocks: Block) -> Turn:
    return Turn(
        message_id=message_id,
        thread=thread,
        usage=usage(n),
        cost=Cost(nano_usd=n, price_date="2026-11-01"),
        blocks=blocks,
        witnesses=frozenset({"transcript"}),
    )


SESSION = Session(
    id="1f320356",
    agent="claude-code",
    exchanges=[
        Exchange(number=1, turns=[turn("a", 1), turn("sub", 2, "agent:x")]),
        Exchange(number=2, turns=[turn("b", 5), turn("c", 4)]),
    ],
    side_turns=[turn("title", 10, "side")],
)


def test_session_usage_and_cost_include_sub_agents_and_side_calls() -> None:
    assert SESSION.usage == usage(1 + 2 + 5 + 4 + 10)
    assert SESSION.cost == Cost(nano_usd=22, price_date="2026-11-01")


def test_a_copied_response_counts_once() -> None:
    copied = Exchange(number=3, turns=[turn("a", 1), turn("b", 5)])
    session = Session(id="x", exchanges=[*SESSION.exchanges, copied])
    assert session.usage == usage(1 + 2 + 5 + 4)


def test_responses_without_an_id_count_separately() -> None:
    assert Exchange(number=1, turns=[turn(None, 1), turn(None, 1)]).usage == usage(2)


def test_context_tokens_are_the_last_and_the_largest_request_of_the_main_thread() -> None:
    assert SESSION.context_tokens == usage(4).context_tokens == 32
    assert SESSION.peak_context_tokens == usage(5).context_tokens == 40


def test_a_session_without_turns_has_no_context_size_and_no_cost() -> None:
    empty = Session(id="x")
    assert (empty.context_tokens, empty.peak_context_tokens, empty.cost.nano_usd) == (None, None, None)
    assert (empty.usage, empty.threads, empty.witnesses) == (Usage(), [], frozenset())


def test_session_threads_and_witnesses_come_from_its_turns() -> None:
    assert SESSION.threads == ["main", "agent:x", "side"]
    assert SESSION.witnesses == {"transcript"}


def test_unknown_prices_are_counted_and_not_treated_as_zero() -> None:
    known, unknown = Cost(nano_usd=5), Cost(nano_usd=None, reason="no price for made-up-1")
    total = Cost.total([known, unknown, unknown])
    assert (total.nano_usd, total.unpriced, total.reason) == (5, 2, "no price for made-up-1")
    assert Cost.total([unknown]).usd is None
    assert Cost.total([total, known, Cost.total([])]).unpriced == 2
    assert Cost.total([known]).usd == 5e-9


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_cost_totals_are_exact(amounts: list[int]) -> None:
    assert Cost.total(Cost(nano_usd=it) for it in amounts).nano_usd == sum(amounts)


def test_usage_values_can_be_subtracted() -> None:
    assert usage(5) - usage(3) == usage(2)


def test_a_tool_call_combines_a_tool_use_with_its_result() -> None:
    use = Block(kind="tool_use", id="t1", name="Bash", input={"command": "ls"}, at=T1)
    result = Block(kind="tool_result", id="t1", text="poem.md", is_error=True, at=T2)
    [call] = turn("a", 1, "main", use, result).tool_calls
    assert (call.name, call.kind, call.result, call.is_error) == ("Bash", "shell", "poem.md", True)
    assert (call.started, call.ended, call.thread) == (T1, T2, "main")


def test_unmatched_tool_uses_and_tool_results_are_listed() -> None:
    use = Block(kind="tool_use", id="t1", name="Read", input={})
    orphan = Block(kind="tool_result", id="t2", text="late")
    nameless = Block(kind="tool_result", text="nameless")
    calls = turn("a", 1, "main", use, orphan, nameless).tool_calls
    assert [(call.id, call.name, call.result) for call in calls] == [
        ("t1", "Read", None),
        ("t2", None, "late"),
        (None, None, "nameless"),
    ]


def test_session_files_are_the_paths_in_tool_inputs() -> None:
    blocks = [
        Block(kind="tool_use", id="1", name="Write", input={"file_path": "/a"}),
        Block(kind="tool_use", id="2", name="Read", input={"file_path": "/b"}),
        Block(kind="tool_use", id="3", name="Read", input={"file_path": "/a"}),
        Block(kind="tool_use", id="4", name="Bash", input="not an object"),
    ]
    session = Session(id="x", exchanges=[Exchange(number=1, turns=[turn("a", 1, "main", *blocks)])])
    assert session.files == ["/a", "/b"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Read", "read"),
        ("Agent", "agent"),
        ("apply_patch", "edit"),
        ("mcp__x__y", "mcp"),
        ("Made-up", "other"),
    ],
)
def test_tool_kind_classifies_tools_by_name(name: str, kind: ToolKind) -> None:
    assert tool_kind(name) == kind
