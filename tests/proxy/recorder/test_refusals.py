"""Refused requests: what is kept of one, how many are told one by one, and that all are counted."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model import records
from agent_logger.model.records import Refusals, Request
from agent_logger.proxy.recorder.calls.refusals import MOST_HEAD_BYTES
from agent_logger.proxy.relay import refusals
from agent_logger.proxy.relay.masks import Credentials
from agent_logger.proxy.spool import frames
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.spooling import Logged, Relay, logged, now, record
from tests.proxy.wires import KEY, Upstream, answering, response


def refuse(proxy: Process, head: bytes) -> bytes:
    with contextlib.suppress(ConnectionResetError), proxy.client() as client:
        client.send(head)
        return client.rest()
    return b""


def one_by_one(found: Logged) -> list[Request]:
    return [it for call, (it,) in found.requests.items() if found.logs[call] == "./refused"]


def counted(found: Logged) -> int:
    return sum(it.count for it in found.others if isinstance(it, Refusals))


def status(proxy: Process) -> dict[str, object]:
    (report,) = json.loads(proxy.command("status", "--json"))
    assert isinstance(report, dict)
    return report


HEADS = [
    pytest.param(b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 60_000), id="a long path"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: %b\r\n\r\n" % (b"b" * 60_000), id="a long field"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 9000 + b"\r\n", id="many fields"),
    pytest.param(b"%b /x HTTP/1.1\r\nHost: x\r\n\r\n" % (b"M" * 60_000), id="a long method"),
    pytest.param(b"GET /\x01%b HTTP/1.1\nHost: x\n\n" % (b"\x02" * 60_000), id="no HTTP"),
    pytest.param(b"\x16\x03\x01" + bytes(range(256)) * 300, id="bytes"),
    pytest.param(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n", id="an old version"),
]


@pytest.mark.parametrize("head", HEADS)
def test_the_first_kilobyte_of_a_refused_request_is_recorded_once(tmp_path: Path, head: bytes) -> None:
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        refuse(proxy, head)
        with proxy.client() as left:  # in the middle of a head that never ends
            left.send(head[:-2] if len(head) < 1000 else head[:50_000])
        wait_until(lambda: status(proxy)["refused"] == 2)
        assert proxy.stop() == 0
        found = one_by_one(proxy.logged())
    assert len(found) == 2
    for request in found:
        text = "".join([request.path, *(request.head or ()), *map(str, request.headers.items())])
        assert len(text) <= MOST_HEAD_BYTES + 200
        assert len(records.encode(request)) < 6 * MOST_HEAD_BYTES + 1000
        long = len(head) > MOST_HEAD_BYTES
        assert bool(request.head_bytes) == long
        start = head[: head.index(b"\n")].rstrip(b"\r") if b"\n" in head else head
        said = request.head[0] if request.head else f"{request.method} {request.path}".lstrip()
        assert said.encode("latin-1")[:80] == (start if request.head else start.removesuffix(b" HTTP/1.1"))[:80]


SECRETS = [b"Authorization: Bearer " + KEY, b"x-note: " + KEY, b"x-api-key: " + KEY]


@pytest.mark.parametrize("line", SECRETS)
def test_a_key_at_the_cut_of_a_refused_head_is_in_no_file(tmp_path: Path, line: bytes) -> None:
    """Wherever the two cuts are, the relay's and the recorder's."""
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        for cut in (MOST_HEAD_BYTES, refusals.REPORTED_BYTES):
            for shift in range(10, len(line) + 4, 8):
                start = b"GET /x HTTP/1.1\r\nHost: evil.example\r\nx-fill: "
                fill = b"f" * (cut - shift - len(start) - 2)
                refuse(proxy, start + fill + b"\r\n" + line + b"\r\n\r\n")
        assert proxy.stop() == 0
        files = {path: path.read_bytes() for path in proxy.log_dir.rglob("*") if path.is_file()}
        found = one_by_one(proxy.logged())
    assert len(found) > 10
    longest_shown = KEY[:24]  # more than a vendor's prefix
    assert not [path for path, data in files.items() if longest_shown in data]


ODD_HEADS = [  # with a secret of no known form in each
    b"GET / HTTP/1.1\rHost: evil\rX-Api-Key: %b\r\r",
    b"GET / HTTP/1.1\r\nHost: evil\r\n X-Api-Key: %b\r\n\r\n",
    b"GET / HTTP/1.1 X-Api-Key: %b\r\n\r\n",
    b"X-Api-Key: %b\r\n\r\n",
    b"api_key=%b&x=1",
    b"GET /?a=1;api_key=%b HTTP/1.1\r\nHost: evil\r\n\r\n",
    b"CONNECT evil:443 HTTP/1.1\r\nProxy-Authorization: Splunk %b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: evil\r\nX-Api-Key: %b",
]


def test_a_credential_in_a_malformed_request_is_in_no_file(tmp_path: Path) -> None:
    secrets = [b"zQ%02dx7wV4kP9mB2" % number for number in range(len(ODD_HEADS))]
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        for head, secret in zip(ODD_HEADS, secrets, strict=True):
            with contextlib.suppress(ConnectionResetError), proxy.client() as client:
                client.send(head % secret)
                client.half_close()
                client.end()
                client.rest()
        wait_until(lambda: proxy.refused() == len(ODD_HEADS) - 1)  # one is asked for a token instead
        spooled = b"".join(path.read_bytes() for path in (proxy.log_dir / ".spool").iterdir())
        assert proxy.stop() == 0
        assert len(one_by_one(proxy.logged())) == len(ODD_HEADS) - 1
        kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert [it for it in secrets if it in spooled + kept] == []


def test_refusals_beyond_the_budget_are_counted_in_the_log(tmp_path: Path) -> None:
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        for number in range(150):
            assert b" 421 " in refuse(proxy, b"GET /%d HTTP/1.1\r\nHost: evil.example\r\n\r\n" % number)
        for _ in range(7):
            assert b" 404 " in refuse(proxy, b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % proxy.port)
        wait_until(lambda: status(proxy)["refused"] == 157)
        report = proxy.recording_status()
        assert (report["calls"], report["lost"]) == (0, 0)
        assert "refused         157 requests" in proxy.command("status")
        assert proxy.stop() == 0
        found = proxy.logged()
    assert len(one_by_one(found)) == refusals.PER_MINUTE
    assert counted(found) == 57
    sums = [it.statuses for it in found.others if isinstance(it, Refusals)]
    assert sum(it.get("421", 0) for it in sums) == 50
    assert sum(it.get("404", 0) for it in sums) == 7


def test_workers_share_the_refusal_budget_and_every_refusal_is_counted(tmp_path: Path) -> None:
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream, "--workers", "3") as proxy:
        for _ in range(300):
            refuse(proxy, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        wait_until(lambda: status(proxy)["refused"] == 300)
        assert proxy.stop() == 0
        found = proxy.logged()
    assert len(one_by_one(found)) <= refusals.PER_MINUTE
    assert len(one_by_one(found)) + counted(found) == 300


def test_refusal_counts_are_logged_once_after_a_recorder_crash(tmp_path: Path) -> None:
    log_dir, home = tmp_path / "logs", tmp_path / "agent-logger"
    spool = Spool(spool_folder(log_dir))
    relay = Relay(spool)
    relay.put(frames.RefusalsFrame(1, now(), now(), ((403, 12), (421, 3))))
    relay.call(body=[b"{}"], secrets=())
    assert spool.close()
    saved = {path: path.read_bytes() for path in spool_folder(log_dir).iterdir()}
    record(log_dir, home)
    touched = b'{"part":"refused.jsonl","size":0,"checkpoint":0}\n'
    for path, data in saved.items():  # as if it had died before its checkpoint
        path.write_bytes(data)
    (spool_folder(log_dir) / "position.json").unlink()
    (spool_folder(log_dir) / "touched.jsonl").write_bytes(touched)
    record(log_dir, home)
    assert counted(logged(log_dir)) == 15


class Full:
    """A tap that has room for calls alone."""

    def __init__(self) -> None:
        self.has_room = False
        self.told: list[frames.AnyFrame] = []

    def put_if_room(self, frame: frames.AnyFrame) -> bool:
        if self.has_room:
            self.told.append(frame)
        return self.has_room


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([403, 421, 431]), st.integers(0, 3)), max_size=400))
def test_each_refusal_is_reported_or_counted_for_any_spool_state(
    steps: list[tuple[bool, int, int]],
) -> None:
    tap = Full()
    numbers = iter(range(1, 10_000))
    reports = refusals.RefusalReports(
        tap, Credentials(lambda value, /, *, lasting=False: 0), lambda: (next(numbers), "id"), relays=4
    )
    for has_room, answered, sweeps in steps:
        tap.has_room = has_room
        reports.add(1, answered, "no", b"GET / HTTP/1.1\r\n\r\n")
        if sweeps == 0:
            reports.sweep(now=True)
    tap.has_room = True
    reports.sweep(now=True)
    single = [it for it in tap.told if isinstance(it, frames.Refusal)]
    sums = [it for it in tap.told if isinstance(it, frames.RefusalsFrame)]
    assert len(single) <= refusals.PER_MINUTE // 4
    told = [it.status for it in single] + [code for it in sums for code, count in it.counts for _ in range(count)]
    assert sorted(told) == sorted(answered for _, answered, _ in steps)
    assert reports.total == len(steps)
