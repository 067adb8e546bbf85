"""The hub's application: the views of the local page over what all devices have sent, behind the table of roles.

What only makes sense on the machine of the sessions is not here: marks, health and verification, the demo, settings.
"""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from agent_logger.hub import pages
from agent_logger.hub.access import AccessOptions, HubAccess
from agent_logger.hub.people import People
from agent_logger.hub.site import HubSite
from agent_logger.web.api import endpoints
from agent_logger.web.api.openapi import openapi
from agent_logger.web.app import ERRORS, SESSION_ROUTES, StaticFileServer, failure, pieces_css
from agent_logger.web.catalog_pool import CatalogPool
from agent_logger.web.pages import cost, live
from agent_logger.web.pages.home.home import home
from agent_logger.web.pages.palette import palette
from agent_logger.web.pages.sessions import search, sessions
from agent_logger.web.site import HERE, STATIC

LOCAL_ENDPOINTS = ("/health", "/health/checkup")


def hub_app(pool: CatalogPool, people: People, options: AccessOptions, more: Sequence[BaseRoute] = ()) -> HubAccess:
    """Return the application, with more routes, each of which needs a row in the table of roles."""
    signing = pages.SignIn(options)
    routes: list[BaseRoute] = [
        *more,
        Route("/", home),
        Route("/open", pages.ask_to_sign_in),
        Route("/open", signing.sign_in, methods=["POST"]),
        Route("/sign-out", signing.sign_out, methods=["POST"]),
        Route("/team", pages.team),
        Route("/reads", pages.reads),
        Route("/sessions", sessions),
        Route("/live", pages.live),
        Route("/search", search),
        Route("/palette", palette),
        Route("/events", live.events),
        Route("/why", cost.cost),
        *(Route(f"/sessions/{{session_id}}{rest}", answer) for rest, answer in SESSION_ROUTES.items()),
        *(route for route in endpoints.routes() if route.path.removeprefix(endpoints.V1) not in LOCAL_ENDPOINTS),
        *(Route(endpoints.V1 + endpoint.path, endpoints.answer_of(endpoint)) for endpoint in pages.ENDPOINTS),
        Route(f"{endpoints.V1}/openapi.json", openapi),
        Route(f"{STATIC}/pieces.css", pieces_css),
        Mount(STATIC, StaticFileServer(directory=HERE / "static")),
    ]
    app = Starlette(routes=routes, exception_handlers=ERRORS)
    app.state.site = site = HubSite(pool, people)

    def refuse(request: Request, status: int, reason: str) -> Response:
        return failure(request, status, reason)

    return HubAccess(app, people, site, options, refuse)
