"""Documents of sessions: what a machine shares of a session whose contents it does not share.

A hub has them in `documents/` below the home of the machine. Each is a source of its own: it has the responses of a
session, and at most its title and the names of its tools.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from agent_logger.catalog.ledger.rows import bits_of
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import DOCUMENT_MARK, FileStamps, Source, entries_in, stat_of
from agent_logger.model.prices import Tokens, priced
from agent_logger.model.responses import TRANSCRIPT, ModelResponse
from agent_logger.model.session import PATH_KEYS, Block, Session, Turn, Usage

FOLDER = "documents"
SUFFIX = ".json"
MOST_BYTES = 256 << 20
WITNESS_BITS = bits_of(TRANSCRIPT)


class SharedTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call: the tool's name, and that of a file."""

    name: str
    file: str | None = None


class SharedResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A response of a model, as it is shared."""

    at: datetime | None = None
    model: str | None = None
    tier: str | None = None
    family: str = ""
    message_id: str | None = None
    request_id: str | None = None
    tokens: Tokens | None = None
    is_final: bool = True
    is_response: bool = True  # false: what a client counts beyond all known responses
    tools: tuple[SharedTool, ...] = ()


class SessionDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session, as it is shared."""

    session: str
    agent: str
    project: str | None = None
    title: str | None = None
    responses: tuple[SharedResponse, ...] = ()
    v: int = 1


_decode = msgspec.json.Decoder(SessionDocument).decode


def documents_in(home: Path) -> Iterator[Source]:
    for entry in entries_in(str(home / FOLDER)):
        stat = stat_of(entry.path) if entry.name.endswith(SUFFIX) and entry.name[0] != "." else None
        if stat:
            files = FileStamps()
            files.add_stat(stat, "")
            name = entry.name.removesuffix(SUFFIX)
            path = entry.path
            yield Source(f"{path}{DOCUMENT_MARK}", None, path, name, files.modified, files.size, files.stamp)


def document_of(source: Source) -> SessionDocument:
    """Read a document. Raises `SourceError`."""
    content = foreign.content(Path(source.path), MOST_BYTES)
    try:
        return _decode(content or b"")
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{source.path}: not the document of a session: {error}") from error


def session_of_document(document: SessionDocument) -> Session:
    """Return the session. It has no exchanges, because nobody says where one begins."""
    turns = [_turn(response) for response in document.responses if response.is_response]
    times = [response.at for response in document.responses if response.at]
    return Session(
        id=document.session,
        agent=document.agent,
        title=document.title,
        project=document.project,
        started=min(times, default=None),
        ended=max(times, default=None),
        side_turns=turns,
    )


def _turn(response: SharedResponse) -> Turn:
    return priced(
        Turn(
            message_id=response.message_id,
            request_id=response.request_id,
            model=response.model,
            service_tier=response.tier,
            stop_reason="end_turn" if response.is_final else None,
            blocks=[_block(tool) for tool in response.tools],
            usage=_usage(response),
            started=response.at,
            ended=response.at,
            witnesses=TRANSCRIPT,
            complete=response.is_final,
        )
    )


def _block(tool: SharedTool) -> Block:
    return Block(kind="tool_use", name=tool.name, input={PATH_KEYS[0]: tool.file} if tool.file else {})


def _usage(response: SharedResponse) -> Usage | None:
    return Usage.from_counts(*response.tokens) if response.tokens else None


def responses_of_document(document: SessionDocument) -> Iterator[ModelResponse]:
    for response in document.responses:
        yield ModelResponse(
            family=response.family,
            message_id=response.message_id,
            request_id=response.request_id,
            model=response.model,
            usage=_usage(response),
            tier=response.tier,
            at=response.at,
            session=document.session,
            project=document.project,
            agent=document.agent,
            thread="main",
            final=response.is_final,
            copies=int(response.is_response),
            joined_by=None if response.is_response else "result",
        )
