"""Days, weeks and months that the database adds up are those of a zone's clocks, whatever these do."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger import Catalog, Filter
from agent_logger.catalog.ledger.totals import DAY, FORMS, QUARTER, offsets, totals
from tests.catalog.catalogs import ID, assistant, claude_file

ONE = ID.format(1)
ZONES = [
    ZoneInfo(name)
    for name in ("UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "Asia/Gaza")
]
DATES = [date(2026, 3, 7), date(2026, 10, 31), date(2026, 4, 4), date(2022, 12, 31), date(2024, 2, 28)]
FAR = [datetime(1999, 12, 31, 23, 50, tzinfo=UTC), datetime(2095, 3, 1, 5, 20, tzinfo=UTC)]
MOMENTS = sorted(
    {
        *FAR,
        *(
            datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=15 * n)
            for day in DATES
            for n in range(200)
        ),
    }
)
FILTERS = [
    Filter(),
    Filter(since=datetime(2026, 3, 8, 6, 59, 1, tzinfo=UTC)),
    Filter(since=datetime(2026, 3, 8, 7, tzinfo=UTC), until=datetime(2026, 11, 1, 6, tzinfo=UTC)),
    Filter(until=datetime(2020, 1, 1, tzinfo=UTC)),
    Filter(since=datetime(2090, 1, 1, tzinfo=UTC)),
    Filter(since=datetime(2026, 11, 1, tzinfo=UTC), until=datetime(2026, 3, 8, tzinfo=UTC)),
    Filter(since=date(9999, 12, 31)),
]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.needs("postgresql"))])
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Catalog]:
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / ".agent-logger"
    lines = ({**assistant(number, "a", ONE), "timestamp": moment.isoformat()} for number, moment in enumerate(MOMENTS))
    claude_file(tmp_path, ONE, list(lines))
    if request.param == "sqlite":
        opened = Catalog.open(home)
    else:
        from tests.catalog.postgres.answers import indexed

        opened = indexed(home, request.getfixturevalue("postgres_url"))
    with closing(opened):
        opened.refresh()
        yield opened


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_sums_by_time_are_those_of_the_rows(catalog: Catalog, zone: ZoneInfo) -> None:
    for where in FILTERS:
        rows = list(catalog.ledger(where))
        for by in FORMS:
            expected = totals(rows, by, zone)
            assert list(catalog.usage(by, where, zone=zone).items()) == list(expected.items())
            over_time = catalog.usage_over_time(by, "session", where, zone=zone)
            assert {key: sums[ONE] for key, sums in over_time.items()} == expected
    assert len(list(catalog.ledger())) == len(MOMENTS)


@given(st.sampled_from(sorted(available_timezones())), st.integers(19_000, 24_000))
@settings(deadline=None)
def test_a_zone_changes_its_clocks_when_it_does(name: str, day: int) -> None:
    zone = ZoneInfo(name)
    first, last = day * DAY + 3 * QUARTER, (day + 40) * DAY + QUARTER
    changes = offsets(zone, first, last)
    assert changes[0][0] <= first
    for at in range(first, last, QUARTER):
        ahead = next(ahead for begin, ahead in reversed(changes) if begin <= at)
        assert timedelta(seconds=ahead) == datetime.fromtimestamp(at, zone).utcoffset()
