"""Keep the catalog up to date with the files, and seal logs that are due, in a thread, for as long as somebody looks.

So no page waits for that: it is answered from what is known, and gets an event when there is more. Long work, such as
the first index of everything, is left to a separate process, so that no page shares an interpreter with it.
"""

import asyncio
import logging
import sqlite3
import threading
import time
from zlib import crc32

import msgspec

from agent_logger.catalog import background
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter
from agent_logger.errors import AgentLoggerError
from agent_logger.home.homes import Homes
from agent_logger.web.addresses import SessionAddresses

SECONDS = 1.0  # between two checks of all files
IDLE_SECONDS = 30.0  # without a request, until the refresher goes idle
INDEX_SECONDS = 5.0  # to fill the search index before files are checked again
RETRY_SECONDS = 30.0  # before a failed disk is tried again
# Files that are not in the search index: if there are more, another process reads them.
BACKGROUND_BYTES = 20_000_000
SEAL_SECONDS = 1.0  # to seal logs, likewise
PAUSE_SECONDS = 0.002  # after each file that is read, so that requests are answered meanwhile

log = logging.getLogger("agent_logger.web")


class Refresher:
    """Keeps the catalog up to date; without `reads_files` another process does, and this one notes its versions."""

    def __init__(self, homes: Homes, seal_after_seconds: float | None = None, *, reads_files: bool = True) -> None:
        self._reads_files = reads_files
        self.version = ""  # changes with everything that a list shows: the catalog, what is live, labels
        self.addresses = SessionAddresses({})
        self.done, self.total = 0, 0  # bytes, while the catalog is made
        self.problem: str | None = None  # why the catalog is in memory alone
        self.ready = threading.Event()  # all files were checked once
        self._homes, self._seal_after = homes, seal_after_seconds
        self._last_wake = 0.0
        self._refresh_count = 0
        self._reported_error = ""
        self._wake_event = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agent-logger-refresher", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Note that somebody looks, and wake the thread."""
        self._last_wake = time.monotonic()
        self._wake_event.set()

    async def wait_for_refresh(self) -> None:
        """Wait until everything that exists now was read; at most a few seconds."""
        count = self._refresh_count
        for _ in range(100):
            if self._refresh_count >= count + 2:  # a refresh that began earlier may be running
                return
            self.wake()
            await asyncio.sleep(0.05)

    def close(self) -> None:
        self._closed.set()
        self._wake_event.set()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._run_catalog()
            except AgentLoggerError as error:  # a database that cannot be reached
                log.warning("cannot open the catalog: %s", error)
                self.problem = str(error)
                self.ready.set()
                self._closed.wait(RETRY_SECONDS)

    def _run_catalog(self) -> None:
        retry_at = time.monotonic() + RETRY_SECONDS
        with Catalog(self._homes) as catalog:
            while not self._closed.is_set() and not (catalog.problem and time.monotonic() > retry_at):
                self._try_refresh(catalog)
                self._rest()

    def _try_refresh(self, catalog: Catalog) -> None:
        try:
            self._refresh(catalog)
            self.problem = catalog.problem
        except (OSError, sqlite3.Error, AgentLoggerError) as error:  # the disk may work again later
            log.warning("cannot refresh the catalog: %s", error)
            self.problem = str(error)
        except Exception as error:  # the top of the thread: without it, every page would stay as it is for ever
            if repr(error) != self._reported_error:
                log.exception("cannot refresh the catalog")
                self._reported_error = repr(error)
        self.ready.set()
        self._refresh_count += 1

    def _refresh(self, catalog: Catalog) -> None:
        if not self._reads_files:
            self._note_version(catalog)
            return
        if not catalog.version:  # it was deleted, or never existed
            self.ready.clear()
        catalog.refresh(self._progress)
        self.problem = catalog.problem
        self._note_version(catalog)
        self.ready.set()
        coverage = catalog.coverage
        is_much = coverage.total - coverage.done > BACKGROUND_BYTES
        if catalog.is_read_only:
            return
        if is_much and not catalog.problem and background.start(self._homes, self._seal_after):
            return
        catalog.index(self._progress, seconds=INDEX_SECONDS)
        self._note_version(catalog)
        if catalog.is_sealing_due(self._seal_after):
            catalog.seal(self._seal_after, seconds=SEAL_SECONDS)

    def _note_version(self, catalog: Catalog) -> None:
        """Note what the pages are made from. A session ceases to be live without a change in any file, and labels are
        in no file of a session."""
        live = [summary.id for summary in catalog.sessions(Filter(live=True))]
        version = f"{catalog.version}-{crc32(msgspec.json.encode((sorted(live), catalog.marks()))):x}"
        if version != self.version:
            self.addresses = SessionAddresses(catalog.short_ids())
            self.version = version  # last: who sees it finds all of it

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        time.sleep(PAUSE_SECONDS)

    def _rest(self) -> None:
        self._wake_event.clear()  # before reading the clock, so that a later `wake` is not lost
        if time.monotonic() - self._last_wake > IDLE_SECONDS and not self._closed.is_set():
            self._wake_event.wait()
        else:
            self._closed.wait(SECONDS)
