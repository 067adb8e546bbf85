"""Keeps the catalog up with the files, and seals what is due, in a thread of its own, for as long as somebody looks.

So no page waits for that: it is answered from what is known, and told when more is. What would take long, such as the
first index of everything, is left to a process aside, which no page shares an interpreter with.
"""

import asyncio
import logging
import sqlite3
import threading
import time
from pathlib import Path

from agent_logger.catalog import background
from agent_logger.catalog.catalog import Catalog
from agent_logger.errors import AgentLoggerError

SECONDS = 1.0  # between two looks at all files
PATIENCE_SECONDS = 30.0  # without anybody looking, until it rests
INDEX_SECONDS = 5.0  # of filling the search index, until the files are looked at again
RETRY_SECONDS = 30.0  # until a disk that could not be written to is tried again
ASIDE_BYTES = 20_000_000  # of files that are not in the search index: more, and another process reads them
SEAL_SECONDS = 1.0  # of sealing logs, likewise
BREATH_SECONDS = 0.002  # after each file that is read, for those who look meanwhile

log = logging.getLogger("agent_logger.web")


class Refresher:
    def __init__(self, home: Path, seal_after_seconds: float | None = None) -> None:
        self.version = 0
        self.done, self.total = 0, 0  # bytes, while the catalog is made
        self.problem: str | None = None  # why the catalog is in memory alone
        self.ready = threading.Event()  # everything was looked at once
        self._home, self._seal_after = home, seal_after_seconds
        self._last_wake = 0.0
        self._looks = 0
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="agent-logger-keeper", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Somebody looks."""
        self._last_wake = time.monotonic()
        self._wake.set()

    async def note_view(self) -> None:
        """Until whatever is there now was looked at; not for ever."""
        looks = self._looks
        for _ in range(100):
            if self._looks >= looks + 2:  # one may be under way that began before
                return
            self.wake()
            await asyncio.sleep(0.05)

    def close(self) -> None:
        self._ended.set()
        self._wake.set()
        self._thread.join(5)

    def _keep(self) -> None:
        while not self._ended.is_set():
            again = time.monotonic() + RETRY_SECONDS
            with Catalog.open(self._home) as catalog:
                while not self._ended.is_set() and not (catalog.problem and time.monotonic() > again):
                    self._try(catalog)
                    self._rest()

    def _try(self, catalog: Catalog) -> None:
        try:
            self._look(catalog)
            self.problem = catalog.problem
        except (OSError, sqlite3.Error, AgentLoggerError) as error:  # a disk that fails now may not tomorrow
            log.warning("the catalog: %s", error)
            self.problem = str(error)
        self.ready.set()
        self._looks += 1

    def _look(self, catalog: Catalog) -> None:
        if not catalog.version:  # it was deleted, or never was
            self.ready.clear()
        catalog.refresh(self._progress)
        self.version, self.problem = catalog.version, catalog.problem
        self.ready.set()
        covered = catalog.coverage
        is_much = covered.total - covered.done > ASIDE_BYTES
        if is_much and not catalog.problem and background.start(self._home, self._seal_after):
            return
        catalog.index(self._progress, seconds=INDEX_SECONDS)
        self.version = catalog.version
        if catalog.is_sealing_due(self._seal_after):
            catalog.seal(self._seal_after, seconds=SEAL_SECONDS)

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        time.sleep(BREATH_SECONDS)

    def _rest(self) -> None:
        self._wake.clear()  # before the look at the clock: whoever wakes us after that is not forgotten
        if time.monotonic() - self._last_wake > PATIENCE_SECONDS and not self._ended.is_set():
            self._wake.wait()
        else:
            self._ended.wait(SECONDS)
