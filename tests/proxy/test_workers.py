"""Orders to a worker: what becomes of the next one when one fails."""

import asyncio
import io
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from agent_logger.proxy import workers
from agent_logger.proxy.forward.traffic import RunTraffic
from agent_logger.proxy.recorder import pipe
from agent_logger.proxy.relay.relay import Relay


@pytest.mark.parametrize("error", [TimeoutError("the loop is busy"), RuntimeError("the loop is closed")])
def test_an_order_that_was_not_carried_out_in_time_is_answered_and_the_next_one_is_taken(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    results: Iterator[Exception | RunTraffic] = iter([error, RunTraffic(calls=7)])

    def in_loop(_loop: object, _work: object) -> RunTraffic:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    orders = b"".join(pipe.message(workers._Order(number=number, token="alr_x")) for number in (1, 2))
    reports: list[workers._WorkerReport] = []
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(orders)))
    monkeypatch.setattr("agent_logger.proxy.relay_process.in_loop", in_loop)
    monkeypatch.setattr(workers, "_report", reports.append)
    workers._take_orders(cast("Relay", None), cast("asyncio.AbstractEventLoop", None))
    assert [(report.done, report.traffic.calls) for report in reports] == [(1, 0), (2, 7)]
