"""What is happening now, told as it happens: server-sent events for lists and for a session, and all that run."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.export.outline import NumberedTurn
from agent_logger.web.archive import Archive, digest, state_of
from agent_logger.web.book import Book
from agent_logger.web.session import Drawing, book_of
from agent_logger.web.site import site_of

SECONDS = 1.0  # between looks at everything
SESSION_SECONDS = 0.4  # between looks at the files of one session
QUIET_SECONDS = 15.0  # without a word, and a proxy or a sleeping laptop would think that we are gone
LAST_TURNS = 2
MOST_SESSIONS = 12


async def events(request: Request) -> Response:
    """`changed`, whenever a session is new or went on."""
    archive = site_of(request).archive

    async def told() -> AsyncIterator[str]:
        version, quiet = archive.keeper.version, 0.0
        yield ": hello\n\n"
        while True:
            await asyncio.sleep(SECONDS)
            archive.keeper.wake()
            now = archive.keeper.version
            quiet = 0.0 if now != version else quiet + SECONDS
            if now != version:
                version = now
                yield "event: changed\ndata: {}\n\n"
            elif quiet >= QUIET_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"

    return _stream(told())


async def session_events(request: Request) -> Response:
    """`live` at first, for a session that is; `changed` whenever its files are, since `state` as the page had them."""
    archive, book = site_of(request).archive, await book_of(request)
    known = request.query_params.get("state") or book.state

    async def told() -> AsyncIterator[str]:
        state, quiet = known, 0.0
        yield "event: live\ndata: {}\n\n" if book.summary.live else ": hello\n\n"
        while True:
            await asyncio.sleep(SESSION_SECONDS)
            now = await archive.do(lambda: digest(state_of(book.summary.paths)))
            quiet = 0.0 if now != state else quiet + SESSION_SECONDS
            if now != state:
                state = now
                yield "event: changed\ndata: {}\n\n"
            elif quiet >= QUIET_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"

    return _stream(told())


def _stream(told: AsyncIterator[str]) -> Response:
    return StreamingResponse(told, media_type="text/event-stream")


# ---------------------------------------------------------------- the page


@dataclass(frozen=True, slots=True)
class Running:
    """A session that runs, and the last that was said in it."""

    summary: SessionSummary
    drawing: Drawing
    asked: str
    turns: Sequence[NumberedTurn]


async def live(request: Request) -> Response:
    site = site_of(request)
    running = await site.archive.ask(lambda catalog: _running(site.archive, catalog))
    return await site.archive.do(
        lambda: site.render(
            request, "live.html", running=running, whole=False, data="/api/v1/sessions?live=1"
        )
    )


def _running(archive: Archive, catalog: Catalog) -> list[Running]:
    found = catalog.sessions(Filter(live=True), limit=MOST_SESSIONS)
    books = (archive.read(catalog, it.id) for it in found)
    return [_last_words(book) for book in books if book]


def _last_words(book: Book) -> Running:
    chapter = book.chapters[-1] if book.chapters else None
    asked = (chapter.user_input or "") if chapter else ""
    return Running(book.summary, Drawing(book), asked, chapter.turns[-LAST_TURNS:] if chapter else ())
