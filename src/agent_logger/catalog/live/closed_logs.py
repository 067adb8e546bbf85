"""The logs of ours that no program has open any more, noted with the stamp of each.

A program that opens a closed log again writes to it, which changes the stamp. So a closed log is not checked again as
long as its stamp is the same: the work grows with the logs that have changed, not with all that were ever written.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from agent_logger import platform
from agent_logger.catalog.database import Database, transaction
from agent_logger.catalog.source_queries import OpenLog, open_logs
from agent_logger.files.parts import parts_by_log, parts_of


def note_closed_logs(database: Database, sessions: Iterable[str] | None) -> None:
    """Check the logs of these sessions, or of all, that are not known to be closed, and note those that are."""
    closed = [(log.stamp, log.source) for log in _find_closed(open_logs(database, sessions))]
    if closed:
        with transaction(database):
            database.executemany("UPDATE sources SET closed_stamp = ? WHERE id = ?", closed)


def _find_closed(logs: Iterable[OpenLog]) -> Iterator[OpenLog]:
    for folder, grouped in groupby(sorted(logs, key=lambda log: log.folder), key=lambda log: log.folder):
        in_folder = list(grouped)
        # A folder may hold thousands of logs: it is listed once for all of them.
        listing = parts_by_log(folder) if len(in_folder) > 1 else {}
        for log in in_folder:
            parts = listing.get(log.name, []) if listing else parts_of(folder, log.name)
            if not any(platform.is_locked(part.path) for part in parts):
                yield log
