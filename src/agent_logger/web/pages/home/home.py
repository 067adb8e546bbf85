"""Home: the month to date, then where the money went, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.totals import Total, sum_of
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.web import formatting
from agent_logger.web.charts import Point
from agent_logger.web.filters import PageQuery
from agent_logger.web.pages.home.cost_over_time import (
    BREAKDOWNS,
    RANGES,
    Breakdown,
    CostOverTime,
    first_day,
    read_costs,
)
from agent_logger.web.pages.home.months import MonthToDate
from agent_logger.web.pages.home.setup import AgentSetup, agent_setups
from agent_logger.web.site import site_of

LISTED_SESSIONS = 8
HEAT_DAYS = 371  # of the heat map, at most; the month before this one is among them
EMPTY_TOTAL = sum_of(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    today: date
    month: MonthToDate
    total_today: Total
    sessions_today: list[SessionSummary]
    live: int  # sessions that run
    recent: list[SessionSummary]
    by_day: Mapping[date, Total]  # of a year
    setup: list[AgentSetup] | None  # if nothing was recorded yet

    @property
    def errors_today(self) -> int:
        return sum(summary.errors for summary in self.sessions_today)

    @property
    def heat(self) -> dict[date, Point]:
        return {
            day: _point(
                day,
                total.responses,
                f"{formatting.pluralize(total.responses, 'turn')}, {formatting.money(total.cost)}",
            )
            for day, total in self.by_day.items()
        }


def _point(day: date, value: float, text: str) -> Point:
    url = "/sessions" + PageQuery(since=day.isoformat(), until=day.isoformat()).query_string()
    return Point(label=f"{day:%a %b} {day.day}", value=value, text=text, href=url)


async def home(request: Request) -> Response:
    site, query = site_of(request), request.query_params
    days = next((days for days in RANGES if str(days) == query.get("days")), 30)
    by: Breakdown = next((choice for choice in BREAKDOWNS if choice == query.get("by")), "model")
    now = datetime.now().astimezone()
    version = await site.pool.version()
    content = await site.pool.cached(
        ("home", now.date(), now.hour), lambda catalog: _read_home(catalog, now, helps_setup=site.helps_setup)
    )
    key = ("costs", now.date(), days, by)
    costs, most_expensive = await site.pool.cached(key, lambda catalog: _read_selected(catalog, now.date(), days, by))
    return site.render(
        request,
        "home.html",
        home=content,
        costs=costs,
        most_expensive=most_expensive,
        catalog_version=version,
        ranges=RANGES,
        breakdowns=[
            choice
            for choice in BREAKDOWNS
            if (choice != "machine" or site.several_machines) and (choice != "person" or site.several_people)
        ],
        data_url=f"/api/v1/usage?by=day&since={costs.since}",
    )


def _read_home(catalog: Catalog, now: datetime, *, helps_setup: bool) -> Home:
    today = now.date()
    recent = catalog.sessions(limit=LISTED_SESSIONS)
    year = Filter(since=_midnight(today - timedelta(days=HEAT_DAYS)))
    by_day = {date.fromisoformat(day): total for day, total in catalog.usage("day", year).items() if day}
    return Home(
        today=today,
        month=MonthToDate.of(by_day, now, _unpriced_models(catalog, today)),
        total_today=by_day.get(today, EMPTY_TOTAL),
        sessions_today=catalog.sessions(Filter(since=_midnight(today))),
        live=catalog.count(Filter(live=True)),
        recent=recent,
        by_day=by_day,
        setup=agent_setups() if helps_setup and not recent else None,
    )


def _read_selected(
    catalog: Catalog, today: date, days: int, by: Breakdown
) -> tuple[CostOverTime, list[SessionSummary]]:
    """The cost over the selected time, and the most expensive sessions of it."""
    selected = Filter(since=_midnight(first_day(today, days)))
    sessions = catalog.sessions(selected, limit=LISTED_SESSIONS, order="cost")
    return read_costs(catalog, today, days, by), [session for session in sessions if session.cost.nano_usd]


def _unpriced_models(catalog: Catalog, today: date) -> list[str]:
    """The models of this month that have no known price."""
    return [name for name in catalog.unpriced_models(Filter(since=today.replace(day=1))) if name]


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time()).astimezone()
