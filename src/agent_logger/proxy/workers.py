"""The further workers: processes with a relay and a spool of their own on the proxy's port, replaced when they die.

Each sends the proxy, over a pipe, the credentials it sees, because the recorder listens to the proxy only, and once a
second its status.
"""

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec
import uvloop

from agent_logger.config import Origin
from agent_logger.proxy import relay_process
from agent_logger.proxy.recorder import pipe
from agent_logger.proxy.relay.limits import raise_descriptors
from agent_logger.proxy.relay.relay import Relay
from agent_logger.proxy.relay_process import DRAIN_SECONDS, STATUS_SECONDS, RelayOptions, Stopping
from agent_logger.proxy.restarts import Restarts
from agent_logger.proxy.spool import spool
from agent_logger.proxy.spool.frames import CredentialFrame
from agent_logger.proxy.spool.spool import Spool, SpoolStatus

log = logging.getLogger("agent_logger.proxy")


class RelayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a process that listens."""

    pid: int
    open_clients: int
    spool: SpoolStatus
    refused: int = 0  # requests that it answered itself

    @classmethod
    def of(cls, relay: Relay, own: Spool) -> "RelayStatus":
        return cls(
            pid=os.getpid(),
            open_clients=len(relay.clients),
            spool=own.status(),
            refused=relay.reporter.refusals.total,
        )


class _WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a worker: one of these fields is set."""

    credential: CredentialFrame | None = None
    status: RelayStatus | None = None
    begun_anew: bool = False  # the log folder, which had been removed


# ---------------------------------------------------------------- the proxy's side


class Workers:
    """The workers without the first, which is the proxy itself. Each has a thread that calls `tell` and
    `begun_anew`."""

    def __init__(
        self,
        options: RelayOptions,
        port: int,
        tell: Callable[[CredentialFrame], object],
        begun_anew: Callable[[], object],
    ) -> None:
        job = msgspec.msgpack.encode(_Job.of(options, port))
        self._workers = [_Worker(job, tell, begun_anew) for _ in range(options.workers - 1)]

    def statuses(self) -> list[RelayStatus]:
        """The statuses of the workers that listen now."""
        return [status for worker in self._workers if (status := worker.status)]

    @property
    def refused_before(self) -> int:
        """How many requests were refused by workers that have died since."""
        return sum(worker.refused_before for worker in self._workers)

    @property
    def replaced(self) -> int:
        return sum(max(0, worker.starts - 1) for worker in self._workers)

    def terminate(self) -> None:
        """Let the workers finish their calls. No more are started."""
        for worker in self._workers:
            worker.terminate()

    def hurry(self) -> None:
        for worker in self._workers:
            worker.send(signal.SIGUSR1)

    def close(self) -> None:
        self.terminate()
        give_up = time.monotonic() + DRAIN_SECONDS + 5
        for worker in self._workers:
            worker.join(max(0.0, give_up - time.monotonic()))


class _Worker:
    """A worker's place, and the thread that keeps a process there."""

    def __init__(
        self, job: bytes, tell: Callable[[CredentialFrame], object], begun_anew: Callable[[], object]
    ) -> None:
        self.starts = self.refused_before = 0
        self.status: RelayStatus | None = None  # while it listens
        self._job, self._tell, self._begun_anew = job, tell, begun_anew
        self._process: subprocess.Popen[bytes] | None = None
        self._starting, self._stopping = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="agent-logger-worker", daemon=True)
        self._thread.start()
        self.join = self._thread.join

    def terminate(self) -> None:
        with self._starting:
            self._stopping.set()
        self.send(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        if self._process:
            self._process.send_signal(number)

    def _run(self) -> None:
        restarts = Restarts()
        while process := self._start(restarts):
            with contextlib.suppress(BrokenPipeError), process:  # it died before it read its job
                self._attend(process)
            self.refused_before += self.status.refused if self.status else 0
            self.status = None
            # Only now: Ctrl-C in a terminal ends it, too, and it may have been quicker than the proxy.
            if not self._stopping.wait(restarts.pause_seconds()):
                log.warning("a worker ended (%s); another one is started", process.returncode)

    def _start(self, restarts: Restarts) -> subprocess.Popen[bytes] | None:
        """Start a process, and retry until that succeeds. `None` when no more are to be started."""
        argv = [sys.executable, "-m", __name__]
        while True:
            with self._starting:
                if self._stopping.is_set():
                    return None
                restarts.begin()
                try:
                    self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                except OSError as error:
                    log.warning("a worker could not be started: %s", error)
                else:
                    self.starts += 1
                    return self._process
            self._stopping.wait(restarts.pause_seconds())

    def _attend(self, process: subprocess.Popen[bytes]) -> None:
        """Serve a worker until it ends."""
        assert process.stdin and process.stdout
        process.stdin.write(self._job)
        process.stdin.close()
        while message := _read(process.stdout):
            self.status = message.status or self.status
            if message.credential:
                self._tell(message.credential)
            if message.begun_anew:
                self._begun_anew()


def _read(stream: IO[bytes]) -> _WorkerReport | None:
    """Read a message. `None` at the end of the stream, which may be in the middle of a message if its writer was
    killed."""
    head = stream.read(pipe.LENGTH.size)
    if len(head) < pipe.LENGTH.size:
        return None
    length = pipe.LENGTH.unpack(head)[0]
    message = stream.read(length)
    return msgspec.msgpack.decode(message, type=_WorkerReport) if len(message) == length else None


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a worker gets on its standard input: none of them may be visible in a process list."""

    port: int
    log_dir: str
    allow: list[str]
    workers: int
    https_proxy: str
    no_proxy: str
    ca_file: str

    @classmethod
    def of(cls, options: RelayOptions, port: int) -> "_Job":
        return cls(
            port=port,
            log_dir=str(options.log_dir),
            allow=[str(origin) for origin in options.allow],
            workers=options.workers,
            https_proxy=options.https_proxy,
            no_proxy=options.no_proxy,
            ca_file=options.ca_file,
        )

    def options(self) -> RelayOptions:
        return RelayOptions(
            port=self.port,
            port_is_chosen=True,
            log_dir=Path(self.log_dir),
            home=Path(),
            allow=tuple(map(Origin.parse, self.allow)),
            workers=self.workers,
            https_proxy=self.https_proxy,
            no_proxy=self.no_proxy,
            ca_file=self.ca_file,
        )


# ---------------------------------------------------------------- the worker's side


_telling = threading.Lock()  # the spool has a thread of its own


def _tell_parent(report: _WorkerReport) -> None:
    with _telling, contextlib.suppress(BrokenPipeError):  # the parent is gone, and so is its recorder
        os.write(1, pipe.message(report))


async def _work(options: RelayOptions, own: Spool) -> None:
    relay = await relay_process.listen(options, own)
    stopping = Stopping(is_worker=True)
    parent = os.getppid()
    while os.getppid() == parent:
        _tell_parent(_WorkerReport(status=RelayStatus.of(relay, own)))
        if await stopping.within(STATUS_SECONDS):
            break
    await stopping.unless_now(relay.stop(DRAIN_SECONDS))


def main() -> None:
    argparse.ArgumentParser(description="A further worker; `agent-logger proxy` starts it.").parse_args()
    raise_descriptors()
    options = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Job).options()
    own = Spool(
        spool.spool_folder(options.log_dir),
        tell=lambda credential: _tell_parent(_WorkerReport(credential=credential)),
        begun_anew=lambda: _tell_parent(_WorkerReport(begun_anew=True)),
    )
    relay_process.tune_gc()
    try:
        uvloop.run(_work(options, own))
    finally:
        relay_process.close(own)


if __name__ == "__main__":
    main()
