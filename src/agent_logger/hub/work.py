"""Keeps the homes and the catalog of a hub up to date with its store. It reads what others wrote, so it is a process of
its own, with a limit to its memory: what ends it does not end the hub."""

import logging
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from agent_logger import platform
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.sqlite.database import remove
from agent_logger.catalog.sqlite.recovery import CATALOG_FILES
from agent_logger.errors import AgentLoggerError, StoreError
from agent_logger.home.homes import Homes
from agent_logger.hub import statements
from agent_logger.hub.database import HubDatabase
from agent_logger.hub.folder import SERVE_LOCK, HubFolder
from agent_logger.hub.people import People
from agent_logger.hub.storage.assembly import TABLES as ASSEMBLY_TABLES
from agent_logger.hub.storage.assembly import Assembly, AssemblyReport
from agent_logger.hub.storage.intake import Intake
from agent_logger.hub.storage.sqlite_index import TABLES as INDEX_TABLES
from agent_logger.hub.storage.sqlite_index import SqliteIndex
from agent_logger.hub.storage.store import FolderStore
from agent_logger.hub.storage.stores import open_store

log = logging.getLogger("agent_logger.hub")

LOOK_SECONDS = 1.0
WAIT_SECONDS = 0.01
MEMORY_BYTES = 8 << 30


class HubBusyError(AgentLoggerError):
    """Another process works on the hub."""


class HubParts:
    """What a hub consists of."""

    def __init__(self, folder: HubFolder, store: str | None = None) -> None:
        """`store`: where the objects are, if not in the folder. Raises `StoreError`."""
        self.folder, self._location = folder, store or ""
        self.database = HubDatabase(folder.path, (*INDEX_TABLES, *ASSEMBLY_TABLES))
        self.people = People(self.database)
        self.index = SqliteIndex(self.database)
        self.store = open_store(store or str(folder.store))
        self.assembly = Assembly(self.database, self.index, self.store, folder.homes)

    def intake(self, version: str) -> Intake:
        """Return what takes pushes, for one who is `serving` or `changing`. Raises `StoreError` if the index is that of
        another store: what machines have pushed already would be missing in this one."""
        recorded = self._recorded_location()
        if recorded != self._location:
            option = f"use --store {recorded}" if recorded else "leave --store away"
            raise StoreError(
                f"the objects of this hub are in {recorded or self.folder.store}: {option}, or copy them to the other"
                " store and run 'agent-logger hub rebuild' with that one"
            )
        self.use_store()
        return Intake(self.index, self.store, version)

    def use_store(self) -> None:
        """Note that the objects are in this store from now on. `rebuild` makes the index from them."""
        self.database.execute(statements.SET_SETTING, ("store", self._location))

    def _recorded_location(self) -> str:
        row = self.database.row(statements.SETTING, ("store",))
        if row:
            return str(row[0])
        return "" if self.index.senders() else self._location

    @property
    def names(self) -> dict[str, str]:
        return {person.id: person.name for person in self.people.people()}

    def close(self) -> None:
        self.database.close()


@contextmanager
def working(folder: HubFolder) -> Iterator[None]:
    """Work alone. Raises `HubBusyError` if another process does."""
    platform.make_folder(folder.path)
    with platform.open_or_create(folder.work_lock) as lock:
        if not platform.lock(lock):
            raise HubBusyError("another 'agent-logger hub work' is running")
        yield


@contextmanager
def serving(parts: HubParts) -> Iterator[None]:
    """Take pushes alone. Raises `HubBusyError` if another process does, of this hub, or into the same folder of
    objects. Nobody can tell that of a bucket."""
    paths = [parts.folder.serve_lock]
    if isinstance(parts.store, FolderStore):
        paths.append(parts.store.folder / SERVE_LOCK)
    with ExitStack() as locks:
        for path in paths:
            platform.make_folder(path.parent)
            if not _is_locked_now(locks.enter_context(platform.open_or_create(path))):
                raise HubBusyError(f"another 'agent-logger hub serve' uses {path.parent}: stop it first")
        yield


@contextmanager
def changing(folder: HubFolder) -> Iterator[None]:
    """Change index and store alone, after the process that does so now."""
    with platform.open_or_create(folder.change_lock) as lock:
        while not _is_locked_now(lock):
            time.sleep(WAIT_SECONDS)
        yield


def _is_locked_now(lock: platform.Held) -> bool:
    try:
        return platform.lock(lock)
    except platform.NoLocksError:  # nobody can tell here
        return True


def work_once(parts: HubParts) -> AssemblyReport:
    """Bring homes and catalog up to date with the store."""
    report = parts.assembly.update(parts.names)
    parts.folder.homes.mkdir(mode=0o700, exist_ok=True)
    parts.database.forget_deleted()
    if report.deleted:
        for name in CATALOG_FILES:  # what was read of it would stay in unused pages
            remove(parts.folder.catalog / name)
    with Catalog(homes_of_hub(parts.folder)) as catalog:
        catalog.refresh()
        catalog.read_details()
        catalog.index()
    return report


def homes_of_hub(folder: HubFolder) -> Homes:
    """Return the homes of all devices: what each has sent, as its machine has it."""
    return Homes(folder.catalog, has_own=False, below=folder.homes)


def work_always(parts: HubParts, wait: Callable[[float], None] = time.sleep) -> None:
    """Work whenever something has changed."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    done: object = None
    while True:
        version = parts.database.version()
        if version != done:
            report = work_once(parts)
            done = version
            entry = {"event": "work", "written": report.written, "deleted": report.deleted}
            log.info("work", extra={"entry": {**entry, "problems": len(report.problems)}})
        wait(LOOK_SECONDS)
