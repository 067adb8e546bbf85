"""How sessions that were read from our own logs enter the ledger."""

from datetime import UTC, datetime

import pytest

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.session_responses import responses_of_session
from agent_logger.catalog.ledger.totals import total
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Exchange, Session, Turn, Usage, Witness

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
USED = Usage(input_tokens=10, output_tokens=5)
TURN = Turn(message_id="msg_01AbCdEfGhIjKlMnOpQrStUv", usage=USED, started=NOON, witnesses=frozenset({"wire"}))


def session(*turns: Turn, side: tuple[Turn, ...] = (), agent: str | None = "claude-code") -> Session:
    return Session(id="s", agent=agent, project="/p", exchanges=[Exchange(number=1, turns=turns)], side_turns=side)


def test_a_turn_is_a_response() -> None:
    turn = Turn(
        message_id="msg_01AbCdEfGhIjKlMnOpQrStUv",
        request_id="req_1",
        thread="agent:a1",
        model="claude-haiku-4-5",
        service_tier="batch",
        usage=USED,
        started=NOON,
        witnesses=frozenset({"sdk", "wire"}),
        complete=False,
    )
    assert list(responses_of_session(session(turn))) == [
        ModelResponse(
            family="anthropic",
            message_id="msg_01AbCdEfGhIjKlMnOpQrStUv",
            request_id="req_1",
            model="claude-haiku-4-5",
            usage=USED,
            tier="batch",
            at=NOON,
            session="s",
            project="/p",
            agent="claude-code",
            thread="agent:a1",
            final=False,
            reported_cost_usd=None,
            witnesses=frozenset({"wire"}),
        )
    ]


def test_side_calls_are_billed() -> None:
    side = Turn(message_id=None, thread="side", usage=USED)
    assert [it.thread for it in responses_of_session(session(TURN, side=(side,)))] == ["main", "side"]


LEFT_OUT = [
    pytest.param(Turn(message_id="msg_01AbCdEfGhIjKlMnOpQrStUv", complete=False), id="an attempt that was made again"),
    pytest.param(Turn(message_id=None), id="what is not a model's"),
]


@pytest.mark.parametrize("turn", LEFT_OUT)
def test_unbilled_turns_are_left_out(turn: Turn) -> None:
    assert list(responses_of_session(session(turn))) == []


def test_a_turn_without_usage_is_a_response_with_unknown_usage() -> None:
    [row] = responses_of_session(session(Turn(message_id="chatcmpl-1", model="gpt-5")))
    assert (row.usage, row.family) == (None, "openai")


FAMILIES = [
    (Turn(message_id="resp_1", usage=USED), None, "openai"),
    (Turn(message_id="gen-1", usage=USED), None, "openrouter"),
    (Turn(message_id=None, model="models/gemini-2.5-pro", usage=USED), None, "gemini"),
    (Turn(message_id=None, model="mine", usage=USED), "codex", "openai"),
    (Turn(message_id=None, usage=USED), None, "unknown"),
]


@pytest.mark.parametrize(("turn", "agent", "family"), FAMILIES)
def test_the_family_is_derived_from_id_then_model_then_agent(turn: Turn, agent: str | None, family: str) -> None:
    assert [it.family for it in responses_of_session(session(turn, agent=agent))] == [family]


@pytest.mark.parametrize("witness", ["sdk", "run", "hook", "transcript"])
def test_a_response_has_the_witness_of_its_turn(witness: Witness) -> None:
    turn = Turn(message_id=None, usage=USED, ended=NOON, witnesses=frozenset({witness}))
    [row] = responses_of_session(session(turn))
    assert (row.witnesses, row.at) == (frozenset({witness}), NOON)


@pytest.mark.parametrize("copies", [1, 3])
def test_a_session_added_several_times_counts_once(copies: int) -> None:
    ledger = Ledger()
    for _ in range(copies):
        ledger.add(responses_of_session(session(TURN)))
    assert total(ledger.rows()).usage == USED
