"""Checkpoints: what they remove, and what they remember until it is removed."""

import time
from pathlib import Path

from agent_logger.proxy.recorder.checkpoint import CheckpointPosition, Checkpoints, EndedCalls, RelayPosition
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import RequestData
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.spooling import Relay, now, record, request_head


def test_calls_that_end_during_a_failed_checkpoint_are_removed_by_a_later_one(tmp_path: Path) -> None:
    """Their frames hold prompts: if they were forgotten, nothing would make a checkpoint due."""
    ended = EndedCalls()
    is_full = True

    def step(name: str) -> None:
        if name == "synced" and is_full:
            raise OSError("no space left")

    checkpoints = Checkpoints(tmp_path, CheckpointPosition(), step, ended)
    checkpoints.begin(CheckpointPosition(), {}, [])
    ended.add("relay", 1, 1)
    assert not checkpoints.done(wait=True)
    assert checkpoints.failed == "no space left"
    is_full = False
    checkpoints.begin(CheckpointPosition(), {}, [])
    assert ended.stale_since("relay", 2) is not None
    assert checkpoints.done(wait=True)


def test_calls_in_segments_that_a_checkpoint_leaves_are_removed_by_a_later_one() -> None:
    ended = EndedCalls()
    ended.add("relay", 1, 2)
    ended.checkpoint_begins()
    ended.checkpoint_ended(CheckpointPosition(relays={"relay": RelayPosition(2, 10)}), CheckpointPosition())
    assert ended.stale_since("relay", 2) is None
    assert ended.stale_since("relay", 3) is not None
    ended.checkpoint_begins()
    ended.checkpoint_ended(CheckpointPosition(relays={"relay": RelayPosition(3, 20)}), CheckpointPosition())
    assert ended.stale_since("relay", 4) is None


def test_an_open_call_needs_each_of_its_entries_once(tmp_path: Path) -> None:
    """An entry may have several frames of the call."""
    spool = Spool(spool_folder(tmp_path))
    relay = Relay(spool)
    number = relay.begin(request_head())
    for _ in range(3):
        spool.put(*(RequestData(number, now(), b"x" * 1000) for _ in range(5)))
    while spool.status().entries < 4:
        time.sleep(0.01)
    child = record(tmp_path, tmp_path / "home")
    (open_call,) = child.recording.open.values()
    assert 15_000 < open_call.retained.bytes <= spool.status().bytes
    spool.close()
