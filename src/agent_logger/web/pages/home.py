"""Home: today at a glance, and where time and money went."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.totals import Total
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.model.session import Cost, Usage
from agent_logger.web import formatting
from agent_logger.web.charts import Point
from agent_logger.web.filters import PageQuery
from agent_logger.web.pages.setup import AgentSetup, agent_setups
from agent_logger.web.site import site_of

RANGES = (7, 30, 90, 365)
LISTED_SESSIONS = 8
RANKING_ROWS = 8
EMPTY_TOTAL = Total(usage=Usage(), cost=Cost(nano_usd=None), reported_cost_usd=None, responses=0, partial=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRow:
    """A model or project of the selected time."""

    name: str
    total: Total
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    today: date
    days: int
    total_today: Total
    sessions_today: list[SessionSummary]
    live: int  # sessions that run
    recent: list[SessionSummary]
    most_expensive: list[SessionSummary]  # of those active in the days looked at
    by_day: Mapping[date, Total]  # of all times
    total: Total  # of the days looked at
    models: list[RankingRow]
    projects: list[RankingRow]
    setup: list[AgentSetup] | None  # where nothing was recorded yet

    @property
    def since(self) -> str:
        return _first(self.today, self.days).isoformat()

    @property
    def errors_today(self) -> int:
        return sum(summary.errors for summary in self.sessions_today)

    @property
    def heat(self) -> dict[date, Point]:
        return {
            day: Point(
                label=f"{day:%a %b} {day.day}",
                value=total.responses,
                text=f"{total.responses:,} turns, {formatting.money(total.cost)}",
                href=day_url(day),
            )
            for day, total in self.by_day.items()
        }

    @property
    def spend(self) -> list[Point]:
        first = _first(self.today, self.days)
        days = [first + timedelta(days=number) for number in range(self.days)]
        return [self._point(day, self.by_day.get(day, EMPTY_TOTAL)) for day in days]

    @property
    def highest(self) -> str:
        """What the highest bar stands for."""
        most = max(self.spend, key=lambda point: point.value)
        return f"peak {most.text}, {most.label}" if most.value else ""

    @staticmethod
    def _point(day: date, total: Total) -> Point:
        text = formatting.money(total.cost) if total.responses else "nothing"
        return Point(label=f"{day:%a %b} {day.day}", value=total.cost.usd or 0, text=text, href=day_url(day))


def day_url(day: date) -> str:
    return "/sessions" + PageQuery(since=day.isoformat(), until=day.isoformat()).query_string()


async def home(request: Request) -> Response:
    site = site_of(request)
    days = next((days for days in RANGES if str(days) == request.query_params.get("days")), 30)
    today = datetime.now().astimezone().date()
    version = await site.pool.version()
    content = await site.pool.cached(("home", today, days), lambda catalog: _read_home(catalog, today, days))
    data_url = f"/api/v1/usage?by=day&since={content.since}"
    return site.render(
        request, "home.html", home=content, catalog_version=version, ranges=RANGES, data_url=data_url
    )


def _read_home(catalog: Catalog, today: date, days: int) -> Home:
    since = _midnight(_first(today, days))
    recent = catalog.sessions(limit=LISTED_SESSIONS)
    conditions = Filter(since=since)
    by_day = {date.fromisoformat(day): total for day, total in catalog.usage("day").items() if day}
    models, projects = catalog.usage("model", conditions), catalog.usage("project", conditions)
    return Home(
        today=today,
        days=days,
        total_today=by_day.get(today, EMPTY_TOTAL),
        sessions_today=catalog.sessions(Filter(since=_midnight(today))),
        live=catalog.count(Filter(live=True)),
        recent=recent,
        most_expensive=[
            session
            for session in catalog.sessions(conditions, limit=LISTED_SESSIONS, order="cost")
            if session.cost.nano_usd
        ],
        by_day=by_day,
        total=_sum(total for day, total in by_day.items() if day >= since.date()),
        models=_ranking(models, "model", since.date()),
        projects=_ranking(projects, "project", since.date()),
        setup=None if recent else agent_setups(),
    )


def _ranking(totals: Mapping[str | None, Total], name: str, since: date) -> list[RankingRow]:
    """The rows in their order; those without a name or after the first few are counted in the total alone."""
    return [
        RankingRow(
            name=key,
            total=total,
            href="/sessions" + PageQuery(since=since.isoformat()).query_string(**{name: key}),
        )
        for key, total in list(totals.items())[:RANKING_ROWS]
        if key
    ]


def _sum(totals: Iterable[Total]) -> Total:
    totals = list(totals)
    reported = [total.reported_cost_usd for total in totals if total.reported_cost_usd is not None]
    return Total(
        usage=sum((total.usage for total in totals), Usage()),
        cost=Cost.total(total.cost for total in totals),
        reported_cost_usd=sum(reported) if reported else None,
        responses=sum(total.responses for total in totals),
        partial=sum(total.partial for total in totals),
        unknown_usage=sum(total.unknown_usage for total in totals),
    )


def _first(today: date, days: int) -> date:
    return today - timedelta(days=days - 1)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time()).astimezone()
