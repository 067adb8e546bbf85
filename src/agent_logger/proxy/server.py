"""The proxy as a whole: a relay, its spool, the recorder behind it, further workers, and its state file."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

import msgspec
import uvloop

from agent_logger import __version__
from agent_logger.clock import CLOCK
from agent_logger.home import layout
from agent_logger.platform import NoLocksError, replace_file
from agent_logger.proxy import relay_process
from agent_logger.proxy.call_lines import Show
from agent_logger.proxy.recorder_process import Recorder
from agent_logger.proxy.relay.limits import raise_descriptors
from agent_logger.proxy.relay.relay import Relay
from agent_logger.proxy.relay.route import PROVIDERS
from agent_logger.proxy.relay_process import DRAIN_SECONDS, STATUS_SECONDS, RelayOptions, Stopping
from agent_logger.proxy.spool import spool
from agent_logger.proxy.spool.spool import Spool
from agent_logger.proxy.state import Announcement, ProxyState
from agent_logger.proxy.workers import RelayStatus, Workers


class RelaysStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `<log_dir>/.spool/relay.json`, rewritten every second."""

    pid: int
    ts: str
    workers: int  # that there are to be
    replaced: int  # of them, because they had died
    relays: list[RelayStatus]  # those that listen, the proxy's own first
    refused: int = 0  # requests, since the proxy began


def run(options: RelayOptions, ready: Callable[[int], None], show: Show | None = None) -> None:
    """Record until SIGTERM or SIGINT. `ready` is called with the port, `show` with each call that was recorded.

    Raises `StoreError`: the folder cannot be recorded to, or the port is taken.
    """
    raise_descriptors()
    layout.install_key(options.home)  # the recorder cannot do without, and could tell nobody
    owner = spool.own(options.log_dir, PROVIDERS)
    recorder = Recorder(
        options.log_dir,
        options.home,
        patterns=options.patterns,
        seal_after_seconds=options.seal_after_seconds,
        show=show,
        before_start=owner.stay,
    )
    try:
        folder = spool.spool_folder(options.log_dir)
        own = Spool(folder, tell=recorder.send, begun_anew=lambda: _stay(owner))
        try:
            relay_process.tune_gc()
            uvloop.run(_serve(options, owner, own, recorder, ready))
        finally:
            relay_process.close(own)
    finally:
        recorder.stop()
        owner.close()


def _stay(owner: spool.Owner) -> None:
    with contextlib.suppress(OSError):  # it is tried every second
        owner.stay()


async def _serve(
    options: RelayOptions,
    owner: spool.Owner,
    own: Spool,
    recorder: Recorder,
    ready: Callable[[int], None],
) -> None:
    relay = await relay_process.listen(options, own)
    owner.listening(relay.port)
    workers = Workers(options, relay.port, recorder.send, lambda: _stay(owner))
    announcement = Announcement(options.home, _state(options, relay.port))
    stopping = Stopping()
    try:
        ready(relay.port)
        with _telling(lambda: _tell(options, owner, relay, own, workers)):
            await stopping.requested()
        workers.terminate()
        if not await stopping.unless_now(relay.stop(DRAIN_SECONDS)):
            workers.hurry()
    finally:
        announcement.close()
        workers.close()


def _state(options: RelayOptions, port: int) -> ProxyState:
    return ProxyState(
        pid=os.getpid(),
        started=CLOCK.now(),
        port=port,
        log_dir=str(options.log_dir),
        version=__version__,
        upstream_proxy=_without_password(options.https_proxy),
        allow_upstream=tuple(map(str, options.allow)),
    )


def _without_password(url: str) -> str | None:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if rest else url or None


@contextlib.contextmanager
def _telling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` every second, in a thread of its own: a disk may be slow, and no call may wait for it."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(STATUS_SECONDS):
            with contextlib.suppress(OSError, NoLocksError):  # the disk is full: nothing else waits for this
                tell()

    threading.Thread(target=run, name="agent-logger-status", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _tell(options: RelayOptions, owner: spool.Owner, relay: Relay, own: Spool, workers: Workers) -> None:
    relays = [RelayStatus.of(relay, own), *workers.statuses()]
    status = RelaysStatus(
        pid=os.getpid(),
        ts=CLOCK.now(),
        workers=options.workers,
        replaced=workers.replaced,
        relays=relays,
        refused=sum(relay.refused for relay in relays) + workers.refused_before,
    )
    owner.stay()
    path = spool.spool_folder(options.log_dir) / "relay.json"
    replace_file(path, msgspec.json.encode(status), top=options.log_dir)
