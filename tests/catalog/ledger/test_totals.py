"""Totals are sums over rows, whatever they are grouped by."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from agent_logger.catalog.ledger.ledger import have_unique_ids
from agent_logger.catalog.ledger.totals import KEYS, By, Total, total, total_of, totals
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Cost, Usage
from tests.catalog.ledger.test_ledger import responses
from tests.catalog.rows import NOON, at, response, rows_of, unique

NEW_YORK = ZoneInfo("America/New_York")


def days(*moments: datetime, zone: ZoneInfo | None = None) -> dict[str | None, int]:
    rows = rows_of(*(response(message_id=unique(n), at=moment) for n, moment in enumerate(moments)))
    return {key: it.responses for key, it in totals(rows, "day", zone or UTC).items()}


def test_a_total_adds_what_was_billed() -> None:
    usage = Usage(
        input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=5, cache_write_1h_tokens=4
    )
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


def test_nothing_priced_is_unknown_and_not_nothing() -> None:
    unknown = total(rows_of(response(model="mine")))
    assert unknown.cost == Cost(nano_usd=None, reason="unknown model", unpriced=1)
    assert total([]).cost == Cost(nano_usd=None)
    assert total(rows_of(response(usage=Usage()))).cost.nano_usd == 0


def test_a_day_is_that_of_the_zone() -> None:
    evening = datetime(2026, 11, 15, 3, 30, tzinfo=UTC)
    assert days(evening) == {"2026-11-15": 1}
    assert days(evening, zone=NEW_YORK) == {"2026-11-14": 1}


def test_a_day_on_which_clocks_are_set_has_all_its_hours() -> None:
    autumn = [datetime(2026, 11, 1, hour, 59, 59, tzinfo=UTC) for hour in range(3, 8)]
    assert days(*autumn, zone=NEW_YORK) == {"2026-10-31": 1, "2026-11-01": 4}


def test_a_time_at_the_end_of_time_is_none() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert days(last, zone=ZoneInfo("Pacific/Kiritimati")) == {None: 1}


def test_a_day_without_a_zone_is_that_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_groups_are_in_order_and_what_does_not_say_comes_last(by: By, keys: list[str | None]) -> None:
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


def test_what_cost_most_is_first_then_what_was_used_most() -> None:
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


def test_a_response_told_in_two_sessions_counts_in_one() -> None:
    rows = rows_of(response(), response(session="two", at=at(60)))
    assert {key: it.responses for key, it in totals(rows, "session").items()} == {"one": 1}
    assert next(iter(totals(rows, "day", UTC))) == f"{NOON:%Y-%m-%d}"


@settings(max_examples=100, deadline=None)
@given(st.lists(responses, max_size=10), st.sampled_from(sorted(KEYS)))
def test_whatever_the_groups_they_add_up(all_: list[object], by: By) -> None:
    rows = rows_of(*all_)  # type: ignore[arg-type]
    parts, whole = totals(rows, by, UTC).values(), total(rows)
    assert sum(it.responses for it in parts) == whole.responses == len(rows)
    assert sum(it.partial for it in parts) == whole.partial
    assert sum(it.unpriced for it in parts) == whole.unpriced
    assert sum(it.cost.nano_usd or 0 for it in parts) == (whole.cost.nano_usd or 0)
    columns = list(zip(*(astuple(it.usage) for it in parts), strict=True))
    assert [sum(column) for column in columns] == (list(astuple(whole.usage)) if rows else [])


AGES = [NOON, None, datetime(1969, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC), datetime(2020, 1, 1)]  # noqa: DTZ001 (one without a zone)


@settings(deadline=None)
@given(st.lists(responses, max_size=8), st.booleans(), st.lists(st.sampled_from(AGES), min_size=1))
def test_the_total_of_responses_is_that_of_their_rows(
    told: list[ModelResponse], apart: bool, ages: list[datetime | None]
) -> None:
    if apart:  # as in the file of one session
        told = [replace(it, message_id=unique(n), witness="sdk") for n, it in enumerate(told)]
    told = [replace(it, at=ages[n % len(ages)]) for n, it in enumerate(told)]
    assert have_unique_ids(told) or not (apart and set(ages) <= {NOON, None})
    assert total_of(told) == total(rows_of(*told))
