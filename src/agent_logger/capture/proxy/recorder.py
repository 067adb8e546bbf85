"""The recorder as the proxy sees it: a child process that is kept alive.

`python -m agent_logger.capture.proxy.recorder` is that child. It gets the credentials over its standard input, the last
of them again when it had to be started anew, and finishes when that input ends.
"""

import argparse
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from agent_logger.capture.proxy.frames import REMEMBERED, Credential
from agent_logger.capture.proxy.lines import Show, receive, send_to
from agent_logger.capture.proxy.pipe import message

FIRST_RESTART_SECONDS, LAST_RESTART_SECONDS = 0.1, 10.0
STEADY_SECONDS = 30.0  # a child that lived so long is replaced at once
WATCH_SECONDS = 0.05

log = logging.getLogger("agent_logger.proxy")


class Recorder:
    """Start it before the first call, `stop` it when the spools are closed. `send` may be called by any thread."""

    def __init__(
        self,
        log_dir: Path,
        home: Path,
        *,
        patterns: bool = True,
        seal_after_seconds: float | None = 86_400.0,
        show: Show | None = None,
    ) -> None:
        """`show` is told each call that ends, in a thread of its own."""
        self.starts = 0
        self._show = show
        self._argv = [sys.executable, "-m", "agent_logger.capture.proxy.recorder", str(log_dir), str(home)]
        self._argv += [] if patterns else ["--credentials-only"]
        self._argv += ["--seal-after", str(seal_after_seconds)] if seal_after_seconds is not None else []
        self._argv += ["--lines"] if show else []
        self._credentials: dict[str, deque[Credential]] = {}  # the last ones of each relay
        self._unsent: list[Credential] = []
        self._more, self._stopping = threading.Condition(), False
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="agent-logger-recorder", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """None while there is none."""
        child = self._child
        return child.pid if child and child.poll() is None else None

    def send(self, credential: Credential) -> None:
        """Never waits for the recorder."""
        with self._more:
            last = self._credentials.setdefault(credential.relay, deque(maxlen=2 * REMEMBERED))
            last.append(credential)
            self._unsent.append(credential)
            self._more.notify()

    def stop(self, timeout_seconds: float = 30.0) -> bool:
        """Let it take what is on the spool. `False` if it did not end in time: then it goes on alone."""
        with self._more:
            self._stopping = True
            self._more.notify()
        give_up = time.monotonic() + timeout_seconds
        self._thread.join(timeout_seconds)
        child = self._child
        if child is None:
            return True
        try:
            return child.wait(max(0.0, give_up - time.monotonic())) == 0
        except subprocess.TimeoutExpired:
            return False

    # ------------------------------------------------------------ the thread that keeps it alive

    def _run(self) -> None:
        delay = FIRST_RESTART_SECONDS
        while True:
            began = time.monotonic()
            try:
                status = self._live()
            except OSError as error:
                log.warning("the recorder could not be started: %s", error)
                status = None
            if self._stopping:
                return
            lived = time.monotonic() - began
            delay = FIRST_RESTART_SECONDS if lived > STEADY_SECONDS else min(2 * delay, LAST_RESTART_SECONDS)
            log.warning("the recorder ended (%s); another one is started", status)
            with self._more:
                self._more.wait_for(lambda: self._stopping, delay)

    def _live(self) -> int | None:
        """Start one, tell it credentials as they come, and return how it ended, or none when it is to stop."""
        output = subprocess.PIPE if self._show else subprocess.DEVNULL
        child = self._child = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=output)
        if self._show and child.stdout:
            threading.Thread(target=receive, args=(child.stdout, self._show), daemon=True).start()
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


def main(argv: list[str] | None = None) -> int:
    from agent_logger.capture.proxy.child import Child  # the proxy does not need what it needs

    parser = argparse.ArgumentParser(description="The recorder; `agent-logger proxy` starts it.")
    parser.add_argument("log_dir", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("--credentials-only", action="store_true")
    parser.add_argument("--seal-after", type=float)
    parser.add_argument("--lines", action="store_true", help="write a line of JSON for each call")
    wanted = parser.parse_args(argv)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # the proxy gets them too, and says when to finish
    child = Child(
        wanted.log_dir.absolute(),
        wanted.home.absolute(),
        pipe=sys.stdin.fileno(),
        patterns=not wanted.credentials_only,
        seal_after_seconds=wanted.seal_after,
        show=send_to(sys.stdout.fileno()) if wanted.lines else None,
    )
    return child.run()


if __name__ == "__main__":
    status = main()
    logging.shutdown()
    sys.stderr.flush()
    os._exit(status)  # threads that still seal lose nothing
