"""Totals are sums over rows, whatever they are grouped by."""

from datetime import UTC, datetime
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from agent_logger.catalog.ledger.totals import By, Total, total, totals
from agent_logger.model.session import Cost, Usage
from tests.catalog.ledger.test_ledger import responses
from tests.catalog.rows import NOON, at, response, rows_of, unique

NEW_YORK = ZoneInfo("America/New_York")


def days(*moments: datetime, zone: ZoneInfo | None = None) -> dict[str | None, int]:
    rows = rows_of(*(response(message_id=unique(n), at=moment) for n, moment in enumerate(moments)))
    return {key: it.responses for key, it in totals(rows, "day", zone or UTC).items()}


def test_a_total_adds_usage_and_cost() -> None:
    usage = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=5, cache_write_1h_tokens=4)
    rows = rows_of(
        response(usage=usage, reported_cost_usd=0.5),
        response(usage=usage, message_id=unique(2), final=False),
        response(usage=None, message_id=unique(3)),
        response(usage=usage, message_id=unique(4), model="mine", reported_cost_usd=0.25),
    )
    assert total(rows) == Total(
        usage=Usage(
            input_tokens=3,
            output_tokens=6,
            cache_read_tokens=9,
            cache_write_tokens=15,
            cache_write_1h_tokens=12,
        ),
        cost=Cost(
            nano_usd=2 * (1000 + 10_000 + 300 + 1250 + 8000),
            price_date=rows[0].cost.price_date,
            reason="no usage",
            unpriced=2,
        ),
        reported_cost_usd=0.75,
        responses=4,
        partial=1,
        unknown_usage=1,
    )
    assert total(rows).unpriced == 2


def test_the_total_cost_without_priced_responses_is_unknown_and_not_zero() -> None:
    unknown = total(rows_of(response(model="mine")))
    assert unknown.cost == Cost(nano_usd=None, reason="unknown model", unpriced=1)
    assert total([]).cost == Cost(nano_usd=None)
    assert total(rows_of(response(usage=Usage()))).cost.nano_usd == 0


def test_days_are_computed_in_the_given_time_zone() -> None:
    evening = datetime(2026, 11, 15, 3, 30, tzinfo=UTC)
    assert days(evening) == {"2026-11-15": 1}
    assert days(evening, zone=NEW_YORK) == {"2026-11-14": 1}


def test_a_day_with_a_clock_change_includes_all_its_hours() -> None:
    autumn = [datetime(2026, 11, 1, hour, 59, 59, tzinfo=UTC) for hour in range(3, 8)]
    assert days(*autumn, zone=NEW_YORK) == {"2026-10-31": 1, "2026-11-01": 4}


def test_a_time_beyond_the_maximum_date_has_no_day() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert days(last, zone=ZoneInfo("Pacific/Kiritimati")) == {None: 1}


def test_days_default_to_the_local_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    rows = rows_of(response(at=datetime(2026, 11, 15, 3, 30, tzinfo=UTC)))
    for zone, day in [("America/New_York", "2026-11-14"), ("Asia/Kathmandu", "2026-11-15")]:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert list(totals(rows, "day")) == [day]
    monkeypatch.undo()
    time.tzset()


GROUPS: list[tuple[By, list[str | None]]] = [
    ("day", ["2026-11-15", "2026-12-31", "2027-01-01", None]),
    ("week", ["2026-W46", "2026-W53", None]),
    ("month", ["2026-11", "2026-12", "2027-01", None]),
    ("session", ["one", "two"]),
    ("model", ["claude-haiku-4-5", "gpt-5", None]),
    ("project", ["/home/user/project", None]),
    ("agent", ["claude-code", "codex"]),
]


@pytest.mark.parametrize(("by", "keys"), GROUPS)
def test_groups_are_sorted_with_missing_keys_last(by: By, keys: list[str | None]) -> None:
    rows = rows_of(
        response(message_id=unique(1), at=None, session="two", project=None, model=None),
        response(
            message_id=unique(2),
            at=datetime(2027, 1, 1, tzinfo=UTC),
            agent="codex",
            session="two",
            project=None,
        ),
        response(message_id=unique(3), at=datetime(2026, 12, 31, 23, tzinfo=UTC), model="gpt-5"),
        response(message_id=unique(4)),
    )
    assert list(totals(rows, by, UTC)) == keys


def test_projects_are_sorted_by_cost_and_then_by_usage() -> None:
    used = [
        response(
            message_id=unique(number),
            session=f"{number}",
            usage=Usage(input_tokens=tokens),
            project=project,
            model=model,
        )
        for number, (project, tokens, model) in enumerate(
            [
                ("little", 1, "claude-haiku-4-5"),
                ("much", 900, "claude-haiku-4-5"),
                ("free", 5, "mine"),
                ("free too", 7, "mine"),
                ("alike", 1, "claude-haiku-4-5"),
                (None, 10_000, "claude-haiku-4-5"),
            ]
        )
    ]
    assert list(totals(rows_of(*used), "project")) == ["much", "alike", "little", "free too", "free", None]


def test_a_response_in_two_sessions_counts_in_one_session() -> None:
    rows = rows_of(response(), response(session="two", at=at(60)))
    assert {key: it.responses for key, it in totals(rows, "session").items()} == {"one": 1}
    assert next(iter(totals(rows, "day", UTC))) == f"{NOON:%Y-%m-%d}"


@settings(max_examples=100, deadline=None)
@given(st.lists(responses, max_size=10), st.sampled_from(sorted({*get_args(By)} - {"tool"})))
def test_group_totals_add_up_for_every_grouping(all_: list[object], by: By) -> None:
    rows = rows_of(*all_)  # type: ignore[arg-type]
    parts, whole = totals(rows, by, UTC).values(), total(rows)
    assert sum(it.responses for it in parts) == whole.responses == len(rows)
    assert sum(it.partial for it in parts) == whole.partial
    assert sum(it.unpriced for it in parts) == whole.unpriced
    assert sum(it.cost.nano_usd or 0 for it in parts) == (whole.cost.nano_usd or 0)
    columns = list(zip(*(astuple(it.usage) for it in parts), strict=True))
    assert [sum(column) for column in columns] == (list(astuple(whole.usage)) if rows else [])
