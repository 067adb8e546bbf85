"""`agent-logger proxy` as a process, recorder included, with raw sockets on both sides."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent_logger.proxy.recorder.child import RecorderStatus
from agent_logger.proxy.server import RelaysStatus
from agent_logger.proxy.spool.spool import SpoolStatus
from tests.commands import run_command
from tests.proxy.spooling import Logged, logged
from tests.proxy.wires import Upstream, Wire


class Process:
    """A proxy that may call one upstream. What it printed is in `said` once it has ended.

    `files`: how many may be open. `start_with`: a folder whose `sitecustomize.py` is run first, by the recorder too.
    """

    def __init__(
        self,
        folder: Path,
        upstream: Upstream,
        *arguments: str,
        log_dir: Path | None = None,
        files: int = 0,
        start_with: Path | None = None,
    ) -> None:
        self.folder, self.upstream = folder, upstream
        self.log_dir = log_dir or folder / "logs"
        self.home = folder / "home" / ".agent-logger"
        self.said = ""
        line = [sys.executable, "-m", "agent_logger", "proxy", "--port", "0", "--log-dir", str(self.log_dir)]
        self._err = (folder / "stderr").open("w+")
        self._out = (folder / "stdout").open("w+")
        self._process = subprocess.Popen(
            [*line, "--allow-upstream", str(upstream.origin), *arguments],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder / "home"),
                "PYTHONPATH": str(start_with or ""),
            },
            stdout=self._out,
            stderr=self._err,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
            if files
            else None,
        )
        self.port = self._listens_on()

    def _listens_on(self) -> int:
        give_up = time.monotonic() + 60
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", self._text())):
            assert self._process.poll() is None and time.monotonic() < give_up, self._text()
            time.sleep(0.02)
        return int(found[1])

    def _text(self) -> str:
        return Path(self._err.name).read_text() + Path(self._out.name).read_text()

    @property
    def relay_pid(self) -> int:
        return self._process.pid

    @property
    def recorder_pid(self) -> int:
        return self.recorder().pid

    def recorder(self) -> RecorderStatus:
        """What it says of itself."""
        path = self.log_dir / ".spool" / "recorder.json"
        wait_until(path.exists)
        return msgspec.json.decode(path.read_bytes(), type=RecorderStatus)

    def spool(self) -> SpoolStatus:
        """What the first relay says of it."""
        path = self.log_dir / ".spool" / "relay.json"
        wait_until(path.exists)
        return msgspec.json.decode(path.read_bytes(), type=RelaysStatus).relays[0].spool

    def refused(self) -> int:
        """How many requests the relays say they refused."""
        path = self.log_dir / ".spool" / "relay.json"
        wait_until(path.exists)
        return msgspec.json.decode(path.read_bytes(), type=RelaysStatus).refused

    def client(self, seconds: float = 60.0) -> Wire:
        return Wire.to(self.port, seconds)

    def request(
        self,
        rest: str = "/v1/messages",
        body: bytes = b"",
        *,
        method: bytes = b"POST",
        headers: bytes = b"",
        provider: str = "anthropic",
    ) -> bytes:
        length = b"Content-Length: %d\r\n" % len(body) if body or method == b"POST" else b""
        host = b"Host: 127.0.0.1:%d\r\n" % self.port
        start = method + b" " + self.upstream.path(rest, provider) + b" HTTP/1.1\r\n"
        return start + host + headers + length + b"\r\n" + body

    def command(self, *arguments: str) -> str:
        """What another command prints, in the home of this proxy."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home")}
        done = run_command([*arguments], env)
        return done.stdout + done.stderr

    def recording_status(self) -> dict[str, Any]:
        """What `status --json` says once the recorder answers: on a busy machine it is slow to start."""
        give_up = time.monotonic() + 60
        while not (report := self._status())["recording"]:
            assert time.monotonic() < give_up, report
            time.sleep(0.02)
        return report

    def _status(self) -> dict[str, Any]:
        (report,) = json.loads(self.command("status", "--json"))
        return dict(report)

    def stop(self, seconds: float = 60.0) -> int:
        """Gracefully: what is on the spool is in the logs afterwards."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(seconds)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def logged(self) -> Logged:
        return logged(self.log_dir)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        self.said = self._text()
        self._err.close()
        self._out.close()


@contextlib.contextmanager
def proxying(
    folder: Path,
    upstream: Upstream,
    *arguments: str,
    log_dir: Path | None = None,
    files: int = 0,
    start_with: Path | None = None,
) -> Iterator[Process]:
    (folder / "home").mkdir(parents=True, exist_ok=True)
    process = Process(folder, upstream, *arguments, log_dir=log_dir, files=files, start_with=start_with)
    try:
        yield process
    finally:
        process.close()


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes(pid: int) -> int:
    """The most memory a process had at once."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) << 10
