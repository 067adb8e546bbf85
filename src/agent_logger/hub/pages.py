"""What the hub has and the local page has not: signing in and out, the team's numbers, who read what."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.totals import Total
from agent_logger.catalog.summary import Filter
from agent_logger.clock import timestamp
from agent_logger.hub.access import AccessOptions, form_value
from agent_logger.hub.people import LIFETIMES, AuditEvent, ThrottledError
from agent_logger.hub.site import HubSite
from agent_logger.web.api.endpoints import Endpoint, Page, some_of
from agent_logger.web.filters import MOST, PageQuery
from agent_logger.web.pages.home.cost_over_time import RANGES, Breakdown, CostOverTime, first_day, read_costs
from agent_logger.web.site import site_of

READS = 200  # that a page lists
BREAKDOWNS: Sequence[Breakdown] = ("person", "model", "agent", "machine")  # nothing that names a project


def hub_site_of(request: Request) -> HubSite:
    site = site_of(request)
    assert isinstance(site, HubSite)
    return site


# ---------------------------------------------------------------- signing in and out


async def ask_to_sign_in(request: Request) -> Response:
    """Ask for a click: programs that look at links in messages must not use them up."""
    return site_of(request).render(request, "sign_in.html", token=request.query_params.get("token", "")[:100])


class SignIn:
    def __init__(self, options: AccessOptions) -> None:
        self._options = options

    async def sign_in(self, request: Request) -> Response:
        site, token = hub_site_of(request), form_value(await request.body(), "token")
        peer = request.client.host if request.client else ""
        try:
            cookie = await site.pool.run(lambda: site.people.redeem_link(token, peer))
        except ThrottledError:
            raise HTTPException(429, "Too many wrong tokens from this address.", {"Retry-After": "60"}) from None
        if cookie is None:
            raise HTTPException(401, "This link was already used or has expired.")
        response = RedirectResponse("/", 303)
        response.set_cookie(
            self._options.cookie_name,
            cookie,
            max_age=LIFETIMES["page"],
            httponly=True,
            samesite="lax",  # people follow links that others send them
            secure=self._options.is_secure,
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        site, cookie = hub_site_of(request), request.cookies.get(self._options.cookie_name, "")
        await site.pool.run(lambda: site.people.sign_out(cookie))
        response = site.render(request, "signed_out.html")
        response.delete_cookie(self._options.cookie_name, secure=self._options.is_secure, httponly=True, samesite="lax")
        return response


async def live(_request: Request) -> Response:
    return RedirectResponse("/sessions?live=1", 303)


# ---------------------------------------------------------------- the team's numbers


async def team(request: Request) -> Response:
    site, query = site_of(request), request.query_params
    days = next((days for days in RANGES if str(days) == query.get("days")), 30)
    by: Breakdown = next((choice for choice in BREAKDOWNS if choice == query.get("by")), "person")
    today = datetime.now().astimezone().date()
    version = await site.pool.version()
    key = ("team", today, days, by)
    costs, rows = await site.pool.cached(key, lambda catalog: _read_team(catalog, days, by))
    return site.render(
        request,
        "team.html",
        costs=costs,
        rows=rows,
        today=today,
        ranges=RANGES,
        breakdowns=BREAKDOWNS,
        catalog_version=version,
        data_url=f"/api/v1/usage?by={by}&since={costs.since}",
    )


def _read_team(catalog: Catalog, days: int, by: Breakdown) -> tuple[CostOverTime, list[tuple[str | None, Total]]]:
    today = datetime.now().astimezone().date()
    start = datetime.combine(first_day(today, days), datetime.min.time()).astimezone()
    return read_costs(catalog, today, days, by), list(catalog.usage(by, Filter(since=start)).items())


# ---------------------------------------------------------------- who read what, and who there is


class ReadItem(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    person: str | None  # who read
    session: str | None
    route: str

    @classmethod
    def of(cls, event: AuditEvent) -> "ReadItem":
        return cls(at=timestamp(event.time), person=event.person, session=event.session, route=event.detail)


class AuditItem(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    event: str
    person: str | None
    owner: str | None
    session: str | None
    peer: str | None
    detail: str

    @classmethod
    def of(cls, event: AuditEvent) -> "AuditItem":
        values = {name: getattr(event, name) for name in cls.__struct_fields__ if name != "at"}
        return cls(at=timestamp(event.time), **values)


class PersonItem(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    role: str
    machines: list[str]
    is_revoked: bool


async def reads(request: Request) -> Response:
    """Show who read contents of the reader's own sessions."""
    events = await _reads(request, READS)
    rows = [(datetime.fromtimestamp(event.time).astimezone(), event) for event in events]
    return site_of(request).render(request, "reads.html", rows=rows, data_url="/api/v1/reads")


async def _reads(request: Request, most: int) -> list[AuditEvent]:
    site = hub_site_of(request)
    assert site.reader
    name = site.reader.person.name
    return await site.pool.run(lambda: site.people.reads_of(name, most))


async def _read_items(request: Request, query: PageQuery) -> Page:
    return some_of([ReadItem.of(event) for event in await _reads(request, MOST)], query)


async def _audit_items(request: Request, query: PageQuery) -> Page:
    site = hub_site_of(request)
    events = await site.pool.run(lambda: site.people.events(query.offset + query.limit + 1))
    return some_of([AuditItem.of(event) for event in events], query)


async def _person_items(request: Request, query: PageQuery) -> Page:
    site = hub_site_of(request)
    everybody, devices = await site.pool.run(lambda: (site.people.people(), site.people.devices()))
    items = [
        PersonItem(
            name=person.name,
            role=person.role,
            machines=[device.machine for device in devices if device.person.id == person.id and not device.revoked],
            is_revoked=person.revoked is not None,
        )
        for person in everybody
    ]
    return some_of(items, query)


ENDPOINTS = (
    Endpoint("/reads", "Who read contents of your sessions", ReadItem, _read_items),
    Endpoint("/people", "Everybody on this hub", PersonItem, _person_items),
    Endpoint("/audit", "Reads, refusals and changes of access, the newest first", AuditItem, _audit_items),
)
