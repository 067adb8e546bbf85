"""A session as Markdown: the same bytes for the same session."""

from collections.abc import Iterator

from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece
from agent_logger.views.markdown import session_sections


def pieces(session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
    for place, lines in session_sections(context.mask.session(session.read())):
        for line in lines:
            yield ExportPiece(place, f"{line}\n".encode("utf-8", "replace"))
