"""Seals what is due, in every folder that logs of ours were written to. Any command that looks at the files does so."""

import time
from collections.abc import Iterator
from pathlib import Path

from agent_logger.agents.folders import agent_folders
from agent_logger.agents.registry import located
from agent_logger.catalog.database import Database, transaction
from agent_logger.catalog.discovery.own_logs import folders_of_logs, log_folders
from agent_logger.catalog.refresh.changes import store_property

PAUSE_SECONDS = 3600.0  # time until parts that could not be sealed are tried again


def is_due(database: Database, unsealed_since: float, after_seconds: float | None) -> bool:
    """Whether there may be something to seal, and no process has tried for a while."""
    if after_seconds is None or time.time() - unsealed_since < after_seconds:
        return False
    row = database.execute("SELECT value FROM properties WHERE name = 'sealing_time'").fetchone()
    return row is None or not 0 <= time.time() - float(row[0]) < PAUSE_SECONDS


def seal(database: Database, home: Path, after_seconds: float | None, seconds: float) -> int:
    """Seal what is due. Returns how many parts were sealed. When the time is up, the next call continues."""
    from agent_logger.journal.seal import seal_due  # imported here: most callers only ask whether it is due

    until = time.monotonic() + seconds
    count = 0
    for folder in _folders(home):
        for _ in seal_due(folder, after_seconds):
            count += 1
            if time.monotonic() > until:
                return count
    with transaction(database):
        store_property(database, "sealing_time", str(time.time()))
    return count


def _folders(home: Path) -> Iterator[Path]:
    """Yield the folders of logs, except agents' own, where a storage may have been put: the agents must find its files
    unchanged."""
    agents = [location for _, location in located() if not location.is_named_by_user]  # a project has our logs, too
    theirs = [folder for location in agents for folder in agent_folders(location)]
    for folder in folders_of_logs(log_folders(home)):
        real = folder.resolve()
        if folder.is_symlink():  # the target of a link need not be ours
            continue
        if not any(real.is_relative_to(path) for path in theirs):
            yield folder
