"""A session as one page that needs no other file."""

import re
from collections.abc import Iterator

from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece
from agent_logger.views.html.session import session_html

# Only a template writes this: text of a session has its quotes escaped.
_CHAPTER = re.compile(r'id="exchange-(\d+)"')


def pieces(session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
    place = "beginning"
    for text in session_html(context.mask.session(session.read())):
        if chapter := _CHAPTER.search(text):
            place = f"exchange {chapter[1]}"
        yield ExportPiece(place, text.encode("utf-8", "replace"))
