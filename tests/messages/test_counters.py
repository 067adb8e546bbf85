"""What of a client's counters one exchange added."""

from typing import Any

import pytest

from agent_logger.messages.counters import Counters, Share, Work, counters_of, share
from agent_logger.messages.sdk import ReportedUsage, Result


def models(tokens: int, *, basis: bool = True) -> dict[str, dict[str, Any]]:
    return {"m": {"inputTokens": tokens, "costUSD": tokens / 10, **({"costBasis": "list"} if basis else {})}}


def result(counted: int, usage: int, *, basis: bool = True, since: int | None = None) -> Result:
    return Result(
        total_cost_usd=counted / 10,
        duration_api_ms=counted,
        usage=ReportedUsage(input_tokens=usage),
        model_usage=models(counted, basis=basis),
        model_usage_since_last_result=None if since is None else models(since),
    )


def before(counted: int, *, heard: bool) -> Counters:
    return Counters(counted / 10, counted, models(counted), heard)


CASES = [
    pytest.param(result(10, 10), None, False, 10, id="the first result"),
    pytest.param(result(15, 7), None, False, None, id="more than usage, and nothing explains it"),
    pytest.param(result(15, 7, basis=False), None, False, None, id="the same, of an older client"),
    pytest.param(result(30, 20), before(10, heard=True), False, 20, id="the second"),
    pytest.param(result(30, 20), before(10, heard=False), False, 20, id="the second, in a new process"),
    pytest.param(result(20, 20), before(10, heard=True), False, 20, id="an older client, a process each"),
    pytest.param(result(20, 20), before(10, heard=False), False, 20, id="the same, in a new process"),
    pytest.param(result(80, 40, basis=False), before(10, heard=False), False, 80, id="with side calls"),
    pytest.param(result(12, 12), before(100, heard=False), False, 12, id="a kill took the counters"),
    pytest.param(result(20, 20), before(10, heard=True), False, 20, id="usage alone says they began anew"),
    pytest.param(result(40, 20), before(30, heard=True), False, 10, id="usage counts a failed attempt"),
    pytest.param(result(30, 20), before(30, heard=True), False, 0, id="two results of one work"),
    pytest.param(result(30, 5, since=8), before(99, heard=True), False, 8, id="the client says it"),
    pytest.param(result(10, 10), None, True, 10, id="a fork that began to count"),
    pytest.param(result(40, 10), None, True, None, id="a fork of an unknown session"),
]


@pytest.mark.parametrize(("now", "was", "goes_on", "tokens"), CASES)
def test_share_computes_the_tokens_and_cost_of_one_exchange(
    now: Result, was: Counters | None, goes_on: bool, tokens: int | None
) -> None:
    found = share(now, was, goes_on=goes_on)
    if tokens is None:
        assert found == Share(None, None, None, inherited=True)
        return
    assert found.cost_usd == pytest.approx(tokens / 10)
    assert Counters(models=found.models or {}).tokens[0] == tokens
    assert not found.inherited


def test_counters_above_usage_belong_to_the_exchange_when_sub_agents_ran() -> None:
    found = share(result(15, 7), None, work=Work(has_agents=True))
    assert (found.cost_usd, found.cost_from) == (1.5, "own")


def test_clients_without_per_model_counters_use_differences_within_a_process() -> None:
    now, was = Result(total_cost_usd=3, duration_api_ms=30), Counters(1, 10)
    assert share(now, was) == Share(2, 20, None, "difference")
    assert share(now, Counters(1, 10, heard=False)) == Share(3, 30, None, "own")
    assert share(Result(total_cost_usd=1), was) == Share(0, None, None, "difference")
    assert share(Result(), None) == Share(None, None, None)


def test_a_run_cost_reported_beside_the_session_total_is_used() -> None:
    now = Result(cost_usd=0.05, total_cost=0.12)
    assert share(now, None) == share(now, Counters(0.07)) == Share(0.05, None, None, "own")
    assert counters_of(now).cost_usd == 0.12
    one = Result(cost_usd=0.12, total_cost=0.12)
    assert share(one, Counters(0.07)) == Share(0.05, None, None, "difference")
