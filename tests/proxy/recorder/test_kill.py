"""Whatever is killed, whenever: what was on the spool is in the logs once."""

import random
import time
from pathlib import Path

import pytest

from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import RequestData
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.killing import Fault, Stage, stage
from tests.proxy.process import wait_until
from tests.proxy.spooling import Relay, Script, faults, logged, now, numbering_faults, request_head

STEPS = [
    "synced",
    "carried",
    "written",
    "position synced",
    "renamed",
    "folder synced",
    "carried removed",
    "segments removed",
    "touched forgotten",
]


def check(it: Stage, scripts: list[Script]) -> None:
    """Let another recorder do the rest, and compare."""
    assert it.finish(it.recorder()) == 0
    found = logged(it.log_dir)
    wrong = [f"{script.seed}: {fault}" for script in scripts for fault in faults(script, it.frames[script.seed], found)]
    assert not wrong + numbering_faults(found)
    assert len(found.starts) <= sum(script.connections for script in scripts), "a session was split"
    assert not list((it.log_dir / ".spool").glob("*.spool"))
    assert not list((it.log_dir / ".spool").glob("*.carried"))


def random_run(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    scripts = [Script(f"{seed}-0", connections=rng.choice((1, 3, 8)))]
    with stage(folder) as it:
        carry = rng.random() < 0.5
        relay, recorder = it.relay(scripts[0]), it.recorder(carry=carry)
        for number in range(1, rng.randint(2, 4)):
            time.sleep(rng.uniform(0, 0.25))
            victim = rng.choice(("relay", "recorder", "recorder", "both"))
            if victim != "recorder":
                it.kill(relay)
            if victim != "relay":
                it.kill(recorder)
                recorder = it.recorder(carry=carry)
            if victim != "recorder":
                scripts.append(Script(f"{seed}-{number}"))
                relay = it.relay(scripts[-1])
        time.sleep(rng.uniform(0, 0.2))
        it.kill(relay)
        it.kill(recorder)
        check(it, scripts)


@pytest.mark.parametrize("block", [*range(2), *(pytest.param(block, marks=pytest.mark.long) for block in range(2, 10))])
def test_killing_relay_recorder_or_both_at_any_moment_loses_and_duplicates_no_call(tmp_path: Path, block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        random_run(tmp_path / str(seed), seed)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("block", range(10))
def test_four_hundred_more_kill_runs_lose_and_duplicate_no_call(tmp_path: Path, block: int) -> None:
    for seed in range(1000 + 40 * block, 1000 + 40 * block + 40):
        random_run(tmp_path / str(seed), seed)


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("step", STEPS)
def test_kills_during_a_checkpoint_and_its_recovery_lose_and_duplicate_no_call(
    tmp_path: Path, step: str, count: int
) -> None:
    script = Script(f"{step}-{count}", calls=5000)
    with stage(tmp_path, pause=0.004) as it:
        relay = it.relay(script)
        first = it.recorder(Fault(step, count), carry=True)
        first.join(60)
        assert first.exitcode == -9, "the step was never done"
        for during in (Fault("cleaned"), Fault("recovered"), Fault(step)):
            second = it.recorder(during, carry=True)
            second.join(60)
            assert second.exitcode == -9, during
        time.sleep(0.1)
        it.kill(relay)
        check(it, [script])


def test_a_call_open_across_many_segments_keeps_all_its_chunks(tmp_path: Path) -> None:
    """Its frames are carried at several checkpoints, each from where the one before ended."""
    script = Script("long", calls=6, connections=2, chunks=(3000,))
    with stage(tmp_path) as it:
        relay, recorder = it.relay(script), it.recorder(carry=True)
        for kills in range(1, 60):
            time.sleep(0.7)
            it.kill(recorder)
            recorder = it.recorder(carry=True)
            if kills >= 4 and it.frames[script.seed] > 3000:
                break
        it.kill(relay)
        it.kill(recorder)
        check(it, [script])
        assert it.frames[script.seed] > 3000, "no call was open for long"


MANY_BYTES = 20_000  # that a few calls take


def _spooled_bytes(log_dir: Path) -> int:
    return sum(path.stat().st_size for path in spool_folder(log_dir).glob("*.spool"))


@pytest.mark.parametrize("relay_dies", [False, True])
def test_a_checkpoint_keeps_touched_marks_for_frames_to_be_read_again(tmp_path: Path, relay_dies: bool) -> None:
    """All is in the logs and no checkpoint says so; the next one dies right after its first.

    Of a relay that died, the calls that were open have ended in the logs, and do so again after its last frame.
    """
    script = Script("again", calls=200)
    with stage(tmp_path, pause=0.01 if relay_dies else 0) as it:
        relay = it.relay(script)
        relay.join(0.3 if relay_dies else 60)
        while _spooled_bytes(it.log_dir) < MANY_BYTES:  # on a busy machine it has hardly begun
            time.sleep(0.1)
        it.kill(relay)
        first = it.recorder(Fault(checkpoint_seconds=1000))
        size, before = 0, -1
        while size != before or not size:
            before = size
            time.sleep(0.5)
            size = sum(path.stat().st_size for path in it.log_dir.glob("anthropic/*.jsonl"))
        it.kill(first)
        second = it.recorder(Fault("touched forgotten", checkpoint_seconds=0, held_bytes=1 << 16))
        second.join(60)
        assert second.exitcode == -9
        check(it, [script])


def test_a_partial_request_of_a_dead_relay_is_logged_once_after_a_crash(tmp_path: Path) -> None:
    """It is written when the relay is known to be dead, and again by whoever does not know that it was."""
    with stage(tmp_path) as it:
        spool = Spool(spool_folder(it.log_dir))
        relay = Relay(spool)
        number = relay.begin(request_head())
        relay.put(RequestData(number, now(), b'{"messages":['))
        spool.close()
        first = it.recorder(Fault(checkpoint_seconds=1000))
        wait_until(lambda: logged(it.log_dir).responses)
        it.kill(first)
        second = it.recorder(Fault("touched forgotten", checkpoint_seconds=0))
        second.join(60)
        assert second.exitcode == -9
        assert it.finish(it.recorder()) == 0
        found = logged(it.log_dir)
        assert [len(it) for it in found.requests.values()] == [1]
        assert [len(it) for it in found.responses.values()] == [1]


def test_killing_the_recorder_keeps_the_session_and_its_sequence_numbers(tmp_path: Path) -> None:
    script = Script("one", calls=60, connections=2)
    with stage(tmp_path, pause=0.01) as it:
        relay = it.relay(script)
        while relay.is_alive():
            recorder = it.recorder()
            relay.join(0.15)
            it.kill(recorder)
        check(it, [script])
        found = logged(it.log_dir)
        assert len(found.starts) == 2
        assert {response.reason for (response,) in found.responses.values()} == {None}
        assert len(found.requests) == script.calls
