"""Goose's database: `sessions`, `messages`, and `usage_ledger` with every call that it was billed for, but for titles.

The rows of a session and of those that it started are interleaved. A compaction deletes all messages of a session, and
writes them again under new ids.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from agent_logger.agents.databases.opening import DatabaseSchema, ForeignDatabase, Row
from agent_logger.agents.databases.sessions import SessionDatabases, SessionStamp, below, root_among, trees

MOST_SESSIONS = 10_000  # sessions that one session may have started
LEDGER = "usage_ledger"
TABLES = {
    "sessions": ("id", "working_dir", "created_at", "updated_at"),
    "messages": ("id", "session_id", "role", "content_json", "created_timestamp"),
}


class GooseTables:
    schema = DatabaseSchema("goose", TABLES, (LEDGER,), documents=frozenset({"content_json", "metadata_json"}))

    def stamps(self, database: ForeignDatabase) -> list[SessionStamp]:
        """Return the sessions in which anything was said: Goose makes a row when it is started."""
        sessions = list(database.rows("SELECT * FROM sessions ORDER BY created_at DESC, id DESC"))
        counts: dict[str, list[Row]] = {}
        for query in (_MESSAGES, *((_CALLS,) if LEDGER in database.tables else ())):
            for row in database.rows(query):
                counts.setdefault(row["id"], []).append(row)
        if database.damage:
            lost = counts.keys() - {row["id"] for row in sessions}
            sessions += [{"id": name} for name in sorted(filter(None, lost))]
        by_id = {row["id"]: row for row in sessions if row["id"]}
        parents = {name: row.get("parent_session_id") for name, row in by_id.items()}
        rows = [[by_id[name] for name in (root, *tree)] for root, tree in trees(parents, MOST_SESSIONS).items()]
        return [_stamp(tree, counts) for tree in rows if any(row["id"] in counts for row in tree)]

    def started_by(self, database: ForeignDatabase, session: str) -> list[str]:
        if "parent_session_id" not in database.columns("sessions"):
            return []
        query = "SELECT id, parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL ORDER BY created_at, id"
        children: dict[str | None, list[str]] = {}
        for row in database.rows(query):
            children.setdefault(row["parent_session_id"], []).append(row["id"])
        return below(session, lambda name: children.get(name, ()), MOST_SESSIONS)

    def root_of(self, database: ForeignDatabase, session: str) -> str | None:
        rows = database.rows("SELECT * FROM sessions")
        return root_among({row["id"]: row.get("parent_session_id") for row in rows}, session)

    def rows(self, database: ForeignDatabase, session: str) -> Iterator[Row]:
        """Yield the session itself, its messages, and its calls. Each row has its `table`."""
        queries = {"sessions": "SELECT * FROM sessions WHERE id = ?"}
        queries["messages"] = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
        if LEDGER in database.tables:
            queries[LEDGER] = "SELECT * FROM usage_ledger WHERE session_id = ? ORDER BY id"
        for table, query in queries.items():
            for row in database.rows(query, session):
                # The number of a message's row changes with every compaction.
                name = row.get("message_id") or f"row {row['id']}" if table == "messages" else row["id"]
                yield {**row, "id": name, "table": table}


_MESSAGES = """
    SELECT session_id AS id, max(id) AS last, count(*) AS count, sum(length(content_json)) AS size,
        max(created_timestamp) AS written
    FROM messages GROUP BY session_id
"""
_CALLS = """
    SELECT session_id AS id, max(id) AS last, count(*) AS count, 0 AS size, max(created_timestamp) AS written
    FROM usage_ledger GROUP BY session_id
"""


def _stamp(tree: list[Row], counts: dict[str, list[Row]]) -> SessionStamp:
    own = [count for row in tree for count in counts.get(row["id"], ())]
    times = [_seconds(row.get("updated_at")) for row in tree] + [_seconds(count["written"]) for count in own]
    marks = [f"{row['id']}:{row.get('updated_at')}:{row.get('name')}" for row in tree]
    marks += [f"{count['last']}:{count['count']}:{count['size']}" for count in own]
    stamp = ";".join([str(tree[0].get("created_at")), *marks])
    return SessionStamp(tree[0]["id"], max(times), sum(count["size"] or 0 for count in own), stamp)


def _seconds(time: Any) -> float:
    """Return a time of the database, a number or a text in UTC, in seconds since 1970."""
    try:
        if isinstance(time, str):
            return datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()
        return float(time)
    except (TypeError, ValueError, OverflowError):
        return 0.0


DATABASE = GooseTables()
DATABASES = SessionDatabases(__name__)
