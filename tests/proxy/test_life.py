"""What may happen to a proxy from outside: files of its own that are damaged, a folder that is removed, signals."""

import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import msgspec

from agent_logger.proxy.restarts import Restarts
from agent_logger.proxy.server import RelaysStatus
from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.spooling import request_bytes
from tests.proxy.wires import Upstream, Wire, answering, response
from tests.pulse import Pulse


def ask(proxy: Process, body: bytes) -> None:
    with proxy.client() as client:
        client.send(proxy.request(body=body))
        assert client.message() == response()


def remove(folder: Path) -> None:
    """At once, though the proxy may be writing to it this very moment."""
    away = folder.rename(folder.with_name("away"))
    while away.exists():
        shutil.rmtree(away, ignore_errors=True)


def asked(proxy: Process) -> list[bytes]:
    """The bodies of all requests in the logs."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(request_bytes(it) for them in proxy.logged().requests.values() for it in them)
    return []


def status(proxy: Process) -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "agent_logger", "status", "--json"],
        env={"PATH": os.environ["PATH"], "HOME": str(proxy.folder / "home")},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert not done.stderr
    [report] = msgspec.json.decode(done.stdout)
    return done.returncode, report


def endless(wire: Wire) -> None:
    with contextlib.suppress(OSError, EOFError):
        wire.message()
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            wire.send(b"5\r\nhello\r\n")
            time.sleep(0.02)


def test_a_damaged_position_file_loses_and_duplicates_no_call(tmp_path: Path) -> None:
    with Upstream(answering(response())) as upstream:
        with proxying(tmp_path, upstream) as proxy, proxy.client() as slow:
            slow.send(proxy.request(body=b"slow")[:-1])  # open: its frames are kept
            ask(proxy, b"one")
            wait_until(lambda: proxy.recorder().checkpoints and asked(proxy) == [b"one"])
            os.kill(proxy.recorder_pid, signal.SIGSTOP)
            ask(proxy, b"two")
            time.sleep(0.1)
            os.kill(proxy.recorder_pid, signal.SIGKILL)
            proxy.kill()
        (proxy.log_dir / ".spool" / "position.json").write_bytes(b'{"v": 1, "relays": 7}')
        with proxying(tmp_path, upstream) as proxy:
            ask(proxy, b"three")
            assert proxy.stop() == 0
            assert asked(proxy) == [b"one", b"slo", b"three", b"two"]
        assert "Traceback" not in proxy.said


def test_the_proxy_does_not_start_with_an_invalid_install_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".agent-logger").mkdir(parents=True)
    (home / ".agent-logger" / "key").write_bytes(b"short")
    done = subprocess.run(
        [sys.executable, "-m", "agent_logger", "proxy", "--port", "0", "--log-dir", str(tmp_path / "logs")],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "key has 5 bytes instead of 32" in done.stderr


def test_a_removed_log_folder_is_recreated(tmp_path: Path) -> None:
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        ask(proxy, b"before")
        wait_until(lambda: asked(proxy) == [b"before"])
        remove(proxy.log_dir)
        assert status(proxy)[1]["free_bytes"]

        def recorded() -> bool:
            ask(proxy, b"after")
            return b"after" in asked(proxy)

        wait_until(recorded)
        assert (proxy.log_dir / ".gitignore").read_bytes() == b"*\n"
        count = len(asked(proxy))
        for number in range(5):
            ask(proxy, b"later %d" % number)
        second = subprocess.run(
            [sys.executable, "-m", "agent_logger", "proxy", "--port", "0", "--log-dir", str(proxy.log_dir)],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert second.returncode == 1, "the new folder is owned, too"
        assert proxy.stop() == 0
        assert [it for it in asked(proxy) if it != b"after"] == [b"later %d" % it for it in range(5)]
        assert len(asked(proxy)) >= count + 5
    assert "Traceback" not in proxy.said


def test_a_recreated_log_folder_is_owned_immediately(tmp_path: Path) -> None:
    """As soon as a call is in it, though the proxy looks after it every second only."""
    with (
        Pulse() as pulse,
        Upstream(answering(response())) as upstream,
        proxying(tmp_path, upstream, "--workers", "2") as proxy,
    ):
        wait_until(lambda: len(relays(proxy)) == 2)
        spool, took = proxy.log_dir / ".spool", []
        for _ in range(10):
            ask(proxy, b"before")
            remove(proxy.log_dir)
            ask(proxy, b"after")
            began = pulse.now()
            wait_until(lambda: list(spool.glob("*.spool")))
            wait_until((spool / "owner").exists)
            took.append(pulse.now() - began)
        assert statistics.median(took) < 0.2
        assert proxy.stop() == 0


def test_status_reports_not_recording_when_the_recorder_is_dead_or_silent(tmp_path: Path) -> None:
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        path = proxy.log_dir / ".spool" / "recorder.json"
        said = proxy.recorder()
        wait_until(lambda: status(proxy)[0] == 0)
        os.kill(said.pid, signal.SIGSTOP)
        try:
            silent = msgspec.structs.replace(said, ts="2026-01-01T00:00:00.000Z")
            path.write_bytes(msgspec.json.encode(silent))
            code, report = status(proxy)
            assert (code, report["recording"]) == (1, False)
            assert "has not reported since 2026-01-01" in str(report["problem"])
            gone = subprocess.Popen(["true"])
            gone.wait()
            path.write_bytes(msgspec.json.encode(msgspec.structs.replace(proxy.recorder(), pid=gone.pid)))
            code, report = status(proxy)
            assert (code, report["recording"], report["calls"]) == (1, False, None)
        finally:
            os.kill(said.pid, signal.SIGCONT)
        wait_until(lambda: status(proxy)[0] == 0)


def test_a_second_signal_ends_all_workers_and_their_calls_are_recorded(tmp_path: Path) -> None:
    with (
        Upstream(endless) as upstream,
        proxying(tmp_path, upstream, "--workers", "3") as proxy,
        contextlib.ExitStack() as clients,
    ):
        locks = proxy.log_dir / ".spool"
        wait_until(lambda: len(list(locks.glob("*.lock"))) == 4)  # of three relays and the recorder
        time.sleep(0.5)
        for _ in range(12):
            client = clients.enter_context(proxy.client())
            client.send(proxy.request(body=b"{}"))
            client.until(b"hello")
        os.kill(proxy.relay_pid, signal.SIGINT)
        time.sleep(0.5)
        began = time.monotonic()
        assert proxy.stop() == 0
        assert time.monotonic() - began < 15  # to let all of them end would take 30
        responses = [it for (it,) in proxy.logged().responses.values()]
        assert [it.reason for it in responses] == ["relay_died"] * 12


def test_a_killed_worker_is_replaced_and_each_call_is_logged_once(tmp_path: Path) -> None:
    with (
        Upstream(endless) as upstream,
        proxying(tmp_path, upstream, "--workers", "2") as proxy,
        contextlib.ExitStack() as clients,
    ):

        def asking(count: int) -> None:
            for _ in range(count):
                client = clients.enter_context(proxy.client())
                client.send(proxy.request(body=b"{}"))
                client.until(b"hello")

        wait_until(lambda: len(relays(proxy)) == 2)
        asking(16)
        wait_until(lambda: sum(relays(proxy).values()) == 16)
        assert status(proxy)[1]["clients"] == 16
        assert set(cast("list[int]", status(proxy)[1]["relay_pids"])) == set(relays(proxy))
        [(worker, cut)] = [it for it in relays(proxy).items() if it[0] != proxy.relay_pid]
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: worker not in relays(proxy) and len(relays(proxy)) == 2)
        asking(16)
        wait_until(lambda: sum(relays(proxy).values()) == 32 - cut)
        code, report = status(proxy)
        told = [report[it] for it in ("workers", "workers_listening", "workers_replaced", "clients")]
        assert (code, told) == (0, [2, 2, 1, 32 - cut])
        assert min(cut, relays(proxy)[proxy.relay_pid]) > 0, "both had some"
        os.kill(proxy.relay_pid, signal.SIGINT)
        time.sleep(0.5)
        assert proxy.stop() == 0
        logged = proxy.logged()
        assert len(logged.requests) == 32
        responses = [it for (it,) in logged.responses.values()]
        assert [it.reason for it in responses] == ["relay_died"] * 32
    assert proxy.said.count("a worker stopped (-9); starting another one") == 1
    assert "Traceback" not in proxy.said


def relays(proxy: Process) -> dict[int, int]:
    """The processes that listen, and how many clients each has."""
    path = proxy.log_dir / ".spool" / "relay.json"
    wait_until(path.exists)
    said = msgspec.json.decode(path.read_bytes(), type=RelaysStatus)
    return {it.pid: it.open_clients for it in said.relays}


def test_repeated_restarts_are_delayed_by_increasing_pauses() -> None:
    restarts = Restarts()
    pauses = []
    for _ in range(9):
        restarts.begin()
        pauses.append(restarts.pause_seconds())
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0]
