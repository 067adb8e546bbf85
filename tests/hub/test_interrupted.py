"""A store that fails while something is deleted, and a second process that wants the same hub."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_logger.hub.folder import HubFolder
from agent_logger.hub.storage.index import MemoryIndex, SendingDevice
from agent_logger.hub.storage.intake import Intake
from agent_logger.hub.storage.store import MemoryStore
from agent_logger.hub.work import HubParts
from agent_logger.push.protocol import ObjectHead, Statement
from tests.hub.hubs import running_hub

ANN = SendingDevice("a1", "ann", "laptop")
OBJECT = "0" * 32
CONTENTS = ObjectHead(session="s", level="contents", revision=1, form="lines", place=("logs", "anthropic", "x"))
SERVE = "import sys; from tests.hub.hubs import serve_alone; serve_alone(sys.argv[1], 0, *sys.argv[2:])"


class FailingStore(MemoryStore):
    """A store that cannot delete for a while."""

    fails = False

    def delete(self, prefix: str) -> None:
        if self.fails:
            raise OSError("no connection")
        super().delete(prefix)


@pytest.fixture
def store() -> FailingStore:
    return FailingStore()


@pytest.fixture
def index() -> MemoryIndex:
    return MemoryIndex()


@pytest.fixture
def intake(index: MemoryIndex, store: FailingStore) -> Intake:
    intake = Intake(index, store, "test")
    intake.state_level(ANN, "s", Statement(level="contents", revision=1))
    put(intake, 1, CONTENTS)
    return intake


def put(intake: Intake, generation: int, head: ObjectHead) -> None:
    data = b"words\n"
    intake.begin(ANN, OBJECT, generation, head)
    intake.append(ANN, OBJECT, generation, 0, data, hashlib.sha256(data).hexdigest(), 0.0)


def objects(store: FailingStore) -> list[str]:
    return [name for name in store.objects if "/objects/" in name]


def test_a_lowered_level_is_not_acknowledged_before_the_contents_are_gone(intake: Intake, store: FailingStore) -> None:
    lowered = Statement(level="numbers", revision=2)
    store.fails = True
    for _ in range(2):
        with pytest.raises(OSError, match="no connection"):
            intake.state_level(ANN, "s", lowered)
    store.fails = False
    intake.state_level(ANN, "s", lowered)
    assert objects(store) == []


def test_a_withdrawal_is_not_acknowledged_before_the_objects_are_gone(intake: Intake, store: FailingStore) -> None:
    store.fails = True
    for _ in range(2):
        with pytest.raises(OSError, match="no connection"):
            intake.withdraw(ANN, "s")
    store.fails = False
    intake.withdraw(ANN, "s")
    assert objects(store) == []


def test_a_push_after_a_failed_deletion_survives_a_restart(
    intake: Intake, index: MemoryIndex, store: FailingStore
) -> None:
    store.fails = True
    with pytest.raises(OSError, match="no connection"):
        intake.state_level(ANN, "s", Statement(level="numbers", revision=2))
    store.fails = False
    intake.state_level(ANN, "s", Statement(level="contents", revision=3))
    put(intake, 1, replace(CONTENTS, revision=3))
    before = objects(store)
    Intake(index, store, "test")
    assert objects(store) == before != []


def serve_second(folder: Path, *store: str) -> str:
    """Start another server; return why it ended."""
    process = subprocess.run(
        [sys.executable, "-c", SERVE, str(folder), *store],
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode
    return process.stderr


def test_a_second_server_of_a_hub_is_refused(tmp_path: Path) -> None:
    with running_hub(tmp_path) as hub:
        assert "another 'agent-logger hub serve'" in serve_second(hub.folder.path)


def test_a_second_server_of_a_store_is_refused(tmp_path: Path) -> None:
    with running_hub(tmp_path) as hub:
        why = serve_second(tmp_path / "other", str(hub.folder.store))
        assert "another 'agent-logger hub serve'" in why
        assert str(hub.folder.store) in why


def test_a_hub_that_was_stopped_can_be_served_again(tmp_path: Path) -> None:
    for _ in range(2):
        with running_hub(tmp_path) as hub:
            assert hub.url
    parts = HubParts(HubFolder(tmp_path / "hub"))
    assert list(parts.store.names("")) == []
    parts.close()
