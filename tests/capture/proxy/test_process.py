"""The whole proxy, relay and recorder, where something is scarce."""

import contextlib
import time
from pathlib import Path

from agent_logger.capture.proxy.limits import raise_descriptors
from tests.capture.proxy.process import cpu_seconds, percentile, proxying, wait_until
from tests.capture.proxy.wires import Upstream, Wire, answering, response


def timed(client: Wire, request: bytes, count: int) -> list[float]:
    times = []
    for _ in range(count):
        start = time.monotonic()
        client.send(request)
        client.message()
        times.append(time.monotonic() - start)
    return times


def test_two_thousand_half_requests_do_not_slow_the_others(tmp_path: Path) -> None:
    raise_descriptors()
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        halves = [proxy.client() for _ in range(2000)]
        for half in halves:
            half.send(b"POST /anthropic/")
        with proxy.client() as client:
            times = timed(client, proxy.request(body=b"{}"), 300)
        for half in halves:
            half.close()
        assert percentile(times, 0.99) < 0.1
        assert proxy.stop() == 0
        found = proxy.logged()
    assert sum(name == "./refused" for name in found.logs.values()) == 2000
    assert len(found.requests) == 2300


def test_without_descriptors_connections_are_turned_away_and_nothing_else_happens(tmp_path: Path) -> None:
    with (
        Upstream(answering(response())) as upstream,
        proxying(tmp_path, upstream, files=60) as proxy,
        proxy.client() as first,
    ):
        request = proxy.request(body=b"{}")
        assert timed(first, request, 5)
        crowd = [proxy.client() for _ in range(300)]
        before = cpu_seconds(proxy.relay_pid)
        time.sleep(1.0)
        assert cpu_seconds(proxy.relay_pid) - before < 0.5, "it spins"
        assert percentile(timed(first, request, 50), 0.99) < 0.1
        for client in crowd:
            client.close()

        def served() -> bool:
            with proxy.client() as later, contextlib.suppress(OSError, EOFError):
                later.send(request)
                return later.message().startswith(b"HTTP/1.1 200")
            return False

        wait_until(served)
        assert proxy.stop() == 0
        found = proxy.logged()
    answers = [response for (response,) in found.responses.values()]
    assert sum(bool(it.complete) for it in answers) >= 56
    assert {it.status for it in answers} == {200, 503}
