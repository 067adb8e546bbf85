"""What a result says of the responses before it.

Current clients report a response, to an SDK or to the program that runs them, when it begins, with the tokens that are
known then: one or two of its output. The final counts come only as a sum by model, with the result. If that leaves one
response of a model open, and nothing else of the model is missing, the rest belongs to that response. Any other rest is
not itemised.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from agent_logger.model.prices import canonical
from agent_logger.model.records import ExchangeStats
from agent_logger.model.session import MAIN, Turn, Usage


class ModelTotals(msgspec.Struct, rename="camel"):
    """A client's own sums of tokens for one model."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_creation_ephemeral1h_input_tokens: int = msgspec.field(default=0, name="cacheCreationEphemeral1hInputTokens")

    @property
    def usage(self) -> Usage:
        """Return the tokens in the form that all agents share."""
        write, hour = self.cache_creation_input_tokens, self.cache_creation_ephemeral1h_input_tokens
        return _usage(self.input_tokens, self.output_tokens, self.cache_read_input_tokens, write, hour)


def _usage(*counts: int | None) -> Usage:
    """The usage of these counts: input, output, cache read, cache write, and of the latter those for an hour."""
    given, output, read, write, hour = (max(0, count or 0) for count in counts)
    return Usage(
        input_tokens=given,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=min(write, hour),
    )


def with_result(turns: Sequence[Turn], stats: ExchangeStats | None) -> Sequence[Turn]:
    """The turns of an exchange with the tokens that its result reports."""
    if stats is None or all(turn.is_final for turn in turns):
        return turns
    completed: dict[int, Turn] = {}
    for model, counted in _counted(stats).items():
        is_of = [turn.thread == MAIN if model is None else _name(turn.model) == model for turn in turns]
        places = [at for at, turn in enumerate(turns) if turn.usage and is_of[at]]
        open_ones = [at for at in places if not turns[at].is_final]
        usage = sum((turns[at].usage or Usage() for at in places), Usage())
        is_all = _read(usage) == _read(counted) or (stats.tokens_in is None and model is None)
        if len(open_ones) == 1 and is_all:
            rest = counted.output_tokens - usage.output_tokens
            at = open_ones[0]
            completed[at] = _completed(turns[at], rest, stats.stop_reason if at == places[-1] else None)
    return [completed.get(at, turn) for at, turn in enumerate(turns)]


def _completed(turn: Turn, rest: int, stop_reason: str | None) -> Turn:
    usage = turn.usage or Usage()
    output = usage.output_tokens + max(0, rest)
    return replace(turn, usage=replace(usage, output_tokens=output), stop_reason=stop_reason)


def _read(usage: Usage) -> tuple[int, int, int]:
    return usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens


def _counted(stats: ExchangeStats) -> dict[str | None, Usage]:
    """The usage by model, sub-agents included; if the client does not count by model, that of the main thread under
    `None`."""
    if stats.model_usage:
        counted: dict[str | None, Usage] = {}
        for model, counts in by_model(stats).items():
            counted[_name(model)] = counted.get(_name(model), Usage()) + counts.usage
        return counted
    return {None: of_main_thread(stats)} if stats.tokens_out is not None else {}


def of_main_thread(stats: ExchangeStats) -> Usage:
    write, hour = stats.cache_creation, stats.cache_creation_1h
    return _usage(stats.tokens_in, stats.tokens_out, stats.cache_read, write, hour)


def by_model(stats: ExchangeStats) -> dict[str, ModelTotals]:
    """The usage by model, under the client's names; empty if the client does not count by model."""
    try:
        return msgspec.json.decode(stats.model_usage, type=dict[str, ModelTotals]) if stats.model_usage else {}
    except (ValueError, RecursionError):
        return {}


def _name(model: str | None) -> str:
    return canonical(model or "") or model or ""
