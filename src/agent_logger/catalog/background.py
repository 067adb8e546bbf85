"""Background work: filling the search index, sealing what is due. One process at a time does it, at the lowest
priority, without blocking others."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

from agent_logger import platform
from agent_logger.catalog.folders_of_catalogs import catalog_folder
from agent_logger.catalog.search.index_lock import indexing
from agent_logger.home.homes import Homes, homes_of

NEVER = "never"


def start(homes: Homes, seal_after_seconds: float | None) -> bool:
    """Start the work in a process of its own, which outlives this one. Returns whether such a process is running
    now."""
    with indexing(catalog_folder(homes)) as free:
        if not free:
            return True
    seal_after = NEVER if seal_after_seconds is None else str(seal_after_seconds)
    arguments = [seal_after, str(homes.own), str(homes.below or ""), *map(str, homes.folders.values())]
    command = platform.module_command("agent_logger.catalog.background", *arguments)
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, stderr=nothing, cwd=homes.own, start_new_session=True
        )
    except OSError:
        return False
    Thread(target=child.wait, daemon=True).start()  # we may outlive the child
    return True


def _main(homes: Homes, seal_after_seconds: float | None) -> None:
    from agent_logger.catalog.catalog import Catalog

    os.nice(19)
    with Catalog(homes) as catalog:
        catalog.index()
        catalog.seal(seal_after_seconds)


if __name__ == "__main__":
    after, own, below, *given = sys.argv[1:]
    homes = Homes(Path(own), has_own=False, below=Path(below)) if below else homes_of(Path(own), given)
    _main(homes, None if after == NEVER else float(after))
