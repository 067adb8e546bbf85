"""The files of Kilo: databases with all sessions."""

from agent_logger.agents.databases.sessions import SessionDatabases
from agent_logger.agents.opencode.files import FORK_TABLE, tables_in

DATABASES = SessionDatabases("agent_logger.agents.kilo.database")
discover, sessions_in, open_session = DATABASES.discover, DATABASES.sessions_in, DATABASES.open_session
copy, tables, root_of = DATABASES.copy, DATABASES.tables, DATABASES.root_of
unreadable = DATABASES.unreadable


def begins_session(first: bytes) -> bool:
    return first.startswith(b"SQLite format 3\0") or not first  # empty: everything is in its log


def recognises(first: bytes) -> bool:
    """Whether the bytes begin a database with a table that opencode does not have."""
    return first.startswith(b"SQLite format 3\0") and FORK_TABLE in tables_in(first)
