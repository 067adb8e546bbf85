"""Cost over time: every response is in one column and one series, and the columns cover the days that they name."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter
from agent_logger.web.pages.home.cost_over_time import BREAKDOWNS, MOST_SERIES, RANGES, Breakdown, read_costs
from tests.catalog.catalogs import ID, assistant, claude_file, user

TODAY = date(2026, 11, 17)
MODELS = [f"claude-{name}" for name in ("opus-4-1", "sonnet-4-5", "haiku-4-5", "opus-4-5", "sonnet-4-0", "opus-4-0")]


@pytest.fixture
def catalog(home: Path) -> Catalog:
    return Catalog.open()


def write(home: Path, number: int, model: str, days_ago: int) -> None:
    name = ID.format(number)
    at = datetime.combine(TODAY - timedelta(days=days_ago), datetime.min.time(), UTC) + timedelta(hours=12)
    lines = [user(1, "Do it", name), assistant(2, "Done", name, model=model, id=f"msg_01{number:022d}")]
    for line in lines:
        line["timestamp"] = at.isoformat().replace("+00:00", "Z")
    claude_file(home, name, lines)


@pytest.mark.parametrize("by", BREAKDOWNS)
@pytest.mark.parametrize("days", RANGES)
def test_columns_and_series_have_the_same_sum(home: Path, catalog: Catalog, by: Breakdown, days: int) -> None:
    for number in range(24):
        write(home, number, [*MODELS, "claude-haiku-3-5", "no-such-model"][number % 8], number * 2)
    costs = read_costs(catalog, TODAY, days, by)
    since = datetime.combine(costs.first, datetime.min.time()).astimezone()
    total = catalog.total(Filter(since=since))
    assert total.responses > 1
    assert costs.total == total
    assert sum(column.height for column in costs.columns) == pytest.approx(total.cost.usd or 0)
    assert all(len(column.values) == len(costs.series) for column in costs.columns)


def test_series_beyond_the_colours_are_summed_up(home: Path, catalog: Catalog) -> None:
    for number, model in enumerate([*MODELS, "claude-haiku-3-5", "no-such-model"]):
        write(home, number, model, 1)
    costs = read_costs(catalog, TODAY, 30, "model")
    assert [series.name for series in costs.series][MOST_SERIES:] == ["2 others"]
    named = [series.total.cost.usd or 0 for series in costs.series[:MOST_SERIES]]
    assert named == sorted(named, reverse=True)


def test_a_column_links_to_its_days(home: Path, catalog: Catalog) -> None:
    write(home, 1, "claude-opus-4-1", 8)
    days = read_costs(catalog, TODAY, 30, "agent").columns
    assert len(days) == 30
    (filled,) = [column for column in days if column.height]
    assert filled.href == "/sessions?since=2026-11-09&until=2026-11-09"
    weeks = read_costs(catalog, TODAY, 365, "agent").columns
    assert len(weeks) == 53
    (filled,) = [column for column in weeks if column.height]
    assert filled.href == "/sessions?since=2026-11-09&until=2026-11-15"
