"""The whole proxy, relay and recorder, where something is scarce."""

import contextlib
import hashlib
import hmac
import itertools
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from agent_logger.home.layout import install_key
from agent_logger.model.records import Gap, Refusals
from agent_logger.proxy.relay.limits import raise_descriptors
from tests.proxy.process import Process, cpu_seconds, peak_bytes, percentile, proxying, wait_until
from tests.proxy.spooling import response_bytes
from tests.proxy.wires import Upstream, Wire, answering, response
from tests.pulse import Pulse

DOORS = ("base-url", "forward")
MB = 1 << 20


def timed(client: Wire, request: bytes, count: int) -> list[float]:
    times = []
    with Pulse() as pulse:
        for _ in range(count):
            start = pulse.now()
            client.send(request)
            client.message()
            times.append(pulse.now() - start)
    return times


@pytest.mark.alone
@pytest.mark.door("base-url")
def test_two_thousand_partial_requests_do_not_slow_other_clients(tmp_path: Path) -> None:
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
    itemised = sum(name == "./refused" for name in found.logs.values())
    assert itemised + sum(it.count for it in found.others if isinstance(it, Refusals)) == 2000
    assert len(found.requests) == 300 + itemised


@pytest.mark.door("base-url")
def test_connections_are_refused_when_file_descriptors_run_out(tmp_path: Path) -> None:
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
        assert max(timed(first, request, 50)) < 0.1
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


# ---------------------------------------------------------------- a slow disk, and none

# As long as there is a file `is-slow` beside it.
SLOW = """
import os, stat, time

def slowly(work):
    def wrapped(fd, *data):
        if stat.S_ISREG(os.fstat(fd).st_mode) and os.path.exists(os.path.dirname(__file__) + "/is-slow"):
            time.sleep(0.5)
        return work(fd, *data)
    return wrapped

os.write, os.writev = slowly(os.write), slowly(os.writev)
"""
EVENTS = 600


def tick(wire: Wire) -> None:
    with contextlib.suppress(OSError, EOFError):
        wire.message()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(EVENTS):
            wire.send(b"6\r\n%05d\n\r\n" % number)
            time.sleep(0.005)
        wire.send(b"0\r\n\r\n")


def gaps(proxy: Process) -> list[float]:
    """Between the chunks of one answer."""
    with Pulse() as pulse, proxy.client() as client:
        client.send(proxy.request(body=b"{}"))
        client.head()
        times = []
        for number in range(EVENTS):
            assert client.take(11) == b"6\r\n%05d\n\r\n" % number
            times.append(pulse.now())
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.alone
@pytest.mark.door("base-url")
def test_a_slow_disk_does_not_delay_a_client(tmp_path: Path) -> None:
    """Measured side by side, for the machine has other work too."""
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    with (
        Upstream(tick) as upstream,
        proxying(tmp_path / "slow", upstream, start_with=tmp_path) as slow,
        proxying(tmp_path / "none", upstream) as none,
        ThreadPoolExecutor() as threads,
    ):
        (is_slow := tmp_path / "is-slow").touch()
        late, usual = threads.map(gaps, [slow, none])
        is_slow.unlink()
        assert percentile(late, 0.99) < 2 * percentile(usual, 0.99) + 0.01
        assert max(late) < 2 * max(usual) + 0.25, "something waited for the disk"
        wait_until(lambda: slow.recorder().calls == 1, 60)
        assert [slow.stop(), none.stop()] == [0, 0]
        for proxy in (slow, none):
            ((answer,),) = proxy.logged().responses.values()
            assert response_bytes(answer) == b"".join(b"%05d\n" % number for number in range(EVENTS))
            # The client leaves after the last event, before or after the end of the body; no event is a dialect's last.
            assert answer.reason in ("client_gone", "no_stream_end")
            assert proxy.recorder().lost == 0


def test_a_full_disk_does_not_affect_clients_and_lost_frames_are_counted(tmp_path: Path, small_disk: Path) -> None:
    body = random.Random(1).randbytes(MB)
    answer = response(body, headers=b"Content-Type: application/octet-stream\r\n")
    with (
        Upstream(answering(answer)) as upstream,
        proxying(tmp_path, upstream, log_dir=small_disk / "logs") as proxy,
    ):

        def call(count: int) -> None:
            for number in range(count):
                with proxy.client() as client:
                    client.send(proxy.request(body=b"%d" % number))
                    assert client.message() == answer

        pids = proxy.relay_pid, proxy.recorder_pid
        call(80)  # more than the disk and the memory hold
        subprocess.run(["mount", "-o", "remount,size=400m", str(small_disk)], check=True)
        wait_until(lambda: proxy.spool().dropped_frames and not proxy.spool().waiting_bytes, 60)
        wait_until(lambda: proxy.recorder().backlog_bytes == 0 and not proxy.recorder().degraded_since, 60)
        call(5)
        assert (proxy.relay_pid, proxy.recorder_pid) == pids
        assert proxy.stop() == 0
        dropped, lost = proxy.spool().dropped_frames, proxy.recorder().lost
        found = proxy.logged()
    whole = [it for (it,) in found.responses.values() if it.complete]
    partial = [it for (it,) in found.responses.values() if not it.complete]
    unknown = [it for it in found.others if isinstance(it, Gap)]
    assert dropped == lost > 0
    assert all(response_bytes(it) == body for it in whole)
    assert {it.reason for it in partial} <= {"dropped"}
    assert sum(gap.lost for gap in unknown) <= lost
    assert len(whole) + len(partial) + len(unknown) >= 85 > len(whole) >= 5


def test_the_spool_leaves_room_for_the_logs_on_a_nearly_full_disk(tmp_path: Path, small_disk: Path) -> None:
    """When there is some room again: what waited in memory must not take all of it before the recorder can write."""
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    body = random.Random(2).randbytes(MB // 8).hex().encode()
    answer = response(body)
    with (
        Upstream(answering(answer)) as upstream,
        proxying(tmp_path, upstream, log_dir=small_disk / "logs") as proxy,
    ):
        wait_until((small_disk / "logs/.spool/recorder.json").exists)
        with (small_disk / "full").open("wb", buffering=0) as other, contextlib.suppress(OSError):
            while other.write(bytes(1 << 12)):
                pass
        for _ in range(40):
            with proxy.client() as client:
                client.send(proxy.request())
                assert client.message() == answer
        (small_disk / "full").unlink()
        wait_until(lambda: proxy.recorder().calls == 40)
        assert proxy.stop() == 0
        found = proxy.logged()
    assert [response_bytes(it) for (it,) in found.responses.values()] == [body] * 40


# ---------------------------------------------------------------- a gigabyte

BLOCK = (b"the quick brown fox jumps over the lazy dog. " * 24_000)[:MB]


def received(wire: Wire, size: int) -> str:
    """The hash of what comes behind a head."""
    digest, left = hashlib.sha256(), size
    data = wire.read[wire.read.index(b"\r\n\r\n") + 4 :]
    while True:
        digest.update(data)
        left -= len(data)
        if not left:
            return digest.hexdigest()
        data = wire.sock.recv(MB)
        assert data


def pour(wire: Wire, blocks: int, per_second: float | None) -> None:
    start = time.monotonic()
    for number in range(blocks):
        wire.send(BLOCK)
        if per_second:
            time.sleep(max(0.0, start + number / per_second - time.monotonic()))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("per_second", [40.0, None])
@pytest.mark.door("base-url")
def test_a_gigabyte_up_and_down_takes_less_than_64_mb_of_memory(tmp_path: Path, per_second: float | None) -> None:
    """At 40 MB/s all of it is in the log. Faster than the disk takes it, what is missing is counted and marked."""
    blocks, uploads = 1024, []

    def play(wire: Wire) -> None:
        wire.head()
        uploads.append(received(wire, blocks * MB))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        wire.send(head % (blocks * MB))
        pour(wire, blocks, per_second)

    with Upstream(play) as upstream, proxying(tmp_path, upstream) as proxy:
        with proxy.client(60) as client:
            processes = proxy.relay_pid, proxy.recorder_pid
            before = [peak_bytes(pid) for pid in processes]
            client.send(proxy.request().replace(b"Length: 0", b"Length: %d" % (blocks * MB)))
            pour(client, blocks, per_second)
            client.head()
            download = received(client, blocks * MB)
        wait_until(lambda: proxy.recorder().calls == 1, 300)
        growth = [peak_bytes(pid) - was for pid, was in zip(processes, before, strict=True)]
        lost = proxy.recorder().lost
        assert proxy.stop() == 0
        records = raw_records(proxy.log_dir)
        key = install_key(proxy.home)
    whole = hashlib.sha256()
    proof = hmac.new(key, digestmod="sha256")
    for _ in range(blocks):
        whole.update(BLOCK)
        proof.update(BLOCK)
    assert uploads == [download] == [whole.hexdigest()]
    assert max(growth) < 64 * MB, growth
    assert (records["response"].get("reason"), lost > 0) in [(None, False), ("dropped", True)]
    if per_second:
        assert lost == 0
    if not lost:
        assert [it["body_hmac"] for it in records.values()] == ["v1:" + proof.hexdigest()] * 2
        assert [it["file_bytes"] for it in records.values()] == [blocks * MB] * 2


def raw_records(log_dir: Path) -> dict[str, dict[str, object]]:
    """The one request and the one response, without what is in files of their own."""
    lines = [line for path in (log_dir / "anthropic").glob("*.jsonl") for line in path.read_bytes().splitlines()]
    found = (msgspec.json.decode(line, type=dict[str, object]) for line in lines)
    return {str(it["type"]): it for it in found if it["type"] in ("request", "response")}
