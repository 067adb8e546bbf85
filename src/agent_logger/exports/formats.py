"""The formats of exports: a row here and a module beside this one."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast

from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece, Format, Pieces

_ROOM = "agent_logger.exports"

FORMATS: Mapping[str, Format] = {
    form.name: form
    for form in (
        Format(
            *("html", "html", "text/html; charset=utf-8", "HTML", f"{_ROOM}.html"),
            joins=False,
        ),
        Format(
            *("md", "md", "text/markdown; charset=utf-8", "Markdown", f"{_ROOM}.markdown"),
        ),
        Format(
            *("json", "json", "application/json", "JSON", f"{_ROOM}.json"),
        ),
        Format(
            *("wire", "jsonl", "application/x-ndjson", "Wire records", f"{_ROOM}.wire"),
        ),
        Format(
            *("messages", "messages.jsonl", "application/x-ndjson", "Chat messages", f"{_ROOM}.messages"),
        ),
        Format(
            *("atif", "atif.json", "application/json", "ATIF", f"{_ROOM}.atif"),
        ),
        Format(
            *("bundle", "tar.zst", "application/zstd", "Bundle", f"{_ROOM}.bundle"),
            packed=True,
        ),
    )
}


def pieces_of(form: Format, session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
    """Yield a session in a format. Raises `SourceError` if it cannot be read, or has nothing for this format."""
    pieces = cast("Pieces", import_module(form.module).pieces)
    return pieces(session, context)
