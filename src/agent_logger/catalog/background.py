"""Background work: filling the search index, sealing what is due. One process at a time does it, at the lowest
priority, without blocking others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from agent_logger import platform


@contextmanager
def indexing(home: Path) -> Iterator[bool]:
    """Yield whether this process may fill the index; another process may be doing so. Where there are no locks, every
    process may."""
    held = None
    mine = True
    with suppress(OSError):
        held = _open_lock_file(home)
        with suppress(platform.NoLocksError):
            mine = platform.lock(held)
    try:
        yield mine
    finally:
        if held:
            held.close()


def _open_lock_file(home: Path) -> platform.Held:
    path = home / "catalog.lock"
    platform.make_folder(home)
    with suppress(FileExistsError):
        platform.open_file(path, create=True).close()
    return platform.open_file(path)


def start(home: Path, seal_after_seconds: float | None) -> bool:
    """Start the work in a process of its own, which outlives this one. Returns whether such a process is running
    now."""
    with indexing(home) as free:
        if not free:
            return True
    command = [sys.executable, "-m", "agent_logger.catalog.background", str(home)]
    command += [str(seal_after_seconds)] if seal_after_seconds is not None else []
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, stderr=nothing, cwd=home, start_new_session=True
        )
    except OSError:
        return False
    Thread(target=child.wait, daemon=True).start()  # in case we outlive it
    return True


def _main(home: Path, seal_after_seconds: float | None) -> None:
    from agent_logger.catalog.catalog import Catalog

    os.nice(19)
    with Catalog.open(home) as catalog:
        catalog.index()
        catalog.seal(seal_after_seconds)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), next(map(float, sys.argv[2:]), None))
