"""A proxy of our own beside us: a process that records for as long as we run, however we end."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_logger import config
from agent_logger.clock import CLOCK
from agent_logger.proxy.runs.messages import RegisterRun, new_token
from agent_logger.proxy.runs.processes import start_time
from agent_logger.proxy.runs.shared import connections, start

STOP_SECONDS = 30.0
LOOK_SECONDS = 0.02


@contextlib.contextmanager
def attached(log_dir: Path, allow: Sequence[str] = (), *, home: Path | None = None) -> Iterator[int]:
    """Start a proxy, and yield its port. On leaving, every call is in the log. Raises `StoreError` if it does not
    start."""
    home = home or config.home()
    start(home, log_dir, allow)
    with next(connections(home, log_dir.absolute())) as connection:
        # The proxy stays while we are connected, and ends by itself if we are killed.
        connection.ask(RegisterRun(id=CLOCK.uuid7(), token=new_token(), origins=(), network=config.network()))
        yield connection.state.port
        _stop(connection.state.pid)


def _stop(pid: int) -> None:
    """End the proxy, and wait until it has recorded everything. A call that takes too long is left to it."""
    started, give_up = start_time(pid), time.monotonic() + STOP_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while started and start_time(pid) == started and time.monotonic() < give_up:
        time.sleep(LOOK_SECONDS)
