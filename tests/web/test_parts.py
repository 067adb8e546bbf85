"""Small things of the page, by themselves: what people read, what charts draw, how a session is cut."""

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.catalog.joining.calls import WireCall
from agent_logger.catalog.summary import SessionSummary
from agent_logger.model.session import Cost, Exchange, Session, SubAgent, Turn, Usage
from agent_logger.web import charts, formatting
from agent_logger.web.charts import Point, StackedColumn
from agent_logger.web.pages.call import call_speed
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
def test_money_formats_costs(cost: Cost | float | None, told: str) -> None:
    assert formatting.money(cost) == told


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0"), (9_999, "9,999"), (12_345, "12.3k"), (4_500_000, "4.5M"), (None, "–")]
)
def test_count_formats_numbers(number: int | None, told: str) -> None:
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
def test_duration_formats_seconds(seconds: float | None, told: str) -> None:
    assert formatting.duration(seconds) == told


@pytest.mark.parametrize("days", [0, 1, 40, 400])
def test_short_time_shows_less_detail_for_older_times(days: int) -> None:
    at = NOW - timedelta(days=days)
    assert len(formatting.short_time(at, NOW)) in ({0: [5], 1: [15], 40: [11, 12], 400: [10]}[days])


def test_visible_removes_keys_and_escapes_control_characters() -> None:
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


def test_chart_labels_are_escaped() -> None:
    column = StackedColumn(label="<b>", text='"', href='/"><script>', values=[1.0], texts=["<u>"])
    drawn = charts.columns([column], 1.0, 1, "<i>")
    assert "<b>" not in drawn
    assert "<script>" not in drawn
    assert "<i>" not in drawn


@given(st.floats(1e-9, 1e12))
def test_the_axis_of_a_chart_reaches_just_above_its_highest_value(highest: float) -> None:
    values = charts.axis_values(highest)
    assert values[0] == 0
    assert values[-2] < highest * (1 + 1e-6)
    assert values[-1] >= highest * (1 - 1e-6)
    assert 3 <= len(values) <= 7


@given(st.lists(st.lists(st.integers(0, 10**9), min_size=3, max_size=3), min_size=1, max_size=20))
def test_stacked_columns_are_as_high_as_the_sum_of_their_values(rows: list[list[int]]) -> None:
    stacked = [StackedColumn(label="x", text="y", href="/", values=row, texts=[]) for row in rows]
    top = charts.axis_values(max(column.height for column in stacked))[-1]
    drawn = str(charts.columns(stacked, top, 4, "z"))
    for number, row in enumerate(rows):
        (shapes,) = re.findall(rf'data-column="{number}".*?</a>', drawn)
        heights = [float(height) for height in re.findall(r'class="series-\d".*?height="([0-9.]+)"', shapes)]
        assert sum(heights) == pytest.approx(100 * sum(row) / top, abs=0.01)
        assert len(heights) == sum(value > 0 for value in row)


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [(0, 2.5, "$0"), (7.5, 2.5, "$7.50"), (4000, 2000, "$4,000"), (0.004, 0.002, "$0.004"), (0.5, 0.25, "$0.50")],
)
def test_axis_values_have_the_digits_that_they_need(value: float, step: float, text: str) -> None:
    assert formatting.axis_money(value, step) == text


@pytest.mark.parametrize(
    ("tokens", "ttfb_ms", "total_ms", "speed"),
    [
        (100, 500, 2500, 50),
        (100, 500, 504, None),
        (3, 500, 2500, None),
        (100, 500, None, None),
        (None, 500, 2500, None),
    ],
    ids=["a stream", "4 ms", "3 tokens", "in flight", "no usage"],
)
def test_tokens_per_second_are_shown_for_streams_that_took_a_while(
    tokens: int | None, ttfb_ms: float, total_ms: float | None, speed: float | None
) -> None:
    call = WireCall(
        call="c", log=Path("l"), seq=1, thread="main", kind=None, started=None, method="POST", path="/v1/messages",
        ttfb_ms=ttfb_ms, total_ms=total_ms, usage=None if tokens is None else Usage(output_tokens=tokens),
        tokens_per_second=25_000.0,
    )  # fmt: skip
    assert call_speed(call) == speed
    assert call_speed(replace(call, tokens_per_second=None)) is None, "not streamed"


def test_folders_of_the_same_name_have_their_parents_in_front() -> None:
    names = formatting.folder_names(["/home/you/tea", "/demo/tea", "/home/you/site", "here"])
    assert names == {"/home/you/tea": "you/tea", "/demo/tea": "demo/tea", "/home/you/site": "site", "here": "here"}


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
def test_segments_contain_every_turn_once_and_give_its_path(exchanges: int, turns: int, agents: int) -> None:
    view = _view(exchanges, turns, agents)
    numbers = [it.number for segment in view.segments for it in segment.turns]
    inner = [it.number for chapter in view.chapters for agent in chapter.agents for it in agent.turns]
    assert sorted(numbers + inner) == list(range(len(view.turns)))
    for number in range(len(view.turns)):
        part, *rest = view.path_to_turn(number)
        assert view.segment(part.removeprefix("part-")) is not None
        assert bool(rest) == (number in inner)
    assert len({segment.key for segment in view.segments}) == len(view.segments)


def test_an_exchange_costs_the_sum_of_its_turns() -> None:
    view = _view(2, 3)
    whole = sum((view.cost(number) or Cost(nano_usd=0)).nano_usd or 0 for number in range(3))
    assert view.cost_of(view.session.exchanges[0]).nano_usd == whole > 0


def test_drops_of_the_context_size_are_marked() -> None:
    view = _view(1, 21)
    assert [fall.turn for fall in view.falls] == [10, 20]
