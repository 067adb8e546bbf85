"""The lock of the search index: one process at a time fills it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_logger import platform


@contextmanager
def indexing(home: Path) -> Iterator[bool]:
    """Yield whether this process may fill the index; another process may be doing so. Where there are no locks, every
    process may."""
    held = None
    mine = True
    with suppress(OSError):
        platform.make_folder(home)
        held = platform.open_or_create(home / "catalog.lock")
        with suppress(platform.NoLocksError):
            mine = platform.lock(held)
    try:
        yield mine
    finally:
        if held:
            held.close()
