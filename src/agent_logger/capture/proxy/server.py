"""The proxy as a whole: a relay, its spool, the recorder behind it, and the word that it runs.

Each further worker is a process with a relay and a spool of its own, on the same port; what credentials it sees it
tells us over a pipe, for the recorder has one proxy to listen to.
"""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

import msgspec
import uvloop

from agent_logger import __version__
from agent_logger.capture.proxy.lines import Show
from agent_logger.capture.proxy.recorder import pipe
from agent_logger.capture.proxy.recorder.supervisor import Recorder
from agent_logger.capture.proxy.relay.call import Tap
from agent_logger.capture.proxy.relay.limits import raise_descriptors
from agent_logger.capture.proxy.relay.relay import Relay
from agent_logger.capture.proxy.spool import spool
from agent_logger.capture.proxy.spool.frames import Credential
from agent_logger.capture.proxy.spool.spool import Spool, SpoolStatus
from agent_logger.capture.proxy.state import Announcement, State
from agent_logger.config import Origin
from agent_logger.errors import StoreError
from agent_logger.store import layout
from agent_logger.store.clock import CLOCK
from agent_logger.store.platform import replace_file

PORTS_TO_TRY = 20
DRAIN_SECONDS = 30.0
STATUS_SECONDS = 1.0

log = logging.getLogger("agent_logger.proxy")


@dataclass(frozen=True, kw_only=True)
class Options:
    port: int
    port_is_chosen: bool  # by somebody: then no other will do
    log_dir: Path
    home: Path
    allow: tuple[Origin, ...] = ()
    patterns: bool = True
    seal_after_seconds: float | None = 86_400.0
    workers: int = 1
    https_proxy: str = ""
    no_proxy: str = ""
    ca_file: str = ""


class RelayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`<log_dir>/.spool/relay.json`, written anew every second."""

    pid: int
    ts: str
    open_clients: int
    spool: SpoolStatus


def run(options: Options, ready: Callable[[int], None], show: Show | None = None) -> None:
    """Record until SIGTERM or SIGINT. `ready` is told the port, `show` each call that was recorded.

    Raises `StoreError`: the folder cannot be recorded to, or the port is taken.
    """
    raise_descriptors()
    layout.install_key(options.home)  # the recorder cannot do without, and could tell nobody
    owner = spool.own(options.log_dir)
    recorder = Recorder(
        options.log_dir,
        options.home,
        patterns=options.patterns,
        seal_after_seconds=options.seal_after_seconds,
        show=show,
    )
    try:
        own = Spool(spool.spool_folder(options.log_dir), tell=recorder.send)
        try:
            _spare_the_collector()
            uvloop.run(_serve(options, owner, own, recorder, ready))
        finally:
            _close(own)
    finally:
        recorder.stop()
        owner.close()


def _close(own: Spool) -> None:
    if not own.close():
        left = own.status()
        log.warning(
            "%d bytes of the last calls could not be written (%s) and are lost",
            left.waiting_bytes,
            left.problem,
        )


def _spare_the_collector() -> None:
    """Calls make many short-lived objects and hardly a cycle: looking for some often is wasted."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


async def _serve(
    options: Options,
    owner: spool.Owner,
    own: Spool,
    recorder: Recorder,
    ready: Callable[[int], None],
) -> None:
    relay = await _listen(options, own)
    owner.listening(relay.port)
    workers = [Worker(options, relay.port, recorder.send) for _ in range(options.workers - 1)]
    state = State(
        pid=os.getpid(),
        started=CLOCK.now(),
        port=relay.port,
        log_dir=str(options.log_dir),
        version=__version__,
        upstream_proxy=_without_password(options.https_proxy),
    )
    announcement = Announcement(options.home, state)
    stopping = Stopping()
    try:
        ready(relay.port)
        ended = threading.Event()
        telling = threading.Thread(
            target=_tell,
            args=(options.log_dir, relay, own, owner, ended),
            name="agent-logger-status",
            daemon=True,
        )
        telling.start()
        await stopping.asked()
        ended.set()
        for worker in workers:
            worker.terminate()
        if not await stopping.unless_now(relay.stop(DRAIN_SECONDS)):
            for worker in workers:
                worker.hurry()
    finally:
        announcement.close()
        for worker in workers:
            worker.end()


async def _listen(options: Options, tap: Tap) -> Relay:
    ports = [options.port]
    if not options.port_is_chosen and options.port:
        ports = list(range(options.port, min(options.port + PORTS_TO_TRY, 65536)))
    for port in ports:
        relay = _relay(options, port, tap)
        try:
            await relay.start()
        except OSError as error:
            problem = error
        else:
            return relay
    raise StoreError(f"cannot listen on 127.0.0.1:{options.port}: {problem.strerror}; choose another --port")


def _relay(options: Options, port: int, tap: Tap) -> Relay:
    return Relay(
        port,
        options.allow,
        tap,
        https_proxy=options.https_proxy,
        no_proxy=options.no_proxy,
        ca_file=options.ca_file,
        share_port=options.workers > 1,
    )


def _tell(log_dir: Path, relay: Relay, own: Spool, owner: spool.Owner, ended: threading.Event) -> None:
    """In a thread of its own, for a disk may be slow, and no call is to wait for it."""
    while not ended.wait(STATUS_SECONDS):
        status = RelayStatus(
            pid=os.getpid(), ts=CLOCK.now(), open_clients=len(relay.clients), spool=own.status()
        )
        with contextlib.suppress(OSError):  # the disk is full: nothing else waits for this
            owner.stay(relay.port)
            replace_file(spool.spool_folder(log_dir) / "relay.json", msgspec.json.encode(status))


def _without_password(url: str) -> str | None:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if rest else url or None


class Stopping:
    """SIGTERM and SIGINT: the first one asks to finish, a second one to do so now.

    A worker is told to hurry by SIGUSR1. The others do not count for it, for a terminal and a service manager send
    them to all of us, and then we do.
    """

    def __init__(self, *, is_worker: bool = False) -> None:
        self._asked, self._now = asyncio.Event(), asyncio.Event()
        self._is_worker = is_worker
        loop = asyncio.get_running_loop()
        for wanted in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(wanted, self._ask)
        if is_worker:
            loop.add_signal_handler(signal.SIGUSR1, self._now.set)

    def _ask(self) -> None:
        (self._now if self._asked.is_set() and not self._is_worker else self._asked).set()

    async def asked(self) -> None:
        await self._asked.wait()

    async def within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), seconds)
        return self._asked.is_set()

    async def unless_now(self, work: Coroutine[None, None, None]) -> bool:
        """Until it is done, or somebody cannot wait: then `False`."""
        task, now = asyncio.ensure_future(work), asyncio.ensure_future(self._now.wait())
        await asyncio.wait([task, now], return_when=asyncio.FIRST_COMPLETED)
        done = task.done()
        task.cancel()
        now.cancel()
        await asyncio.gather(task, now, return_exceptions=True)
        return done


# ---------------------------------------------------------------- further workers


class Worker:
    """Another process with a relay on our port."""

    def __init__(self, options: Options, port: int, tell: Callable[[Credential], object]) -> None:
        self._tell = tell
        argv = [sys.executable, "-m", "agent_logger.capture.proxy.server"]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin
        self._process.stdin.write(msgspec.msgpack.encode(_Job.of(options, port)))
        self._process.stdin.close()
        self._thread = threading.Thread(target=self._listen, name="agent-logger-worker", daemon=True)
        self._thread.start()

    def terminate(self) -> None:
        self._process.terminate()

    def hurry(self) -> None:
        self._process.send_signal(signal.SIGUSR1)

    def end(self) -> None:
        self._process.wait(DRAIN_SECONDS + 5)
        self._thread.join(5)

    def _listen(self) -> None:
        assert self._process.stdout
        with self._process.stdout as stream:
            while head := stream.read(pipe.LENGTH.size):
                message = stream.read(pipe.LENGTH.unpack(head)[0])
                self._tell(msgspec.msgpack.decode(message, type=Credential))


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told on its standard input: nothing of it may stand in a process list."""

    port: int
    log_dir: str
    allow: list[str]
    workers: int
    https_proxy: str
    no_proxy: str
    ca_file: str

    @classmethod
    def of(cls, options: Options, port: int) -> "_Job":
        return cls(
            port=port,
            log_dir=str(options.log_dir),
            allow=[str(origin) for origin in options.allow],
            workers=options.workers,
            https_proxy=options.https_proxy,
            no_proxy=options.no_proxy,
            ca_file=options.ca_file,
        )

    def options(self) -> Options:
        return Options(
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


def _tell_parent(credential: Credential) -> None:
    with contextlib.suppress(BrokenPipeError):  # the parent is gone, and so is its recorder
        os.write(1, pipe.message(credential))


async def _work(options: Options, own: Spool) -> None:
    relay = await _listen(options, own)
    stopping = Stopping(is_worker=True)
    parent = os.getppid()
    while not await stopping.within(STATUS_SECONDS) and os.getppid() == parent:
        pass
    await stopping.unless_now(relay.stop(DRAIN_SECONDS))


def main() -> None:
    argparse.ArgumentParser(description="A further worker; `agent-logger proxy` starts it.").parse_args()
    raise_descriptors()
    options = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Job).options()
    own = Spool(spool.spool_folder(options.log_dir), tell=_tell_parent)
    _spare_the_collector()
    try:
        uvloop.run(_work(options, own))
    finally:
        _close(own)


if __name__ == "__main__":
    main()
