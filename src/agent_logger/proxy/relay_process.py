"""What each process that relays does: its options, its port, the signals that end it, the closing of its spool.

The proxy is such a process, and so are its workers.
"""

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path

from agent_logger.config import Origin
from agent_logger.errors import StoreError
from agent_logger.proxy.relay.call import Tap
from agent_logger.proxy.relay.relay import Relay
from agent_logger.proxy.spool.spool import Spool

PORTS_TO_TRY = 20
DRAIN_SECONDS = 30.0
STATUS_SECONDS = 1.0

log = logging.getLogger("agent_logger.proxy")


@dataclass(frozen=True, kw_only=True)
class RelayOptions:
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


async def listen(options: RelayOptions, tap: Tap) -> Relay:
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


def _relay(options: RelayOptions, port: int, tap: Tap) -> Relay:
    return Relay(
        port,
        options.allow,
        tap,
        https_proxy=options.https_proxy,
        no_proxy=options.no_proxy,
        ca_file=options.ca_file,
        workers=options.workers,
    )


def tune_gc() -> None:
    """Collect garbage less often: calls make many short-lived objects and hardly any cycles, so looking for cycles is
    wasted."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


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
