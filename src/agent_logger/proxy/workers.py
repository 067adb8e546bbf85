"""The further workers: processes with a relay and a spool of their own on the proxy's port, replaced when they die.

Each sends the proxy, over a pipe, the credentials it sees, because the recorder listens to the proxy only, and once a
second its status. The other way it gets its options, and then the runs that register.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import msgspec
import uvloop

from agent_logger import platform
from agent_logger.proxy import relay_process
from agent_logger.proxy.forward.traffic import ForwardStatus, RunTraffic
from agent_logger.proxy.recorder import pipe
from agent_logger.proxy.relay.limits import raise_descriptors
from agent_logger.proxy.relay.relay import Relay
from agent_logger.proxy.relay_process import DRAIN_SECONDS, STATUS_SECONDS, RelayOptions, Stopping
from agent_logger.proxy.restarts import Restarts
from agent_logger.proxy.runs.messages import RegisterRun
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import CredentialFrame
from agent_logger.proxy.spool.spool import Spool, SpoolStatus

log = logging.getLogger("agent_logger.proxy")
ORDER_SECONDS = 5.0  # time for a worker to carry out an order


class RelayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a process that listens."""

    pid: int
    open_clients: int
    spool: SpoolStatus
    refused: int = 0  # requests that it answered itself
    forward: ForwardStatus = ForwardStatus()

    @classmethod
    def of(cls, relay: Relay, own: Spool) -> "RelayStatus":
        return cls(
            pid=os.getpid(),
            open_clients=len(relay.clients),
            spool=own.status(),
            refused=relay.reporter.refusals.total,
            forward=relay.forward.status(),
        )


class _WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a worker: one of these fields is set."""

    ready: bool = False  # it has started, and will listen when it has the runs that are registered by now
    credential: CredentialFrame | None = None
    status: RelayStatus | None = None
    recreated: bool = False  # the log folder, which had been removed
    done: int | None = None  # the number of an order
    traffic: RunTraffic = RunTraffic()  # what it has relayed with the token of that order


class _Order(msgspec.Struct, frozen=True, kw_only=True):
    """An order to a worker about runs: one of the fields is set; with none, the worker only reports what it relayed
    with a token."""

    number: int
    register: RegisterRun | None = None
    withdraw: bool = False
    token: str = ""


class _KnownRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that are registered when a worker is ready. Each later one is an order."""

    runs: list[RegisterRun]


# ---------------------------------------------------------------- the proxy's side


class Workers:
    """The workers without the first, which is the proxy itself. Each has a thread that calls `send_credential` and
    `on_recreated`."""

    def __init__(
        self,
        options: RelayOptions,
        port: int,
        send_credential: Callable[[CredentialFrame], object],
        on_recreated: Callable[[], object],
    ) -> None:
        # A worker gets its options on its standard input: none of them may be visible in a process list.
        job = msgspec.msgpack.encode(replace(options, port=port, port_is_chosen=True), enc_hook=str)
        self._runs: dict[str, RegisterRun] = {}
        self._workers = [
            _Worker(job, self._registered, send_credential, on_recreated) for _ in range(options.workers - 1)
        ]

    def _registered(self) -> list[RegisterRun]:
        return list(self._runs.values())

    def register(self, run: RegisterRun) -> None:
        """Register a run with all workers, those to come included."""
        self._runs[run.token] = run
        for worker in self._workers:
            worker.order(register=run)

    def withdraw(self, token: str) -> None:
        self._runs.pop(token, None)
        for worker in self._workers:
            worker.order(token=token, withdraw=True)

    def traffic_of(self, token: str) -> list[RunTraffic]:
        """What each of the workers has relayed with this token."""
        return [worker.order(token=token) for worker in self._workers]

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
        self,
        job: bytes,
        registered: Callable[[], list[RegisterRun]],
        send_credential: Callable[[CredentialFrame], object],
        on_recreated: Callable[[], object],
    ) -> None:
        self.starts = self.refused_before = 0
        self.status: RelayStatus | None = None  # set while the worker listens
        self._job, self._send_credential, self._on_recreated = job, send_credential, on_recreated
        self._registered = registered
        self._ordering, self._answered = threading.Lock(), threading.Condition()
        self._orders, self._takes_orders = 0, False
        self._done: dict[int, RunTraffic] = {}  # what the worker reported, by the number of the order
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

    def order(self, *, register: RegisterRun | None = None, withdraw: bool = False, token: str = "") -> RunTraffic:
        """Tell the worker about a run, and wait until it has done so. Returns what it has relayed for the token. A
        worker that has died gets all runs when it is replaced."""
        with self._ordering:
            process, self._orders = self._process, self._orders + 1
            number = self._orders
            order = _Order(number=number, register=register, withdraw=withdraw, token=token)
            if process is None or process.stdin is None or not self._takes_orders:
                return RunTraffic()
            with contextlib.suppress(OSError, ValueError):  # the worker died
                process.stdin.write(pipe.message(order))
                process.stdin.flush()
        with self._answered:
            self._answered.wait_for(lambda: number in self._done or not self._takes_orders, ORDER_SECONDS)
            return self._done.pop(number, RunTraffic())

    def _run(self) -> None:
        restarts = Restarts()
        while process := self._start(restarts):
            with contextlib.suppress(BrokenPipeError), process:  # the worker died before it read its job
                self._attend(process)
            self.refused_before += self.status.refused if self.status else 0
            with self._answered:
                self.status, self._takes_orders = None, False
                self._answered.notify_all()
            # Only now: Ctrl-C in a terminal ends it, too, and it may have been quicker than the proxy.
            if not self._stopping.wait(restarts.pause_seconds()):
                log.warning("a worker stopped (%s); starting another one", process.returncode)

    def _start(self, restarts: Restarts) -> subprocess.Popen[bytes] | None:
        """Start a process, and retry until that succeeds. `None` when no more are to be started."""
        argv = platform.module_command(__name__)
        while True:
            with self._starting:
                if self._stopping.is_set():
                    return None
                restarts.begin()
                try:
                    self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                except OSError as error:
                    log.warning("cannot start a worker: %s", error)
                else:
                    self.starts += 1
                    return self._process
            self._stopping.wait(restarts.pause_seconds())

    def _attend(self, process: subprocess.Popen[bytes]) -> None:
        """Serve a worker until it ends."""
        assert process.stdin and process.stdout
        process.stdin.write(pipe.LENGTH.pack(len(self._job)) + self._job)
        process.stdin.flush()
        while data := _read(process.stdout):
            message = msgspec.msgpack.decode(data, type=_WorkerReport)
            if message.ready:
                self._send_known_runs(process.stdin)
            if message.status:
                self.status = message.status
            if message.credential:
                self._send_credential(message.credential)
            if message.recreated:
                self._on_recreated()
            if message.done is not None:
                with self._answered:
                    self._done[message.done] = message.traffic
                    self._answered.notify_all()

    def _send_known_runs(self, stdin: IO[bytes]) -> None:
        """Send the runs that are registered by now. The worker does not listen before it has them, and `order` waits
        for it from now on: a request of a registered run never reaches a worker that does not know the run."""
        with self._ordering:
            stdin.write(pipe.message(_KnownRuns(runs=self._registered())))
            stdin.flush()
            self._takes_orders = True


def _read(stream: IO[bytes]) -> bytes | None:
    """Read a message. `None` at the end of the stream, which may be in the middle of a message if its writer was
    killed."""
    head = stream.read(pipe.LENGTH.size)
    if len(head) < pipe.LENGTH.size:
        return None
    length = pipe.LENGTH.unpack(head)[0]
    message = stream.read(length)
    return message if len(message) == length else None


# ---------------------------------------------------------------- the worker's side


_writing = threading.Lock()  # the spool has a thread of its own


def _report(report: _WorkerReport) -> None:
    with _writing, contextlib.suppress(BrokenPipeError):  # the parent is gone, and so is its recorder
        os.write(1, pipe.message(report))


def _take_orders(relay: Relay, loop: asyncio.AbstractEventLoop) -> None:
    """Do as the proxy says, until it is gone."""
    while data := _read(sys.stdin.buffer):
        order = msgspec.msgpack.decode(data, type=_Order)
        traffic = RunTraffic()
        with contextlib.suppress(TimeoutError, RuntimeError):  # a loop that is busy does it later, a closed one never
            traffic = relay_process.in_loop(loop, partial(_carry_out, relay, order))
        _report(_WorkerReport(done=order.number, traffic=traffic))


def _carry_out(relay: Relay, order: _Order) -> RunTraffic:
    if order.register and not relay.routes.run_of(order.register.token):
        relay_process.register(relay, order.register)
    traffic = relay_process.traffic_of(relay, order.token)
    if order.withdraw:
        relay_process.withdraw(relay, order.token)
    return traffic


async def _work(options: RelayOptions, own: Spool, registered: list[RegisterRun]) -> None:
    relay = await relay_process.listen(options, own, registered)
    orders = partial(_take_orders, relay, asyncio.get_running_loop())
    threading.Thread(target=orders, name="agent-logger-orders", daemon=True).start()
    stopping = Stopping(is_worker=True)
    parent = os.getppid()
    while os.getppid() == parent:
        _report(_WorkerReport(status=RelayStatus.of(relay, own)))
        if await stopping.within(STATUS_SECONDS):
            break
    await stopping.unless_now(relay.stop(DRAIN_SECONDS))


def main() -> None:
    argparse.ArgumentParser(description="An additional worker; `agent-logger proxy` starts it.").parse_args()
    raise_descriptors()
    data = _read(sys.stdin.buffer)
    if data is None:
        return
    options = msgspec.msgpack.decode(data, type=RelayOptions, dec_hook=lambda _, path: Path(path))
    own = Spool(
        spool_folder(options.log_dir),
        send_credential=lambda credential: _report(_WorkerReport(credential=credential)),
        on_recreated=lambda: _report(_WorkerReport(recreated=True)),
    )
    relay_process.tune_memory()
    _report(_WorkerReport(ready=True))
    runs = _read(sys.stdin.buffer)
    registered = msgspec.msgpack.decode(runs, type=_KnownRuns).runs if runs else []
    try:
        uvloop.run(_work(options, own, registered))
    finally:
        relay_process.close(own)


if __name__ == "__main__":
    main()
