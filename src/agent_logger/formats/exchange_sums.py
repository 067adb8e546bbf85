"""What an exchange took, where its client does not tell of responses at all.

The classes of older SDKs, Codex, and Claude Code as `json` tell it in their result alone. The last turn gets all of it,
so that it counts; where a wire log or the agent's file knows the responses, it does not.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from agent_logger.formats.result_usage import by_model
from agent_logger.prices import priced
from agent_logger.records import ExchangeStats
from agent_logger.session import SIDE, Exchange, Turn, Usage, Witness

# On the wire too. What others took in sum could not be told from what their unnamed calls took.
NAME_SESSIONS = ("claude-code", "codex")
UNKNOWN = "unknown"  # a model that no line names


def with_sums(
    exchange: Exchange, stats: ExchangeStats | None, model: str | None, witness: Witness
) -> Exchange:
    turns = exchange.turns
    if stats is None or any(turn.usage or turn.message_id for turn in turns):
        return exchange
    told = [(name, usage) for name, usage in _by_model(stats, model) if any(usage.counts)]
    if not told:
        return exchange
    *others, main = sorted(told, key=lambda it: it[1].output_tokens)
    last = turns[-1] if turns else _turn(exchange, witness)
    aside = [_counted(replace(_turn(exchange, witness), thread=SIDE), *it) for it in others]
    return replace(exchange, turns=[*turns[:-1], _counted(last, *main), *aside])


def _by_model(stats: ExchangeStats, model: str | None) -> Iterator[tuple[str | None, Usage]]:
    for name, counted in by_model(stats).items():
        yield (model if name == UNKNOWN else name), counted.usage
    if not stats.model_usage:
        yield model, _of_main_thread(stats)


def _of_main_thread(stats: ExchangeStats) -> Usage:
    told = (stats.tokens_in, stats.tokens_out, stats.cache_read, stats.cache_creation)
    return Usage(**{name: max(0, it or 0) for name, it in zip(Usage.__struct_fields__, told, strict=False)})


def _turn(exchange: Exchange, witness: Witness) -> Turn:
    return Turn(
        message_id=None,
        started=exchange.started,
        ended=exchange.ended,
        witnesses=frozenset({witness}),
    )


def _counted(turn: Turn, model: str | None, usage: Usage) -> Turn:
    return priced(replace(turn, model=model or turn.model, usage=usage, is_sum=True))
