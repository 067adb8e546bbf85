"""What sessions, exchanges and turns say that they cost, whoever told of them, is what the ledger counts."""

from functools import cache

import pytest

from agent_logger.agents.claude_code.transcript import session as claude_code
from agent_logger.agents.registry import readable_agent
from agent_logger.catalog.ledger.metrics import metrics_of
from agent_logger.logs.wire_log import session as wire_log
from agent_logger.model.prices import price
from agent_logger.model.session import SYNTHETIC, Cost, Session
from tests.agents.claude_code.claude_files import fixtures
from tests.agents.foreign import DATA, source
from tests.logs.wire_log.wire_records import talks

TOLD_BY = ["wire", "claude-code", "codex", "gemini-cli"]


@cache
def sessions(told_by: str) -> list[Session]:
    """The real sessions of `tests/data`; models that do not exist have the names of such that have a price."""
    if told_by == "wire":
        return [wire_log.session_of(it.records()) for it in talks()]
    if told_by == "claude-code":
        return [claude_code.session_of(it) for fixture in fixtures() for it in fixture.sources()]
    form = readable_agent(told_by)
    assert form
    paths = sorted(DATA.glob(f"{told_by}/*/*/home/**/*-20*.jsonl"))
    files = [(it.name, it.read_bytes().replace(b"gpt-fake-1", b"gpt-5-codex")) for it in paths]
    return [form.session_of(source(data, name=name)) for name, data in files]


@pytest.mark.parametrize("told_by", TOLD_BY)
def test_the_session_cost_matches_the_ledger(told_by: str) -> None:
    for session in sessions(told_by):
        counted = metrics_of(session).cost
        assert (session.cost.nano_usd, session.cost.unpriced) == (counted.nano_usd, counted.unpriced)
    assert any(session.cost.nano_usd for session in sessions(told_by))


def test_the_exchange_cost_is_the_sum_of_its_turns_at_their_own_prices() -> None:
    for session in (it for told_by in TOLD_BY for it in sessions(told_by)):
        for exchange in session.exchanges:
            billed = [turn for turn in exchange.turns if turn.usage]
            costs = [price(it.usage, it.model, it.started, it.service_tier) for it in billed if it.usage]
            assert [turn.cost for turn in billed] == costs
            if len({turn.message_id for turn in billed}) == len(billed):
                assert exchange.cost.nano_usd == Cost.total(costs).nano_usd


def test_synthetic_turns_have_no_cost() -> None:
    turns = [turn for session in sessions("claude-code") for turn in session.turns]
    assert {turn.cost for turn in turns if turn.model == SYNTHETIC} == {None}
