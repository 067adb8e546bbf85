"""What cannot be derived: which folders hold logs of ours."""

import logging
from pathlib import Path

import msgspec

from agent_logger.store.append import append_shared
from agent_logger.store.clock import CLOCK
from agent_logger.store.layout import facts_path

log = logging.getLogger("agent_logger.store")


def know_folder(home: Path, folder: Path) -> None:
    """So that other commands find the logs in it. A home that cannot be written to is no reason to stop."""
    path, fact = facts_path(home), {"type": "log_folder", "path": str(folder.resolve())}
    try:
        known = path.read_bytes() if path.exists() else b""
        if msgspec.json.encode(fact)[:-1] not in known:
            append_shared(path, msgspec.json.encode({**fact, "ts": CLOCK.now()}))
    except OSError as error:
        log.warning("%s: %s", path, error)
