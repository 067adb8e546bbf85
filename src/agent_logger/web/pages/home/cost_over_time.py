"""Cost over time, as columns that are stacked by model, project, agent, machine or person."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, get_args

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.totals import Total, sum_of
from agent_logger.catalog.summary import Filter
from agent_logger.web import formatting
from agent_logger.web.charts import StackedColumn, axis_values
from agent_logger.web.filters import PageQuery

Breakdown = Literal["model", "project", "agent", "machine", "person"]
BREAKDOWNS: Sequence[Breakdown] = get_args(Breakdown)
RANGES = (7, 30, 90, 365)  # days; the last is drawn by week
WEEKS = 53  # of a year
MOST_SERIES = 6  # that have a colour; the others are summed up
MOST_TICKS = 7  # labels on the axis of time
OTHER = MOST_SERIES + 1  # the number of the series of all others

Groups = Mapping[str | None, Total]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A model, project, agent, machine or person in the chart, or all that are not in it by name."""

    number: int  # the class of its colour
    name: str
    full_name: str
    total: Total
    href: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOverTime:
    by: Breakdown
    days: int
    first: date
    total: Total
    series: Sequence[Series]
    columns: Sequence[StackedColumn]

    @property
    def since(self) -> str:
        return self.first.isoformat()

    @property
    def step(self) -> str:
        return "week" if is_weekly(self.days) else "day"

    @property
    def axis(self) -> list[float]:
        return axis_values(max((column.height for column in self.columns), default=0))

    @property
    def axis_texts(self) -> list[str]:
        """The values of the axis as text, from the top."""
        return [formatting.axis_money(value, self.axis[1]) for value in reversed(self.axis)]


def is_weekly(days: int) -> bool:
    return days == RANGES[-1]


def first_day(today: date, days: int) -> date:
    """The first day that is drawn: of a year, the Monday of its first week."""
    if is_weekly(days):
        return today - timedelta(days=today.weekday(), weeks=WEEKS - 1)
    return today - timedelta(days=days - 1)


def read_costs(catalog: Catalog, today: date, days: int, by: Breakdown) -> CostOverTime:
    first = first_day(today, days)
    start = datetime.combine(first, datetime.min.time()).astimezone()
    over_time = catalog.usage_over_time("week" if is_weekly(days) else "day", by, Filter(since=start))
    names = _names_by_cost(over_time.values())
    top, others = names[:MOST_SERIES], names[MOST_SERIES:]
    groups = [*([name] for name in top), *([others] if others else [])]
    folders = formatting.folder_names([name for name in top if name]) if by == "project" else {}
    series = [_series(number, group, over_time, by, first, folders) for number, group in enumerate(groups, 1)]
    return CostOverTime(
        by=by,
        days=days,
        first=first,
        total=sum_of(each.total for each in series),
        series=series,
        columns=list(_columns(over_time, groups, first, today, days)),
    )


def _names_by_cost(columns: Iterable[Groups]) -> list[str | None]:
    sums: dict[str | None, list[Total]] = {}
    for groups in columns:
        for name, total in groups.items():
            sums.setdefault(name, []).append(total)
    totals = {name: sum_of(group) for name, group in sums.items()}
    return sorted(
        totals,
        key=lambda name: (-(totals[name].cost.nano_usd or 0), -totals[name].responses, name is None, name or ""),
    )


def _series(
    number: int,
    names: Sequence[str | None],
    over_time: Mapping[str | None, Groups],
    by: Breakdown,
    first: date,
    folders: Mapping[str, str],
) -> Series:
    total = sum_of(groups[name] for groups in over_time.values() for name in names if name in groups)
    if len(names) > 1:
        text = f"{len(names)} others"
        return Series(number=OTHER, name=text, full_name=", ".join(filter(None, names)), total=total, href=None)
    (name,) = names
    href = "/sessions" + PageQuery(since=first.isoformat()).query_string(**{by: name}) if name else None
    short_name = (folders.get(name) or formatting.model(name)) if name else f"no {by}"
    return Series(number=number, name=short_name, full_name=name or "", total=total, href=href)


def _columns(
    over_time: Mapping[str | None, Groups], groups: Sequence[Sequence[str | None]], first: date, today: date, days: int
) -> Iterable[StackedColumn]:
    step = 7 if is_weekly(days) else 1
    starts = [first + timedelta(days=day) for day in range(0, (today - first).days + 1, step)]
    spacing = -(-len(starts) // MOST_TICKS)
    for number, start in enumerate(starts):
        totals = over_time.get(f"{start:%G-W%V}" if step == 7 else start.isoformat(), {})
        sums = [sum_of(totals[name] for name in names if name in totals) for names in groups]
        yield StackedColumn(
            label=_label(start, step),
            text=_text(sum_of(sums)),
            href="/sessions" + _query(start, start + timedelta(days=step - 1)),
            values=[total.cost.usd or 0 for total in sums],
            texts=[_text(total) if total.responses else "" for total in sums],
            tick=f"{start:%b} {start.day}" if number % spacing == 0 else "",
        )


def _label(start: date, step: int) -> str:
    return f"Week of {start:%b} {start.day}" if step == 7 else f"{start:%a %b} {start.day}"


def _query(first: date, last: date) -> str:
    return PageQuery(since=first.isoformat(), until=last.isoformat()).query_string()


def _text(total: Total) -> str:
    return formatting.money(total.cost) if total.responses else "no turns"
