"""A session as a file, in the formats of `agent-logger export`."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter
from agent_logger.config import load
from agent_logger.errors import AgentLoggerError, SourceError
from agent_logger.exports.base import ExportContext, ExportedSession, Format
from agent_logger.exports.formats import FORMATS, pieces_of
from agent_logger.exports.masks.machine import git_authors, this_machine
from agent_logger.exports.masks.mask import KINDS, NO_MASK, Masks, SessionMask
from agent_logger.exports.pack import packed
from agent_logger.exports.sessions import exported_sessions
from agent_logger.home.layout import install_key
from agent_logger.web.pages.session import session_view_of
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.site import site_of


async def export(request: Request) -> Response:
    """Send the session as an attachment: a browser stores it, and draws nothing of it as a page of ours. `?mask` names
    what is replaced by pseudonyms, as the option of the command does."""
    site, view = site_of(request), await session_view_of(request)
    form = FORMATS.get(request.path_params["format"])
    if form is None:
        raise HTTPException(404, f"Sessions can be exported as {', '.join(list(FORMATS)[:-1])} or {list(FORMATS)[-1]}.")
    kinds = frozenset(filter(None, request.query_params.get("mask", "").split(",")))
    if not kinds <= set(KINDS):
        raise HTTPException(400, f"Masks are {', '.join(KINDS)}.")
    session = await site.pool.query(lambda catalog: _session(catalog, view))
    mask = await site.pool.query(lambda catalog: _mask(catalog, kinds, session.project))
    try:
        chunks = await site.pool.run(lambda: _chunks(form, session, ExportContext(mask)))
    except SourceError as error:
        raise HTTPException(404, f"{str(error)[:1].upper()}{str(error)[1:]}.") from error
    name = f"session-{site.short_id(view.summary.id)}.{form.suffix}"
    headers = {"Content-Disposition": f'attachment; filename="{_safe_name(name)}"'}
    return StreamingResponse(chunks, media_type=form.media_type, headers=headers)


def _session(catalog: Catalog, view: SessionView) -> ExportedSession:
    """Return the session with all that the catalog knows of it: the answer is sent from another thread."""
    (session,) = exported_sessions(catalog, Filter(sessions=frozenset({view.summary.id})))
    logs, sources = session.wire_logs(), session.sources()
    return replace(session, read=lambda: view.session, wire_logs=lambda: logs, sources=lambda: sources)


def _mask(catalog: Catalog, kinds: frozenset[str], project: str | None) -> SessionMask:
    if not kinds:
        return NO_MASK
    try:
        return Masks(kinds, install_key(catalog.home), this_machine(load().mask_words), git_authors).of(project)
    except AgentLoggerError as error:
        raise HTTPException(500, str(error)) from error


def _chunks(form: Format, session: ExportedSession, context: ExportContext) -> Iterator[bytes]:
    """Return the bytes of the file. What is wrong with the session shows before the first of them."""
    pieces = (piece.data for piece in pieces_of(form, session, context))
    chunks = packed(pieces) if form.packed else pieces
    first = next(chunks, b"")
    return chain([first], chunks)


def _safe_name(name: str) -> str:
    return "".join(
        character if character.isascii() and (character.isalnum() or character in "._-") else "_" for character in name
    )
