"""Live updates: server-sent events for lists and for a session, and the page of all running sessions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.views.outline import NumberedTurn
from agent_logger.web.catalog_pool import digest, state_of
from agent_logger.web.pages.session import SessionRenderer, session_not_found
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.site import Site, site_of

CATALOG_SECONDS = 1.0  # between checks of the catalog
ANSWER_SECONDS = 0.25  # between checks of a session's files and of responses in flight
QUIET_SECONDS = 15.0  # without an event; after that, proxies and browsers may close the stream
LAST_TURNS = 2
MOST_SESSIONS = 12
CHANGED = "event: changed\ndata: {}\n\n"
GONE = "event: gone\ndata: {}\n\n"
LIVE = "event: live\ndata: {}\n\n"
ENDED = "event: ended\ndata: {}\n\n"

Poll = Callable[[], Awaitable[Sequence[str]]]


def _stream(poll: Poll, seconds: float, hello: str = ": hello\n\n") -> Response:
    """A stream of the events that each poll returns; a comment now and then, while there are none."""

    async def stream_events() -> AsyncIterator[str]:
        yield hello
        quiet = 0.0
        while True:
            await asyncio.sleep(seconds)
            events = await poll()
            for event in events:
                yield event
            quiet = 0.0 if events else quiet + seconds
            if quiet >= QUIET_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"

    return StreamingResponse(stream_events(), media_type="text/event-stream")


async def events(request: Request) -> Response:
    """Send `changed` when a session is new or has grown since the `version` from which the page was made."""
    return _stream(_CatalogEvents(site_of(request), request).poll, CATALOG_SECONDS)


async def live_events(request: Request) -> Response:
    """Send `changed` as `events` does, and the `words` of all running sessions."""
    return _stream(_LiveSessionEvents(site_of(request), request).poll, ANSWER_SECONDS)


async def session_events(request: Request) -> Response:
    """Send `live` first, for a session that is, and again when it begins to be; `ended` when it ceases to be; `changed`
    when its files have changed since `state`, as the page had them; `words` while a model answers; `gone` if the
    session was removed."""
    site, session_id = site_of(request), request.path_params["session_id"]
    # First, so that changes during the query count as later changes.
    version = site.pool.refresher.version
    summary = await site.pool.summary(session_id)
    if summary is None:
        raise session_not_found(session_id)
    state = request.query_params.get("state") or digest(state_of(summary.paths))
    session = _SessionEvents(site, request, summary, version, state)
    return _stream(session.poll, ANSWER_SECONDS, LIVE if summary.live else ": hello\n\n")


class _CatalogEvents:
    def __init__(self, site: Site, request: Request) -> None:
        self._pool = site.pool
        self._version = request.query_params.get("version") or site.pool.refresher.version

    async def poll(self) -> list[str]:
        self._pool.refresher.wake()
        before, self._version = self._version, self._pool.refresher.version
        return [CHANGED] if before != self._version else []


class _AnswerEvents:
    """Events for responses in flight in some sessions, sent when they have grown."""

    def __init__(self, site: Site, request: Request) -> None:
        self._site, self._request = site, request
        self._last_data: dict[str, str] = {}  # by session

    def poll(self, summaries: Iterable[SessionSummary]) -> list[str]:
        return [event for summary in summaries if (event := self._event(summary))]

    def _event(self, summary: SessionSummary) -> str | None:
        turns = [NumberedTurn(-1, turn) for turn in self._site.in_flight.turns(summary)]
        answer = (
            self._site.render(self._request, "_in_flight.html", turns=turns, renderer=SessionRenderer)
            if turns
            else None
        )
        html = bytes(answer.body).decode() if answer else ""
        if html == self._last_data.get(summary.id, ""):
            return None
        self._last_data[summary.id] = html
        data = msgspec.json.encode({"session": summary.id, "html": html}).decode()
        return f"event: words\ndata: {data}\n\n"


class _SessionEvents:
    def __init__(self, site: Site, request: Request, summary: SessionSummary, version: str, state: str) -> None:
        self._pool, self._summary = site.pool, summary
        self._version, self._state = version, state
        self._answer_events = _AnswerEvents(site, request)

    async def poll(self) -> list[str]:
        self._pool.refresher.wake()
        if self._version != self._pool.refresher.version:
            self._version = self._pool.refresher.version
            summary = await self._pool.query(lambda catalog: catalog.summary(self._summary.id))
            if summary is None:
                return [GONE]
            was_live, self._summary = self._summary.live, summary
            if was_live != summary.live:
                return [LIVE if summary.live else ENDED, *await self._pool.run(self._file_events)]
        return await self._pool.run(self._file_events)

    def _file_events(self) -> list[str]:
        before, self._state = self._state, digest(state_of(self._summary.paths))
        changed = [CHANGED] if before != self._state else []
        return changed + self._answer_events.poll([self._summary])


class _LiveSessionEvents:
    """Events of all running sessions. Which sessions run is queried whenever anything changes."""

    def __init__(self, site: Site, request: Request) -> None:
        self._pool = site.pool
        self._catalog_events = _CatalogEvents(site, request)
        self._answer_events = _AnswerEvents(site, request)
        self._summaries: list[SessionSummary] | None = None

    async def poll(self) -> list[str]:
        changed = await self._catalog_events.poll()
        if changed or self._summaries is None:
            self._summaries = await self._pool.query(_live_sessions)
        summaries = self._summaries
        return changed + await self._pool.run(lambda: self._answer_events.poll(summaries))


def _live_sessions(catalog: Catalog) -> list[SessionSummary]:
    return catalog.sessions(Filter(live=True), limit=MOST_SESSIONS)


# ---------------------------------------------------------------- the page


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A running session, and its last messages."""

    summary: SessionSummary
    renderer: SessionRenderer
    last_prompt: str
    turns: Sequence[NumberedTurn]


async def live(request: Request) -> Response:
    site = site_of(request)
    version = await site.pool.version()
    sessions = await site.pool.query(lambda catalog: _read_live_sessions(site, catalog))
    values = {
        "sessions": sessions,
        "catalog_version": version,
        "is_expanded": False,
        "data_url": "/api/v1/sessions?live=1",
    }
    return await site.pool.run(lambda: site.render(request, "live.html", **values))


def _read_live_sessions(site: Site, catalog: Catalog) -> list[LiveSession]:
    views = (site.pool.read(catalog, summary.id) for summary in _live_sessions(catalog))
    return [_live_session(view, SessionRenderer(view, site.session_url(view.summary.id))) for view in views if view]


def _live_session(view: SessionView, renderer: SessionRenderer) -> LiveSession:
    chapter = view.chapters[-1] if view.chapters else None
    prompt = (chapter.user_input or "") if chapter else ""
    return LiveSession(view.summary, renderer, prompt, chapter.turns[-LAST_TURNS:] if chapter else ())
