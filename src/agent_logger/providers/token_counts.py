"""Usage objects of others as `Usage`: the one way from the counts of a vendor, an agent or a program to ours.

A count is a number of tokens: an integer that is not negative. `null` says nothing. If anything else stands in the
place of a count, or the object has no known count, the usage was not understood: it is unknown, never zero, for zero
tokens have a price and unknown ones have none.

Names are looked for in both spellings, `input_tokens` and `inputTokens`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agent_logger.model.session import Usage

MOST_TOKENS = 1 << 60  # a higher number is a mistake, and the catalog could not add it up


class TokenCounts:
    """The counts in one usage object. Ask for them by name, then call `usage`."""

    def __init__(self, value: Any) -> None:
        self._fields: Mapping[str, Any] = value if type(value) is dict or isinstance(value, Mapping) else {}
        self._inner: list[TokenCounts] = []
        self._counts = 0  # that were there
        self._misfits = 0  # what stood in the place of a count and was none

    def __call__(self, *names: str) -> int:
        """The first of these counts that is present; 0 if none is."""
        for spelling in _spellings(names):
            value = self._fields.get(spelling)
            if type(value) is int and 0 <= value < MOST_TOKENS:  # nearly every count
                self._counts += 1
                return value
            if value is not None:
                return self._count(value)
        return 0

    def has(self, *names: str) -> bool:
        return any(self._fields.get(spelling) is not None for spelling in _spellings(names))

    def inner(self, name: str) -> "TokenCounts":
        """The counts of an object within this one; if the inner one is wrong, so is this one."""
        for spelling in _spellings((name,)):
            value = self._fields.get(spelling)
            if value is not None:
                counts = TokenCounts(value)
                counts._misfits += not isinstance(value, Mapping)
                self._inner.append(counts)
                return counts
        return TokenCounts(None)

    def usage(self, given: int, output: int, read: int = 0, write: int = 0, write_1h: int = 0) -> Usage | None:
        """Make a `Usage` of these tokens; `None` if the object was not understood."""
        if not self._understood:
            return None
        return Usage(
            input_tokens=max(0, given),
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=write,
            cache_write_1h_tokens=min(write_1h, write),
        )

    @property
    def _understood(self) -> bool:
        if not self._inner:
            return self._counts > 0 and not self._misfits
        every = (self, *self._inner)
        return any(counts._counts for counts in every) and not any(counts._misfits for counts in every)

    def _count(self, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and 0 <= value < MOST_TOKENS:  # a bool is none
            self._counts += 1
            return value
        self._misfits += 1
        return 0


@lru_cache(maxsize=256)
def in_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


@lru_cache(maxsize=256)
def _spellings(names: tuple[str, ...]) -> tuple[str, ...]:
    """Each of these names in both spellings, in their order."""
    return tuple(dict.fromkeys(spelling for name in names for spelling in (name, in_camel_case(name))))


def usage_of(value: Any) -> Usage | None:
    """A usage object in the words of any API or SDK; `None` if it is not understood.

    Anthropic counts the tokens read from the cache, and those written into it, beside `input_tokens`. The others count
    both within the prompt, and each has its own name for the cached part.
    """
    counts = TokenCounts(value)
    if counts.has("prompt_token_count", "candidates_token_count"):
        return _gemini_usage(counts)
    if counts.has("prompt_eval_count", "eval_count"):
        return counts.usage(counts("prompt_eval_count"), counts("eval_count"))
    if counts.has("prompt_tokens", "completion_tokens"):
        return _chat_usage(counts)
    if counts.has("input_tokens_details", "cached_input_tokens", "cache_write_input_tokens"):
        return _responses_usage(counts)
    return _anthropic_usage(counts)


def _anthropic_usage(counts: TokenCounts) -> Usage | None:
    """The usage in Anthropic's words. `cache_read_tokens` and the like are the words of `Usage` itself, and of several
    SDKs."""
    lifetimes = counts.inner("cache_creation")
    hour = lifetimes("ephemeral_1h_input_tokens")
    parts = hour + lifetimes("ephemeral_5m_input_tokens")
    written = counts("cache_creation_input_tokens", "cache_creation_tokens", "cache_write_tokens")
    return counts.usage(
        counts("input_tokens"),
        counts("output_tokens"),
        counts("cache_read_input_tokens", "cache_read_tokens"),
        max(written, parts),
        hour or counts("cache_write_1h_tokens"),
    )


def _chat_usage(counts: TokenCounts) -> Usage | None:
    """The usage in the words of OpenAI's chat completions, and of hosts that copy that API."""
    input_tokens, answered = counts("prompt_tokens"), counts("completion_tokens")
    details = counts.inner("prompt_tokens_details")
    cached = (
        details("cached_tokens")
        or counts("prompt_cache_hit_tokens")  # DeepSeek
        or counts("cached_tokens")  # Moonshot
        or counts("cache_read_input_tokens")  # LiteLLM, for models of Anthropic
    )
    # OpenRouter; LiteLLM
    written = details("cache_write_tokens") or counts("cache_creation_input_tokens")
    thought = counts.inner("completion_tokens_details")("reasoning_tokens")
    if thought and counts("total_tokens") == input_tokens + answered + thought:
        answered += thought  # xAI counts them apart
    return counts.usage(input_tokens - cached - written, answered, cached, written)


def _responses_usage(counts: TokenCounts) -> Usage | None:
    """The usage in the words of OpenAI's responses; Codex and the AI SDK put the cached part at the top."""
    details = counts.inner("input_tokens_details")
    cached = details("cached_tokens") or counts("cached_input_tokens")
    written = details("cache_write_tokens") or counts("cache_write_input_tokens")
    return counts.usage(counts("input_tokens") - cached - written, counts("output_tokens"), cached, written)


def _gemini_usage(counts: TokenCounts) -> Usage | None:
    cached = counts("cached_content_token_count")
    input_tokens = counts("prompt_token_count") + counts("tool_use_prompt_token_count")
    answered = counts("candidates_token_count") + counts("thoughts_token_count")
    return counts.usage(input_tokens - cached, answered, cached)
