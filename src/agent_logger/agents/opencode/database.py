"""opencode's database: `session`, `message` and `part`. Whoever continues its code has the same tables."""

from collections.abc import Iterator

from agent_logger.agents.databases.opening import DatabaseSchema, ForeignDatabase, Row
from agent_logger.agents.databases.sessions import SessionDatabases, SessionStamp, below, root_among, trees

MOST_SESSIONS = 10_000  # sessions that one session may have started
TABLES = {
    "session": ("id", "parent_id", "directory", "title", "time_created", "time_updated"),
    "message": ("id", "session_id", "time_created", "time_updated", "data"),
    "part": ("id", "message_id", "session_id", "time_created", "time_updated", "data"),
}


class OpencodeTables:
    """The tables of opencode, or of a program that continues its code."""

    def __init__(self, owner: str) -> None:
        self.schema = DatabaseSchema(owner, TABLES, documents=frozenset({"data"}))

    def stamps(self, database: ForeignDatabase) -> list[SessionStamp]:
        query = "SELECT id, parent_id, time_updated AS updated FROM session ORDER BY time_created DESC, id"
        sessions = list(database.rows(query))
        rows_by_session: dict[str, list[Row]] = {}
        for table in ("message", "part"):
            for row in database.rows(_COUNT.format(table)):
                rows_by_session.setdefault(row["id"], []).append(row)
        if database.damage:
            sessions += _lost_sessions(sessions, rows_by_session)
        by_id = {row["id"]: row for row in sessions if row["id"]}
        tree_of = trees({name: row["parent_id"] for name, row in by_id.items()}, MOST_SESSIONS)
        return [_stamp([by_id[name] for name in (root, *tree)], rows_by_session) for root, tree in tree_of.items()]

    def started_by(self, database: ForeignDatabase, session: str) -> list[str]:
        query = "SELECT id FROM session WHERE parent_id = ? ORDER BY time_created, id"

        def children_of(parent: str) -> list[str]:
            return [row["id"] for row in database.rows(query, parent) if row["id"]]

        return below(session, children_of, MOST_SESSIONS)

    def root_of(self, database: ForeignDatabase, session: str) -> str | None:
        rows = database.rows("SELECT id, parent_id FROM session")
        return root_among({row["id"]: row["parent_id"] for row in rows}, session)

    def rows(self, database: ForeignDatabase, session: str) -> Iterator[Row]:
        """Yield the session itself, its messages, and their parts. Each row has its `table`."""
        for row in database.rows("SELECT * FROM session WHERE id = ?", session):
            yield {**row, "table": "session", "forked_from": _parent_of_fork(database, row)}
        columns = "id, time_created, data"
        messages = f"SELECT {columns} FROM message WHERE session_id = ? ORDER BY time_created, id"
        for row in database.rows(messages, session):
            yield {**row, "table": "message"}
        parts = f"SELECT {columns}, message_id FROM part WHERE session_id = ? ORDER BY id"
        for row in database.rows(parts, session):
            yield {**row, "table": "part"}


_COUNT = """
    SELECT session_id AS id, max(time_updated) AS updated, count(*) AS count, sum(length(data)) AS size
    FROM {} GROUP BY session_id
"""


def _lost_sessions(sessions: list[Row], rows_by_session: dict[str, list[Row]]) -> list[Row]:
    """Return the sessions whose row cannot be read, while some of their messages can."""
    lost = rows_by_session.keys() - {row["id"] for row in sessions}
    return [{"id": name, "parent_id": None, "updated": None} for name in sorted(filter(None, lost))]


def _stamp(tree: list[Row], rows_by_session: dict[str, list[Row]]) -> SessionStamp:
    own = [*tree, *(row for session in tree for row in rows_by_session.get(session["id"], ()))]
    times = [row["updated"] for row in own if isinstance(row["updated"], int)]
    stamp = ";".join(f"{row['id']}:{row['updated']}:{row.get('count')}:{row.get('size')}" for row in own)
    return SessionStamp(tree[0]["id"], max(times, default=0) / 1000, sum(row.get("size") or 0 for row in own), stamp)


def _parent_of_fork(database: ForeignDatabase, row: Row) -> str | None:
    """Find the parent of a fork. A fork is a copy under new ids, and nothing names its parent; but the messages keep
    their times. Of several sessions with the last message, the parent is the one that did not copy it itself."""
    session, created = row.get("id"), row.get("time_created")
    if not isinstance(created, int):
        return None
    copied = "SELECT max(time_created) AS time FROM message WHERE session_id = ? AND time_created < ?"
    last = next((fork_row["time"] for fork_row in database.rows(copied, session, created)), None)
    if last is None:
        return None
    same = """
        SELECT session.id FROM message JOIN session ON session.id = message.session_id
        WHERE message.time_created = ? AND session.id <> ? AND session.time_created < ?
        ORDER BY message.time_created < session.time_created, session.time_created DESC LIMIT 1
    """
    return next((parent_row["id"] for parent_row in database.rows(same, last, session, created)), None)


DATABASE = OpencodeTables("opencode")
DATABASES = SessionDatabases(__name__)
session_ids, source_of = DATABASES.session_ids, DATABASES.source_of
