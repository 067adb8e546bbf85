"""How long a proxy stays, and whether it takes another run."""

import errno
import os
import subprocess
import time
from pathlib import Path
from threading import Event

import pytest

from agent_logger.proxy.runs import leases as subject
from agent_logger.proxy.runs.leases import Leases

TOKEN = "alr_" + "x" * 32


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LOOK_SECONDS", 0.01), ("LINGER_SECONDS", 0.05), ("FIRST_SECONDS", 0.1)):
        monkeypatch.setattr(subject, name, seconds)


def test_a_proxy_that_a_person_started_takes_runs_however_long_it_was_idle() -> None:
    leases = Leases(lambda _: None)
    time.sleep(0.4)
    assert leases.add_run(TOKEN) and leases.add_shell(1)
    assert leases.release_shells() == 0, "it stays in any case"
    leases.close()


def test_a_shared_proxy_ends_unused_and_then_takes_no_run() -> None:
    unused = Event()
    leases = Leases(lambda _: None, unused.set)
    assert unused.wait(20)
    assert not leases.add_run(TOKEN)
    leases.close()


def test_a_run_that_has_ended_is_withdrawn_and_a_connected_one_is_not() -> None:
    ended: list[str] = []
    unused = Event()
    leases = Leases(ended.append, unused.set)
    assert leases.add_run(TOKEN)
    time.sleep(0.3)
    assert not ended and not unused.is_set()
    leases.disconnected(TOKEN)
    assert unused.wait(20) and ended == [TOKEN]
    leases.close()


def test_a_look_at_processes_that_fails_ends_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    ended: list[str] = []
    with subprocess.Popen(["sleep", "600"]) as process:
        leases = Leases(ended.append)
        assert leases.add_run(TOKEN)
        leases.agent_started(TOKEN, process.pid)
        leases.disconnected(TOKEN)
        with monkeypatch.context() as without_descriptors:
            without_descriptors.setattr(Path, "read_bytes", fail)
            time.sleep(0.3)
        assert not ended
        process.kill()
        process.wait()
        deadline = time.monotonic() + 20
        while not ended and time.monotonic() < deadline:
            time.sleep(0.01)
    assert ended == [TOKEN]
    leases.close()


def test_the_lease_of_a_shell_holds_while_a_process_of_its_session_lives() -> None:
    ended: list[str] = []
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        leases = Leases(ended.append)
        assert leases.add_run(TOKEN, process.pid)
        leases.disconnected(TOKEN)
        time.sleep(0.3)
        assert not ended
        process.kill()
        process.wait()
        deadline = time.monotonic() + 20
        while not ended and time.monotonic() < deadline:
            time.sleep(0.01)
    assert ended == [TOKEN]
    leases.close()


def test_shells_that_are_released_lose_their_lease() -> None:
    ended: list[str] = []
    leases = Leases(ended.append)
    assert leases.add_run(TOKEN, os.getsid(0))
    leases.disconnected(TOKEN)
    assert leases.release_shells() == 1
    deadline = time.monotonic() + 20
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended == [TOKEN]
    leases.close()


def test_a_run_has_not_ended_while_its_token_is_in_use() -> None:
    ended: list[str] = []
    in_use = [True]
    leases = Leases(ended.append, is_in_use=lambda _token: in_use[0])
    assert leases.add_run(TOKEN)
    leases.disconnected(TOKEN)
    time.sleep(0.3)
    assert not ended
    in_use[0] = False
    deadline = time.monotonic() + 20
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended == [TOKEN]
    leases.close()
