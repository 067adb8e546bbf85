"""A proxy beside us, and what it may do to us."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent_logger.proxy import attached as subject
from agent_logger.proxy.attached import attached
from agent_logger.proxy.attended import attended
from agent_logger.proxy.state import running, using

PROXY = """
import sys, time
print("http://127.0.0.1:8080", file=sys.stderr, flush=True)
{after}
"""


def a_proxy(monkeypatch: pytest.MonkeyPatch, after: str) -> list[subprocess.Popen[str]]:
    """One that does so after it has started, instead of ours."""
    started: list[subprocess.Popen[str]] = []

    def start(*_: str, **__: object) -> subprocess.Popen[str]:
        line = [sys.executable, "-c", PROXY.format(after=after)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(line, stdin=pipe, stderr=pipe, text=True))
        return started[0]

    monkeypatch.setattr(subject, "attended", start)
    return started


def test_a_proxy_with_much_to_say_is_not_held_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = a_proxy(monkeypatch, 'print("warning\\n" * 100_000, file=sys.stderr)')
    with attached(tmp_path) as port:
        assert port == 8080
        assert started[0].wait(60) == 0


def test_a_proxy_that_takes_long_to_end_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = a_proxy(monkeypatch, "time.sleep(60)")
    monkeypatch.setattr(subject, "STOP_SECONDS", 0.1)
    with attached(tmp_path):
        pass
    assert started[0].poll() is None
    started[0].kill()
    started[0].wait()


def test_a_proxy_that_another_agent_came_to_use_ends_with_the_last_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, started = tmp_path / "ours", list[subprocess.Popen[str]]()
    real = attended

    def start(*line: str, **how: Any) -> subprocess.Popen[str]:
        started.append(real(*line, **how))
        return started[0]

    monkeypatch.setattr(subject, "attended", start)
    with ExitStack() as other:
        with attached(tmp_path / "logs", home=home) as port:
            (state,) = running(home)
            assert other.enter_context(using(home, state))
        assert running(home) == [state]
        socket.create_connection(("127.0.0.1", port)).close()
    assert started[0].wait(60) == 0
    assert running(home) == []
    assert {it.name for it in home.iterdir()} == {"facts.jsonl", "key"}
    with using(home, state) as stays:
        assert not stays
