"""The document that `goose session import` takes, made from the rows of an archived database.

It has the shape that `goose session export --format json` prints. Messages stay as they are. The imported session gets
an id of its own, and no ledger; sub-agents cannot be imported, because they would not belong to it.
"""

import re
from typing import Any

import msgspec

from agent_logger.agents.contracts import LONGEST_NAME, ImportDocument, LeftOutRow
from agent_logger.agents.source_files import File
from agent_logger.errors import SourceError
from agent_logger.protocols.jsonl import Damage, JsonEntry
from agent_logger.providers.json_values import Json

_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,100}")
_decode = msgspec.json.Decoder().decode


def import_document(file: File) -> ImportDocument:
    """Make the document, whatever is in the rows. Raises `SourceError` if the session is not among them, if its id is
    not safe as the name of a file, or if it is a sub-agent's."""
    if not _NAME.fullmatch(file.name):
        raise SourceError(f"the id {file.name[:LONGEST_NAME]!r} is not a session id of Goose")
    session: Json | None = None
    messages: list[Json] = []
    rows = {("sessions", file.name)}
    left_out: list[LeftOutRow] = []
    for entry in file.entries:
        if isinstance(entry, Damage):
            left_out.append(LeftOutRow(file.name, "rows", entry.reason))
        elif isinstance(entry, JsonEntry) and type(entry.value) is dict:
            row = entry.value
            if row.get("table") == "sessions":
                session = row
            elif row.get("table") == "messages":
                try:
                    messages.append(_message(row))
                    rows.add(("messages", str(row["id"])))
                except (ValueError, RecursionError) as error:
                    left_out.append(LeftOutRow(file.name, f"message {str(row.get('id'))[:LONGEST_NAME]}", str(error)))
    if session is None:
        raise SourceError(f"cannot read session {file.name} in the archived database: the row does not exist")
    if session.get("parent_session_id"):
        raise SourceError("goose session import does not take sub-agents")
    folder = session.get("working_dir")
    return ImportDocument(
        session=file.name,
        directory=folder if type(folder) is str else None,
        data=msgspec.json.encode(_document(file.name, session, messages)) + b"\n",
        rows=frozenset(rows),
        left_out=left_out,
        completed=0,
    )


def _message(row: Json) -> Json:
    """Build a message. Raises `ValueError` if Goose would refuse it."""
    content = _decode(row["content_json"]) if isinstance(row.get("content_json"), bytes) else None
    created, role = row.get("created_timestamp"), row.get("role")
    if not isinstance(content, list) or role not in ("user", "assistant") or type(created) is not int:
        raise ValueError("it has no content, role or time")
    metadata = _decode(row["metadata_json"]) if isinstance(row.get("metadata_json"), bytes) else None
    visible = {"userVisible": True, "agentVisible": True}
    return {
        "id": row.get("message_id"),
        "role": role,
        "created": created,
        "content": content,
        "metadata": metadata if isinstance(metadata, dict) else visible,
    }


def _document(name: str, session: Json, messages: list[Json]) -> Json:
    folder = session.get("working_dir")
    return {
        "id": name,
        "working_dir": folder if type(folder) is str else "/",
        "name": session.get("name") or session.get("description") or name,
        "user_set_name": bool(session.get("user_set_name")),
        "session_type": "user",
        "created_at": _time(session.get("created_at")),
        "updated_at": _time(session.get("updated_at")),
        "extension_data": {},
        "conversation": messages,
        "message_count": len(messages),
    }


def _time(text: Any) -> str:
    """Return a time of the database, which is in UTC, in the form of a document."""
    if type(text) is not str:
        return "1970-01-01T00:00:00Z"
    return text if "T" in text else f"{text.replace(' ', 'T')}Z"
