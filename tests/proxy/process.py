"""`agent-logger proxy` as a process, recorder included, with raw sockets on both sides."""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from agent_logger.config import Network
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.recorder.status import RecorderStatus
from agent_logger.proxy.runs.messages import RegisterRun
from agent_logger.proxy.runs.shared import ProxyConnection
from agent_logger.proxy.server import RelaysStatus
from agent_logger.proxy.spool.spool import SpoolStatus
from agent_logger.proxy.state import running
from tests.commands import run_command
from tests.proxy.foreign import foreign_files, internet
from tests.proxy.spooling import Logged, logged
from tests.proxy.tls_wire import TlsSocket
from tests.proxy.wires import DOOR, RECORDED, TOKEN, Upstream, Wire, connect_request


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
        self.runs: list[ProxyConnection] = []
        self.target: str | None = None  # that clients ask a tunnel to; without one they come by their base URL
        self.trusts: ssl.SSLContext | None = None
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
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))) if files else None,
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

    def register(self, *, origins: Sequence[str] = (), token: str = TOKEN, network: Network | None = None) -> None:
        """Register a run, as `agent-logger run` does; it holds until this process is closed."""
        (state,) = [state for state in running(self.home) if state.pid == self.relay_pid]
        run = ProxyConnection(state)
        self.runs.append(run)
        run.ask(
            RegisterRun(
                id=f"run-{token[-4:]}",
                token=token,
                origins=tuple(origins),
                network=network or Network(),
                record_hosts=(f"*.{RECORDED}",),
            )
        )

    def come_by_the_forward_door(self, internet: Upstream, ca_file: str) -> None:
        """Let the clients be in tunnels, which the proxy opens, and reach all hosts through this proxy."""
        authority = Authority(self.home, RecordedHosts.parse([f"*.{RECORDED}"]))
        self.trusts = ssl.create_default_context(cadata=authority.certificates()[0].decode())
        self.target = f"api.{RECORDED}:443"
        self.register(network=Network(https_proxy=f"http://127.0.0.1:{internet.port}", ca_file=ca_file))

    def client(self, seconds: float = 60.0) -> Wire:
        if self.target is None:
            return Wire.to(self.port, seconds)
        wire = self.tunnelled(self.target, seconds)
        assert self.trusts
        secure = TlsSocket(wire.sock, self.trusts, self.target.rpartition(":")[0])
        secure.shake_hands()
        return Wire(cast("socket.socket", secure), seconds)

    def tunnelled(self, target: str, seconds: float = 60.0, token: str = TOKEN) -> Wire:
        wire = Wire.to(self.port, seconds)
        wire.send(connect_request(target, token))
        assert wire.head().startswith(b"HTTP/1.1 200 "), wire.read
        return wire

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
        host = b"Host: %b\r\n" % (self.target or f"127.0.0.1:{self.port}").encode()
        path = rest.encode() if self.target else self.upstream.path(rest, provider)
        start = method + b" " + path + b" HTTP/1.1\r\n"
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
        for run in self.runs:
            run.close()
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
    with contextlib.ExitStack() as stack:
        stack.callback(process.close)
        if DOOR.get() == "forward":
            ca_file, _ = foreign_files()
            process.come_by_the_forward_door(stack.enter_context(internet(upstream.port)), str(ca_file))
        yield process


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
