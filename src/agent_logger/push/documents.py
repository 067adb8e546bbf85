"""Documents: what is shared of a session at the levels `numbers` and `titles`."""

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from agent_logger.catalog.discovery.documents import SessionDocument, SharedResponse, SharedTool
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session, paths_in
from agent_logger.push.protocol import Form, Level, object_id
from agent_logger.push.sender import Content, RedactedPiece
from agent_logger.views.hidden_files import redaction_rules

Tools = Mapping[str, tuple[SharedTool, ...]]
NO_TOOLS: Tools = {}
LONGEST_NAME = 256  # characters of the name of a tool or a file


def document_of(
    name: str, agent: str, project: str | None, rows: Iterable[LedgerRow], titled: Session | None
) -> SessionDocument:
    """Return the document of a session. `project`: the name under which it is shared. `titled`: the session, if its
    title and the names of its tools are shared."""
    tools = _tools(titled) if titled else NO_TOOLS
    return SessionDocument(
        session=name,
        agent=agent,
        project=project,
        title=hidden(titled.title) if titled and titled.title else None,
        responses=tuple(_shared(row, tools) for row in rows),
    )


def _shared(row: LedgerRow, tools: Tools) -> SharedResponse:
    return SharedResponse(
        at=row.at,
        model=row.model,
        tier=row.tier,
        family=row.family,
        message_id=row.message_id,
        request_id=row.request_id,
        tokens=row.tokens,
        is_final=row.final,
        is_response=row.is_response,
        tools=tools.get(row.message_id or "", ()),
    )


def _tools(session: Session) -> Tools:
    return {
        turn.message_id: tuple(
            SharedTool(hidden(block.name)[:LONGEST_NAME], _file_name(block.input))
            for block in turn.blocks
            if block.kind == "tool_use" and block.name
        )
        for turn in session.turns
        if turn.message_id
    }


def _file_name(tool_input: object) -> str | None:
    """Return the name of the file that a tool was given, without its folder."""
    names = [path.replace("\\", "/").rstrip("/").rpartition("/")[2] for path in paths_in(tool_input)]
    return hidden(names[0])[:LONGEST_NAME] if names and names[0] else None


class OutgoingDocument:
    """The document of a session as an object."""

    form: Form = "document"
    place: tuple[str, ...] = ()
    origin = ""

    def __init__(self, key: bytes, level: Level, document: SessionDocument) -> None:
        self.id = object_id(key, ("document", document.session))
        self.level, self.rules = level, redaction_rules()
        self._bytes = msgspec.json.encode(document)
        self.version = hashlib.sha256(self._bytes).hexdigest()
        times = [response.at for response in document.responses if response.at]
        self.modified = max(times).timestamp() if times else 0.0

    def piece(self, start: int, tail: str, end: int | None) -> RedactedPiece | None:
        raise NotImplementedError("a document does not grow")

    def content(self) -> Content:
        return BytesContent(self._bytes)


class BytesContent:
    """What does not grow, in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.length, self.sha256 = len(data), hashlib.sha256(data).hexdigest()

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def close(self) -> None:
        pass
