"""The recorder as the proxy sees it: a child process that is kept alive.

The child gets the credentials over its standard input, the last of them again after a restart, and finishes when that
input ends.
"""

import logging
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from agent_logger import platform
from agent_logger.proxy.call_lines import Show, receive
from agent_logger.proxy.recorder.pipe import message
from agent_logger.proxy.restarts import Restarts
from agent_logger.proxy.spool.frames import REMEMBERED, CredentialFrame

WATCH_SECONDS = 0.05
SHOW_SECONDS = 2.0  # time to show the last calls; a terminal may not take them

log = logging.getLogger("agent_logger.proxy")


class Recorder:
    """The recorder's process. Start it before the first call, `stop` it when the spools are closed. `send` may be
    called by any thread."""

    def __init__(
        self,
        log_dir: Path,
        home: Path,
        *,
        patterns: bool = True,
        seal_after_seconds: float | None = 86_400.0,
        show: Show | None = None,
        shows_all: bool = False,
        before_start: Callable[[], None] = lambda: None,
    ) -> None:
        """Configure the recorder. `show` is called with each call of a registered run that was recorded, in a thread of
        its own; with every call if it `shows_all`. `before_start` may raise `OSError`."""
        self.starts = 0
        self._before_start = before_start
        self._show = show
        self._argv = platform.module_command("agent_logger.proxy.recorder", str(log_dir), str(home))
        self._argv += [] if patterns else ["--credentials-only"]
        self._argv += ["--seal-after", str(seal_after_seconds)] if seal_after_seconds is not None else []
        self._argv += ["--lines"] if shows_all else []
        self._credentials: dict[str, deque[CredentialFrame]] = {}  # the last ones of each relay
        self._unsent: list[CredentialFrame] = []
        self._more, self._stopping = threading.Condition(), False
        self._child: subprocess.Popen[bytes] | None = None
        self._showing: threading.Thread | None = None
        self._thread = threading.Thread(target=self._run, name="agent-logger-recorder", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The id of the process; `None` while none runs."""
        child = self._child
        return child.pid if child and child.poll() is None else None

    def send(self, credential: CredentialFrame) -> None:
        """Send a credential to the recorder. Never waits for it."""
        with self._more:
            last = self._credentials.setdefault(credential.relay, deque(maxlen=2 * REMEMBERED))
            last.append(credential)
            self._unsent.append(credential)
            self._more.notify()

    def stop(self, timeout_seconds: float = 30.0) -> bool:
        """Let the recorder finish what is on the spool. `False` if it did not end in time: then it continues alone."""
        with self._more:
            self._stopping = True
            self._more.notify()
        give_up = time.monotonic() + timeout_seconds
        self._thread.join(timeout_seconds)
        child = self._child
        if child is None:
            return True
        try:
            ended = child.wait(max(0.0, give_up - time.monotonic())) == 0
        except subprocess.TimeoutExpired:
            return False
        if self._showing:
            self._showing.join(SHOW_SECONDS)
        return ended

    # ------------------------------------------------------------ the thread that keeps it alive

    def _run(self) -> None:
        restarts = Restarts()
        while True:
            restarts.begin()
            try:
                status = self._live()
            except OSError as error:
                log.warning("cannot start the recorder: %s", error)
                status = None
            if self._stopping:
                return
            log.warning("the recorder stopped (%s); starting another one", status)
            with self._more:
                self._more.wait_for(lambda: self._stopping, restarts.pause_seconds())

    def _live(self) -> int | None:
        """Start a recorder and send it credentials as they come. Returns how it ended, or `None` when it is to stop."""
        self._before_start()
        output = subprocess.PIPE if self._show else subprocess.DEVNULL
        child = self._child = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=output)
        if self._show and child.stdout:
            self._showing = threading.Thread(target=receive, args=(child.stdout, self._show), daemon=True)
            self._showing.start()
        self.starts += 1
        assert child.stdin
        with self._more:
            self._unsent = [credential for last in self._credentials.values() for credential in last]
        try:
            with child.stdin as pipe:
                while child.poll() is None:
                    with self._more:
                        new, self._unsent = self._unsent, []
                        if not new and self._stopping:
                            return None
                        if not new:
                            self._more.wait(WATCH_SECONDS)
                    for credential in new:
                        pipe.write(message(credential))
                    pipe.flush()
        except BrokenPipeError:
            pass
        return child.wait()
