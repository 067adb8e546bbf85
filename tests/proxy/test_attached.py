"""A proxy beside us."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_logger.errors import StoreError
from agent_logger.proxy.attached import attached
from agent_logger.proxy.runs.processes import start_time
from agent_logger.proxy.state import running


def test_an_attached_proxy_ends_with_the_block(tmp_path: Path) -> None:
    home = tmp_path / "ours"
    with attached(tmp_path / "logs", home=home) as port:
        (state,) = running(home)
        assert state.port == port
    assert start_time(state.pid) is None and running(home) == []
    assert not list(home.glob("proxy-*"))


def test_an_attached_proxy_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    home = tmp_path / "ours"
    program = (
        "import sys, time; from pathlib import Path; from agent_logger.proxy.attached import attached\n"
        f"with attached(Path({str(tmp_path / 'logs')!r}), home=Path({str(home)!r})):\n"
        "    print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as starter:
        assert starter.stdout and starter.stdout.readline()
        (state,) = running(home)
        starter.kill()
    give_up = time.monotonic() + 30
    while start_time(state.pid) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert running(home) == []


def test_a_proxy_that_cannot_start_is_an_error_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(StoreError, match="cannot write to"), attached(tmp_path / "logs", home=tmp_path / "ours"):
        pass


def test_a_proxy_that_was_killed_does_not_break_its_starter(tmp_path: Path) -> None:
    home = tmp_path / "ours"
    with attached(tmp_path / "logs", home=home):
        (state,) = running(home)
        os.kill(state.pid, signal.SIGKILL)
