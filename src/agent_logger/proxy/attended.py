"""A process of ours that ends when we do, however we end: its standard input is a pipe that nobody writes to."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from runpy import run_module

from agent_logger import platform


def attended(
    *arguments: str, environment: Mapping[str, str] | None = None, stderr: int | None = None
) -> subprocess.Popen[str]:
    """Start `agent-logger` with these arguments. It stops as if by Ctrl-C when its standard input is closed, or when we
    end."""
    return subprocess.Popen(
        platform.module_command(__name__, *arguments),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        start_new_session=True,  # a Ctrl-C in the terminal is not meant for it
    )


def _stop_with_the_other() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    threading.Thread(target=_stop_with_the_other, daemon=True).start()
    run_module("agent_logger", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
