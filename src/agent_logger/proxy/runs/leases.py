"""The leases of the proxy: one for each run and shell that uses it, until the last of its processes has ended."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from agent_logger.proxy.runs.processes import process_in_session, process_with, start_time

LOOK_SECONDS = 0.5  # between looks at processes
# Time without a lease: another run may follow at once, and need not start another proxy.
LINGER_SECONDS = 2.0
FIRST_SECONDS = 15.0  # time to wait for the first lease


class WatchedProcess(NamedTuple):
    pid: int
    started: str | None  # distinguishes the process from a later one with the same number

    @classmethod
    def of(cls, pid: int | None) -> "WatchedProcess | None":
        return None if pid is None else cls(pid, start_time(pid))

    def lives(self) -> bool:
        return self.started is not None and start_time(self.pid) == self.started


@dataclass(slots=True)
class RunLease:
    """A run's use of the proxy. It lives while the run is connected, and then while the agent or any process that the
    agent has started does; for a shell, while a process of its session does."""

    token: str
    session: int | None = None
    is_connected: bool = True
    process: WatchedProcess | None = None  # the process of the run that is watched

    def lives(self) -> bool:
        if self.is_connected or (self.process and self.process.lives()):
            return True
        in_session = process_in_session(self.session) if self.session is not None else None
        self.process = WatchedProcess.of(process_with(self.token) if in_session is None else in_session)
        return self.process is not None


@dataclass(slots=True)
class ShellLease:
    """A shell's use of the proxy. It lives while a process of the shell's session does."""

    session: int
    process: WatchedProcess | None = None

    def lives(self) -> bool:
        if self.process and self.process.lives():
            return True
        self.process = WatchedProcess.of(process_in_session(self.session))
        return self.process is not None


class Leases:
    """The leases of a proxy. Any thread may call these methods; `on_end` is called with the token of each run that has
    ended, and `on_unused`, once, when there has been no lease for a while. Without it, the proxy stays and takes leases
    for ever. `is_in_use`: whether connections with a token are open; its run has not ended while they are."""

    def __init__(
        self,
        on_end: Callable[[str], None],
        on_unused: Callable[[], None] | None = None,
        is_in_use: Callable[[str], bool] = lambda _token: False,
    ) -> None:
        self._on_end, self._on_unused, self._is_in_use = on_end, on_unused, is_in_use
        self._runs: dict[str, RunLease] = {}
        self._shells: dict[int, ShellLease] = {}
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._unused_at = time.monotonic() + FIRST_SECONDS - LINGER_SECONDS
        self._is_ending = False
        self._thread = threading.Thread(target=self._watch, name="agent-logger-leases", daemon=True)
        self._thread.start()

    def add_run(self, token: str, session: int | None = None) -> bool:
        """Add the lease of a run that is connected, or of a shell with this session. `False` if the proxy is ending."""
        with self._lock:
            self._unused_at = time.monotonic()
            if not self._is_ending:
                self._runs[token] = RunLease(token, session)
            return not self._is_ending

    def add_shell(self, session: int) -> bool:
        """Add the lease of a shell; a proxy that stays needs none. `False` if the proxy is ending."""
        with self._lock:
            self._unused_at = time.monotonic()
            if not self._is_ending and self._on_unused is not None:
                self._shells.setdefault(session, ShellLease(session))
            return not self._is_ending

    def release_shells(self) -> int:
        """End the leases of all shells. Returns how many there were."""
        with self._lock:
            registered = [lease for lease in self._runs.values() if lease.session is not None]
            for lease in registered:
                lease.session = None
                lease.process = None
            count = len(self._shells) + len(registered)
            self._shells.clear()
            return count

    def agent_started(self, token: str, pid: int) -> None:
        with self._lock, suppress(OSError):  # else it is looked for by its token
            self._runs[token].process = WatchedProcess.of(pid)

    def disconnected(self, token: str) -> None:
        """Note that a run has ended or was killed. Its lease lives on while one of its processes does."""
        with self._lock:
            self._runs[token].is_connected = False

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            with suppress(OSError):  # no descriptor is left: nothing can be said of any process, and nothing ends
                self._end_runs()
                self._end_shells()
            with self._lock:
                if self._runs or self._shells or self._on_unused is None:
                    self._unused_at = time.monotonic()
                elif time.monotonic() - self._unused_at >= LINGER_SECONDS and not self._is_ending:
                    self._is_ending = True
                    self._on_unused()

    def _end_runs(self) -> None:
        with self._lock:
            runs = list(self._runs.values())
        for token in [lease.token for lease in runs if not lease.lives() and not self._is_in_use(lease.token)]:
            with self._lock:
                del self._runs[token]
            self._on_end(token)

    def _end_shells(self) -> None:
        with self._lock:
            shells = list(self._shells.values())
        for session in [lease.session for lease in shells if not lease.lives()]:
            with self._lock:
                self._shells.pop(session, None)
