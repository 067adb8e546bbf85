"""What is happening now, told as it happens: server-sent events for lists and for a session, and all that run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.views.outline import NumberedTurn
from agent_logger.web.catalog_pool import CatalogPool, digest, state_of
from agent_logger.web.pages.session import Drawing, no_session
from agent_logger.web.pages.session_view import Book
from agent_logger.web.site import Site, site_of

SECONDS = 1.0  # between looks at everything
WORDS_SECONDS = 0.25  # between looks at the files of a session, and at what is being said
QUIET_SECONDS = 15.0  # without a word, and a proxy or a sleeping laptop would think that we are gone
LAST_TURNS = 2
MOST_SESSIONS = 12
CHANGED = "event: changed\ndata: {}\n\n"
GONE = "event: gone\ndata: {}\n\n"
LIVE = "event: live\ndata: {}\n\n"

Look = Callable[[], Awaitable[Sequence[str]]]


def _stream(look: Look, seconds: float, hello: str = ": hello\n\n") -> Response:
    """Of what each look finds; now and then a word that means nothing."""

    async def stream_events() -> AsyncIterator[str]:
        yield hello
        quiet = 0.0
        while True:
            await asyncio.sleep(seconds)
            events = await look()
            for event in events:
                yield event
            quiet = 0.0 if events else quiet + seconds
            if quiet >= QUIET_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"

    return StreamingResponse(stream_events(), media_type="text/event-stream")


async def events(request: Request) -> Response:
    """`changed`, whenever a session is new or went on, since the `version` that the page was made of."""
    return _stream(_Everything(site_of(request), request).look, SECONDS)


async def live_events(request: Request) -> Response:
    """The same, and `words` of all sessions that run."""
    return _stream(_Running(site_of(request), request).look, WORDS_SECONDS)


async def session_events(request: Request) -> Response:
    """`live` at first, for a session that is; `changed` whenever its files are, since `state` as the page had them;
    `words` while a model answers; `gone` if it was removed."""
    site, session_id = site_of(request), request.path_params["session_id"]
    version = site.archive.keeper.version  # first: what changes while we ask is a change since
    summary = await site.archive.query(lambda catalog: catalog.summary(session_id))
    if summary is None:
        raise no_session(session_id)
    state = request.query_params.get("state") or digest(state_of(summary.paths))
    session = _Session(site, request, summary, version, state)
    return _stream(session.look, WORDS_SECONDS, LIVE if summary.live else ": hello\n\n")


class _Everything:
    def __init__(self, site: Site, request: Request) -> None:
        self._archive = site.archive
        self._version = request.query_params.get("version") or str(site.archive.keeper.version)

    async def look(self) -> list[str]:
        self._archive.keeper.wake()
        before, self._version = self._version, str(self._archive.keeper.version)
        return [CHANGED] if before != self._version else []


class _Words:
    """What is being said in some sessions, told when it is more than the last time."""

    def __init__(self, site: Site, request: Request) -> None:
        self._site, self._request = site, request
        self._last_data: dict[str, str] = {}  # by session

    def look(self, summaries: Iterable[SessionSummary]) -> list[str]:
        return [event for summary in summaries if (event := self._of(summary))]

    def _of(self, summary: SessionSummary) -> str | None:
        turns = [NumberedTurn(-1, turn) for turn in self._site.words.turns(summary)]
        answer = (
            self._site.render(self._request, "_words.html", turns=turns, drawing=Drawing) if turns else None
        )
        html = bytes(answer.body).decode() if answer else ""
        if html == self._last_data.get(summary.id, ""):
            return None
        self._last_data[summary.id] = html
        data = msgspec.json.encode({"session": summary.id, "html": html}).decode()
        return f"event: words\ndata: {data}\n\n"


class _Session:
    def __init__(
        self, site: Site, request: Request, summary: SessionSummary, version: int, state: str
    ) -> None:
        self._archive, self._summary = site.archive, summary
        self._version, self._state = version, state
        self._words = _Words(site, request)

    async def look(self) -> list[str]:
        self._archive.keeper.wake()
        if self._version != self._archive.keeper.version:
            self._version = self._archive.keeper.version
            summary = await self._archive.query(lambda catalog: catalog.summary(self._summary.id))
            if summary is None:
                return [GONE]
            self._summary = summary
        return await self._archive.run(self._look)

    def _look(self) -> list[str]:
        before, self._state = self._state, digest(state_of(self._summary.paths))
        changed = [CHANGED] if before != self._state else []
        return changed + self._words.look([self._summary])


class _Running:
    """Which sessions run is asked for as often as anything changes."""

    def __init__(self, site: Site, request: Request) -> None:
        self._archive = site.archive
        self._everything = _Everything(site, request)
        self._words = _Words(site, request)
        self._running: list[SessionSummary] | None = None

    async def look(self) -> list[str]:
        changed = await self._everything.look()
        if changed or self._running is None:
            self._running = await self._archive.query(_live_sessions)
        running = self._running
        return changed + await self._archive.run(lambda: self._words.look(running))


def _live_sessions(catalog: Catalog) -> list[SessionSummary]:
    return catalog.sessions(Filter(live=True), limit=MOST_SESSIONS)


# ---------------------------------------------------------------- the page


@dataclass(frozen=True, slots=True)
class Running:
    """A session that runs, and the last that was said in it."""

    summary: SessionSummary
    drawing: Drawing
    last_prompt: str
    turns: Sequence[NumberedTurn]


async def live(request: Request) -> Response:
    site = site_of(request)
    version = await site.archive.version()
    running = await site.archive.query(lambda catalog: _running(site.archive, catalog))
    values = {"running": running, "seen": version, "whole": False, "data": "/api/v1/sessions?live=1"}
    return await site.archive.run(lambda: site.render(request, "live.html", **values))


def _running(archive: CatalogPool, catalog: Catalog) -> list[Running]:
    books = (archive.read(catalog, summary.id) for summary in _live_sessions(catalog))
    return [_last_words(book) for book in books if book]


def _last_words(book: Book) -> Running:
    chapter = book.chapters[-1] if book.chapters else None
    prompt = (chapter.user_input or "") if chapter else ""
    return Running(book.summary, Drawing(book), prompt, chapter.turns[-LAST_TURNS:] if chapter else ())
