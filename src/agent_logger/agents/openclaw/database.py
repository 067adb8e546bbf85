"""OpenClaw's database of one agent: `session_windows`, and `transcript_events` with pi's lines.

A session belongs to a key, `session_nodes`, which names the conversation: `agent:main:main`. A conversation that was
reset has several sessions. A sub-agent has a key of its own, which names the key that started it; a fork names the
session that it copied. Transcripts that were deleted, or reset by older versions, are in `session_transcript_archives`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agent_logger.agents.databases.opening import LONGEST_VALUE, DatabaseSchema, ForeignDatabase, Row
from agent_logger.agents.databases.sessions import SessionStamp, below, root_among, trees
from agent_logger.files.sealed import zstd

MOST_SESSIONS = 10_000  # sessions that one session may have started
SUB_AGENT = ":subagent:"  # in the key of one
COPIED = ("fork", "rewind")  # why a session begins with copies of the one before it
WINDOWS, EVENTS = "session_windows", "transcript_events"
NODES, ARCHIVES = "session_nodes", "session_transcript_archives"
TABLES = {
    WINDOWS: ("session_id", "session_key", "created_at", "updated_at"),
    EVENTS: ("session_id", "seq", "event_json", "created_at"),
}
_NODE_COLUMNS = (
    *("session_key", "current_session_id", "spawned_by", "parent_session_key", "fork_source_session_id"),
    *("label", "display_name"),
)
_skim = msgspec.json.Decoder(msgspec.Raw).decode


class OpenclawTables:
    schema = DatabaseSchema(
        "openclaw",
        TABLES,
        (NODES, ARCHIVES),
        documents=frozenset({"event_json", "event_zstd", "archive_blob"}),
    )

    def stamps(self, database: ForeignDatabase) -> list[SessionStamp]:
        """Return the sessions in which anything happened."""
        counts = {row["id"]: row for row in database.rows(_COUNTS) if row["id"]}
        for row in _archived(database, "1"):
            size = len(row["archive_blob"] or b"")
            counts.setdefault(row["id"], {"last": 0, "count": 0, "size": size, "written": row["created_at"]})
        windows = _windows(database)
        lost = sorted(counts.keys() - windows.keys())  # their rows are gone, or cannot be read
        starters = {**_starters(windows), **dict.fromkeys(lost)}
        rows = {**windows, **{name: {"id": name} for name in lost}}
        tree_of = trees(starters, MOST_SESSIONS)
        families = [[rows[name] for name in (root, *tree)] for root, tree in tree_of.items()]
        return [_stamp(family, counts) for family in families if any(row["id"] in counts for row in family)]

    def started_by(self, database: ForeignDatabase, session: str) -> list[str]:
        if NODES not in database.tables:
            return []
        has_sub_agents = (
            f"SELECT 1 FROM session_windows WHERE spawned_by IS NOT NULL OR session_key LIKE '%{SUB_AGENT}%'"
        )
        if not any(database.rows(f"{has_sub_agents} LIMIT 1")):
            return []
        children: dict[str | None, list[str]] = {}
        for name, starter in reversed(_starters(_windows(database)).items()):
            children.setdefault(starter, []).append(name)
        return below(session, lambda name: children.get(name, ()), MOST_SESSIONS)

    def root_of(self, database: ForeignDatabase, session: str) -> str | None:
        return root_among(_starters(_windows(database)), session)

    def rows(self, database: ForeignDatabase, session: str) -> Iterator[Row]:
        """Yield the session itself, then its events. A row with `damage` says what cannot be read."""
        for row in _windows(database, "session_id = ?", session).values():
            node = row.pop("node")
            previous = row.get("previous_session_id") if row.get("reason") in COPIED else None
            source = (
                node.get("fork_source_session_id") if node.get("current_session_id") == session else None
            ) or previous
            title = node.get("label") or node.get("display_name") or row.get("display_name")
            yield {
                "table": WINDOWS,
                "source_session": source,
                "title": title,
                "starter_key": _starter_key({**row, "node": node}),
                "key": row["session_key"],
            }
        events = map(
            _event, database.rows("SELECT * FROM transcript_events WHERE session_id = ? ORDER BY seq", session)
        )
        if (first := next(events, None)) is not None:
            yield first
            yield from events
            return
        for row in _archived(database, "session_id = ?", session):
            yield from _lines(row)


_COUNTS = """
    SELECT session_id AS id, max(seq) AS last, count(*) AS count,
        sum(length(coalesce(event_json, ''))) AS size, max(created_at) AS written
    FROM transcript_events GROUP BY session_id
"""


# ---------------------------------------------------------------- sessions


def _windows(database: ForeignDatabase, condition: str = "1", *values: str) -> dict[str, Row]:
    """Return sessions by their ids, the newest first, each with the node of its key."""
    query = f"SELECT *, session_id AS id FROM session_windows WHERE {condition} ORDER BY created_at DESC, session_id"
    windows = {row["id"]: row for row in database.rows(query, *values)}
    nodes = _nodes(database, *({row["session_key"] for row in windows.values()} if values else ()))
    return {name: {**row, "node": nodes.get(row["session_key"], {})} for name, row in windows.items()}


def _nodes(database: ForeignDatabase, *keys: str | None) -> dict[str | None, Row]:
    """Return the nodes of these keys; without a key, all."""
    if NODES not in database.tables:
        return {}
    existing = database.columns(NODES)
    columns = [column for column in _NODE_COLUMNS if column in existing]
    condition = f"session_key IN ({', '.join('?' * len(keys))})" if keys else "1"
    query = f"SELECT {', '.join(columns)} FROM {NODES} WHERE {condition}"
    return {row["session_key"]: row for row in database.rows(query, *keys)}


def _starter_key(window: Row) -> str | None:
    """Return the key that started a sub-agent; None for a session of a person."""
    node = window.get("node") or {}
    spawned_by = window.get("spawned_by") or node.get("spawned_by")
    if not spawned_by and SUB_AGENT in (window.get("session_key") or ""):
        return window.get("parent_session_key") or node.get("parent_session_key")
    return spawned_by


def _starters(windows: Mapping[str, Row]) -> dict[str, str | None]:
    """Return the session that started each session: of those of a key, the latest that there was by then."""
    by_key: dict[str, list[Row]] = {}
    for window in windows.values():  # the newest first
        by_key.setdefault(window["session_key"], []).append(window)
    starters: dict[str, str | None] = {}
    for name, window in windows.items():
        possible = [other for other in by_key.get(_starter_key(window) or "", ()) if other["id"] != name]
        before = [other for other in possible if _number(other["created_at"]) <= _number(window["created_at"])]
        starters[name] = next((other["id"] for other in (*before, *reversed(possible))), None)
    return starters


def _archived(database: ForeignDatabase, condition: str, *values: str) -> Iterator[Row]:
    """Yield transcripts that were deleted or reset, the newest last."""
    if ARCHIVES in database.tables:
        query = f"SELECT *, session_id AS id FROM {ARCHIVES} WHERE {condition} ORDER BY created_at"
        yield from database.rows(query, *values)


def _stamp(tree: list[Row], counts: Mapping[str, Row]) -> SessionStamp:
    events = [counts[row["id"]] for row in tree if row["id"] in counts]
    times = [row["written"] for row in events] + [row.get("updated_at") for row in tree]
    marks = [f"{row['id']}:{(row.get('node') or {}).get('label')}:{row.get('display_name')}" for row in tree]
    marks += [f"{row['last']}:{row['count']}:{row['size']}" for row in events]
    return SessionStamp(
        tree[0]["id"],
        max(map(_number, times)) / 1000,
        int(sum(_number(row["size"]) for row in events)),
        ";".join(marks),
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


# ---------------------------------------------------------------- events


def _event(row: Row) -> Row:
    """Return an event as a line of pi's, or what is wrong with it."""
    place = f"event {row.get('seq')} of session {row.get('session_id')}"
    data = row.get("event_json")
    if data is None:
        data = _unpacked(row.get("event_zstd"))
    if data is None:
        return {"damage": f"{place} cannot be decompressed"}
    return {"table": EVENTS, "event": data} if _is_object(data) else {"damage": f"{place} is not JSON", "event": data}


def _is_object(data: bytes) -> bool:
    try:
        return bytes(_skim(data)).startswith(b"{")
    except (ValueError, RecursionError):
        return False


def _unpacked(data: Any) -> bytes | None:
    if not isinstance(data, bytes):
        return None
    try:
        return zstd.ZstdDecompressor().decompress(data, LONGEST_VALUE)
    except zstd.ZstdError:
        return None


def _lines(row: Row) -> Iterator[Row]:
    """Yield the events of an archived transcript, which is a file of pi's."""
    blob = row.get("archive_blob")
    data = _unpacked(blob) if row.get("encoding") == "zstd" else blob
    if not isinstance(data, bytes):
        yield {"damage": f"the archived transcript of session {row['id']} cannot be read"}
        return
    for number, line in enumerate(filter(None, data.split(b"\n"))):
        yield _event({"session_id": row["id"], "seq": number, "event_json": line})


DATABASE = OpenclawTables()
