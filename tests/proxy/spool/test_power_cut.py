"""What a power cut may take of the spool's own files: no call is lost, and none is in the logs twice."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.killing import Fault, stage
from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.recorder.test_kill import STEPS, check
from tests.proxy.spooling import Relay, Script, record
from tests.proxy.wires import Upstream, answering, response

Damage = Callable[[Path], object]


def _removed(path: Path) -> None:
    path.unlink(missing_ok=True)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _halved(path: Path) -> None:
    data = path.read_bytes() if path.exists() else b""
    path.write_bytes(data[: len(data) // 2])


def _garbled(path: Path) -> None:
    path.write_bytes(os.urandom(500))


def _zeroed(path: Path) -> None:
    """As a file system may leave it that knows the length and not the bytes."""
    path.write_bytes(bytes(path.stat().st_size if path.exists() else 0))


DAMAGES: list[Damage] = [_removed, _emptied, _halved, _garbled, _zeroed]


def ask(proxy: Process, text: bytes) -> None:
    with proxy.client() as client:
        client.send(proxy.request(body=b'{"messages":[{"role":"user","content":"%b"}]}' % text))
        client.message()


def answered(proxy: Process) -> int:
    """Without waiting for what is told every second: no checkpoint is to come first."""
    files = list((proxy.log_dir / "anthropic").glob("*.jsonl"))
    return sum(path.read_bytes().count(b'"type":"response"') for path in files)


@pytest.mark.parametrize("files", [["touched.jsonl"], ["position.json"], ["touched.jsonl", "position.json"]])
@pytest.mark.parametrize("damage", DAMAGES)
def test_calls_are_logged_once_when_spool_state_files_are_lost_or_damaged(
    tmp_path: Path, files: list[str], damage: Damage
) -> None:
    with Upstream(answering(response())) as upstream:
        with proxying(tmp_path, upstream) as proxy, proxy.client() as slow:
            slow.send(proxy.request(body=b"slow")[:-1])  # open: its frames stay
            for number in range(20):
                ask(proxy, b"before %d" % number)
            wait_until(lambda: proxy.recorder().checkpoints)
            for number in range(20):
                ask(proxy, b"between %d" % number)
            wait_until(lambda: answered(proxy) >= 40)
            os.kill(proxy.recorder_pid, signal.SIGSTOP)
            for number in range(10):
                ask(proxy, b"after %d" % number)
            time.sleep(0.1)
            os.kill(proxy.recorder_pid, signal.SIGKILL)
            proxy.kill()
        for name in files:
            damage(proxy.log_dir / ".spool" / name)
        with proxying(tmp_path, upstream) as proxy:
            ask(proxy, b"at last")
            assert proxy.stop() == 0
            found = proxy.logged()
        assert "Traceback" not in proxy.said
    assert [len(it) for it in found.requests.values()] == [1] * 52
    assert [len(it) for it in found.responses.values()] == [1] * 52


@pytest.mark.parametrize("step", STEPS)
def test_a_position_file_lost_during_a_checkpoint_loses_no_call(tmp_path: Path, step: str) -> None:
    script = Script(f"lost {step}", calls=5000)
    with stage(tmp_path, pause=0.004) as it:
        relay = it.relay(script)
        recorder = it.recorder(Fault(step, 3), carry=True)
        recorder.join(60)
        assert recorder.exitcode == -9, "the step was never done"
        time.sleep(0.1)
        it.kill(relay)
        for name in ("position.json", "touched.jsonl"):
            (spool_folder(it.log_dir) / name).unlink(missing_ok=True)
        check(it, [script])


def _noted(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The writes, syncs and renames below the folder from now on: the function, and the file's name or ending."""
    done: list[tuple[str, str]] = []

    def note(name: str, path: Path) -> None:
        if log_dir in path.parents:
            done.append((name, path.name if path.parent.name == ".spool" else path.suffix or path.name))

    def noting(name: str) -> None:
        work = getattr(os, name)

        def noted(fd: int, *args: object) -> object:
            path = Path(os.readlink(f"/proc/self/fd/{fd}"))
            result = work(fd, *args)
            note(name, path)
            return result

        monkeypatch.setattr(os, name, noted)

    for name in ("write", "fdatasync", "fsync"):
        noting(name)
    replace = os.replace

    def replacing(source: Path, target: Path) -> None:
        replace(source, target)
        note("replace", target)

    monkeypatch.setattr(os, "replace", replacing)
    return done


def test_a_position_is_synced_before_it_replaces_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_dir, home = tmp_path / "logs", tmp_path / "agent-logger"
    spool = Spool(spool_folder(log_dir))
    Relay(spool).call(body=[b"{}"], secrets=())
    assert spool.close()
    done = _noted(log_dir, monkeypatch)
    record(log_dir, home, checkpoint_seconds=1000.0)
    replaced = [at for at, what in enumerate(done) if what == ("replace", "position.json")]
    assert replaced
    for start, end in zip([0, *replaced], replaced, strict=False):
        steps = done[start:end]
        assert steps.index(("write", "position.new")) < steps.index(("fdatasync", "position.new"))
        assert ("fsync", ".spool") in done[end:]


def test_touched_marks_are_synced_before_the_log_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each log and checkpoint, whatever number of calls it has."""
    log_dir, home = tmp_path / "logs", tmp_path / "agent-logger"
    spool = Spool(spool_folder(log_dir), memory_bytes=1 << 28)
    relay = Relay(spool)
    for _ in range(200):
        relay.call(body=[b"{}"], secrets=())
        relay.call(body=[b"x" * 100_000], secrets=())  # written alone
    assert spool.close()
    done = _noted(log_dir, monkeypatch)
    record(log_dir, home, checkpoint_seconds=1000.0)
    first_line = done.index(("write", ".jsonl"))
    assert done.index(("fdatasync", "touched.jsonl")) < first_line
    assert done.index(("fsync", ".spool")) < first_line  # its name, too
    assert done.index(("write", "touched.jsonl")) < done.index(("fdatasync", "touched.jsonl"))
    assert done.count(("fdatasync", "touched.jsonl")) <= 4
