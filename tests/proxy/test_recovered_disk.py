"""A disk that failed and works again: `status` says so, without a restart."""

import contextlib
import json
import time
from pathlib import Path

import pytest

from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.wires import Upstream, answering, response

# As long as there is a file `fails` beside it, whose text says which files cannot be created.
FAILING = """
import errno, os

opened = os.open

def failing(path, flags, *args, **more):
    try:
        with open(os.path.dirname(__file__) + "/fails") as file:
            names = file.read().split()
    except OSError:
        names = []
    folder = os.readlink("/proc/self/fd/%d" % more["dir_fd"]) + "/" if more.get("dir_fd") is not None else ""
    if flags & os.O_CREAT and any(name in folder.rpartition(".spool")[2] + os.fspath(path) for name in names):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return opened(path, flags, *args, **more)

os.open = failing
"""


def status(proxy: Process) -> dict[str, object]:
    (report,) = json.loads(proxy.command("status", "--json"))
    assert isinstance(report, dict)
    return report


def call(proxy: Process, count: int = 1) -> None:
    for number in range(count):
        with proxy.client() as client:
            client.send(proxy.request(body=b'{"messages":[{"role":"user","content":"%d"}]}' % number))
            client.message()


def assert_recording(proxy: Process) -> None:
    """Within a few seconds, and it stays so."""
    wait_until(lambda: status(proxy)["recording"], 20)
    time.sleep(2.5)
    report = status(proxy)
    assert (report["recording"], report["problem"], report["degraded_since"]) == (True, None, None)
    assert "NOT RECORDING" not in proxy.command("status")


@pytest.mark.parametrize("name", ["position.new", "touched.new", "recorder.json", ".spool", "anthropic"])
def test_status_reports_recording_once_the_disk_works_again(tmp_path: Path, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAILING)
    fails = tmp_path / "fails"
    with (
        Upstream(answering(response(b"fine"))) as upstream,
        proxying(tmp_path, upstream, start_with=tmp_path) as proxy,
    ):
        if name != "anthropic":
            call(proxy)
            wait_until(lambda: proxy.recorder().checkpoints)
        fails.write_text(name)
        call(proxy)
        if name != "recorder.json":
            wait_until(lambda: not status(proxy)["recording"], 20)
        else:
            time.sleep(2)
        fails.unlink()
        assert_recording(proxy)  # without another call
        call(proxy, 3)
        assert proxy.stop() == 0
        found = proxy.logged()
    assert len(found.responses) == (4 if name == "anthropic" else 5)
    assert all(it.complete for (it,) in found.responses.values())


def test_status_reports_recording_again_after_a_full_disk(tmp_path: Path, small_disk: Path) -> None:
    with (
        Upstream(answering(response(b"fine" * 2000))) as upstream,
        proxying(tmp_path, upstream, log_dir=small_disk / "logs") as proxy,
    ):
        call(proxy, 10)
        with (small_disk / "full").open("wb", buffering=0) as other, contextlib.suppress(OSError):
            while other.write(bytes(1 << 12)):
                pass
        call(proxy, 55)
        wait_until(lambda: not status(proxy)["recording"], 30)
        (small_disk / "full").unlink()
        assert_recording(proxy)
        call(proxy, 10)
        assert_recording(proxy)
        assert proxy.stop() == 0
        found = proxy.logged()
    assert len(found.responses) == 75
    assert all(it.complete for (it,) in found.responses.values())
