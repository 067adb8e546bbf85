"""Pusher and hub are killed again and again while machines record: nothing acknowledged is lost, nothing is there
twice, and what is made from the store alone equals what was lived."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_logger import __version__
from agent_logger.hub.folder import HubFolder
from agent_logger.hub.storage.index import MemoryIndex
from agent_logger.hub.storage.intake import Intake
from agent_logger.hub.work import HubParts
from agent_logger.push.machine import membership
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.hub.hubs import Hub, catalog_of, push, running_hub
from tests.ports import free_port

PUSH = "import sys; from pathlib import Path; from tests.hub.hubs import push; push(Path(sys.argv[1]), sys.argv[2])"
LEVELS = ("contents", "contents", "contents", "numbers", "titles")


def start_push(home: Path, level: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PUSH, str(home), level],
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"], "HOME": str(home.parent)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("seconds", [6, pytest.param(600, marks=pytest.mark.long)])
@pytest.mark.timeout(900)
def test_nothing_is_lost_or_doubled_when_both_sides_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    chance, port, folder = random.Random(seconds), free_port(), tmp_path / "hub"
    homes = [tmp_path / name / ".agent-logger" for name in ("ann", "ben")]
    with running_hub(folder, port) as hub:
        for home in homes:
            hub.join(home, home.parent.name, "laptop")
    number, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        with running_hub(folder, port) as hub:
            for home in homes:
                for session in range(4):
                    name = ID.format(session + 10 * homes.index(home))
                    lines = [user(2 * number, f"prompt {number} " * 50, name), assistant(2 * number + 1, "ok", name)]
                    claude_file(home.parent, name, lines)
                    number += 1
            pushes = [start_push(home, chance.choice(LEVELS)) for home in homes]
            time.sleep(chance.uniform(0.3, 1.5))
            for process in (hub.process, *pushes):
                if chance.random() < 0.5:
                    os.kill(process.pid, signal.SIGKILL)
                    time.sleep(chance.uniform(0, 0.3))
            for process in pushes:
                process.kill()
                process.wait()
    with running_hub(folder, port) as hub:
        for home in homes:
            monkeypatch.setenv("HOME", str(home.parent))
            push(home)
            assert push(home).ranges == 0
        check_contents(hub, homes)
    check_rebuilt(hub.folder)


def check_contents(hub: Hub, homes: list[Path]) -> None:
    """Every file is on the hub as it is on its machine: there are no keys in these."""
    with catalog_of(hub.folder):
        pass
    for home in homes:
        member = membership(home)
        assert member
        files = sorted((home.parent / ".claude").rglob("*.jsonl"))
        pushed = sorted((hub.folder.homes / member.device).rglob("*.jsonl"))
        assert [path.name for path in pushed] == [path.name for path in files]
        for path, copy in zip(files, pushed, strict=True):
            assert copy.read_bytes() == path.read_bytes()


def check_rebuilt(folder: HubFolder) -> None:
    parts, rebuilt = HubParts(folder), MemoryIndex()
    before = set(parts.store.names(""))
    assert Intake(rebuilt, parts.store, __version__).rebuild() == 0
    for sender in parts.index.senders():
        assert rebuilt.levels(sender.device) == parts.index.levels(sender.device)
        lived = {each.object: each for each in parts.index.objects(sender.device)}
        assert {each.object: each for each in rebuilt.objects(sender.device)} == lived
        for each in lived.values():
            ranges = parts.index.ranges(sender.device, each.object, each.generation)
            assert rebuilt.ranges(sender.device, each.object, each.generation) == ranges
    assert set(parts.store.names("")) == before
    parts.close()
