"""A time means the same to commands, to the page and in Python."""

import json
import os
from datetime import date, datetime
from pathlib import Path

import pytest
from tests.cli.sessions import write_session
from tests.commands import run_command

from agent_logger import Catalog, Filter
from agent_logger.web.filters import PageQuery

DAYS = (4, 5, 6)


@pytest.fixture(autouse=True)
def sessions(home: Path) -> None:
    for day in DAYS:
        write_session(home, day, datetime.fromisoformat(f"2026-11-{day:02}T23:30").astimezone(), f"On day {day}")


def titles(home: Path, *arguments: str) -> set[str]:
    done = run_command(["ls", "--json", *arguments], {"PATH": os.environ["PATH"], "HOME": str(home)})
    return {row["title"] for row in json.loads(done.stdout)}


def responses(home: Path, *arguments: str) -> int:
    done = run_command(["usage", "--json", *arguments], {"PATH": os.environ["PATH"], "HOME": str(home)})
    count: int = json.loads(done.stdout)["totals"]["responses"]
    return count


RANGES = [
    ("2026-11-05", "2026-11-05", 1),
    ("2026-11-04", "2026-11-05", 2),
    ("2026-11", "2026-11", 3),
    ("2026-11-05", "2026-11-04", 0),
    ("2026-11-05T23:30", "2026-11-06T23:30", 1),
]


@pytest.mark.parametrize(("since", "until", "count"), RANGES)
def test_until_a_day_includes_it_in_commands_and_on_the_page(home: Path, since: str, until: str, count: int) -> None:
    assert len(titles(home, "--since", since, "--until", until)) == count
    assert responses(home, "--since", since, "--until", until) == count
    conditions = PageQuery.of({"since": since, "until": until}).filter()
    with Catalog.open(home / ".agent-logger") as catalog:
        assert catalog.total(conditions).responses == catalog.count(conditions) == count


def test_a_filter_in_python_includes_both_days(home: Path) -> None:
    titles(home)
    with Catalog.open(home / ".agent-logger") as catalog:
        for first, last, count in ((5, 5, 1), (4, 5, 2), (6, 4, 0)):
            where = Filter(since=date(2026, 11, first), until=date(2026, 11, last))
            assert catalog.total(where).responses == catalog.count(where) == count


def test_the_page_takes_words_for_times_and_drops_what_is_no_time() -> None:
    month = PageQuery.of({"since": "this month", "until": "today"})
    assert (month.since, month.until) == ("this month", "today")
    assert PageQuery.of({"since": "3 hours ago"}).since == "3 hours ago"
    assert PageQuery.of({"since": "soon", "until": "never"}) == PageQuery()
