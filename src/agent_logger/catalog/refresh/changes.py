"""The changes of a catalog: a count that grows with every one of them, and what all who make them share."""

import os
from collections.abc import Callable

from agent_logger.catalog.database import Database, replace_rows

REMOVED = "removed"  # the read error of a log whose session was removed

Progress = Callable[[int, int], None]  # bytes that are done, and all bytes to do


def unread_stamp() -> str:
    """Return a new stamp for details that are to be read. What was read before it was given to them is not stored."""
    return f"unread {os.urandom(8).hex()}"


def state(database: Database) -> str:
    """Return a text that differs after every change, also in a catalog that was newly created."""
    (made,) = database.execute("SELECT value FROM properties WHERE name = 'catalog_id'").fetchone()
    return f"{made}:{changes(database)}"


def changes(database: Database) -> int:
    """Return a number that grows with every change by any process."""
    row = database.execute("SELECT value FROM properties WHERE name = 'change_count'").fetchone()
    return int(row[0]) if row else 0


def store_property(database: Database, name: str, value: str) -> None:
    database.execute(replace_rows("properties", ("name", "value")), (name, value))


def count_change(database: Database) -> None:
    database.execute(
        """
        INSERT INTO properties VALUES ('change_count', '1')
        ON CONFLICT (name) DO UPDATE SET value = CAST(properties.value AS BIGINT) + 1
        """
    )
