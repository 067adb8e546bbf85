"""Why this number: the rows of the ledger behind it, each with who saw it, its price and the client's own figure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.ledger import LedgerRow
from agent_logger.catalog.ledger.totals import Total, total
from agent_logger.catalog.summary import Uncounted
from agent_logger.model.prices import price_date
from agent_logger.web.filters import PageQuery
from agent_logger.web.pages.session import Drawing, book_of
from agent_logger.web.pages.session_view import Book
from agent_logger.web.site import session_url, site_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    total: Total
    rows: list[LedgerRow]  # of one page
    count: int
    not_counted: Sequence[Uncounted] = ()  # of a session, on its first page

    @property
    def not_itemised(self) -> int:
        return self.count - self.total.responses


async def why(request: Request) -> Response:
    """Over all sessions that are asked for."""
    site, query = site_of(request), PageQuery.of(request.query_params)
    key = ("why", replace(query, offset=0, limit=1))
    rows = await site.archive.cached(key, lambda catalog: list(catalog.ledger(query.filter())))
    reasons = _reasons(rows, query)
    return site.render(
        request,
        "why.html",
        found=reasons,
        wanted=query,
        book=None,
        base="/why",
        price_date=price_date(),
        data=f"/api/v1/ledger{query.query(offset=query.offset)}",
    )


async def session_why(request: Request) -> Response:
    """Of one session, or of one exchange in it."""
    site, book, query = site_of(request), await book_of(request), PageQuery.of(request.query_params)
    number = request.query_params.get("exchange", "")
    ids = _ids(book, number)
    beyond = {remainder.at for remainder in book.session.not_itemised if str(remainder.exchange) == number}

    def ask(catalog: Catalog) -> Reasons:
        rows = catalog.ledger(session=book.summary.id)
        reasons = _reasons((row for row in rows if ids is None or _is_of(row, ids, beyond)), query)
        if ids is not None or query.offset:
            return reasons
        return replace(reasons, not_counted=catalog.uncounted(book.summary.id))

    url = session_url(book.summary.id)
    return site.render(
        request,
        "why.html",
        found=await site.archive.query(ask),
        wanted=query,
        book=book,
        it=book.summary,
        drawing=Drawing(book),
        exchange=number if ids is not None else "",
        base=f"{url}/why",
        price_date=price_date(),
        data=f"/api/v1{url}/ledger",
    )


def _reasons(rows: Iterable[LedgerRow], query: PageQuery) -> Reasons:
    every = list(rows)[::-1]  # they come in the order of time
    return Reasons(total=total(every), rows=every[query.offset :][: query.limit], count=len(every))


def _is_of(row: LedgerRow, ids: set[str | None], beyond: set[datetime | None]) -> bool:
    """`beyond`: when the exchange ended, if its client counts more than its responses."""
    return row.at in beyond if row.joined_by == "result" else row.message_id in ids


def _ids(book: Book, number: str) -> set[str | None] | None:
    exchanges = [exchange for exchange in book.session.exchanges if str(exchange.number) == number]
    return {turn.message_id for turn in exchanges[0].turns if turn.message_id} if exchanges else None
