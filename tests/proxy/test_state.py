"""The word that somebody runs is there from the first moment to the last."""

import os
from pathlib import Path

import pytest

from agent_logger import platform
from agent_logger.proxy.state import Announcement, ProxyState, running


def test_a_concurrent_reader_does_not_remove_the_state_file_of_a_starting_proxy(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To them it would be the file of one that died: nobody holds it yet."""
    lock, looks = platform.lock, 0

    def after_a_look(held: platform.Held) -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            assert running(home) == []
        return lock(held)

    monkeypatch.setattr(platform, "lock", after_a_look)
    state = ProxyState(pid=os.getpid(), started="2026-01-01T00:00:00.000Z", port=8080, log_dir="/tmp/logs", version="0")
    announcement = Announcement(home, state)
    assert running(home) == [state]
    announcement.close()
    assert running(home) == []
    assert list(home.iterdir()) == []
