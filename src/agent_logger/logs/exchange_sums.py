"""What an exchange used, where its client does not report responses at all.

The classes of older SDKs, Codex, and Claude Code with `json` report it in their result alone. The last turn gets all of
it, so that it counts; where a wire log or the agent's file knows the responses, it does not.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from agent_logger.messages.result_usage import by_model, of_main_thread
from agent_logger.model.prices import canonical, priced
from agent_logger.model.records import ExchangeStats
from agent_logger.model.session import SIDE, Exchange, Turn, Usage, Witness

UNKNOWN = "unknown"  # a model that no line names


def with_sums(exchange: Exchange, stats: ExchangeStats | None, model: str | None, witness: Witness) -> Exchange:
    turns = exchange.turns
    if stats is None or any(turn.usage or turn.message_id for turn in turns):
        return exchange
    rows = [(name, usage) for name, usage in usage_by_model(stats, model) if any(usage.counts)]
    if not rows:
        return exchange
    *others, main = sorted(rows, key=lambda row: row[1].output_tokens)
    last = turns[-1] if turns else _turn(exchange, witness)
    aside = [_counted(replace(_turn(exchange, witness), thread=SIDE), *other) for other in others]
    return replace(exchange, turns=[*turns[:-1], _counted(last, *main), *aside])


def usage_by_model(stats: ExchangeStats, model: str | None) -> Iterator[tuple[str | None, Usage]]:
    """Yield the usage of each model. `model` is that of the main thread."""
    for name, counted in by_model(stats).items():
        yield (model if name == UNKNOWN else name), _with_hour(counted.usage, stats, name, model)
    if not stats.model_usage:
        yield model, of_main_thread(stats)


def _with_hour(usage: Usage, stats: ExchangeStats, name: str, model: str | None) -> Usage:
    """Add how long the cache was written for: not all counters by model say so; for the main thread the result does."""
    if usage.cache_write_1h_tokens or not model or canonical(name) != canonical(model):
        return usage
    return replace(usage, cache_write_1h_tokens=min(usage.cache_write_tokens, stats.cache_creation_1h or 0))


def _turn(exchange: Exchange, witness: Witness) -> Turn:
    return Turn(
        message_id=None,
        started=exchange.started,
        ended=exchange.ended,
        witnesses=frozenset({witness}),
    )


def _counted(turn: Turn, model: str | None, usage: Usage) -> Turn:
    return priced(replace(turn, model=model or turn.model, usage=usage, is_sum=True))
