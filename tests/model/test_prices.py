"""What responses cost. The rates in these tests were read off the vendors' own price lists, not out of the snapshot."""

import doctest
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_logger
from agent_logger import Cost, Usage, price
from agent_logger.model.prices import Period, canonical, price_date

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "src/agent_logger/model/prices.json"
MILLION = 1_000_000
BOTH = Usage(input_tokens=100_000, output_tokens=100_000)  # a tenth of what price lists tell


def usd(usage: Usage, model: str, at: datetime | None = None, tier: str | None = None) -> float | None:
    return price(usage, model, at, tier).usd


# Dollars for 100,000 tokens in and 100,000 out, which no long-context band holds.
RATES = [
    ("claude-sonnet-4-5-20250929", 0.30 + 1.50),
    ("claude-haiku-4-5-20251001", 0.10 + 0.50),
    ("claude-opus-4-1-20250805", 1.50 + 7.50),
    ("claude-sonnet-4-20250514", 0.30 + 1.50),
    ("claude-opus-4-20250514", 1.50 + 7.50),
    ("claude-3-7-sonnet-20250219", 0.30 + 1.50),
    ("claude-3-5-haiku-20241022", 0.08 + 0.40),
    ("claude-3-haiku-20240307", 0.025 + 0.125),
    ("claude-opus-4-5-20251101", 0.50 + 2.50),
    ("gpt-5-codex", 0.125 + 1.0),
    ("gpt-5-mini-2025-08-07", 0.025 + 0.2),
    ("gpt-4.1", 0.2 + 0.8),
    ("gpt-4o-2024-05-13", 0.5 + 1.5),
    ("gpt-4o", 0.25 + 1.0),
    ("gemini-2.5-pro", 0.125 + 1.0),
    ("gemini-2.5-flash", 0.03 + 0.25),
    ("grok-4", 0.3 + 1.5),
]


@pytest.mark.parametrize(("model", "dollars"), RATES)
def test_model_prices_match_the_vendor_price_lists(model: str, dollars: float) -> None:
    assert usd(BOTH, model) == pytest.approx(dollars, rel=1e-9)


SPELLINGS = [
    ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
    ("Claude-Sonnet-4-5-20250929", "claude-sonnet-4-5"),
    ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
    ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
    ("publishers/anthropic/models/claude-sonnet-4-5", "claude-sonnet-4-5"),
    ("claude-opus-4-8[1m]", "claude-opus-4-8"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("openai/gpt-5", "gpt-5"),
    ("azure/gpt-5", "gpt-5"),
    ("gpt-5.2-20251211", "gpt-5.2"),
    ("gpt-5.2-2025-12-11", "gpt-5.2"),
    ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ("gemini/gemini-2.5-pro", "gemini-2.5-pro"),
    ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
    ("publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"),
    ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
    ("x-ai/grok-4", "grok-4-0709"),
    ("groq/openai/gpt-oss-120b", "groq/openai/gpt-oss-120b"),
]


@pytest.mark.parametrize(("spelling", "model"), SPELLINGS)
def test_every_spelling_of_a_model_name_has_the_same_price(spelling: str, model: str) -> None:
    assert price(BOTH, spelling) == price(BOTH, model) != price(BOTH, "unknown")


def test_all_spellings_of_a_model_have_one_canonical_name() -> None:
    names = ["claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"]
    assert {canonical(name) for name in names} == {"anthropic/claude-sonnet-4-5"}
    assert canonical("claude-fake-1") is None


def test_bedrock_has_separate_regional_and_global_prices() -> None:
    model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert usd(BOTH, f"global.{model}") == pytest.approx(1.80)
    for name in (model, f"us.{model}", f"eu.{model}", f"bedrock/us-east-1/{model}", f"bedrock/us.{model}"):
        assert usd(BOTH, name) == pytest.approx(1.98), name


NOT_THE_SAME = [
    "claude-sonnet-4-5-made-up",
    "claude-sonnet-4-55",
    "claude-sonnet",
    "claude-fake-1",
    "gpt-5-codex-ultra",
    "gpt-fake-1",
    "openai/claude-sonnet-4-5",
    "anthropic/gpt-5",
    "my-gateway/claude-sonnet-4-5",
    "gpt-oss:20b",
    "llama3.2",
    "deepseek-r1",
    "deepseek-r1:7b",
    "mistral-nemo",
    "gemini-2.5-pro-exp-03-25",
    "text-embedding-3-small",
    "auto",
    "-20250929",
    "/",
    "anthropic/",
    "\u0000",
    "claude-sonnet-4-5" * 10_000,
]


@pytest.mark.parametrize("model", NOT_THE_SAME, ids=lambda it: it[:40])
def test_a_similar_model_name_is_unknown(model: str) -> None:
    assert price(BOTH, model) == Cost(nano_usd=None, reason="unknown model")


@pytest.mark.parametrize("model", [None, ""])
def test_without_a_model_there_is_no_price(model: str | None) -> None:
    assert price(BOTH, model) == Cost(nano_usd=None, reason="no model")


def test_a_cost_includes_the_price_date() -> None:
    assert price(BOTH, "gpt-5").price_date == price_date() == json.loads(SNAPSHOT.read_text())["date"]
    assert price(BOTH, "gpt-5").reason is None


# ---------------------------------------------------------------- what is billed


def test_cache_tokens_have_separate_rates() -> None:
    def cost(**tokens: int) -> int | None:
        return price(Usage(**tokens), "claude-haiku-4-5").nano_usd

    assert cost(input_tokens=1000) == 1_000_000
    assert cost(output_tokens=1000) == 5_000_000
    assert cost(cache_read_tokens=1000) == 100_000
    assert cost(cache_write_tokens=1000) == 1_250_000
    assert cost(cache_write_tokens=1000, cache_write_1h_tokens=1000) == 2_000_000
    assert cost(cache_write_tokens=1000, cache_write_1h_tokens=400) == 750_000 + 800_000


def test_cached_tokens_without_a_separate_rate_are_billed_as_input() -> None:
    assert usd(Usage(cache_read_tokens=MILLION), "gpt-5-pro") == 15
    assert usd(Usage(cache_write_tokens=1000, cache_write_1h_tokens=500), "gpt-5") == pytest.approx(0.00125)


def test_long_context_prices_apply_by_total_input_including_cache() -> None:
    model = "claude-sonnet-4-5"
    assert usd(Usage(input_tokens=200_001), "claude-sonnet-4-20250514") == pytest.approx(1.200006)
    assert usd(Usage(input_tokens=200_000), model) == pytest.approx(0.60)
    assert usd(Usage(input_tokens=200_001), model) == pytest.approx(1.200006)
    cached = Usage(input_tokens=1, cache_read_tokens=150_000, cache_write_tokens=50_000, output_tokens=1000)
    assert usd(cached, model) == pytest.approx((6 + 150_000 * 0.6 + 50_000 * 7.5 + 1000 * 22.5) / MILLION)
    assert usd(Usage(output_tokens=MILLION), model) == 15


def test_zero_usage_of_a_known_model_costs_zero() -> None:
    assert price(Usage(), "gpt-5").nano_usd == 0
    assert price(Usage(), "who-knows").nano_usd is None


@given(
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.integers(0, 100),
)
def test_a_price_is_exact_to_half_a_nanodollar(given_: int, out: int, read: int, write: int, percent: int) -> None:
    hour = write * percent // 100
    usage = Usage(
        input_tokens=given_,
        output_tokens=out,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=hour,
    )
    # Dollars a million tokens: 5, 25, 0.5, 6.25 and 10.
    millionths = given_ * 5 + out * 25 + Fraction(read, 2) + (write - hour) * Fraction(25, 4) + hour * 10
    exact = millionths * 1000  # nanodollars
    nano = price(usage, "claude-opus-4-5").nano_usd
    assert isinstance(nano, int)
    assert abs(nano - exact) <= Fraction(1, 2)


# ---------------------------------------------------------------- tiers


def test_each_service_tier_has_its_own_price() -> None:
    usual = price(BOTH, "gpt-5").nano_usd
    assert usual
    assert price(BOTH, "gpt-5", tier="batch").nano_usd == usual // 2
    assert price(BOTH, "gpt-5", tier="flex").nano_usd == usual // 2
    assert price(BOTH, "gpt-5", tier="priority").nano_usd == usual * 2
    assert usd(BOTH, "claude-haiku-4-5", tier="batch") == pytest.approx(0.30)


@pytest.mark.parametrize("tier", [None, "", "standard", "default", "auto", "on_demand", "ON_DEMAND"])
def test_all_names_of_the_standard_tier_have_the_standard_price(tier: str | None) -> None:
    assert price(BOTH, "gpt-5", tier=tier) == price(BOTH, "gpt-5")


@pytest.mark.parametrize(("model", "tier"), [("claude-haiku-4-5", "priority"), ("gpt-5", "scale"), ("o1", "\u202e")])
def test_a_tier_without_a_list_price_has_unknown_cost(model: str, tier: str) -> None:
    assert price(BOTH, model, tier=tier) == Cost(nano_usd=None, reason="no price for tier")


# ---------------------------------------------------------------- time


def test_a_response_is_priced_by_its_date() -> None:
    assert usd(BOTH, "o3", datetime(2025, 5, 1, tzinfo=UTC)) == pytest.approx(1.0 + 4.0)
    assert usd(BOTH, "o3", datetime(2026, 5, 1, tzinfo=UTC)) == pytest.approx(0.2 + 0.8)
    assert usd(BOTH, "o3") == pytest.approx(0.2 + 0.8)


def test_price_periods_change_at_midnight_utc() -> None:
    large = Usage(input_tokens=300_000)
    last = datetime(2026, 3, 12, 23, 59, 59)  # noqa: DTZ001 - without a zone it is UTC
    assert usd(large, "claude-opus-4-6", last) == pytest.approx(3.0)  # the long-context price ended that day
    assert usd(large, "claude-opus-4-6", last.replace(tzinfo=UTC)) == pytest.approx(3.0)
    assert usd(large, "claude-opus-4-6", last + timedelta(seconds=1)) == pytest.approx(1.5)
    west = timezone(timedelta(hours=-8))
    assert usd(large, "claude-opus-4-6", datetime(2026, 3, 12, 16, 0, tzinfo=west)) == pytest.approx(1.5)


def test_a_tier_is_unpriced_before_its_first_price_period() -> None:
    early, late = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    assert price(BOTH, "claude-opus-4-6", early, "batch").reason == "no price for tier"
    assert usd(BOTH, "claude-opus-4-6", late, "batch") == pytest.approx(1.5)


def test_prices_can_depend_on_the_hour() -> None:
    day = datetime(2025, 6, 1, tzinfo=UTC)
    assert usd(BOTH, "deepseek-chat", day + timedelta(hours=12)) == pytest.approx(0.027 + 0.11)
    assert usd(BOTH, "deepseek-chat", day + timedelta(hours=20)) == pytest.approx(0.0135 + 0.055)


def test_price_hours_may_span_midnight() -> None:
    night = Period(since="2026-01-01", hours="16:30-00:30", bands=())
    held = [hour for hour in range(24) if night.holds(datetime(2026, 6, 1, hour, 29, tzinfo=UTC))]
    assert held == [0, 17, 18, 19, 20, 21, 22, 23]
    assert not night.holds(datetime(2025, 12, 31, 20, tzinfo=UTC))


# ---------------------------------------------------------------- the package


def test_the_snapshot_is_well_formed() -> None:
    told = json.loads(SNAPSHOT.read_text())
    assert datetime.fromisoformat(told["date"]) > datetime(2025, 1, 1)  # noqa: DTZ001
    assert set(told["makers"]) <= set(told["names"])
    numbers = {number for names in told["names"].values() for number in names.values()}
    assert numbers == set(range(len(told["models"])))
    for model in told["models"]:
        assert "standard" in model
        rates = [rate for periods in model.values() for _, _, bands in periods for band in bands for rate in band]
        assert all(isinstance(rate, int) and rate >= 0 for rate in rates)
        assert all(bands[0][0] == 0 and bands == sorted(bands) for periods in model.values() for *_, bands in periods)


def test_the_price_function_is_imported_lazily() -> None:
    code = "import sys, agent_logger; print('agent_logger.model.prices' in sys.modules, agent_logger.price.__module__)"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.split() == ["False", "agent_logger.model.prices"]
    assert "price" in dir(agent_logger)


def test_the_examples_in_the_prices_page_pass() -> None:
    told = doctest.testfile(str(ROOT / "docs" / "prices.md"), module_relative=False)
    assert told.attempted
    assert not told.failed


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"),  # GitHub's spelling
        ("openrouter/anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"),
        ("moonshot/kimi-k2-thinking", "moonshotai/kimi-k2-thinking"),
        ("kimi-k2-0905-preview", "moonshotai/kimi-k2-0905-preview"),
        ("xai/grok-4", "x-ai/grok-4"),
        ("grok-code-fast-1", "x-ai/grok-code-fast-1"),
        ("kimi-for-coding", None),  # an alias of a plan, with no price of its own
        ("moonshotai/kimi-k2", None),  # several models were called so
        ("kilo/anthropic/claude-sonnet-4.5", None),  # a gateway may have prices of its own
        ("github_copilot/gpt-5", None),
        ("unknown/claude-sonnet-4.5x", None),
    ],
)
def test_a_model_of_a_coding_agent_is_priced_where_its_name_is_certain(model: str, name: str | None) -> None:
    assert canonical(model) == name
