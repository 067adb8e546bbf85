"""What passed over the wire for a session: every call, and one of them exactly as it was sent and answered."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.web.pages.call import ShownCall
from agent_logger.web.pages.session import Drawing, book_of
from agent_logger.web.pages.session_view import Book
from agent_logger.web.site import session_url, site_of


async def wire(request: Request) -> Response:
    """All calls. With `message`, the one that this answer came with."""
    site, book = site_of(request), await book_of(request)
    calls = await site.archive.query(lambda catalog: catalog.calls(book.summary.id))
    if message := request.query_params.get("message"):
        call = next((call for call in calls if call.message_id == message), None)
        if call is None:
            raise HTTPException(404, "The call that this answer came with is not in the logs any more.")
        return RedirectResponse(session_url(book.summary.id, f"/wire/{call.call}"), 303)
    return _page(request, book, "wire.html", calls=calls, data=f"/api/v1{session_url(book.summary.id)}/calls")


async def call(request: Request) -> Response:
    site, book, name = site_of(request), await book_of(request), request.path_params["call"]

    def look(catalog: Catalog) -> ShownCall | None:
        calls = catalog.calls(book.summary.id)
        detail = catalog.call(book.summary.id, name)
        return ShownCall.of(detail, calls) if detail else None

    view = await site.archive.query(look)
    if view is None:
        raise HTTPException(404, f"There is no call {name} in this session.")
    data = f"/api/v1{session_url(book.summary.id)}/calls/{view.call.call}"
    return await site.archive.run(lambda: _page(request, book, "call.html", found=view, data=data))


def _page(request: Request, book: Book, template: str, **values: object) -> Response:
    return site_of(request).render(
        request, template, book=book, it=book.summary, drawing=Drawing(book), whole=True, **values
    )
