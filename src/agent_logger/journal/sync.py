"""The work that is due for all journals of a process together: the sync, the limit of open files, a fork.

One thread syncs whatever was written, at most once a second, so that no caller ever waits for a device. It also lets a
journal that could not write try again.
"""

import _thread
import atexit
import errno
import logging
import os
import queue
import resource
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

SYNC_SECONDS = 1.0
MOST_OPEN = 256  # journals with an open part, where the process may open more files than four times that


log = logging.getLogger("agent_logger.journal")


class SyncedJournal(Protocol):
    """A journal, as far as its upkeep is concerned."""

    def upkeep(self) -> bool:
        """Do the work that is due; `True` if there is more to do in a second."""

    def last_chance(self) -> None:
        """Write down, as the process ends, what was waiting for a better time."""

    def release(self) -> bool:
        """Close what is open, to be opened again when needed. `False` if the journal is busy."""

    def after_fork(self) -> None:
        """Reset the journal in a forked child: what is open belongs to the parent."""


class Upkeep:
    def __init__(self) -> None:
        self._journals: weakref.WeakSet[SyncedJournal] = weakref.WeakSet()
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()  # a signal handler may record while it is held
        self._due: dict[int, SyncedJournal] = {}  # held until done: a forgotten journal is synced too
        self._open: dict[int, weakref.ref[SyncedJournal]] = {}  # least recently used first
        self._most_open = _most_open()
        self._working = threading.Lock()  # one round at a time: the last round waits for that of the thread
        self._alone = threading.Lock()  # held by the thread
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()  # not an Event: Ctrl-C can leave one locked
        self._thread: int | None = None

    def register(self, journal: SyncedJournal) -> None:
        self._journals.add(journal)

    def due(self, journal: SyncedJournal) -> None:
        """Note that the journal wrote something, or failed to: its upkeep is due."""
        with self._lock:
            if id(journal) in self._due and self._thread:
                return
            self._wake.put(None)  # first: Ctrl-C may come in between
            self._due[id(journal)] = journal
            if self._thread is None:
                self._start_thread()

    def _start_thread(self) -> None:
        """Start the thread without `Thread.start`, which waits for the thread: Ctrl-C in there leaves it stuck."""
        try:
            self._thread = _thread.start_new_thread(self._run, ())
        except RuntimeError as error:  # the system has no thread for us now; the next record tries again
            log.warning("cannot sync yet: %s", error)

    def used(self, journal: SyncedJournal) -> None:
        """Note that the journal has an open part. If too many are open, the least recently used one is closed."""
        with self._lock:
            self._open.pop(id(journal), None)
            self._open[id(journal)] = weakref.ref(journal)
            too_many = len(self._open) > self._most_open
        if too_many:
            self.release_one(journal)

    def closed(self, journal: SyncedJournal) -> None:
        with self._lock:
            self._open.pop(id(journal), None)

    def release_one(self, keep: SyncedJournal) -> bool:
        """Close the least recently used part; `False` if there is none to close."""
        with self._lock:
            refs = list(self._open.items())
        for key, ref in refs:
            journal = ref()
            if journal is None:
                with self._lock:
                    self._open.pop(key, None)
            elif journal is not keep and journal.release():
                return True
        return False

    def with_descriptors(self, work: Callable[[], object], journal: SyncedJournal) -> None:
        """Do a journal's work. Close other journals' files, and do it again, when the process has no descriptor left
        for it."""
        while True:
            try:
                work()
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self.release_one(journal):
                    raise

    def finish(self, *, for_good: bool = False) -> None:
        """Do now all work that is due; `for_good` if nothing comes after it."""
        # A journal that the thread is syncing is not in `_due`, so wait for the thread.
        with self._working:
            with self._lock:
                journals = list(self._due.values())
            if for_good:
                for journal in journals:
                    journal.last_chance()
            for journal in journals:
                self._keep(journal)

    def _keep(self, journal: SyncedJournal) -> None:
        self._due.pop(id(journal), None)  # before the sync: what is written meanwhile is due again
        more = True
        try:
            more = journal.upkeep()
        except Exception:  # the top of this thread: the other journals must still be synced
            more = False
            log.exception("background work of a journal failed")
        finally:  # Ctrl-C, too
            if more:
                self._due[id(journal)] = journal

    def _run(self) -> None:
        if not self._alone.acquire(blocking=False):
            return  # another was started before, and Ctrl-C kept us from noting it
        while True:
            self._wake.get()
            while not self._wake.empty():
                self._wake.get()
            self.finish()
            time.sleep(SYNC_SECONDS)
            if self._due:
                self._wake.put(None)

    def before_fork(self) -> None:
        """Import what the first record of a child needs. If another thread were importing it during the fork, a lock
        would never be released in the child."""
        if self._journals:
            import hmac as hmac

    def after_fork(self) -> None:
        self._begin()
        for journal in list(self._journals):
            journal.after_fork()


def _most_open() -> int:
    """How many parts may be open: a quarter of what the process may open. The rest is the agent's."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(MOST_OPEN, soft // 4)) if soft != resource.RLIM_INFINITY else MOST_OPEN


UPKEEP = Upkeep()
os.register_at_fork(before=UPKEEP.before_fork, after_in_child=UPKEEP.after_fork)
atexit.register(UPKEEP.finish, for_good=True)
