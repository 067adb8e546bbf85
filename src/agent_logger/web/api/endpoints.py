"""The API for programs: every view of the page as JSON or CSV, below `/api/v1`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import islice
from typing import get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_logger.catalog.ledger.totals import By
from agent_logger.logs.wire_log.answers import body_of
from agent_logger.model.redaction.redactor import hidden_bytes
from agent_logger.proxy.status import ProxyReport, proxy_reports
from agent_logger.views.lists import LedgerItem, UsageRow
from agent_logger.views.printable import printable_json
from agent_logger.web.api import items
from agent_logger.web.api.tables import csv_of
from agent_logger.web.filters import MOST, TEXTS, PageQuery
from agent_logger.web.pages.call import CallView
from agent_logger.web.pages.health import damaged_text
from agent_logger.web.pages.session import session_view_of
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.pages.sessions import HITS, LONGEST_QUERY
from agent_logger.web.pages.tree import shared_turns, turns_after
from agent_logger.web.site import site_of
from agent_logger.web.verification_runs import VerificationRuns

V1 = "/api/v1"


@dataclass(frozen=True)
class Page:
    """Some of the items, and whether more follow."""

    items: Sequence[msgspec.Struct]
    more: bool = False


@dataclass(frozen=True)
class Endpoint:
    path: str
    summary: str
    item: type[msgspec.Struct]
    answer: Callable[[Request, PageQuery], Awaitable[Page]]
    query: tuple[str, ...] = ()  # besides offset, limit and format
    one: bool = False  # a single item, not a list


def some_of(items: Sequence[msgspec.Struct], query: PageQuery) -> Page:
    """The requested part of all items."""
    rest = items[query.offset :]
    return Page(rest[: query.limit], len(rest) > query.limit)


# ---------------------------------------------------------------- answers


async def _sessions(request: Request, query: PageQuery) -> Page:
    summaries = await site_of(request).pool.query(query.page_of)
    return Page([items.SessionItem.of(summary) for summary in summaries[: query.limit]], len(summaries) > query.limit)


async def _session(request: Request, _query: PageQuery) -> Page:
    return Page([items.WholeSession.of_view(await session_view_of(request))])


async def _exchanges(request: Request, query: PageQuery) -> Page:
    view = await session_view_of(request)
    return some_of([items.ExchangeItem.of(view, exchange) for exchange in view.session.exchanges], query)


async def _turns(request: Request, query: PageQuery) -> Page:
    view = await session_view_of(request)
    numbers = range(len(view.turns))[query.offset :]
    return Page([items.TurnItem.of(view, number) for number in numbers[: query.limit]], len(numbers) > query.limit)


async def _session_ledger(request: Request, query: PageQuery) -> Page:
    view = await session_view_of(request)
    items = await site_of(request).pool.query(
        lambda catalog: [LedgerItem.of(row) for row in catalog.ledger(session=view.summary.id)]
    )
    return some_of(items, query)


async def _ledger(request: Request, query: PageQuery) -> Page:
    rows = await site_of(request).pool.query(
        lambda catalog: list(islice(catalog.ledger(query.filter()), query.offset, query.offset + query.limit + 1))
    )
    return Page([LedgerItem.of(row) for row in rows[: query.limit]], len(rows) > query.limit)


async def _calls(request: Request, query: PageQuery) -> Page:
    view = await session_view_of(request)
    calls = await site_of(request).pool.query(lambda catalog: catalog.calls(view.summary.id))
    return some_of([items.CallItem.of(call) for call in calls], query)


async def _call(request: Request, _query: PageQuery) -> Page:
    view, name = await session_view_of(request), request.path_params["call"]
    detail = await site_of(request).pool.query(lambda catalog: catalog.call(view.summary.id, name))
    if detail is None:
        raise HTTPException(404, f"This session has no call {name}.")
    call_view, changes = CallView(detail), detail.changes
    body = items.CallBody(
        call=items.CallItem.of(detail.call),
        request_headers=call_view.request_headers,
        request_body=body_of(detail.request).decode("utf-8", "replace"),
        response_headers=call_view.response_headers,
        response_body=body_of(detail.response).decode("utf-8", "replace") if detail.response else None,
        events=[items.EventItem.like(event) for event in call_view.events],
        new_messages=len(changes.messages) if changes else None,
        kept_messages=changes.unchanged if changes else None,
    )
    return Page([body])


async def _tree(request: Request, query: PageQuery) -> Page:
    view = await session_view_of(request)
    root = await site_of(request).pool.query(lambda catalog: catalog.tree(view.summary.id))
    return some_of(items.BranchItem.all_of(root) if root else [], query)


async def _beside(request: Request, query: PageQuery) -> Page:
    one, other = await session_view_of(request), await session_view_of(request, "other")
    shared = shared_turns(one, other)
    places: list[tuple[SessionView, int, int]] = [
        (view, exchange.number, turn.number)
        for view in (one, other)
        for exchange, turns in turns_after(view, shared)
        for turn in turns
    ]
    rest = places[query.offset :]
    return Page([items.BesideTurn.of_view(*row) for row in rest[: query.limit]], len(rest) > query.limit)


async def _usage(request: Request, query: PageQuery) -> Page:
    by: By = next((choice for choice in get_args(By) if choice == request.query_params.get("by")), "day")
    zone = _zone(request.query_params.get("tz")) or site_of(request).zone
    totals = await site_of(request).pool.query(lambda catalog: catalog.usage(by, query.filter(), zone=zone))
    return some_of([UsageRow.of(key, total) for key, total in totals.items()], query)


def _zone(name: str | None) -> tzinfo | None:
    """Return the named zone; None, for that of this process, if none is given."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise HTTPException(400, "tz must be the name of a zone, such as Europe/Berlin.") from error


async def _search(request: Request, query: PageQuery) -> Page:
    words = request.query_params.get("q", "").strip()[:LONGEST_QUERY]
    limit = min(query.limit, HITS)
    if not words:
        return Page([])
    try:
        hits = await site_of(request).pool.query(lambda catalog: catalog.search(words, limit=limit))
    except ValueError as error:
        raise HTTPException(400, str(error)) from error
    pool = site_of(request).pool
    await pool.query(lambda catalog: pool.note_reads(catalog, {hit.session for hit in hits}))
    return Page([items.HitItem.of(hit) for hit in hits])


async def _health(request: Request, query: PageQuery) -> Page:
    pool = site_of(request).pool
    return some_of(await pool.run(lambda: proxy_reports(pool.home)), query)


async def _verification(request: Request, _query: PageQuery) -> Page:
    site = site_of(request)
    site.verification_runs.begin()
    return Page([await site.pool.run(lambda: _verification_item(site.verification_runs))])


def _verification_item(runs: VerificationRuns) -> items.CheckupItem:
    last = runs.last_report
    return items.CheckupItem(
        at=runs.at if last else None,
        running=runs.is_running,
        problem=runs.problem,
        files=last.files if last else None,
        records=last.records if last else None,
        torn=last.torn if last else None,
        lost=last.lost if last else None,
        redactions=last.redactions if last else {},
        damage=[
            items.DamageItem.like(damage.place, path=damage.path, bytes=damage.place.length, text=damaged_text(damage))
            for damage in (last.damage[:MOST] if last else ())
        ],
    )


ENDPOINTS = (
    Endpoint("/sessions", "Sessions, most recently active first", items.SessionItem, _sessions, (*TEXTS, "order")),
    Endpoint("/sessions/{session_id}", "One session", items.WholeSession, _session, one=True),
    Endpoint("/sessions/{session_id}/exchanges", "The exchanges of a session", items.ExchangeItem, _exchanges),
    Endpoint("/sessions/{session_id}/turns", "The turns of a session, with all blocks", items.TurnItem, _turns),
    Endpoint(
        "/sessions/{session_id}/ledger",
        "The ledger rows behind the cost of a session",
        LedgerItem,
        _session_ledger,
    ),
    Endpoint(
        "/sessions/{session_id}/calls",
        "The calls of a session that the proxy recorded",
        items.CallItem,
        _calls,
    ),
    Endpoint("/sessions/{session_id}/calls/{call}", "One call in full", items.CallBody, _call, one=True),
    Endpoint("/sessions/{session_id}/tree", "The forks and sub-agents of a session", items.BranchItem, _tree),
    Endpoint(
        "/sessions/{session_id}/beside/{other}",
        "Two sessions side by side, from where they differ",
        items.BesideTurn,
        _beside,
    ),
    Endpoint("/usage", "Sums of tokens and cost", UsageRow, _usage, ("by", "tz", *TEXTS)),
    Endpoint("/ledger", "All ledger rows", LedgerItem, _ledger, TEXTS),
    Endpoint("/search", "Full-text search in all sessions", items.HitItem, _search, ("q",)),
    Endpoint("/health", "The running proxies", ProxyReport, _health),
    Endpoint(
        "/health/checkup",
        "The last check of all files: damage and redactions",
        items.CheckupItem,
        _verification,
        one=True,
    ),
)


# ---------------------------------------------------------------- as JSON, as CSV


def routes() -> list[Route]:
    return [Route(V1 + endpoint.path, answer_of(endpoint)) for endpoint in ENDPOINTS]


def answer_of(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def route(request: Request) -> Response:
        query = PageQuery.of(request.query_params)
        page = await endpoint.answer(request, query)
        if request.query_params.get("format") == "csv":
            name = endpoint.path.rpartition("/")[2].strip("{}")
            headers = {"Content-Disposition": f'attachment; filename="agent-logger-{name}.csv"'}
            return Response(csv_of(page.items, endpoint.item), media_type="text/csv", headers=headers)
        if endpoint.one:
            return json_answer(page.items[0])
        more = request.url.include_query_params(offset=query.offset + query.limit)
        return json_answer({"items": page.items, "next": f"{more.path}?{more.query}" if page.more else None})

    return route


def json_answer(value: object, status: int = 200) -> Response:
    """The value as JSON, redacted as a whole and safe to print."""
    text = hidden_bytes(json_bytes(value)).decode()
    return Response(printable_json(text), status, media_type="application/json")


def json_bytes(value: object) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=str)
    except (UnicodeEncodeError, RecursionError, OverflowError):  # half a character in an agent's file
        import json

        return json.dumps(msgspec.to_builtins(value, enc_hook=str)).encode()
