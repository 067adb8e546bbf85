"""The proxy as a whole: a relay, its spool, the recorder behind it, further workers, its socket for runs, and its state
file."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator

import msgspec
import uvloop

from agent_logger import __version__
from agent_logger.clock import CLOCK
from agent_logger.home import layout
from agent_logger.platform import NoLocksError, replace_file
from agent_logger.proxy import relay_process
from agent_logger.proxy.call_lines import CallLine, Show
from agent_logger.proxy.forward.traffic import ForwardStatus, RunTraffic
from agent_logger.proxy.recorder_process import Recorder
from agent_logger.proxy.relay.limits import raise_descriptors
from agent_logger.proxy.relay.relay import Relay
from agent_logger.proxy.relay.route import PROVIDERS, RegisteredRun
from agent_logger.proxy.relay_process import DRAIN_SECONDS, STATUS_SECONDS, RelayOptions, Stopping
from agent_logger.proxy.runs.leases import Leases
from agent_logger.proxy.runs.messages import RegisterRun
from agent_logger.proxy.runs.server import RunCalls, RunServer, RunTable
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.owner import FolderOwnedError, Owner, own
from agent_logger.proxy.spool.spool import Spool
from agent_logger.proxy.state import Announcement, ProxyState
from agent_logger.proxy.workers import RelayStatus, Workers

OWN_SECONDS, OWN_LOOK_SECONDS = 10.0, 0.02


class RelaysStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `<log_dir>/.spool/relay.json`, rewritten every second."""

    pid: int
    ts: str
    workers: int  # the number of workers that should run
    replaced: int  # workers that were replaced because they had died
    relays: list[RelayStatus]  # the relays that listen, the proxy's own first
    refused: int = 0  # requests, since the proxy began
    forward: ForwardStatus = ForwardStatus()


def run(options: RelayOptions, ready: Callable[[int], None], show: Show | None = None) -> None:
    """Record until SIGTERM or SIGINT. `ready` is called with the port, `show` with each call that was recorded.

    Raises `StoreError`: the folder cannot be recorded to, or the port is taken.
    """
    raise_descriptors()
    layout.install_key(options.home)  # the recorder needs the key, and could not report that it is missing
    owner = _own(options)
    calls = RunCalls()

    def recorded(line: CallLine) -> None:
        calls.add(line)
        if show:
            show(line)

    recorder = Recorder(
        options.log_dir,
        options.home,
        patterns=options.patterns,
        seal_after_seconds=options.seal_after_seconds,
        show=recorded,
        shows_all=show is not None,
        before_start=owner.stay,
    )
    try:
        folder = spool_folder(options.log_dir)
        spool = Spool(folder, send_credential=recorder.send, on_recreated=lambda: _stay(owner))
        try:
            relay_process.tune_memory()
            uvloop.run(_serve(options, owner, spool, recorder, calls, ready))
        finally:
            relay_process.close(spool)
    finally:
        recorder.stop()
        owner.close()


def _own(options: RelayOptions) -> Owner:
    """Become the owner of the log folder. A shared proxy may have to wait for the one before it to end."""
    give_up = time.monotonic() + (OWN_SECONDS if options.ends_unused else 0.0)
    while True:
        try:
            return own(options.log_dir, PROVIDERS)
        except FolderOwnedError:
            if time.monotonic() >= give_up:
                raise
        time.sleep(OWN_LOOK_SECONDS)


def _stay(owner: Owner) -> None:
    with contextlib.suppress(OSError):  # the next attempt is a second later
        owner.stay()


async def _serve(
    options: RelayOptions,
    owner: Owner,
    spool: Spool,
    recorder: Recorder,
    calls: RunCalls,
    ready: Callable[[int], None],
) -> None:
    relay = await relay_process.listen(options, spool)
    owner.listening(relay.port)
    workers = Workers(options, relay.port, recorder.send, lambda: _stay(owner))
    stopping = Stopping()
    with _run_server(options, relay, workers, calls, stopping) as socket_path:
        announcement = Announcement(options.home, _state(options, relay.port, socket_path))
        try:
            ready(relay.port)
            with _each_second(lambda: _write_status(options, owner, relay, spool, workers)):
                await stopping.requested()
        finally:
            announcement.close()  # first: a run that looks now is to start another proxy
    workers.terminate()
    try:
        if not await stopping.unless_now(relay.stop(DRAIN_SECONDS)):
            workers.hurry()
    finally:
        workers.close()


@contextlib.contextmanager
def _run_server(
    options: RelayOptions, relay: Relay, workers: Workers, calls: RunCalls, stopping: Stopping
) -> Iterator[str]:
    """Take registrations of runs. Yields the path of the socket."""
    loop = asyncio.get_running_loop()

    def register(message: RegisterRun) -> RegisteredRun:
        run = relay_process.in_loop(loop, lambda: relay_process.register(relay, message))
        workers.register(message)
        return run

    def withdraw(token: str) -> None:
        workers.withdraw(token)
        with contextlib.suppress(TimeoutError, RuntimeError):  # a loop that is stuck or closed takes no requests
            relay_process.in_loop(loop, lambda: relay_process.withdraw(relay, token))

    def unused() -> None:
        loop.call_soon_threadsafe(stopping.request)

    def traffic_of(token: str) -> RunTraffic:
        own = relay_process.in_loop(loop, lambda: relay_process.traffic_of(relay, token))
        return RunTraffic.sum([own, *workers.traffic_of(token)])

    def is_in_use(token: str) -> bool:
        with contextlib.suppress(TimeoutError, RuntimeError):
            return traffic_of(token).connections > 0
        return False

    table = RunTable(register, withdraw, calls, traffic_of)
    leases = Leases(table.remove, unused if options.ends_unused else None, is_in_use)
    server = RunServer(options.home, table, leases)
    try:
        yield server.path
    finally:
        server.close()
        leases.close()


def _state(options: RelayOptions, port: int, socket_path: str) -> ProxyState:
    return ProxyState(
        pid=os.getpid(),
        started=CLOCK.now(),
        port=port,
        log_dir=str(options.log_dir),
        version=__version__,
        upstream_proxy=_without_password(options.network.https_proxy),
        allow_upstream=tuple(map(str, options.allow)),
        socket=socket_path,
        has_forward_door=True,
    )


def _without_password(url: str) -> str | None:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if rest else url or None


@contextlib.contextmanager
def _each_second(work: Callable[[], None]) -> Iterator[None]:
    """Do work every second, in a thread of its own: a disk may be slow, and no call may wait for it."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(STATUS_SECONDS):
            with contextlib.suppress(OSError, NoLocksError):  # the disk is full: nothing else waits for this
                work()

    threading.Thread(target=run, name="agent-logger-status", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _write_status(options: RelayOptions, owner: Owner, relay: Relay, spool: Spool, workers: Workers) -> None:
    relays = [RelayStatus.of(relay, spool), *workers.statuses()]
    status = RelaysStatus(
        pid=os.getpid(),
        ts=CLOCK.now(),
        workers=options.workers,
        replaced=workers.replaced,
        relays=relays,
        refused=sum(relay.refused for relay in relays) + workers.refused_before,
        forward=ForwardStatus.sum(relay.forward for relay in relays),
    )
    owner.stay()
    path = spool_folder(options.log_dir) / "relay.json"
    replace_file(path, msgspec.json.encode(status), top=options.log_dir)
