"""A client's totals beside the responses that witnesses saw: together they are what was billed, whoever is missing."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from time import process_time
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.catalog.ledger.totals import total
from agent_logger.model.not_itemised import Stretch, remainders
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import MAIN, SIDE, ClientTotal, ModelTotal, Usage, Witness
from tests.catalog.rows import unique

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
OPUS, HAIKU = "claude-opus-5-5", "claude-haiku-4-5"


class Response(NamedTuple):
    number: int
    thread: str
    model: str
    usage: Usage


def at(number: int) -> datetime:
    return NOON + timedelta(seconds=10 * number)


def told(it: Response, witness: Witness) -> ModelResponse:
    is_early = witness in ("sdk", "run")
    return ModelResponse(
        family="anthropic",
        message_id=unique(it.number),
        model=it.model,
        usage=replace(it.usage, output_tokens=1) if is_early else it.usage,
        at=at(it.number),
        session="s",
        project=None,
        agent="claude-code",
        thread=it.thread,
        final=not is_early,
        witnesses=frozenset({witness}),
    )


def client_total(exchange: Sequence[Response], seen: Sequence[Response], witness: Witness = "sdk") -> ReportedTotal:
    models = {it.model: Usage() for it in exchange}
    for it in exchange:
        models[it.model] += it.usage
    total = ClientTotal(
        witness=witness,
        models=tuple(ModelTotal(model=name, usage=usage) for name, usage in models.items()),
        started=at(exchange[0].number) - timedelta(seconds=1),
        ended=at(exchange[-1].number) + timedelta(seconds=1),
        message_ids=tuple(unique(it.number) for it in seen),
    )
    return ReportedTotal(session="s", project=None, agent="claude-code", family="anthropic", total=total)


@st.composite
def conversations(draw: st.DrawFn) -> list[list[Response]]:
    number, exchanges = 0, []
    for size in draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)):
        exchange = []
        for place in range(size):
            number += 1
            thread = MAIN if place == 0 else draw(st.sampled_from([MAIN, "agent:a1", SIDE]))
            model = OPUS if thread == MAIN else draw(st.sampled_from([OPUS, HAIKU]))
            counts = draw(st.tuples(*[st.integers(1, 9)] * 4))
            usage = Usage(
                input_tokens=counts[0],
                output_tokens=counts[1],
                cache_read_tokens=counts[2],
                cache_write_tokens=counts[3],
            )
            exchange.append(Response(number, thread, model, usage))
        exchanges.append(exchange)
    return exchanges


def rows(exchanges: list[list[Response]], witnesses: Sequence[str], order: Random) -> list[LedgerRow]:
    """An SDK is told of the main thread and of some of what sub-agents say, and gets results; a transcript has no side
    calls; the wire has everything."""
    responses: list[ModelResponse] = []
    totals: list[ReportedTotal] = []
    every = [it for exchange in exchanges for it in exchange]
    if "wire" in witnesses:
        responses += [told(it, "wire") for it in every]
    if "transcript" in witnesses:
        responses += [told(it, "transcript") for it in every if it.thread != SIDE]
    for witness in ("sdk", "run"):
        if witness in witnesses:
            for exchange in exchanges:
                seen = [it for it in exchange if it.thread == MAIN or (it.thread != SIDE and it.number % 2)]
                responses += [told(it, witness) for it in seen]
                totals.append(client_total(exchange, seen, witness))
    order.shuffle(responses)
    order.shuffle(totals)
    ledger = Ledger()
    ledger.add(responses)
    ledger.add_totals(totals)
    return list(ledger.rows())


SUBSETS = [
    ("wire",), ("sdk",), ("run",), ("sdk", "run"), ("transcript", "sdk"), ("transcript", "run"), ("wire", "sdk"),
    ("wire", "transcript"), ("wire", "transcript", "sdk"), ("wire", "transcript", "sdk", "run"),
]  # fmt: skip


@pytest.mark.parametrize("witnesses", SUBSETS, ids="+".join)
@given(conversations(), st.randoms(use_true_random=False))
def test_total_usage_is_the_billed_usage_for_every_set_of_witnesses(
    witnesses: Sequence[str], exchanges: list[list[Response]], order: Random
) -> None:
    found = rows(exchanges, witnesses, order)
    assert total(found).usage == sum((it.usage for exchange in exchanges for it in exchange), Usage())
    assert sum(row.is_response for row in found) == len({row.message_id for row in found if row.message_id})
    if "wire" in witnesses:
        assert not [row for row in found if row.joined_by == "result"]


TWO = [
    [Response(1, MAIN, OPUS, Usage(input_tokens=5, output_tokens=50))],
    [
        Response(2, MAIN, OPUS, Usage(input_tokens=7, output_tokens=70)),
        Response(3, "agent:a1", OPUS, Usage(input_tokens=3, output_tokens=30)),
    ],
]


def ledger_of(responses: Sequence[ModelResponse], *totals: ReportedTotal) -> list[LedgerRow]:
    ledger = Ledger()
    ledger.add(responses)
    ledger.add_totals(totals)
    return list(ledger.rows())


def test_unseen_usage_is_one_row_per_model() -> None:
    exchange = [*TWO[1], Response(4, SIDE, HAIKU, Usage(input_tokens=2, output_tokens=1))]
    found = ledger_of([told(exchange[0], "sdk")], client_total(exchange, exchange[:1]))
    rest = {row.model: row.usage for row in found if row.joined_by == "result"}
    assert rest == {
        OPUS: Usage(input_tokens=3, output_tokens=99),
        HAIKU: Usage(input_tokens=2, output_tokens=1),
    }
    assert {row.copies for row in found if row.joined_by == "result"} == {0}


def test_a_duplicate_log_counts_once() -> None:
    [exchange] = TWO[1:]
    one = client_total(exchange, exchange[:1])
    assert ledger_of([told(exchange[0], "sdk")] * 2, one, one) != []
    assert total(ledger_of([told(exchange[0], "sdk")] * 2, one, one)).usage.output_tokens == 100


def test_an_exchange_missed_by_other_witnesses_keeps_its_remainder() -> None:
    """The proxy saw the first exchange, and was not there for the second."""
    responses = [told(TWO[0][0], "wire"), told(TWO[0][0], "sdk"), told(TWO[1][0], "sdk")]
    totals = [client_total(TWO[0], TWO[0]), client_total(TWO[1], TWO[1][:1])]
    found = ledger_of(responses, *totals)
    assert total(found).usage == Usage(input_tokens=15, output_tokens=150)


def test_gateway_model_names_do_not_double_the_usage() -> None:
    [exchange] = TWO[1:]
    named = [it._replace(model="us.anthropic.claude-opus-5-5-v1:0") for it in exchange]
    found = ledger_of([told(it, "transcript") for it in exchange], client_total(named, exchange))
    assert total(found).usage == Usage(input_tokens=10, output_tokens=100)


def test_a_reported_total_without_usage_is_counted_as_unpriced() -> None:
    [exchange] = TWO[1:]
    one = client_total(exchange, exchange[:1])
    models = (ModelTotal(model=OPUS, usage=exchange[0].usage), ModelTotal(model=OPUS, usage=None))
    hidden = ReportedTotal(
        session="s",
        project=None,
        agent="claude-code",
        family="anthropic",
        total=replace(one.total, models=models, is_whole=False),
    )
    found = ledger_of([told(exchange[0], "sdk")], hidden)
    assert total(found).unpriced == 1
    assert total(found).usage == exchange[0].usage
    wire = ledger_of([told(it, "wire") for it in exchange], hidden)
    assert (total(wire).unpriced, total(wire).usage.output_tokens) == (0, 100)


def test_a_reported_total_copied_by_a_fork_counts_once() -> None:
    """Claude Code writes what a session took into its file, and a fork begins with what its parent took."""
    hidden = Response(2, SIDE, OPUS, Usage(input_tokens=40, output_tokens=4))
    first, own = TWO[0][0], Response(3, MAIN, OPUS, Usage(input_tokens=6, output_tokens=60))
    parent = client_total([first, hidden], [first], "transcript")
    fork = client_total([first, hidden, own], [first, own], "transcript")
    fork = ReportedTotal(session="f", project=None, agent="claude-code", family="anthropic", total=fork.total)
    copies = [replace(told(it, "transcript"), session="f") for it in (first, own)]
    found = ledger_of([told(first, "transcript"), *copies], parent, fork)
    assert total(found).usage == Usage(input_tokens=51, output_tokens=114)


@pytest.mark.parametrize("are_clocks_apart", [False, True])
def test_ledger_time_grows_linearly_with_the_exchanges(are_clocks_apart: bool) -> None:
    def seconds(exchanges: int) -> float:
        ledger = Ledger()
        shift = timedelta(days=90 if are_clocks_apart else 0)
        for number in range(exchanges):
            seen, missing = (
                Response(2 * number + it, MAIN, OPUS, Usage(input_tokens=10, output_tokens=20)) for it in range(2)
            )
            ledger.add([told(seen, "sdk"), replace(told(missing, "transcript"), at=at(missing.number) + shift)])
            ledger.add_totals([client_total([seen, missing], [seen])])
        started = process_time()
        rows = list(ledger.rows())
        assert len(rows) >= 2 * exchanges
        return process_time() - started

    def best(exchanges: int) -> float:
        return min(seconds(exchanges) for _ in range(3))

    seconds(50)  # what is made once
    assert best(1600) < 9 * max(best(400), 0.01)


@pytest.mark.parametrize(
    ("models", "left"),
    [([OPUS], 1), ([OPUS, OPUS], 0), ([HAIKU], 2), ([HAIKU, OPUS], 1), ([OPUS, OPUS, OPUS], 0)],
)
def test_each_unanswered_request_is_answered_by_one_response_of_its_model(models: list[str], left: int) -> None:
    """Two requests at one moment, and what a proxy saw."""
    requests = [
        ClientTotal(
            witness="transcript",
            models=(ModelTotal(model=OPUS, usage=None),),
            started=at(1) + timedelta(seconds=second),
            ended=at(1) + timedelta(seconds=second),
        )
        for second in range(2)
    ]
    seen = [told(Response(1, MAIN, model, Usage(input_tokens=9)), "wire") for model in models]
    responses = [replace(response, message_id=unique(number)) for number, response in enumerate(seen)]
    rest = remainders([Stretch("s", total) for total in requests], responses)
    assert [(row.model, row.usage) for row in rest] == [(OPUS, None)] * left
