"""Every response once, whoever saw it and in whatever order that is told."""

import random
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Cost, Usage, Witness
from tests.catalog.rows import NOON, at, response, row_of, rows_of, unique

LOOSE = "chatcmpl-7"


def output(rows: Iterable[LedgerRow]) -> int:
    return sum(row.usage.output_tokens for row in rows if row.usage)


# ---------------------------------------------------------------- known by their id


COPIES = [
    pytest.param({"session": "two"}, id="a fork"),
    pytest.param({"session": "two", "at": at(60)}, id="a fork with times of its own"),
    pytest.param({"witness": "wire", "at": at(-3)}, id="on the wire"),
    pytest.param({"witness": "sdk"}, id="in an SDK's log"),
    pytest.param({"request_id": "req_011111111111"}, id="with a request id"),
    pytest.param({"thread": "agent:a1", "request_id": "req_022222222222"}, id="replayed in a side thread"),
    pytest.param({"family": "unknown"}, id="of a family that is not known"),
    pytest.param({}, id="the same once more"),
]


@pytest.mark.parametrize("other", COPIES)
def test_a_copy_counts_once(other: dict[str, object]) -> None:
    row = row_of(response(request_id="req_000000000000"), response(**other))
    assert (row.copies, row.joined_by, row.usage) == (2, "message id", response().usage)


IDS = [
    "msg_01AbCdEfGhIjKlMnOpQrStUv",
    "msg_bdrk_01AbCdEfGhIjKlMnOpQrStUv",
    "msg_vrtx_01AbCdEfGhIjKlMnOpQrStUv",
    "msg_017eb337e840fb8282e574fe07",
    "chatcmpl-BkL3nVq8rXkP0sTz9YwA1bC2dE3fG",
    "chatcmpl-0b8c1e9e-4d0f-4a2b-9c43-7b0e8f1a2d3c",
    "resp_68af4030b5e88194a0c9d2a6f1e3b7d5",
    "gen-1752000000-AbCdEfGhIjKlMnOpQrSt",
]


@pytest.mark.parametrize("message_id", IDS)
def test_provider_message_ids_are_unique(message_id: str) -> None:
    assert len(rows_of(response(message_id=message_id), response(message_id=message_id, at=at(1)))) == 1


def test_gemini_ids_are_unique_without_a_prefix() -> None:
    said = {"family": "gemini", "message_id": "Ny6LaIiTEYqxxN8P9bOp2Qc"}
    assert len(rows_of(response(**said), response(**said, at=at(1)))) == 1
    assert len(rows_of(response(message_id="Ny6LaIiTEYqxxN8P9bOp2Qc"), response(**said, at=at(1)))) == 2


def test_the_final_copy_counts_with_the_earliest_time() -> None:
    begun = response(usage=Usage(input_tokens=1000, output_tokens=1), final=False, at=at(-5))
    whole = response(usage=Usage(input_tokens=1000, output_tokens=400), at=at(2), tier="batch")
    more = response(usage=Usage(input_tokens=1000, output_tokens=900), final=False)  # says more, but was cut
    row = row_of(whole, more, begun)
    assert (row.usage, row.at, row.partial, row.tier) == (whole.usage, at(-5), False, "batch")
    assert row_of(begun, more).usage == more.usage


def test_the_larger_usage_of_two_final_copies_counts() -> None:
    """The SDK's messages carry the usage that a response began with."""
    first = response(usage=Usage(input_tokens=1000, output_tokens=1), witness="sdk")
    assert row_of(first, response()).usage == row_of(response(), first).usage == response().usage


def test_a_response_belongs_to_its_earliest_session_and_the_main_thread() -> None:
    replay = response(thread="agent:a1", session="0")
    fork = response(session="0", at=at(5), project="/fork")
    row = row_of(replay, fork, response())
    assert (row.thread, row.session, row.project) == ("main", "one", "/home/user/project")


def test_fields_missing_in_one_witness_come_from_another() -> None:
    wire = response(witness="wire", project=None, agent="unknown", tier="standard", at=at(-1))
    alone = response(message_id=unique(2), witness="wire", project=None, agent="", at=at(9))
    rows = rows_of(wire, response(tier=None), alone)
    assert {(row.project, row.agent) for row in rows} == {("/home/user/project", "claude-code")}
    assert [row.tier for row in rows if row.copies == 2] == ["standard"]


def test_a_response_cut_off_in_all_copies_is_partial() -> None:
    row = row_of(response(final=False), response(final=False, witness="wire"))
    assert row.partial
    assert "cut off" in row.why


def test_synthetic_messages_are_not_responses() -> None:
    assert rows_of(response(model="<synthetic>")) == []


def test_subagent_responses_are_counted() -> None:
    others = [response(message_id=unique(n), thread=f"agent:{n}") for n in range(3)]
    assert output(rows_of(response(), *others)) == 400


def test_the_cost_reported_by_the_client_is_stored_beside_the_computed_cost() -> None:
    row = row_of(response(reported_cost_usd=0.25), response(witness="wire"))
    assert (row.reported_cost_usd, row.cost.nano_usd) == (0.25, 1_500_000)


# ---------------------------------------------------------------- counted per call


def moment(number: int, times: str) -> datetime | None:
    return {"apart": at(number), "equal": NOON}.get(times)


@pytest.mark.parametrize("times", ["apart", "equal", "none"])
def test_each_call_counts_when_a_server_repeats_message_ids(times: str) -> None:
    calls = [response(message_id=f"chatcmpl-{n % 999}", family="openai", at=moment(n, times)) for n in range(2000)]
    rows = rows_of(*calls)
    assert len(rows) == 2000
    assert output(rows) == 200_000
    assert {row.joined_by for row in rows} == {None}


def test_responses_without_an_id_copied_by_a_fork_count_once() -> None:
    calls = [response(message_id=LOOSE, at=at(n // 2)) for n in range(10)]  # two at a time
    fork = [response(message_id=LOOSE, at=at(n // 2), session="two") for n in range(6)]
    rows = rows_of(*calls, *fork, response(message_id=LOOSE, at=at(99), session="two"))
    assert len(rows) == 11
    assert Counter(row.joined_by for row in rows) == {"time": 6, None: 5}


def test_responses_without_id_and_time_are_not_copies() -> None:
    calls = [response(message_id=LOOSE, at=None, session=session) for session in ("one", "two")]
    assert len(rows_of(*calls)) == 2


NOT_A_COPY = [
    {"at": at(0.001)},
    {"usage": Usage(input_tokens=1000, output_tokens=101)},
    {"model": "claude-opus-4-5"},
    {"message_id": "chatcmpl-8"},
    {"message_id": None},
    {"thread": "agent:a1"},
]


@pytest.mark.parametrize("other", NOT_A_COPY, ids=str)
def test_responses_without_an_id_that_differ_are_separate(other: dict[str, object]) -> None:
    first = response(message_id=LOOSE)
    assert len(rows_of(first, response(**{"message_id": LOOSE, "session": "two", **other}))) == 2


def test_a_request_id_makes_any_id_unique() -> None:
    said = {"message_id": LOOSE, "request_id": "8f14e45fceea167a"}
    row = row_of(response(**said), response(**said, at=at(3), session="two"))
    assert (row.copies, row.joined_by) == (2, "request id")
    assert len(rows_of(response(**said), response(message_id=LOOSE, request_id="c9f0f895fb98ab91"))) == 2
    counted = {"message_id": LOOSE, "request_id": "17"}
    assert len(rows_of(response(**counted), response(**counted, at=at(3)))) == 2


# ---------------------------------------------------------------- joined by order


def wire(**said: object) -> ModelResponse:
    return response(**{"witness": "wire", "project": None, **said})


def test_responses_of_two_witnesses_without_an_id_are_joined_by_order() -> None:
    transcript = [response(message_id=None, at=at(n * 10)) for n in range(3)]
    seen = [wire(message_id=f"resp_{9 - n:032x}", at=at(n * 10 - 1), family="openai") for n in range(3)]
    rows = rows_of(*transcript, *seen)
    assert [row.joined_by for row in rows] == ["order"] * 3
    assert {row.witnesses for row in rows} == {frozenset({"wire", "transcript"})}
    assert {row.message_id: row.at for row in rows} == {it.message_id: it.at for it in seen}


def test_a_witness_that_started_late_is_joined_to_the_last_responses() -> None:
    transcript = [response(message_id=None, at=at(n)) for n in range(5)]
    assert Counter(row.joined_by for row in rows_of(*transcript, wire(at=at(3)), wire(at=at(4), message_id=LOOSE))) == {
        "order": 2,
        None: 3,
    }


def test_model_aliases_are_treated_as_the_same_model() -> None:
    assert len(rows_of(response(message_id=None), wire(model="claude-haiku-4-5-20251001"))) == 1
    assert len(rows_of(response(message_id=None, model="mine"), wire(model="mine-2"))) == 2


NOT_BY_ORDER = [
    pytest.param({"session": "two"}, id="another session"),
    pytest.param({"model": "claude-opus-4-5"}, id="another model"),
    pytest.param({"usage": Usage(input_tokens=1000, output_tokens=101)}, id="other tokens"),
    pytest.param({"message_id": unique(2)}, id="an id of its own"),
    pytest.param({"witness": "transcript", "message_id": LOOSE}, id="the same witness"),
]


@pytest.mark.parametrize("other", NOT_BY_ORDER)
def test_responses_with_different_properties_are_not_joined_by_order(other: dict[str, object]) -> None:
    elsewhere = wire(message_id=unique(9), usage=Usage(input_tokens=5))  # so that two witnesses saw this session
    assert len(rows_of(response(), wire(**{"message_id": None, **other}), elsewhere)) == 3


def test_responses_with_empty_usage_are_not_joined_by_order() -> None:
    empty = {"message_id": None, "usage": Usage()}
    assert len(rows_of(response(**empty), wire(**empty))) == 2


@pytest.mark.timeout(20)  # seconds; looking at every pair takes a minute
def test_many_equal_responses_are_paired_quickly() -> None:
    calls = [maker(message_id=LOOSE, at=at(n)) for n in range(30_000) for maker in (response, wire)]
    assert len(rows_of(*calls)) == 30_000


# ---------------------------------------------------------------- what a row says


def test_a_row_explains_why_it_is_counted() -> None:
    assert row_of(response()).why == "seen once (transcript); counted once"
    fork = row_of(response(), response(session="two"), wire())
    assert fork.why == "seen by 3 sources (transcript, wire), matched by message id; counted once"
    unknown = row_of(response(model="mine", final=False)).why
    assert unknown == "seen once (transcript); cut off, counted as far as it got; cost unknown: unknown model"


def test_an_unknown_cost_has_a_reason() -> None:
    assert row_of(response(model="mine")).cost == Cost(nano_usd=None, reason="unknown model")
    assert row_of(response(model=None)).cost == Cost(nano_usd=None, reason="no model")
    assert row_of(response(usage=None)).cost == Cost(nano_usd=None, reason="no usage")
    assert row_of(response(tier="priority")).cost == Cost(nano_usd=None, reason="no price for tier")


def test_the_price_is_that_of_the_earliest_copy() -> None:
    o3 = {"model": "o3", "message_id": "resp_" + "a" * 32}
    early, late = datetime(2025, 5, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
    assert row_of(response(**o3, at=late), response(**o3, at=early)).cost == row_of(response(**o3, at=early)).cost
    assert row_of(response(**o3, at=early)).cost != row_of(response(**o3, at=late)).cost


ODD = [
    {"usage": Usage(input_tokens=2**70)},
    {"usage": Usage(output_tokens=-(2**70))},
    {"at": datetime(1, 1, 1, tzinfo=UTC)},
    {"at": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)},
    {"at": datetime(2026, 1, 1)},  # noqa: DTZ001
    {"session": "", "project": "", "agent": "", "thread": "", "model": "\ud800"},
    {"message_id": "\0" * 30},
    {"reported_cost_usd": float("nan")},
]


@pytest.mark.parametrize("said", ODD, ids=str)
@pytest.mark.parametrize("message_id", [unique(1), None])
def test_responses_with_odd_values_are_counted(said: dict[str, object], message_id: str | None) -> None:
    row = row_of(response(**{"message_id": message_id, **said}))
    assert row.why


def test_impossibly_large_token_counts_are_unknown_usage() -> None:
    assert row_of(response(usage=Usage(input_tokens=2**70))).cost.reason == "no usage"


# ---------------------------------------------------------------- any order, any portions

WITNESS: list[Witness] = ["wire", "transcript", "sdk"]

responses = st.builds(
    response,
    family=st.sampled_from(["anthropic", "gemini"]),
    message_id=st.sampled_from([None, LOOSE, "chatcmpl-8", unique(1), unique(2), "Ny6LaIiTEYqxxN8P9bOp2Qc"]),
    request_id=st.sampled_from([None, "req_0000000001", "req_0000000002", "7"]),
    model=st.sampled_from([None, "claude-haiku-4-5", "claude-haiku-4-5-20251001", "mine", "<synthetic>"]),
    usage=st.one_of(st.none(), st.builds(Usage, input_tokens=st.integers(0, 1), output_tokens=st.integers(0, 2))),
    tier=st.sampled_from([None, "batch"]),
    at=st.sampled_from([None, at(0), at(0.001), at(1)]),
    session=st.sampled_from(["one", "two", "three"]),
    project=st.sampled_from([None, "/a", "/b"]),
    agent=st.sampled_from(["", "claude-code", "codex"]),
    thread=st.sampled_from(["main", "agent:a1"]),
    final=st.booleans(),
    reported_cost_usd=st.sampled_from([None, 0.5]),
    witness=st.sampled_from(WITNESS),
)


def told(rows: Iterable[LedgerRow]) -> list[str]:
    return sorted(map(repr, rows))


copies = responses.map(lambda it: replace(it, message_id=unique(1), model="claude-haiku-4-5"))


@settings(max_examples=400, deadline=None)
@given(
    st.lists(responses, max_size=14) | st.lists(copies, max_size=5),
    st.randoms(use_true_random=False),
    st.integers(1, 5),
)
def test_a_ledger_does_not_depend_on_the_order_of_its_rows(
    all_: list[ModelResponse], rng: random.Random, size: int
) -> None:
    at_once, shuffled, ledger = told(rows_of(*all_)), all_.copy(), Ledger()
    rng.shuffle(shuffled)
    for start in range(0, len(shuffled), size):
        ledger.add(shuffled[start : start + size])
        list(ledger.rows())  # asking changes nothing
    assert told(ledger.rows()) == at_once


@settings(max_examples=100, deadline=None)
@given(st.lists(responses, max_size=14))
def test_every_row_comes_from_recorded_responses(all_: list[ModelResponse]) -> None:
    real = [it for it in all_ if it.model != "<synthetic>"]
    rows = rows_of(*all_)
    assert sum(row.copies for row in rows) == len(real)
    assert {row.usage for row in rows} <= {it.usage for it in real}
    assert not any((row.copies > 1) != bool(row.joined_by) for row in rows)
