"""What passed over the wire for a session: every call, and one call exactly as it was sent and answered."""

from collections.abc import Mapping, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent_logger.agents.registry import agent_called
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.joining.calls import WireCall, call_named
from agent_logger.model.prices import price
from agent_logger.model.session import Cost
from agent_logger.web.addresses import session_url
from agent_logger.web.pages.call import CallView, call_speed
from agent_logger.web.pages.home.setup import line_to_record
from agent_logger.web.pages.session import render_view, session_view_of
from agent_logger.web.site import site_of

Costs = Mapping[str, Cost]  # by call


async def wire(request: Request) -> Response:
    """Show all calls; with `message`, redirect to the call that returned this answer."""
    site, view = site_of(request), await session_view_of(request)
    calls, costs = await site.pool.query(lambda catalog: _calls_and_costs(catalog, view.summary.id))
    if message := request.query_params.get("message"):
        call = next((call for call in calls if call.message_id == message), None)
        if call is None:
            raise HTTPException(404, "The call that produced this response is no longer in the logs.")
        return RedirectResponse(site.session_url(view.summary.id, f"/wire/{call.call}"), 303)
    return await render_view(
        request,
        view,
        "wire.html",
        calls=calls,
        costs=costs,
        call_speed=call_speed,
        has_speeds=any(map(call_speed, calls)),
        line_to_record=line_to_record(agent_called(view.summary.agent)),
        data_url=f"/api/v1{session_url(view.summary.id)}/calls",
    )


async def call(request: Request) -> Response:
    """Show one call; with `since`, what differs from that call."""
    site, view, name = site_of(request), await session_view_of(request), request.path_params["call"]
    since = request.query_params.get("since") or None

    def read_call(catalog: Catalog) -> CallView | None:
        calls, costs = _calls_and_costs(catalog, view.summary.id)
        chosen = call_named(calls, since) if since else None
        detail = catalog.call(view.summary.id, name, since=chosen.call if chosen else None)
        if detail is None:
            return None
        compared = catalog.call(view.summary.id, chosen.call) if chosen else None
        return CallView(detail, calls, compared, costs.get(detail.call.call))

    call_view = await site.pool.query(read_call)
    if call_view is None:
        raise HTTPException(404, f"This session has no call {name}.")
    if since and call_view.since is None:
        raise HTTPException(404, f"This session has no call {since} to compare with.")
    data_url = f"/api/v1{session_url(view.summary.id)}/calls/{call_view.call.call}"
    return await render_view(request, view, "call.html", call_view=call_view, data_url=data_url)


def _calls_and_costs(catalog: Catalog, session_id: str) -> tuple[Sequence[WireCall], Costs]:
    """The calls, and what each cost: as the ledger has it, also if the response is counted in another session."""
    calls = catalog.calls(session_id)
    rows = [*catalog.counted_elsewhere(session_id), *catalog.ledger(session=session_id)] if calls else []
    ledger: dict[str | None, Cost] = {row.message_id: row.cost for row in rows if row.message_id}
    return calls, {call.call: cost for call in calls if (cost := ledger.get(call.message_id) or _list_price(call))}


def _list_price(call: WireCall) -> Cost | None:
    """The price of a response that no message id identifies in the ledger."""
    return price(call.usage, call.model, call.started) if call.usage and call.message_id is None else None
