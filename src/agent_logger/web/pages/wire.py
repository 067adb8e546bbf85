"""What passed over the wire for a session: every call, and one call exactly as it was sent and answered."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.web.pages.call import CallView
from agent_logger.web.pages.session import SessionRenderer, session_view_of
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.site import session_url, site_of


async def wire(request: Request) -> Response:
    """Show all calls; with `message`, redirect to the call that returned this answer."""
    site, view = site_of(request), await session_view_of(request)
    calls = await site.pool.query(lambda catalog: catalog.calls(view.summary.id))
    if message := request.query_params.get("message"):
        call = next((call for call in calls if call.message_id == message), None)
        if call is None:
            raise HTTPException(404, "The call that this answer came with is not in the logs any more.")
        return RedirectResponse(session_url(view.summary.id, f"/wire/{call.call}"), 303)
    return _page(
        request, view, "wire.html", calls=calls, data_url=f"/api/v1{session_url(view.summary.id)}/calls"
    )


async def call(request: Request) -> Response:
    site, view, name = site_of(request), await session_view_of(request), request.path_params["call"]

    def read_call(catalog: Catalog) -> CallView | None:
        calls = catalog.calls(view.summary.id)
        detail = catalog.call(view.summary.id, name)
        return CallView.of(detail, calls) if detail else None

    call_view = await site.pool.query(read_call)
    if call_view is None:
        raise HTTPException(404, f"There is no call {name} in this session.")
    data_url = f"/api/v1{session_url(view.summary.id)}/calls/{call_view.call.call}"
    return await site.pool.run(
        lambda: _page(request, view, "call.html", call_view=call_view, data_url=data_url)
    )


def _page(request: Request, view: SessionView, template: str, **values: object) -> Response:
    return site_of(request).render(
        request, template, view=view, session=view.summary, renderer=SessionRenderer(view), **values
    )
