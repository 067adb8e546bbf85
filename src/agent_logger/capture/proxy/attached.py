"""A proxy of our own beside us: a process that records for as long as we run, however we end."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from runpy import run_module

from agent_logger.config import child_environment
from agent_logger.errors import StoreError

STOP_SECONDS = 30.0


@contextmanager
def attached(log_dir: Path, allow: Sequence[str] = (), *, home: Path | None = None) -> Iterator[int]:
    """Its port. On leaving, every call is in the log. Raises `StoreError` if it does not start."""
    command = [sys.executable, "-m", __name__, "proxy", "--port", "0", "--log-dir", str(log_dir)]
    command += [word for origin in allow for word in ("--allow-upstream", origin)]
    process = subprocess.Popen(
        command,
        env=child_environment(**({"AGENT_LOGGER_HOME": str(home)} if home else {})),
        stdin=subprocess.PIPE,  # never written to: it ends when we do
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a Ctrl-C in the terminal is not meant for it
    )
    assert process.stderr
    try:
        said = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", said)
        if not found or process.poll() is not None:
            raise StoreError(said.strip().removeprefix("agent-logger: ") or "the proxy did not start")
        yield int(found[1])
    finally:
        process.terminate()
        process.communicate(timeout=STOP_SECONDS)


def _stop_with_its_parent() -> None:
    """Who is killed must not leave a proxy behind."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """The proxy's process: `agent-logger`, until standard input ends."""
    threading.Thread(target=_stop_with_its_parent, daemon=True).start()
    run_module("agent_logger", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
