"""What each process that relays does: its options, its port, the signals that end it, the closing of its spool.

The proxy is such a process, and so are its workers.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent_logger import platform
from agent_logger.config import Network, Origin
from agent_logger.errors import StoreError
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.forward.traffic import RunTraffic
from agent_logger.proxy.relay.call import Tap
from agent_logger.proxy.relay.relay import Relay
from agent_logger.proxy.relay.route import RegisteredRun
from agent_logger.proxy.runs.messages import RegisterRun
from agent_logger.proxy.spool.spool import Spool

PORTS_TO_TRY = 20
DRAIN_SECONDS = 30.0
STATUS_SECONDS = 1.0

NO_NETWORK = Network()  # no proxy on the way, the system's certificates
FREED_BYTES = 16 << 20  # freed memory that is kept for later
LOOP_SECONDS = 10.0  # time for work in a loop that another thread waits for

log = logging.getLogger("agent_logger.proxy")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RelayOptions:
    port: int
    port_is_chosen: bool  # whether a user chose the port: then no other port will do
    log_dir: Path
    home: Path
    allow: tuple[Origin, ...] = ()
    patterns: bool = True
    seal_after_seconds: float | None = 86_400.0
    workers: int = 1
    network: Network = NO_NETWORK
    ends_unused: bool = False  # whether it ends when no run and no shell uses it any more


async def listen(options: RelayOptions, tap: Tap, registered: Sequence[RegisterRun] = ()) -> Relay:
    """Listen on the port of the options. Requests of the registered runs are relayed from the first on."""
    # Each run says which hosts the certificate permits that it was started with.
    authority = Authority(options.home, RecordedHosts.configured(()))
    ports = [options.port]
    if not options.port_is_chosen and options.port:
        ports = list(range(options.port, min(options.port + PORTS_TO_TRY, 65536)))
    for port in ports:
        relay = Relay(
            port,
            options.allow,
            tap,
            network=options.network,
            workers=options.workers,
            certificates=authority,
        )
        for run in registered:
            register(relay, run)
        try:
            await relay.start()
        except OSError as error:
            problem = error
        else:
            return relay
    raise StoreError(
        f"cannot listen on 127.0.0.1:{options.port}: {os.strerror(problem.errno or 0)}; choose another --port"
    )


def register(relay: Relay, message: RegisterRun) -> RegisteredRun:
    """Register a run with a relay, in its loop."""
    origins = [Origin.parse(origin) for origin in message.origins]
    run = relay.routes.register(message.id, message.token, origins, message.network)
    relay.forward.register(run, origins, message.record_hosts)
    return run


def withdraw(relay: Relay, token: str) -> None:
    """End the registration of a run with a relay, in its loop."""
    relay.routes.withdraw(token)
    relay.forward.withdraw(token)


def traffic_of(relay: Relay, token: str) -> RunTraffic:
    """What a relay has relayed of a run; in its loop."""
    run = relay.routes.run_of(token)
    return RunTraffic(
        calls=run.calls if run else 0,
        hosts=relay.forward.hosts_of(token),
        connections=relay.forward.connections_of(token),
    )


def in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> T:
    """Do work in the thread of a loop, and wait for it. For other threads."""
    done: Future[T] = Future()

    def do() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    loop.call_soon_threadsafe(do)
    return done.result(LOOP_SECONDS)


def tune_memory() -> None:
    """Collect garbage less often: calls make many short-lived objects and hardly any cycles, so looking for cycles is
    wasted. And keep freed memory for the next large body: fresh pages take longer to get than a body to copy."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    platform.keep_freed_memory(FREED_BYTES)


def close(own: Spool) -> None:
    if not own.close():
        left = own.status()
        log.warning(
            "%d bytes of the last calls could not be written (%s) and are lost",
            left.waiting_bytes,
            left.problem,
        )


class Stopping:
    """The handler of SIGTERM and SIGINT: the first signal asks to finish, a second one to do so now.

    A worker hurries on SIGUSR1 only. It ignores a second SIGTERM or SIGINT, because terminals and service managers send
    those to all processes, and the proxy then passes the request on.
    """

    def __init__(self, *, is_worker: bool = False) -> None:
        self._stop_event, self._now = asyncio.Event(), asyncio.Event()
        self._is_worker = is_worker
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask)
        if is_worker:
            loop.add_signal_handler(signal.SIGUSR1, self._now.set)

    def _ask(self) -> None:
        (self._now if self._stop_event.is_set() and not self._is_worker else self._stop_event).set()

    def request(self) -> None:
        """Do as the first signal does."""
        self._stop_event.set()

    async def requested(self) -> None:
        await self._stop_event.wait()

    async def within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop_event.wait(), seconds)
        return self._stop_event.is_set()

    async def unless_now(self, work: Coroutine[None, None, None]) -> bool:
        """Wait until the work is done. `False` if a second signal came first: then the work is cancelled."""
        task, now = asyncio.ensure_future(work), asyncio.ensure_future(self._now.wait())
        await asyncio.wait([task, now], return_when=asyncio.FIRST_COMPLETED)
        done = task.done()
        task.cancel()
        now.cancel()
        await asyncio.gather(task, now, return_exceptions=True)
        return done
