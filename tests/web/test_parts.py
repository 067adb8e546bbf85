"""Small things of the page, by themselves: what people read, what charts draw, how a session is cut."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.catalog.summary import SessionSummary
from agent_logger.model.session import Cost, Exchange, Session, SubAgent, Turn, Usage
from agent_logger.web import charts, formatting
from agent_logger.web.charts import Point
from agent_logger.web.pages.session_view import SEGMENT_TURNS, SessionView

NOW = datetime(2026, 11, 15, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (Cost(nano_usd=0), "$0.00"),
        (Cost(nano_usd=4_200_000), "$0.0042"),
        (Cost(nano_usd=1_234_500_000_000), "$1,234.50"),
        (Cost(nano_usd=None, reason="unknown model"), "unknown"),
        (Cost(nano_usd=None), "–"),
        (Cost(nano_usd=2_000_000_000, unpriced=3), "$2.00+"),
        (1.5, "$1.50"),
        (None, "unknown"),
    ],
)
def test_money(cost: Cost | float | None, told: str) -> None:
    assert formatting.money(cost) == told


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0"), (9_999, "9,999"), (12_345, "12.3k"), (4_500_000, "4.5M"), (None, "–")]
)
def test_counts(number: int | None, told: str) -> None:
    assert formatting.count(number) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.02, "20 ms"),
        (4.25, "4.2 s"),
        (59, "59 s"),
        (61, "1 m 1 s"),
        (600, "10 m"),
        (3700, "1 h 1 m"),
        (None, "–"),
    ],
)
def test_durations(seconds: float | None, told: str) -> None:
    assert formatting.duration(seconds) == told


@pytest.mark.parametrize("days", [0, 1, 40, 400])
def test_times_are_as_near_as_one_needs_them(days: int) -> None:
    at = NOW - timedelta(days=days)
    assert len(formatting.short_time(at, NOW)) in ({0: [5], 1: [15], 40: [11, 12], 400: [10]}[days])


def test_every_value_of_a_template_loses_its_keys() -> None:
    key = "sk-ant-api03-" + "Zq8" * 20
    assert key not in formatting.visible(f"the key {key}")
    assert formatting.visible("a\x1bb\u202ec") == "a\\x1bb\\u202ec"


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(st.dates(date(2024, 1, 1), date(2027, 1, 1)), st.floats(0, 1e9)),
    st.dates(date(2025, 6, 1), date(2026, 12, 31)),
)
def test_a_heat_map_has_a_square_for_every_day_of_a_year(values: dict[date, float], today: date) -> None:
    points = {day: Point(label="x", value=value, text="y", href="/") for day, value in values.items()}
    drawn = charts.heat_map(points, today, "z")
    assert 365 <= drawn.count("<rect") <= 371
    assert all(f"level-{level}" not in drawn for level in (5, 6))


def test_what_a_chart_is_told_is_text() -> None:
    drawn = charts.bars([Point(label="<b>", value=1, text='"', href='/"><script>')], "<i>")
    assert "<b>" not in drawn
    assert "<script>" not in drawn
    assert "<i>" not in drawn


def _view(exchanges: int, turns: int, agents: int = 0) -> SessionView:
    def turn(exchange: int, number: int) -> Turn:
        usage = Usage(input_tokens=1, output_tokens=10, cache_read_tokens=30_000 if number % 10 else 1000)
        return Turn(message_id=f"msg_{exchange}_{number}", usage=usage, model="claude-sonnet-4-5")

    inner = [Turn(message_id=f"msg_agent_{at}", thread=f"agent:{at}") for at in range(agents)]
    made = [
        Exchange(number=at + 1, turns=[*(turn(at, number) for number in range(turns)), *inner])
        for at in range(exchanges)
    ]
    known = [SubAgent(thread=f"agent:{at}") for at in range(agents)]
    session = Session(id="s", exchanges=made, agents=known)
    return SessionView(_summary(session), session)


def _summary(session: Session) -> SessionSummary:
    return SessionSummary(
        id=session.id, agent=None, project=None, title=None, models=(), started=None, ended=None,
        exchanges=0, turns=0, tool_calls=0, errors=0, active_seconds=None, usage=Usage(), cost=Cost(nano_usd=None),
        reported_cost_usd=None, context_tokens=None, peak_context_tokens=None, witnesses=frozenset(), parent=None,
        live=False, paths=(Path("/x"),),
    )  # fmt: skip


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 4), st.integers(0, 3 * SEGMENT_TURNS + 1), st.integers(0, 2))
def test_segments_hold_every_turn_once_and_know_the_way_to_it(
    exchanges: int, turns: int, agents: int
) -> None:
    view = _view(exchanges, turns, agents)
    numbers = [it.number for segment in view.segments for it in segment.turns]
    inner = [it.number for chapter in view.chapters for agent in chapter.agents for it in agent.turns]
    assert sorted(numbers + inner) == list(range(len(view.turns)))
    for number in range(len(view.turns)):
        part, *rest = view.path_to_turn(number)
        assert view.segment(part.removeprefix("part-")) is not None
        assert bool(rest) == (number in inner)
    assert len({segment.key for segment in view.segments}) == len(view.segments)


def test_an_exchange_costs_what_its_turns_cost_each_once() -> None:
    view = _view(2, 3)
    whole = sum((view.cost(number) or Cost(nano_usd=0)).nano_usd or 0 for number in range(3))
    assert view.cost_of(view.session.exchanges[0]).nano_usd == whole > 0


def test_a_context_that_fell_is_marked() -> None:
    view = _view(1, 21)
    assert [fall.turn for fall in view.falls] == [10, 20]
