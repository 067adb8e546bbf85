"""The sealing of parts, in processes that give way to all others: of full parts soon, of old ones now and then.

A process ends after the part it is at when its input ends, which it does when the recorder ends or dies.
"""

import logging
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from math import inf
from pathlib import Path

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.journal.seal import seal_due
from agent_logger.proxy.recorder.logs import inner_folders

SEAL_FIRST_SECONDS, SEAL_SECONDS = 30.0, 3600.0  # the first time: what a crash left
FULL_SECONDS = 15.0  # until a full part is sealed: others become full meanwhile, and its last sync ends
FINISH_SECONDS = 2.0  # a proxy that ends is not to stay for long

log = logging.getLogger("agent_logger.proxy")


class SealingProcess:
    """A process that seals the parts of a log folder which are full, or were not touched for so long: one at a time."""

    def __init__(self, log_dir: Path, after_seconds: float) -> None:
        self._argv = platform.module_command(__name__, str(log_dir), str(after_seconds))
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Start it, unless it is running."""
        if self._child and self._child.poll() is None:
            return False
        self._close_input()
        try:
            self._child = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        except OSError as error:
            log.warning("cannot start sealing: %s", error)
            return False
        return True

    @property
    def has_failed(self) -> bool:
        """Whether it ended before its work was done: it was killed, for example."""
        return self._child is not None and self._child.poll() not in (None, 0)

    def wait(self, until: float) -> None:
        """Let it finish its work; at most until this time of the monotonic clock."""
        with suppress(subprocess.TimeoutExpired):
            if self._child:
                self._child.wait(max(0.0, until - time.monotonic()))

    def stop(self, until: float) -> None:
        """Let it finish the part it is at. At this time of the monotonic clock it is killed: that loses nothing."""
        self._close_input()
        self.wait(until)
        if self._child and self._child.poll() is None:
            self._child.kill()
            self._child.wait()

    def _close_input(self) -> None:
        if self._child and self._child.stdin:
            self._child.stdin.close()


class Sealing:
    def __init__(self, log_dir: Path, after_seconds: float | None) -> None:
        """`after_seconds`: how long an old part was not touched; `None`: nothing is sealed, full parts neither."""
        self._is_on = after_seconds is not None
        self._full = SealingProcess(log_dir, inf)
        self._old = SealingProcess(log_dir, inf if after_seconds is None else after_seconds)
        self._full_parts = 0
        self._full_due_at = inf
        self._old_due_at = time.monotonic() + SEAL_FIRST_SECONDS

    def start_if_due(self, full_parts: int) -> None:
        """Start what is due. `full_parts`: how many parts were full so far."""
        if not self._is_on:
            return
        now = time.monotonic()
        if (full_parts > self._full_parts or self._full.has_failed) and self._full_due_at == inf:
            self._full_due_at = now + FULL_SECONDS
        if now >= self._full_due_at and self._full.start():
            self._full_parts, self._full_due_at = full_parts, inf
        if now >= self._old_due_at and self._old.start():
            self._old_due_at = now + SEAL_SECONDS

    def finish(self, full_parts: int) -> None:
        """Seal the parts that were full at the end, if it takes no more than a few seconds."""
        until = time.monotonic() + FINISH_SECONDS
        if self._is_on and full_parts > self._full_parts:
            self._full.wait(until)
            self._full.start()
            self._full.wait(until)
        self._full.stop(until)
        self._old.stop(until)


def _main(log_dir: Path, after_seconds: float) -> None:
    os.nice(19)
    for folder in [log_dir, *inner_folders(log_dir)]:
        try:
            for _ in seal_due(folder, after_seconds):
                if select.select([sys.stdin], [], [], 0)[0]:
                    return
        except (OSError, SourceError) as error:
            log.warning("%s: cannot seal: %s", folder, error)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), float(sys.argv[2]))
