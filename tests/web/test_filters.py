"""The selection of sessions in an address: periods by name, times in words, and days for fields."""

import pytest

from agent_logger.web.filters import PERIODS, PageQuery


@pytest.mark.parametrize("name", PERIODS)
def test_a_period_is_shown_as_the_one_that_was_picked(name: str) -> None:
    query = PageQuery.of({"period": name})
    assert query.period == name
    assert PageQuery.of({"since": query.since, "until": query.until}).period == name
    assert (query.filter().since is None) == (name == "any")


def test_a_period_replaces_dates() -> None:
    query = PageQuery.of({"period": "any", "since": "2026-11-01", "until": "2026-11-02"})
    assert (query.since, query.until) == ("", "")


def test_dates_without_a_name_are_no_period() -> None:
    query = PageQuery.of({"since": "2026-11-01", "until": "2026-11"})
    assert query.period is None
    assert (query.first_day, query.last_day) == ("2026-11-01", "2026-11-30")


def test_words_stay_words_in_links() -> None:
    query = PageQuery.of({"since": "this month", "order": "cost"})
    assert query.query_string() == "?since=this+month&order=cost"
    assert query.first_day.endswith("-01")


def test_unknown_times_are_left_out() -> None:
    query = PageQuery.of({"since": "<script>", "until": "9999-99-99", "period": "no such"})
    assert query == PageQuery()
