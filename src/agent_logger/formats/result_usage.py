"""What a result tells of the responses before it.

Current clients tell an SDK, or who runs them, of a response when it begins, with the tokens that are known then: one
or two of its output. What it came to is told only in sum, by model, with the result. So what is missing of that sum
goes to the last response of the model that was not told to its end. The sums are then right, and so is a single one.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from agent_logger.prices import canonical
from agent_logger.records import ExchangeStats
from agent_logger.session import MAIN, Turn, Usage


class Counted(msgspec.Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    @property
    def usage(self) -> Usage:
        return Usage(
            input_tokens=max(0, self.input_tokens),
            output_tokens=max(0, self.output_tokens),
            cache_read_tokens=max(0, self.cache_read_input_tokens),
            cache_write_tokens=max(0, self.cache_creation_input_tokens),
        )

    def is_all_of(self, usage: Usage) -> bool:
        """Whether nothing but this response was counted, as far as that was known when it began."""
        known = (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
        return known == (self.input_tokens, self.cache_read_input_tokens, self.cache_creation_input_tokens)


def with_result(turns: Sequence[Turn], stats: ExchangeStats | None) -> Sequence[Turn]:
    """The turns of an exchange with the tokens that its result tells of."""
    if stats is None or all(turn.is_final for turn in turns):
        return turns
    completed: dict[int, Turn] = {}
    for model, counted in _counted(stats).items():
        places = [at for at, turn in enumerate(turns) if turn.usage and _is_of(turn, model)]
        if open_ones := [at for at in places if not turns[at].is_final]:
            others = [turns[at] for at in places if at != open_ones[-1]]
            completed[open_ones[-1]] = _completed(turns[open_ones[-1]], others, counted, stats.stop_reason)
    return [completed.get(at, turn) for at, turn in enumerate(turns)]


def _completed(turn: Turn, others: Sequence[Turn], counted: Counted, stop_reason: str | None) -> Turn:
    usage = turn.usage or Usage()
    rest = counted.output_tokens - sum(it.usage.output_tokens for it in others if it.usage)
    is_all = not others and counted.is_all_of(usage)
    return replace(
        turn,
        usage=replace(usage, output_tokens=max(usage.output_tokens, rest)),
        stop_reason=stop_reason if is_all else turn.stop_reason,
    )


def _is_of(turn: Turn, model: str | None) -> bool:
    return turn.thread == MAIN if model is None else _name(turn.model) == model


def _counted(stats: ExchangeStats) -> dict[str | None, Counted]:
    """By model, sub-agents included; of a client that does not say so, of the main thread."""
    if stats.model_usage:
        return {_name(model): counted for model, counted in by_model(stats).items()}
    return {None: Counted(output_tokens=stats.tokens_out)} if stats.tokens_out is not None else {}


def by_model(stats: ExchangeStats) -> dict[str, Counted]:
    """As the client calls them; none if it does not count so."""
    try:
        return msgspec.json.decode(stats.model_usage, type=dict[str, Counted]) if stats.model_usage else {}
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _name(model: str | None) -> str:
    return canonical(model or "") or model or ""
