"""The pages' access to the catalog, off the event loop: every thread has a catalog of its own.

Sessions that were viewed stay in memory until their files change, because a page requests a session piece by piece.
"""

import asyncio
import copy
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter, Ownership, SessionSummary
from agent_logger.files.parts import part_of
from agent_logger.home.homes import Homes
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.refresher import Refresher

THREADS = 4
CACHED_SESSIONS = 4
CACHED_ANSWERS = 32
FRESH_SECONDS = 5.0  # after which a catalog refreshes itself
WAIT_SECONDS = 2.0  # for a catalog that is being built; after that the page says so

T = TypeVar("T")
State = tuple[tuple[str, int, int], ...]  # of files: path, nanoseconds, bytes


class StillReadingError(Exception):
    """The catalog is being built. `done` and `total` are bytes."""

    def __init__(self, done: int, total: int) -> None:
        super().__init__("reading the sessions on this machine for the first time")
        self.done, self.total = done, total


class AmbiguousSessionError(Exception):
    """An address may mean any of several sessions."""

    def __init__(self, given: str, session_ids: Sequence[str]) -> None:
        super().__init__(f"{given} is ambiguous")
        self.given, self.session_ids = given, session_ids


class PoolReader(NamedTuple):
    """One of several people to whom a pool answers."""

    owner: Ownership | None  # to whose sessions the answers are limited; none: all
    note_reads: Callable[[Sequence[SessionSummary]], None]  # is called with sessions whose contents are shown


class CatalogPool:
    """Catalogs for threads; without `reads_files`, another process keeps them up to date."""

    def __init__(self, homes: Homes, seal_after_seconds: float | None = None, *, reads_files: bool = True) -> None:
        self.homes = homes  # for a reader, those that are theirs
        self._all_homes = homes  # of the catalogs
        self._threads = ThreadPoolExecutor(THREADS, "agent-logger-page")
        # If the catalog cannot be written to disk, each thread has one in memory that refreshes itself.
        self._single_thread = ThreadPoolExecutor(1, "agent-logger-page-alone")
        self._local = threading.local()
        self._catalogs: list[Catalog] = []
        self._views: OrderedDict[str, tuple[State, SessionView]] = OrderedDict()
        self._answers: dict[Hashable, tuple[str, Any]] = {}
        self._read_locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._reader: PoolReader | None = None
        self.refresher = Refresher(homes, seal_after_seconds, reads_files=reads_files)

    def for_reader(self, reader: PoolReader) -> Self:
        """Return this pool as one person sees it. It is valid for as long as this one is open."""
        limited = copy.copy(self)
        limited._reader = reader
        if reader.owner is not None:
            limited.homes = Homes(self.homes.own, has_own=False, others=tuple(map(Path, sorted(reader.owner.homes))))
        return limited

    @property
    def home(self) -> Path:
        """The own home, to which alone anything is written."""
        return self.homes.own

    async def version(self) -> str:
        """The version of the catalog, for a page that listens to events. Ask before anything else: changes that happen
        while the page is made then arrive as events."""
        await self._wait()
        return self.refresher.version

    async def query(self, question: Callable[[Catalog], T]) -> T:
        """Ask the catalog. Raises `StillReadingError` while it is built for the first time."""
        self.refresher.wake()
        await self._wait()
        loop = asyncio.get_running_loop()
        if self.refresher.problem:
            return await loop.run_in_executor(self._single_thread, lambda: question(self._visible(FRESH_SECONDS)))
        return await loop.run_in_executor(self._threads, lambda: question(self._visible()))

    async def cached(self, key: Hashable, question: Callable[[Catalog], T]) -> T:
        """Ask the catalog, and keep the answer until anything in the catalog changes."""
        version, key = self.refresher.version, (self._reader and self._reader.owner, key)
        cached = self._answers.get(key)
        if cached is None or cached[0] != version:
            cached = (version, await self.query(question))
            if len(self._answers) >= CACHED_ANSWERS:
                self._answers.clear()
            self._answers[key] = cached
        self.refresher.wake()
        answer: T = cached[1]
        return answer

    async def run(self, work: Callable[[], T]) -> T:
        """Run work that reads files without the catalog."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def summary(self, given: str) -> SessionSummary | None:
        """The session that an address names: by its id, a unique beginning of it, the name of a log, or a label. Raises
        `AmbiguousSessionError` if several may be meant."""
        return await self.query(lambda catalog: self._summary(catalog, given))

    async def session_view(self, given: str) -> SessionView | None:
        """The session that an address names, as `summary` does."""
        return await self.query(lambda catalog: self.read(catalog, given))

    def _summary(self, catalog: Catalog, given: str) -> SessionSummary | None:
        summary = catalog.summary(self.refresher.addresses.id_of(given) or given)
        if summary:
            return summary
        names = catalog.resolve(given)
        if len(names) > 1:
            raise AmbiguousSessionError(given, names)
        return catalog.summary(names[0]) if names else None

    def read(self, catalog: Catalog, given: str) -> SessionView | None:
        summary = self._summary(catalog, given)
        if summary is None:
            return None
        with self._lock:
            read_lock = self._read_locks.setdefault(summary.id, threading.Lock())
        with read_lock:  # a browser requests two parts of a page at once; they are read once
            view = self._cached_or_read(catalog, summary)
        if view and self._reader:
            self._reader.note_reads([view.summary])
        return view

    def note_reads(self, catalog: Catalog, session_ids: Iterable[str]) -> None:
        """Note that a part of the contents of these sessions is shown, if that is noted here."""
        if self._reader and (sessions := frozenset(session_ids)):
            self._reader.note_reads(catalog.sessions(Filter(sessions=sessions)))

    async def _wait(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.refresher.ready.is_set():
            if time.monotonic() > deadline:
                raise StillReadingError(self.refresher.done, self.refresher.total)
            await asyncio.sleep(0.02)

    def close(self) -> None:
        self.refresher.close()
        for threads in (self._threads, self._single_thread):
            threads.shutdown(cancel_futures=True)
        for catalog in self._catalogs:
            catalog.close()

    def _visible(self, fresh_seconds: float = float("inf")) -> Catalog:
        """The catalog of this thread, with what its reader may see."""
        catalog = self._catalog(fresh_seconds)
        return catalog.owned_by(self._reader.owner) if self._reader and self._reader.owner else catalog

    def _catalog(self, fresh_seconds: float = float("inf")) -> Catalog:
        """The catalog of this thread. The refresher updates it, unless it has to do so itself."""
        existing: Catalog | None = getattr(self._local, "catalog", None)
        # The catalog can be written to disk again.
        if existing and existing.problem and not self.refresher.problem:
            existing.close()
            self._catalogs.remove(existing)
            existing = None
        if existing is None:
            self._local.catalog = Catalog(self._all_homes, fresh_seconds=fresh_seconds)
            self._catalogs.append(self._local.catalog)
        catalog: Catalog = self._local.catalog
        return catalog

    def _cached_or_read(self, catalog: Catalog, summary: SessionSummary) -> SessionView | None:
        state = state_of(summary.paths)
        stored = self._views.get(summary.id)
        if stored and stored[0] == state and stored[1].summary.live == summary.live:
            stored[1].summary = summary  # its labels may have changed
            return stored[1]
        session = catalog.session(summary.id)
        if session is None:
            return None
        view = SessionView(summary, session, digest(state))
        with self._lock:
            self._views[summary.id] = (state, view)
            self._views.move_to_end(summary.id)
            while len(self._views) > CACHED_SESSIONS:
                self._views.popitem(last=False)
        return view


def digest(state: State) -> str:
    return hashlib.sha256(repr(state).encode()).hexdigest()[:16]


def state_of(paths: Iterable[Path]) -> State:
    """The state of a session's files, which changes when the session grows. A missing file is left out."""
    rows = []
    for file in (file for path in paths for file in _files(path)):
        try:
            status = file.stat()
        except OSError:
            continue
        rows.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(rows)


def _files(path: Path) -> Iterator[Path]:
    """The file and those beside it: a log may have more parts, a session of Claude Code sub-agents, a database a WAL
    file."""
    part = part_of(path)
    newest = part.newest() if part else None
    for file in dict.fromkeys((path, newest.path if newest else path)):
        yield from (file, file.with_name(file.name + ".live"), file.with_name(file.name + "-wal"))
    yield from sorted(path.with_suffix("").glob("subagents/*.jsonl"))
