"""Background work: filling the search index, sealing what is due. One process at a time does it, at the lowest
priority, without blocking others."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

from agent_logger import platform
from agent_logger.catalog.index_lock import indexing


def start(home: Path, seal_after_seconds: float | None) -> bool:
    """Start the work in a process of its own, which outlives this one. Returns whether such a process is running
    now."""
    with indexing(home) as free:
        if not free:
            return True
    arguments = [str(home), *([str(seal_after_seconds)] if seal_after_seconds is not None else [])]
    command = platform.module_command("agent_logger.catalog.background", *arguments)
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, stderr=nothing, cwd=home, start_new_session=True
        )
    except OSError:
        return False
    Thread(target=child.wait, daemon=True).start()  # we may outlive the child
    return True


def _main(home: Path, seal_after_seconds: float | None) -> None:
    from agent_logger.catalog.catalog import Catalog

    os.nice(19)
    with Catalog.open(home) as catalog:
        catalog.index()
        catalog.seal(seal_after_seconds)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), next(map(float, sys.argv[2:]), None))
