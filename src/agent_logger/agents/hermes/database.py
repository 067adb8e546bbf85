"""Hermes' database: `sessions`, `messages`, and `session_model_usage` with what each session used of each model.

A session that names a parent is one of three things. A sub-agent belongs to its parent. A branch begins with copies of
its parent's messages. A continuation takes the place of a session that was compacted: it begins with copies of the
messages that stayed, and a summary of the others. Older versions continue a session under a new id, newer ones in the
same session.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_logger.agents.databases.opening import DatabaseSchema, ForeignDatabase, Row
from agent_logger.agents.databases.sessions import SessionStamp, below, root_among, trees
from agent_logger.agents.hermes.copies import copies_among
from agent_logger.agents.objects import object_in
from agent_logger.providers.json_values import text_of

MOST_SESSIONS = 10_000  # sessions that one session may have started
USAGE = "session_model_usage"
TABLES = {
    "sessions": ("id", "source", "parent_session_id", "started_at"),
    "messages": ("id", "session_id", "role", "content", "timestamp"),
}
SUCCEEDED = ("branched", "compression")  # how a session ended that another one continues
COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "api_call_count")
# The columns of a session, where they exist: all but its system prompt.
_COLUMNS = (
    *("id", "source", "model", "model_config", "parent_session_id", "started_at", "ended_at", "end_reason"),
    *("cwd", "git_repo_root", "title", *COUNTED),
)


class HermesTables:
    schema = DatabaseSchema("hermes", TABLES, (USAGE,), documents=frozenset({"tool_calls", "model_config"}))

    def stamps(self, database: ForeignDatabase) -> list[SessionStamp]:
        """Return the sessions in which anything was said: Hermes makes a row when it is started."""
        by_id = _sessions(database)
        counts: dict[str, list[Row]] = {}
        for query in (_MESSAGES, *((_USAGE,) if USAGE in database.tables else ())):
            for row in database.rows(query):
                counts.setdefault(row["id"], []).append(row)
        if database.damage:
            by_id |= {name: {"id": name} for name in sorted(filter(None, counts.keys() - by_id.keys()))}
        rows = [
            [by_id[name] for name in (root, *tree)] for root, tree in trees(_starters(by_id), MOST_SESSIONS).items()
        ]
        return [_stamp(tree, counts) for tree in rows if any(row["id"] in counts for row in tree)]

    def started_by(self, database: ForeignDatabase, session: str) -> list[str]:
        """Return the sub-agents, and what continues them; a branch of the session itself is a session of its own."""
        row = _sessions(database, "id = ?", session).get(session)

        def children_of(name: str) -> list[str]:
            children = _sessions(database, "parent_session_id = ?", name)
            return [child for child in children if name != session or _source_of(children[child], row) is None]

        return below(session, children_of, MOST_SESSIONS)

    def root_of(self, database: ForeignDatabase, session: str) -> str | None:
        return root_among(_starters(_sessions(database)), session)

    def rows(self, database: ForeignDatabase, session: str) -> Iterator[Row]:
        """Yield the session, what it used, and its messages. Each row has its `table`; a message has `is_copy`."""
        source = None
        for row in _sessions(database, "id = ?", session).values():
            name = row.get("parent_session_id")
            parent = _sessions(database, "id = ?", name).get(name) if name else None
            source = _source_of(row, parent)
            cwd = row.get("cwd") or (parent or {}).get("cwd")  # a branch has none
            yield {**row, "table": "sessions", "source_session": source, "cwd": cwd}
        if USAGE in database.tables:
            for usage in database.rows(f"SELECT * FROM {USAGE} WHERE session_id = ?", session):
                yield {**usage, "table": USAGE}
        messages = list(database.rows(_MESSAGES_OF, session))
        copies = copies_among(messages, list(database.rows(_MESSAGES_OF, source)) if source else ())
        for number, message in enumerate(messages):
            yield {**message, "table": "messages", "is_copy": number in copies}


_MESSAGES_OF = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
_MESSAGES = """
    SELECT session_id AS id, max(id) AS last, count(*) AS count, sum(length(content)) AS size,
        max(timestamp) AS written
    FROM messages GROUP BY session_id
"""
_USAGE = f"""
    SELECT session_id AS id, sum(output_tokens) AS last, sum(api_call_count) AS count, 0 AS size,
        max(last_seen) AS written
    FROM {USAGE} GROUP BY session_id
"""


# ---------------------------------------------------------------- how sessions are related


def _sessions(database: ForeignDatabase, condition: str = "1", *values: str) -> dict[str, Row]:
    """Return the rows of sessions by their ids, the newest first."""
    existing = database.columns("sessions")
    columns = [column for column in _COLUMNS if column in existing]
    query = f"SELECT {', '.join(columns)} FROM sessions WHERE {condition} ORDER BY started_at DESC, id DESC"
    return {row["id"]: row for row in database.rows(query, *values) if row["id"]}


def _source_of(row: Row, parent: Row | None) -> str | None:
    """Return the session whose messages this one begins with: it is a branch of it, or continues it."""
    marks = object_in(row.get("model_config") or b"")
    if branched_from := text_of(marks.get("_branched_from")):
        return branched_from
    if marks.get("_delegate_from") or row.get("source") == "subagent" or parent is None:
        return None
    return text_of(row.get("parent_session_id")) if parent.get("end_reason") in SUCCEEDED else None


def _starters(by_id: Mapping[str, Row]) -> dict[str, str | None]:
    """Return the session that started each session. What continues a sub-agent is one, too."""
    sources = {name: _source_of(row, by_id.get(row.get("parent_session_id") or "")) for name, row in by_id.items()}
    first = _first_of_lines(sources)
    return {name: by_id[begins].get("parent_session_id") if begins else None for name, begins in first.items()}


def _first_of_lines(sources: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return, for each session, the first one of the line of those that it continues; None if that one is gone, or the
    line is a circle. `sources`: what each session continues."""
    first: dict[str, str | None] = {}
    for name in sources:
        line: list[str] = []
        source: str | None = name
        while source is not None and source in sources and source not in first:
            line.append(source)
            first[source] = None
            source = sources[source]
        begins = line[-1] if line and source is None else first.get(source or "")
        first.update(dict.fromkeys(line, begins))
    return first


def _stamp(tree: list[Row], counts: dict[str, list[Row]]) -> SessionStamp:
    own = [count for row in tree for count in counts.get(row["id"], ())]
    times = [_seconds(row.get(name)) for row in tree for name in ("started_at", "ended_at")]
    times += [_seconds(count["written"]) for count in own]
    marks = [":".join(str(row.get(name)) for name in ("id", "title", "ended_at", *COUNTED)) for row in tree]
    marks += [f"{count['last']}:{count['count']}:{count['size']}" for count in own]
    return SessionStamp(tree[0]["id"], max(times), sum(count["size"] or 0 for count in own), ";".join(marks))


def _seconds(time: Any) -> float:
    return float(time) if isinstance(time, int | float) else 0.0


DATABASE = HermesTables()
