"""Usage objects of others, in all their words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model.session import Usage
from agent_logger.providers.token_counts import MOST_TOKENS, usage_of

FULL = Usage(input_tokens=10, output_tokens=20, cache_read_tokens=30, cache_write_tokens=40)
UNCACHED = Usage(input_tokens=10, output_tokens=20)
READ = Usage(input_tokens=10, output_tokens=20, cache_read_tokens=30)

WORDS = [
    pytest.param(
        {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_read_input_tokens": 30,
            "cache_creation_input_tokens": 40,
        },
        FULL,
        id="Anthropic",
    ),
    pytest.param(
        {
            "inputTokens": 10,
            "outputTokens": 20,
            "cacheReadInputTokens": 30,
            "cacheCreationInputTokens": 40,
        },
        FULL,
        id="camelCase",
    ),
    pytest.param({"inputTokens": 10, "outputTokens": 20}, UNCACHED, id="the specification's table"),
    pytest.param(
        {"input_tokens": 10, "output_tokens": 20, "cache_read_tokens": 30, "cache_write_tokens": 40},
        FULL,
        id="ours",
    ),
    pytest.param(
        {"inputTokens": 10, "outputTokens": 20, "cacheReadTokens": 30, "cacheWriteTokens": 40},
        FULL,
        id="ours in camelCase",
    ),
    pytest.param(
        {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 10},
        },
        Usage(input_tokens=10, output_tokens=20, cache_write_tokens=40, cache_write_1h_tokens=10),
        id="by lifetime",
    ),
    pytest.param({"prompt_tokens": 10, "completion_tokens": 20}, UNCACHED, id="chat completions"),
    pytest.param({"promptTokens": 10, "completionTokens": 20}, UNCACHED, id="chat completions, camelCase"),
    pytest.param(
        {"prompt_tokens": 40, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 30}},
        READ,
        id="chat completions, cached",
    ),
    pytest.param(
        {"input_tokens": 40, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 30}},
        READ,
        id="responses",
    ),
    pytest.param({"input_tokens": 40, "cached_input_tokens": 30, "output_tokens": 20}, READ, id="Codex"),
    pytest.param({"inputTokens": 40, "cachedInputTokens": 30, "outputTokens": 20}, READ, id="AI SDK"),
    pytest.param(
        {"promptTokenCount": 40, "candidatesTokenCount": 15, "thoughtsTokenCount": 5} | {"cachedContentTokenCount": 30},
        READ,
        id="Gemini",
    ),
    pytest.param({"prompt_eval_count": 10, "eval_count": 20}, UNCACHED, id="Ollama"),
    pytest.param({"input_tokens": 10.0, "output_tokens": 20.0}, UNCACHED, id="whole floats"),
    pytest.param(
        {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": None, "cache_creation": None},
        UNCACHED,
        id="null says nothing",
    ),
    pytest.param({"input_tokens": 0, "output_tokens": 0}, Usage(), id="nothing was used"),
]


@pytest.mark.parametrize(("told", "usage"), WORDS)
def test_usage_objects_of_every_vendor_are_read(told: Any, usage: Usage) -> None:
    assert usage_of(told) == usage


NOT_UNDERSTOOD: list[Any] = [
    None,
    {},
    [],
    "10 tokens",
    {"tokens": 10},
    {"total_tokens": 10},
    {"service_tier": "standard"},
    {"input_tokens": None, "output_tokens": None},
    {"input_tokens": "10", "output_tokens": 20},
    {"input_tokens": 10, "output_tokens": -20},
    {"input_tokens": 10, "output_tokens": 2.5},
    {"input_tokens": 10, "output_tokens": True},
    {"input_tokens": 10, "output_tokens": {"text": 20}},
    {"input_tokens": 10, "output_tokens": MOST_TOKENS},
    {"input_tokens": 10, "output_tokens": float("inf")},
    {"input_tokens": 10, "output_tokens": 20, "cache_creation": 5},
    {"input_tokens": 10, "output_tokens": 20, "cache_creation": {"ephemeral_1h_input_tokens": "5"}},
    {"prompt_tokens": 10, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": -1}},
]


@pytest.mark.parametrize("told", NOT_UNDERSTOOD, ids=str)
def test_an_unrecognized_usage_object_is_none(told: Any) -> None:
    assert usage_of(told) is None


names = st.sampled_from(
    [
        "input_tokens",
        "outputTokens",
        "prompt_tokens",
        "completionTokens",
        "cached_tokens",
        "promptTokenCount",
        "cache_creation",
        "prompt_tokens_details",
        "x",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(names, inner),
    max_leaves=6,
)


@given(values)
def test_token_counts_are_bounded_or_unknown_for_any_input(told: Any) -> None:
    usage = usage_of(told)
    assert usage is None or 0 <= min(usage.counts) <= max(usage.counts) < 4 * MOST_TOKENS
