"""The application: which function answers which address, behind the guard."""

import logging
import sqlite3
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from agent_logger.errors import AgentLoggerError
from agent_logger.model.plurals import pluralize
from agent_logger.web.api import endpoints
from agent_logger.web.api.openapi import openapi
from agent_logger.web.auth import PageGuard
from agent_logger.web.catalog_pool import AmbiguousSessionError, CatalogPool, StillReadingError
from agent_logger.web.pages import cost, health, live, session, tree, wire
from agent_logger.web.pages.export import export
from agent_logger.web.pages.home.demo import demo
from agent_logger.web.pages.home.home import home
from agent_logger.web.pages.palette import palette
from agent_logger.web.pages.sessions import search, sessions
from agent_logger.web.pages.timeline import timeline
from agent_logger.web.site import HERE, PIECES_CSS, STATIC, Site, site_of
from agent_logger.web.tokens import COOKIE_SECONDS, PageTokens

log = logging.getLogger("agent_logger.web")

NEXT_STEPS = {
    401: "Run 'agent-logger view' in a terminal: it prints a link that works once.",
    404: "It may have been removed since the link was made. The session list shows everything that exists.",
    500: "This is a bug in agent-logger. Please report it, with the output of the terminal that runs the page.",
    503: "Try again in a moment. 'agent-logger status' shows details.",
}


MOST_CANDIDATES = 20  # sessions that an address may mean
IMMUTABLE = "public, max-age=31536000, immutable"


class StaticFileServer(StaticFiles):
    """Serve static files. Their addresses contain the version, so a browser need not ask twice."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = IMMUTABLE
        return response


SESSION_ROUTES = {
    "": session.session,
    "/head": session.head,
    "/events": live.session_events,
    "/parts/{key}": session.segment,
    "/rest/{key}": session.rest,
    "/agents/{turn:int}": session.agent,
    "/turns/{turn:int}": session.turn,
    "/turns/{turn:int}/tools/{tool:int}": session.turn,
    "/turns/{turn:int}/way": session.path_to_turn,
    "/find": session.find,
    "/timeline": timeline,
    "/wire": wire.wire,
    "/wire/{call}": wire.call,
    "/tree": tree.tree,
    "/beside/{other}": tree.comparison,
    "/why": cost.session_cost,
    "/export/{format}": export,
}


async def pieces_css(_request: Request) -> Response:
    """The style sheet of the pieces, the same as in an exported file."""
    return FileResponse(PIECES_CSS, headers={"Cache-Control": IMMUTABLE})


def page_app(pool: CatalogPool, tokens: PageTokens, port: int) -> ASGIApp:
    async def open_link(request: Request) -> Response:
        cookie = tokens.redeem(request.query_params.get("token", ""))
        if cookie is None:
            return await refusal(request, 401, "This link was already used or has expired.")
        response = RedirectResponse("/", 303)
        response.set_cookie(tokens.cookie_name, cookie, max_age=COOKIE_SECONDS, httponly=True, samesite="strict")
        return response

    routes = [
        Route("/", home),
        Route("/open", open_link),
        Route("/sessions", sessions),
        Route("/search", search),
        Route("/palette", palette),
        Route("/demo", demo, methods=["POST"]),
        Route("/live", live.live),
        Route("/live/events", live.live_events),
        Route("/events", live.events),
        Route("/why", cost.cost),
        Route("/health", health.health),
        Route("/health/damage/{number:int}", health.damage),
        *(Route(f"/sessions/{{session_id}}{rest}", answer) for rest, answer in SESSION_ROUTES.items()),
        *endpoints.routes(),
        Route(f"{endpoints.V1}/openapi.json", openapi),
        Route(f"{STATIC}/pieces.css", pieces_css),
        Mount(STATIC, StaticFileServer(directory=HERE / "static")),
    ]
    app = Starlette(routes=routes, exception_handlers=ERRORS)
    app.state.site = Site(pool)

    async def refusal(request: Request, status: int, reason: str) -> Response:
        request.scope["app"] = app
        return failure(request, status, reason)

    return PageGuard(app, port=port, tokens=tokens, refuse=refusal)


# ---------------------------------------------------------------- errors, and what to do next


def failure(request: Request, status: int, reason: str) -> Response:
    phrase = HTTPStatus(status).phrase
    step = {**NEXT_STEPS, **site_of(request).next_steps}.get(status, "")
    if request.url.path.startswith(endpoints.V1):
        return endpoints.json_answer({"status": status, "error": reason or phrase, "next_step": step}, status)
    return site_of(request).render(
        request, "error.html", status=status, reason=reason or phrase, next_step=step, code=status
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail if error.detail != HTTPStatus(error.status_code).phrase else ""
    reason = detail or {404: "This page does not exist."}.get(error.status_code, "")
    return failure(request, error.status_code, reason)


async def _unavailable(request: Request, error: Exception) -> Response:
    """Answer that something cannot be read now: an unreadable file, a catalog being rebuilt, a full disk."""
    log.warning("%s: %s", request.url.path, error)
    return failure(request, 503, f"Cannot read this now: {error}")


async def _still_reading(request: Request, error: Exception) -> Response:
    assert isinstance(error, StillReadingError)
    if request.url.path.startswith(endpoints.V1):
        return failure(request, 503, f"Not ready: {error}.")
    return site_of(request).render(request, "reading.html", status=503, read_bytes=error.done, total_bytes=error.total)


async def _ambiguous(request: Request, error: Exception) -> Response:
    assert isinstance(error, AmbiguousSessionError)
    site, names = site_of(request), error.session_ids[:MOST_CANDIDATES]
    reason = f"{error.given} may mean {pluralize(len(error.session_ids), 'session')}"
    if request.url.path.startswith(endpoints.V1):
        return failure(request, 300, f"{reason} ({', '.join(names)}): use a longer one.")
    summaries = await site.pool.query(lambda catalog: list(filter(None, map(catalog.summary, names))))
    return site.render(request, "ambiguous.html", status=300, reason=reason, candidates=summaries)


async def _internal_error(request: Request, error: Exception) -> Response:
    return failure(request, 500, f"Internal error: {type(error).__name__}")


ERRORS = {
    HTTPException: _http_error,
    OSError: _unavailable,
    sqlite3.Error: _unavailable,
    AgentLoggerError: _unavailable,
    StillReadingError: _still_reading,
    AmbiguousSessionError: _ambiguous,
    500: _internal_error,
}
