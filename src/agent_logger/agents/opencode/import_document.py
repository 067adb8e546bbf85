"""The documents that `opencode import` takes, made from the rows of an archived database: one for each session.

They have the shape that `opencode export` prints. What the rows contain stays as it is, character by character; ids,
which are columns, are appended, where they win over fields of the same name. A row that the import would refuse is left
out and named, because the import would stop there.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agent_logger.agents.contracts import LONGEST_NAME, ImportDocument, LeftOutRow
from agent_logger.agents.opencode.import_shapes import (
    FileDiff,
    Finite,
    Object,
    PermissionRule,
    Revert,
    SessionID,
    SessionModel,
    Whole,
    WorkspaceID,
    fault_in_message,
    fault_in_part,
    misfit,
    read_json,
    read_object,
)
from agent_logger.agents.source_files import File
from agent_logger.errors import SourceError
from agent_logger.protocols.jsonl import Damage, JsonEntry

_NAME = re.compile(r"ses[0-9A-Za-z_-]{0,100}")


@dataclass(slots=True)
class _StoredObject:
    """A message or a part: its JSON as stored, what it says, and what is appended to it."""

    id: str
    text: str
    value: Object
    extra: Object

    @property
    def whole(self) -> Object:
        return {**self.value, **self.extra}

    def encoded(self) -> str:
        extra = _encode(self.extra)
        return f"{self.text[:-1]},{extra[1:]}" if self.value else extra


def import_document(file: File) -> ImportDocument:
    """Make the document, whatever is in the rows. Raises `SourceError` if the session is not among them, or if its id
    is not one of opencode's, which is safe as the name of a file."""
    if not _NAME.fullmatch(file.name):
        raise SourceError(f"the id {file.name[:LONGEST_NAME]!r} is not a session id of opencode")
    return _DocumentMaker(file).document()


class _DocumentMaker:
    def __init__(self, file: File) -> None:
        self._session: Object | None = None
        self._messages: dict[str, _StoredObject] = {}
        self._parts: dict[str, list[_StoredObject]] = {}
        self._name, self._left_out, self._completed = file.name, list[LeftOutRow](), 0
        for entry in file.entries:
            if isinstance(entry, Damage):
                self._leave_out("rows", "", entry.reason)
            elif isinstance(entry, JsonEntry) and type(entry.value) is dict:
                self._take(entry.value)
        self._complete()

    def _leave_out(self, table: str, name: str, reason: str) -> None:
        row = f"{table} {name[:LONGEST_NAME]}".rstrip()
        self._left_out.append(LeftOutRow(self._name, row, reason))

    def _take(self, row: Object) -> None:
        match row.get("table"):
            case "session":
                self._session = row
            case "message":
                if message := self._stored(row, {}):
                    self._messages[message.id] = message
            case "part":
                owner = row.get("message_id")
                if type(owner) is not str or owner not in self._messages:
                    self._leave_out("part", str(row.get("id")), "its message is not in the document")
                elif part := self._stored(row, {"messageID": owner}):
                    self._parts.setdefault(owner, []).append(part)

    def _stored(self, row: Object, extra: Object) -> _StoredObject | None:
        name, data = row.get("id"), row.get("data")
        try:
            if type(name) is not str or not isinstance(data, bytes):
                raise ValueError("no id, or no text")
            text = data.decode("utf-8", "replace").strip(" \t\r\n")
            value = read_object(text)
        except (ValueError, RecursionError) as error:
            self._leave_out(row["table"], str(name), f"its data is not a JSON object: {error}")
            return None
        return _StoredObject(name, text, value, {**extra, "id": name, "sessionID": self._name})

    # ------------------------------------------------------------ older versions

    def _complete(self) -> None:
        """Fill in what versions before 0.6 did not write: `agent`, `parentID` and `model` of a prompt, which the
        answers have, and the `reason` why a step ended, which nothing has."""
        prompt_id: str | None = None
        following = _Answers(list(self._messages.values()))
        for message in self._messages.values():
            is_prompt, value = message.value.get("role") == "user", message.value
            of_answer = {"parentID": prompt_id, "agent": value.get("mode"), "mode": value.get("agent")}
            self._add(message, following.of_prompt(message) if is_prompt else of_answer)
            prompt_id = message.id if is_prompt else prompt_id
        for part in chain.from_iterable(self._parts.values()):
            if part.value.get("type") == "step-finish":
                self._add(part, {"reason": "unknown"})

    def _add(self, stored: _StoredObject, fields: Object) -> None:
        missing = {name: value for name, value in fields.items() if name not in stored.value and value}
        stored.extra |= missing
        self._completed += bool(missing)

    # ------------------------------------------------------------ the document

    def document(self) -> ImportDocument:
        if self._session is None:
            reasons = [row.reason for row in self._left_out] or ["the row does not exist"]
            raise SourceError(f"cannot read session {self._name} in the archived database: {reasons[0]}")
        rows = {("session", self._name)}
        info = _session_info(self._name, self._session)
        messages = list(self._encoded_messages(rows))
        text = f'{{"info":{info},"messages":[\n' + ",\n".join(messages) + "\n]}\n"
        directory = self._session.get("directory")
        return ImportDocument(
            session=self._name,
            directory=directory if type(directory) is str else None,
            data=text.encode(),
            rows=frozenset(rows),
            left_out=self._left_out,
            completed=self._completed,
        )

    def _encoded_messages(self, rows: set[tuple[str, str]]) -> Iterator[str]:
        for message in self._messages.values():
            parts = self._parts.get(message.id, [])
            if fault := fault_in_message(message.whole):
                self._leave_out("message", message.id, f"opencode import refuses it: {fault}")
                for part in parts:
                    self._leave_out("part", part.id, "its message is not in the document")
                continue
            rows.add(("message", message.id))
            encoded = []
            for part in parts:
                if fault := fault_in_part(part.whole):
                    self._leave_out("part", part.id, f"opencode import refuses it: {fault}")
                    continue
                rows.add(("part", part.id))
                encoded.append(part.encoded())
            yield f'{{"info":{message.encoded()},"parts":[{",".join(encoded)}]}}'


class _Answers:
    """The first answer after each prompt; after the last prompts, the last answer there is."""

    def __init__(self, messages: list[_StoredObject]) -> None:
        self._answers: dict[str, Object] = {}
        last = next((item.value for item in reversed(messages) if item.value.get("role") != "user"), {})
        for message in reversed(messages):
            self._answers[message.id] = last
            last = last if message.value.get("role") == "user" else message.value

    def of_prompt(self, message: _StoredObject) -> Object:
        answer = self._answers[message.id]
        provider, model = answer.get("providerID"), answer.get("modelID")
        is_told = type(provider) is str and type(model) is str
        return {
            "agent": answer.get("agent") or answer.get("mode"),
            "model": {"providerID": provider, "modelID": model} if is_told else None,
        }


# ---------------------------------------------------------------- the session

# Columns that may be empty: the name in the document, and the shape that the import requires.
_TEXT_COLUMNS: dict[str, tuple[str, Any]] = {
    "workspace_id": ("workspaceID", WorkspaceID),
    "path": ("path", str),
    "parent_id": ("parentID", SessionID),
    "agent": ("agent", str),
}
_JSON_COLUMNS: dict[str, tuple[str, Any]] = {
    "model": ("model", SessionModel),
    "metadata": ("metadata", Object),
    "permission": ("permission", list[PermissionRule]),
    "revert": ("revert", Revert),
}


def _session_info(name: str, row: Object) -> str:
    """Build the session's part as opencode itself does from the row. Required fields get a value; what does not fit is
    left out."""
    required = {"slug": name, "project_id": "global", "directory": "/", "title": name, "version": "unknown"}
    info = {"id": _encode(name)}
    for column, default in required.items():
        value = row.get(column)
        key = "projectID" if column == "project_id" else column
        info[key] = _encode(value if type(value) is str else default)
    for column, (key, shape) in _TEXT_COLUMNS.items():
        info |= _fitting(key, row.get(column), shape)
    for column, (key, shape) in _JSON_COLUMNS.items():
        info |= _fitting_json(key, row.get(column), shape)
    if summary := _summary(row):
        info["summary"] = summary
    info |= _fitting("cost", row.get("cost"), Finite)
    if "tokens_input" in row:
        info["tokens"] = _encode(_tokens(row))
    if type(row.get("share_url")) is str:
        info["share"] = _encode({"url": row["share_url"]})
    info["time"] = _joined(_times(row))
    return _joined(info)


def _joined(fields: dict[str, str]) -> str:
    return "{" + ",".join(f'"{key}":{value}' for key, value in fields.items()) + "}"


def _fitting(key: str, value: Any, shape: Any) -> dict[str, str]:
    return {key: _encode(value)} if value is not None and misfit(value, shape) is None else {}


def _fitting_json(key: str, text: Any, shape: Any) -> dict[str, str]:
    """Return the JSON text as stored, if it fits."""
    try:
        is_fit = type(text) is str and misfit(read_json(text), shape) is None
    except (ValueError, RecursionError):
        is_fit = False
    return {key: text} if is_fit else {}


def _summary(row: Object) -> str | None:
    counts = {name: row.get(f"summary_{name}") for name in ("additions", "deletions", "files")}
    if all(count is None for count in counts.values()):
        return None
    fields = {name: _encode(_finite(count)) for name, count in counts.items()}
    return _joined(fields | _fitting_json("diffs", row.get("summary_diffs"), list[FileDiff]))


def _tokens(row: Object) -> Object:
    counts = {name: _finite(row.get(f"tokens_{name}")) for name in ("input", "output", "reasoning")}
    return {**counts, "cache": {name: _finite(row.get(f"tokens_cache_{name}")) for name in ("read", "write")}}


def _finite(value: Any) -> float:
    return value if misfit(value, Finite) is None else 0


def _times(row: Object) -> dict[str, str]:
    times: dict[str, str] = {}
    for key in ("created", "updated", "compacting", "archived"):
        times |= _fitting(key, row.get(f"time_{key}"), Whole)
    either = times.get("created") or times.get("updated") or "0"
    return {"created": either, "updated": either, **times}


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
