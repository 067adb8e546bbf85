"""A proxy of our own beside us: a process that records for as long as we run, however we end."""

import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from agent_logger import config
from agent_logger.config import child_environment
from agent_logger.errors import StoreError
from agent_logger.platform import NoLocksError
from agent_logger.proxy.attended import attended
from agent_logger.proxy.state import is_used

STOP_SECONDS = 30.0
LOOK_SECONDS = 0.5


@contextmanager
def attached(log_dir: Path, allow: Sequence[str] = (), *, home: Path | None = None) -> Iterator[int]:
    """Start a proxy, and yield its port. On leaving, every call is in the log. Raises `StoreError` if it does not
    start."""
    allowed = [word for origin in allow for word in ("--allow-upstream", origin)]
    process = attended(
        *("proxy", "--port", "0", "--log-dir", str(log_dir), *allowed),
        environment=child_environment(**({"AGENT_LOGGER_HOME": str(home)} if home else {})),
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stderr
    try:
        line = process.stderr.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if not match or process.poll() is not None:
            process.stderr.close()
            raise StoreError(line.strip().removeprefix("agent-logger: ") or "the proxy did not start")
        threading.Thread(target=_leave_unread, args=[process.stderr], daemon=True).start()
        yield int(match[1])
    finally:
        process.stdin.close()
        _wait(process, home or config.home())


def _wait(process: subprocess.Popen[str], home: Path) -> None:
    """Wait for the proxy to end; leave it alone if its calls take too long, or if others use it."""
    give_up = time.monotonic() + STOP_SECONDS
    while process.poll() is None and time.monotonic() < give_up:
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_SECONDS)
            return
        with suppress(OSError, NoLocksError):
            if is_used(home, process.pid):
                return


def _leave_unread(stream: IO[str]) -> None:
    """Read and discard the output: a full pipe would block the proxy, and every agent with it."""
    with stream:
        for _ in stream:
            pass
