"""A storm of requests that are refused, while calls pass: all calls are recorded, and the storm takes little room."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_logger.model.records import Refusals
from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.relay.test_browser import browsing
from tests.proxy.wires import Upstream, Wire, answering, response

MOST_BYTES = 10 << 20  # on the disk, for refusals
LANES, CALLS_PER_SECOND = 4, 200

# Connections that ask for what is refused, each again as soon as it is answered, until the file is gone.
# Each says at the end how many answers it got.
RAW = """
import os, socket, sys, threading

port, running = int(sys.argv[1]), sys.argv[2]
head = b"GET /" + b"a" * 60_000 + b" HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n" % port
head += b"Origin: http://evil.example\\r\\n\\r\\n"
counts = []

def flood():
    answers = 0
    while os.path.exists(running):
        with socket.create_connection(("127.0.0.1", port), 60) as sock:
            sock.sendall(head)
            answer = b""
            while data := sock.recv(65536):
                answer += data
            assert answer.startswith(b"HTTP/1.1 403"), answer
            answers += 1
    counts.append(answers)

threads = [threading.Thread(target=flood) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(counts))
"""

PAGE = """<!doctype html><title>storm</title><script>
let sent = 0, going = true;
const flood = async () => {
  while (going) {
    sent += 1;
    await fetch(`http://127.0.0.1:PORT/anthropic/api.anthropic.com/${"a".repeat(8000)}`, {mode: "no-cors"})
      .catch(() => 0);
  }
};
const all = Array.from({length: 6}, flood);
(async () => {
  await fetch("/going");  // answered when it is to end
  going = false;
  await Promise.all(all);
  await fetch("/told", {method: "POST", body: String(sent)});
})();
</script>"""


@contextlib.contextmanager
def raw_storm(proxy: Process, folder: Path) -> Iterator[list[int]]:
    """How many were refused, once it is over."""
    running = folder / "storming"
    running.touch()
    told: list[int] = []
    line = [sys.executable, "-c", RAW, str(proxy.port), str(running)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as storm:
        try:
            yield told
        finally:
            running.unlink()
            told.append(int(storm.communicate(timeout=60)[0]))


@contextlib.contextmanager
def page_storm(proxy: Process, folder: Path) -> Iterator[list[int]]:
    """From a page in a browser, which another port of this machine serves."""
    ended, told = threading.Event(), list[int]()

    def serve(wire: Wire) -> None:
        with contextlib.suppress(OSError, EOFError):
            head = wire.head()
            if head.startswith(b"GET /page"):
                page = PAGE.replace("PORT", str(proxy.port)).encode()
                wire.send(response(page, headers=b"Content-Type: text/html\r\nConnection: close\r\n"))
            elif head.startswith(b"GET /going"):
                ended.wait(60)
                wire.send(response(b"", headers=b"Connection: close\r\n"))
            elif head.startswith(b"POST /told"):
                told.append(int(wire.body(head)))
                wire.send(response(b"", headers=b"Connection: close\r\n"))
            wire.close()

    with Upstream(serve) as site, browsing(f"http://127.0.0.1:{site.port}/page", folder / "profile"):
        wait_until(lambda: proxy.refused() > 10)
        try:
            yield told
        finally:
            ended.set()
            wait_until(lambda: told)


def call_for(proxy: Process, seconds: float) -> list[float]:
    """So many a second, on a few connections. How long each took."""

    def lane(number: int) -> list[float]:
        took, start = [], time.monotonic()
        with proxy.client() as client:
            for count in range(int(seconds * CALLS_PER_SECOND / LANES)):
                due = start + count * LANES / CALLS_PER_SECOND
                time.sleep(max(0.0, due - time.monotonic()))
                begun = time.monotonic()
                client.send(proxy.request(body=b'{"n":"%d-%d"}' % (number, count)))
                assert client.message() == ANSWER
                took.append(time.monotonic() - begun)
        return took

    with ThreadPoolExecutor(LANES) as lanes:
        return [it for took in lanes.map(lane, range(LANES)) for it in took]


ANSWER = response(b'{"answer":"%b"}' % (b"x" * 500), headers=b"Content-Type: application/json\r\n")
Storm = Callable[[Process, Path], contextlib.AbstractContextManager[list[int]]]
STORMS = [
    pytest.param(raw_storm, id="raw sockets"),
    pytest.param(page_storm, id="a page", marks=pytest.mark.needs("chromium")),
]


def check(folder: Path, storm: Storm, seconds: float, log_dir: Path | None = None) -> None:
    with Upstream(answering(ANSWER)) as upstream, proxying(folder, upstream, log_dir=log_dir) as proxy:
        with storm(proxy, folder) as told:
            calls = len(call_for(proxy, seconds))
            report = proxy.recording_status()
            assert report["lost"] == 0, report
        wait_until(lambda: proxy.refused() >= told[0])
        refused = proxy.refused()
        assert proxy.stop() == 0
        found = proxy.logged()
        taken = sum(path.stat().st_size for path in proxy.log_dir.glob("refused*"))
    logs = found.logs
    whole = [it for call, (it,) in found.responses.items() if logs[call] != "./refused" and it.complete]
    assert len(whole) == calls
    assert taken < MOST_BYTES, f"{taken:,} bytes for {refused:,} refusals"
    itemised = [call for call, log in logs.items() if log == "./refused"]
    assert len(itemised) + sum(it.count for it in found.others if isinstance(it, Refusals)) == refused
    assert refused == told[0]
    assert refused > 200 * seconds / 10, "that was no storm"


A_MINUTE = pytest.param(60.0, id="a minute", marks=pytest.mark.long)
A_SMALL_DISK = pytest.param("16m", 3.0, id="16 MB")
A_DISK_OF_400_MB = pytest.param("400m", 40.0, id="400 MB", marks=[pytest.mark.long, pytest.mark.timeout(300)])


@pytest.mark.parametrize("storm", STORMS)
@pytest.mark.parametrize("seconds", [3.0, A_MINUTE])
def test_many_refused_requests_lose_no_call_and_use_little_disk_space(
    tmp_path: Path, storm: Storm, seconds: float
) -> None:
    check(tmp_path, storm, seconds)


@pytest.mark.parametrize("storm", STORMS)
@pytest.mark.parametrize(("size", "seconds"), [A_SMALL_DISK, A_DISK_OF_400_MB])
def test_many_refused_requests_lose_no_call_on_a_small_disk(
    tmp_path: Path, small_disk: Path, storm: Storm, size: str, seconds: float
) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(small_disk)], check=True)
    check(tmp_path, storm, seconds, small_disk / "logs")
