"""What an exchange took, where its client does not tell what each response did.

The classes of older SDKs, Codex, and Claude Code as `json` tell it in their result alone: the last turn gets all of it.
Claude Code's other messages tell of each response what was known when it began, and of sub-agents not all: what is
missing stands in a turn aside. So it counts; but where a wire log or the agent's file knows the responses, it does not.
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from agent_logger.formats.counters import billed, models_of
from agent_logger.prices import priced
from agent_logger.records import ExchangeStats, Tokens
from agent_logger.session import SIDE, Exchange, Turn, Usage, Witness

# On the wire too. What others took in sum could not be told from what their unnamed calls took.
NAME_SESSIONS = ("claude-code", "codex")
UNKNOWN = "unknown"  # a model that no line names


def with_sums(
    exchange: Exchange, stats: ExchangeStats | None, model: str | None, witness: Witness
) -> Exchange:
    turns = exchange.turns
    if stats is None:
        return exchange
    if any(turn.usage or turn.message_id for turn in turns):
        return replace(exchange, turns=[*turns, *_missing(exchange, stats, witness)])
    told = [(name, usage) for name, usage in _by_model(stats, model) if any(usage.counts)]
    if not told:
        return exchange
    *others, main = sorted(told, key=lambda it: it[1].output_tokens)
    last = turns[-1] if turns else _turn(exchange, witness)
    aside = [_counted(replace(_turn(exchange, witness), thread=SIDE), *it) for it in others]
    return replace(exchange, turns=[*turns[:-1], _counted(last, *main), *aside])


def _missing(exchange: Exchange, stats: ExchangeStats, witness: Witness) -> Iterator[Turn]:
    """By model, if the client counts so, and these counters are this exchange's own."""
    if stats.inherited or not stats.model_usage:
        return
    known: dict[str, Usage] = {}
    for turn in exchange.turns:
        if turn.usage and turn.model:
            model = _plain(turn.model)
            known[model] = known.get(model, Usage()) + turn.usage
    for name, usage in _by_model(stats, None):
        model = _plain(name or UNKNOWN)
        rest = _rest(usage, known.get(model, Usage()))
        if rest and any(rest.counts):
            yield _counted(replace(_turn(exchange, witness), thread=SIDE), model, rest)


def _rest(usage: Usage, known: Usage) -> Usage | None:
    """None where the counters tell less than the responses."""
    counts = [a - b for a, b in zip(usage.counts[:4], known.counts[:4], strict=True)]
    return None if min(counts) < 0 else Usage(**dict(zip(Usage.__struct_fields__, counts, strict=False)))


def _plain(model: str) -> str:
    """Without what the client adds: `claude-opus-5[1m]`."""
    return model.partition("[")[0]


def _by_model(stats: ExchangeStats, model: str | None) -> Iterator[tuple[str | None, Usage]]:
    models = models_of([stats])
    if not models:
        yield model, _usage(billed(stats))
        return
    for name, told in models.items():
        alone = replace(stats, model_usage=msgspec.Raw(msgspec.json.encode({name: told})))
        yield (model if name == UNKNOWN else name), _usage(billed(alone))


def _usage(tokens: Tokens | None) -> Usage:
    if tokens is None:
        return Usage()
    return Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_creation,
    )


def _turn(exchange: Exchange, witness: Witness) -> Turn:
    return Turn(
        message_id=None,
        started=exchange.started,
        ended=exchange.ended,
        witnesses=frozenset({witness}),
    )


def _counted(turn: Turn, model: str | None, usage: Usage) -> Turn:
    return priced(replace(turn, model=model or turn.model, usage=usage, is_sum=True))
