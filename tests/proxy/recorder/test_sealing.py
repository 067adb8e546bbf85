"""The process that seals full parts beside the recorder."""

import subprocess
import sys
import time
from math import inf
from pathlib import Path

import pytest

from agent_logger.files.parts import parts_in
from agent_logger.journal.journal import Journal
from agent_logger.journal.sync import UPKEEP
from agent_logger.proxy.recorder import sealing
from tests.journal.logs import resume


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Three full parts and a newest one, which another process has written."""
    journal = Journal(tmp_path / "anthropic", "log", "exchange", part_bytes=1_000)
    for number in range(4):
        assert journal.append(resume(f"r{number}", "x" * 900))
    journal.close()
    UPKEEP.finish()
    assert _sealed(tmp_path) == [False] * 4
    return tmp_path


def _sealed(log_dir: Path) -> list[bool]:
    parts = parts_in(log_dir / "anthropic")
    assert all(part.is_sealed() != part.path.exists() for part in parts)
    return [part.is_sealed() for part in parts]


def test_all_full_parts_are_sealed_and_the_newest_stays_plain(log_dir: Path) -> None:
    with subprocess.Popen([sys.executable, "-m", sealing.__name__, log_dir, str(inf)], stdin=subprocess.PIPE) as child:
        assert child.wait(60) == 0
    assert _sealed(log_dir) == [True, True, True, False]


def test_the_process_ends_after_a_part_when_the_recorder_is_gone(log_dir: Path) -> None:
    command = [sys.executable, "-m", sealing.__name__, str(log_dir), str(inf)]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60).returncode == 0
    assert _sealed(log_dir) == [True, False, False, False]


def test_nothing_is_sealed_if_that_is_off(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "SEAL_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(sealing, "FULL_SECONDS", 0.0)
    never = sealing.Sealing(log_dir, None)
    never.start_if_due(3)
    never.finish(3)
    assert _sealed(log_dir) == [False] * 4


def test_parts_are_sealed_although_a_process_was_killed(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "FULL_SECONDS", 0.0)
    sealer = sealing.Sealing(log_dir, inf)
    sealer.start_if_due(3)
    killed = sealer._full._child
    assert killed
    killed.kill()
    killed.wait()
    assert _sealed(log_dir) == [False] * 4
    sealer.start_if_due(3)
    sealer._full.wait(time.monotonic() + 60)
    assert _sealed(log_dir) == [True, True, True, False]
    ended = sealer._full._child
    sealer.start_if_due(3)
    assert sealer._full._child is ended
    sealer.finish(3)
