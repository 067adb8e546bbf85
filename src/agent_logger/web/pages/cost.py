"""The explanation of a cost: the rows of the ledger behind it, each with its witnesses, its price and the client's
figure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.catalog.ledger.totals import Total, total
from agent_logger.catalog.summary import Uncounted
from agent_logger.model.prices import price_date
from agent_logger.web.addresses import session_url
from agent_logger.web.filters import PageQuery
from agent_logger.web.pages.session import render_view, session_view_of
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.site import site_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    total: Total
    rows: list[LedgerRow]  # of one page
    count: int
    not_counted: Sequence[Uncounted] = ()  # of a session, on its first page

    @property
    def not_itemised(self) -> int:
        return self.count - self.total.responses


async def cost(request: Request) -> Response:
    """Explain the cost of all selected sessions."""
    site, query = site_of(request), PageQuery.of(request.query_params)
    key = ("why", replace(query, offset=0, limit=1))
    rows = await site.pool.cached(key, lambda catalog: list(catalog.ledger(query.filter())))
    report = _report(rows, query)
    return site.render(
        request,
        "cost.html",
        report=report,
        query=query,
        view=None,
        base_url="/why",
        price_date=price_date(),
        data_url=f"/api/v1/ledger{query.query_string(offset=query.offset)}",
    )


async def session_cost(request: Request) -> Response:
    """Explain the cost of one session, or of one exchange in it."""
    site, view, query = site_of(request), await session_view_of(request), PageQuery.of(request.query_params)
    number = request.query_params.get("exchange", "")
    ids = _message_ids(view, number)
    beyond = {remainder.at for remainder in view.session.not_itemised if str(remainder.exchange) == number}

    def read_report(catalog: Catalog) -> CostReport:
        rows = catalog.ledger(session=view.summary.id)
        report = _report((row for row in rows if ids is None or _is_in_exchange(row, ids, beyond)), query)
        if ids is not None or query.offset:
            return report
        return replace(report, not_counted=catalog.uncounted(view.summary.id))

    return await render_view(
        request,
        view,
        "cost.html",
        report=await site.pool.query(read_report),
        query=query,
        exchange=number if ids is not None else "",
        base_url=site.session_url(view.summary.id, "/why"),
        price_date=price_date(),
        data_url=f"/api/v1{session_url(view.summary.id)}/ledger",
    )


def _report(rows: Iterable[LedgerRow], query: PageQuery) -> CostReport:
    newest_first = list(rows)[::-1]  # they come in the order of time
    return CostReport(
        total=total(newest_first), rows=newest_first[query.offset :][: query.limit], count=len(newest_first)
    )


def _is_in_exchange(row: LedgerRow, ids: set[str | None], beyond: set[datetime | None]) -> bool:
    """Whether a row is the exchange's. `beyond`: when the exchange ended, if its client counts more than its
    responses."""
    return row.at in beyond if row.joined_by == "result" else row.message_id in ids


def _message_ids(view: SessionView, number: str) -> set[str | None] | None:
    exchanges = [exchange for exchange in view.session.exchanges if str(exchange.number) == number]
    return {turn.message_id for turn in exchanges[0].turns if turn.message_id} if exchanges else None
