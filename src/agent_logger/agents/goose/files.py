"""The files of Goose: a database with all sessions."""

from agent_logger.agents.databases.sessions import SessionDatabases

DATABASES = SessionDatabases("agent_logger.agents.goose.database")
discover, sessions_in, open_session = DATABASES.discover, DATABASES.sessions_in, DATABASES.open_session
copy, tables, root_of = DATABASES.copy, DATABASES.tables, DATABASES.root_of
unreadable = DATABASES.unreadable


def begins_session(first: bytes) -> bool:
    return first.startswith(b"SQLite format 3\0") or not first  # empty: everything is in its log


def recognises(first: bytes) -> bool:
    """Whether the bytes begin a database that names columns of Goose's tables."""
    return begins_session(first) and b"content_json TEXT" in first and b"working_dir TEXT" in first
