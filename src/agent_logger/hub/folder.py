"""The folder of a hub: its database, its store, and the homes that are made from the store."""

from pathlib import Path
from typing import NamedTuple

STORE = "store"
HOMES = "homes"
CATALOG = "catalog"
WORK_LOCK = "work.lock"
CHANGE_LOCK = "change.lock"
SERVE_LOCK = ".serve.lock"  # hidden: in a store, too, where it is no object


class HubFolder(NamedTuple):
    path: Path

    @property
    def store(self) -> Path:
        return self.path / STORE

    @property
    def homes(self) -> Path:
        """The folder with a home for each device. It may be deleted at any time."""
        return self.path / HOMES

    @property
    def catalog(self) -> Path:
        """The folder of the catalog over all homes. It may be deleted at any time."""
        return self.path / CATALOG

    @property
    def work_lock(self) -> Path:
        return self.path / WORK_LOCK

    @property
    def change_lock(self) -> Path:
        return self.path / CHANGE_LOCK

    @property
    def serve_lock(self) -> Path:
        return self.path / SERVE_LOCK


def hub_folder(home: Path) -> HubFolder:
    """Return the folder of the hub of this installation."""
    return HubFolder(home / "hub")
