"""The counters of a client, and what a single exchange added to them.

`total_cost_usd`, `modelUsage` and `duration_api_ms` of a result accumulate: over the session in current clients, over
the process in older ones, and from zero again after a kill. `usage` and `num_turns` are the exchange's own, but leave
out sub-agents. So a result is compared with the one before it and with its own `usage`:

1. the client says what is new since its last result: that counts;
2. the counters equal this exchange's `usage`: they began with it, all is its own;
3. they grew by at least that much: the difference, unless a new process of an older client reset them;
4. they did not, but none of them fell and the last result was heard in this run (after a retry, for example, a response
   may be counted twice in `usage`): the difference;
5. no earlier result is known: all is its own if the exchange explains what the counters have beyond its `usage`: a
   sub-agent, a compaction, another model. Otherwise, and always where the session is known to continue an earlier
   one, they hold a history whose share is not known: no figure is given, and `inherited` says why.
6. else they were reset: all is its own.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agent_logger.messages.sdk import ReportedUsage, Result, SdkMessage, usage_in
from agent_logger.model.prices import canonical
from agent_logger.model.records import CostFrom, ExchangeStats, Message, Tokens
from agent_logger.model.session import SYNTHETIC, tool_kind
from agent_logger.protocols.json_text import raw

ModelUsage = dict[str, dict[str, Any]]
COST_DIGITS = 9  # nano-dollars; smaller differences are rounding errors of floats

# Fields of a model's usage that describe the model, not its work.
_CONSTANT = {
    "contextWindow",
    "maxOutputTokens",
}
_COUNTED = ("inputTokens", "outputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")
OUTPUT = 1  # its place among these


def reported_in(message: Message) -> ReportedUsage | None:
    """The usage that a message reports; `None` if it reports none, or none that can be read."""
    try:
        return usage_in(bytes(message.usage)) if message.usage else None
    except (ValueError, RecursionError):
        return None


class Counters(msgspec.Struct, frozen=True):
    """Where the client's counters stood at a result."""

    cost_usd: float | None = None
    api_ms: int | None = None
    models: ModelUsage = msgspec.field(default_factory=dict)
    heard: bool = True  # in this run; otherwise read from the log

    @property
    def outlive_process(self) -> bool:
        """Whether the counters outlive a process. Clients that count so also say what the price of a call is based on;
        older ones do neither."""
        return any("costBasis" in model for model in self.models.values())

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(sum(_number(model.get(key)) for model in self.models.values()) for key in _COUNTED)


class Work(msgspec.Struct):
    """What an exchange did, as far as it explains why counters by model exceed the main thread's `usage`."""

    is_new: bool = False  # the agent was started without a session to continue
    has_agents: bool = False  # a sub-agent worked, or was started
    # After a response: a history that came from elsewhere explains nothing.
    has_compaction: bool = False
    is_seen: bool = False  # responses were reported; otherwise there is only the result
    models: set[str] = msgspec.field(default_factory=set)  # of the main thread
    context: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)  # by response: what was read

    @classmethod
    def of(cls, messages: Iterable[Message], *, is_new: bool = False) -> "Work":
        work = cls(is_new)
        for message in messages:
            work.note(message)
        return work

    def note(self, message: Message) -> None:
        if message.parent_tool_use_id or message.type in TASKS:
            self.has_agents = True
        elif message.source == "system":
            self.has_compaction |= message.type == COMPACTION and self.is_seen
        elif message.source == "assistant" and message.model != SYNTHETIC:
            self._note_response(message)

    def _note_response(self, message: Message) -> None:
        self.has_agents |= bool(message.name) and tool_kind(message.name or "") == "agent"
        if not message.usage:
            return
        self.is_seen = True
        self.models |= {canonical(message.model) or message.model} if message.model else set()
        self.context[message.message_id or str(len(self.context))] = _of_usage(reported_in(message))

    def explains(self, now: Counters, own: tuple[int, ...]) -> bool:
        """Whether the counters hold nothing but this exchange. `own` is its `usage`, which may lack the last response
        and includes attempts that failed. Every response reads something, so output need not be compared."""
        if self.has_agents or self.has_compaction or (self.is_new and not self.is_seen):
            return True
        context = [sum(column) for column in zip(*self.context.values(), strict=True)] or [0] * len(own)
        most = [max(pair) for pair in zip(context, own, strict=True)]
        main = self._main(now, most)
        if _reads_at_most(Counters(models=main).tokens, most):
            return True
        # Before they counted over processes, clients asked the main model, too, to warm up.
        return not now.outlive_process and len(main) < len(now.models)

    def _main(self, now: Counters, counts: Sequence[int]) -> ModelUsage:
        """The counters of the main thread's models; if nothing names those, of the model that read as much as the
        thread did."""
        named = {name: counts for name, counts in now.models.items() if (canonical(name) or name) in self.models}
        if named:
            return named
        alike = ({name: counts} for name, counts in now.models.items())
        return next((models for models in alike if _reads_at_most(Counters(models=models).tokens, counts)), now.models)


COMPACTION = "compact_boundary"
TASKS = ("task_started", "task_progress", "task_updated", "task_notification")


def _reads_at_most(tokens: Sequence[int], limits: Sequence[int]) -> bool:
    return all(count <= most for at, (count, most) in enumerate(zip(tokens, limits, strict=True)) if at != OUTPUT)


class Share(msgspec.Struct, frozen=True):
    """What one exchange added; `None` where that is unknown."""

    cost_usd: float | None
    api_ms: int | None
    models: ModelUsage | None
    cost_from: CostFrom | None = None
    inherited: bool = False


def counters_of(result: Result) -> Counters:
    names = (result.total_cost_usd, result.total_cost, result.cost_usd)
    cost = next((amount for amount in names if amount is not None), None)
    return Counters(cost, result.duration_api_ms, result.model_usage or {})


def counters_in(stats: ExchangeStats) -> Counters:
    """The client's counters as they were when these stats were written."""
    models: ModelUsage = {}
    if stats.reported_model_usage:
        models = msgspec.json.decode(stats.reported_model_usage)
    return Counters(stats.reported_total_cost_usd, stats.reported_duration_api_ms, models, heard=False)


def share(result: Result, before: Counters | None, *, goes_on: bool = False, work: "Work | None" = None) -> Share:
    """What an exchange added to the counters. `before` is where they stood; `goes_on`: there was something before,
    known or not; `work`: what the exchange did."""
    if is_apart(result):
        return Share(result.cost_usd, result.duration_api_ms, result.model_usage, "own")
    now = counters_of(result)
    if result.model_usage_since_last_result is not None:
        return _share_of(result.model_usage_since_last_result, now, before)
    own = _of_usage(result.usage)
    if not now.models:
        return _without_models(now, before)
    if now.tokens == own and any(own):
        return _own(now)
    if before is None:
        explained = result.usage is None or (work or Work()).explains(now, own)
        is_own = explained and not goes_on
        return _own(now) if is_own or not any(now.tokens) else Share(None, None, None, inherited=True)
    if not before.heard and any(own) and not now.outlive_process:
        return _own(now)
    grown = _minus(now.tokens, before.tokens)
    if min(_minus(grown, own)) >= 0 or (before.heard and min(grown) >= 0):
        return _difference(now, before)
    return _own(now)


def is_apart(result: Result) -> bool:
    """Whether the result gives the run's own cost beside the session's. Claude Code 1.0 gives one value under both
    names."""
    names = (result.cost_usd, result.total_cost)
    return result.total_cost_usd is None and None not in names and names[0] != names[1]


def later(now: Counters, before: Counters | None) -> Counters:
    """The counters to compare the next result with. A counter that is reported as 0, or not at all, keeps its earlier
    value."""
    if before and before.heard and before.models and not now.models:
        return before
    if before and now.api_ms == 0 and min(_minus(now.tokens, before.tokens)) >= 0:
        return Counters(now.cost_usd, before.api_ms, now.models)
    return now


def _share_of(models: ModelUsage, now: Counters, before: Counters | None) -> Share:
    costs = [model["costUSD"] for model in models.values() if isinstance(model.get("costUSD"), int | float)]
    began = models == now.models
    api = now.api_ms if began else _api_difference(now, before) if before else None
    cost = round(sum(costs), COST_DIGITS) if len(costs) == len(models) else None
    return Share(cost, api, models, None if cost is None else "since_last_result")


def _own(now: Counters) -> Share:
    cost = None if now.cost_usd is None else round(now.cost_usd, COST_DIGITS)
    return Share(cost, now.api_ms, now.models or None, None if cost is None else "own")


def _difference(now: Counters, before: Counters) -> Share:
    cost = None if now.cost_usd is None else round(now.cost_usd - (before.cost_usd or 0), COST_DIGITS)
    models = {name: _grown(counts, before.models.get(name, {})) for name, counts in now.models.items()}
    grown = {name: counts for name, counts in models.items() if counts}
    return Share(cost, _api_difference(now, before), grown, None if cost is None else "difference")


def _without_models(now: Counters, before: Counters | None) -> Share:
    """The share of an older client, which counts within a process at most."""
    falls = before is None or not before.heard or (now.cost_usd or 0) < (before.cost_usd or 0)
    if falls or before is None:
        return _own(now)
    return replace(_difference(now, before), models=None)


def _api_difference(now: Counters, before: Counters) -> int | None:
    if now.api_ms is None:
        return None
    return max(0, now.api_ms - (before.api_ms or 0))


def _grown(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What was added for one model; nothing if the model was not asked."""
    grown = {key: _less(key, value, before.get(key)) for key, value in now.items()}
    return grown if any(grown.get(key) for key in (*_COUNTED, "costUSD")) else {}


def _less(key: str, value: Any, before: Any) -> Any:
    if key in _CONSTANT or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    rest = value - _number(before)
    return round(rest, COST_DIGITS) if isinstance(rest, float) else rest


def _minus(now: Iterable[int], before: Iterable[int]) -> list[int]:
    return [after - was for after, was in zip(now, before, strict=True)]


def _number(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _of_usage(usage: ReportedUsage | None) -> tuple[int, ...]:
    reported = usage or ReportedUsage()
    parts = (reported.input_tokens, reported.output_tokens)
    return tuple(
        count or 0 for count in (*parts, reported.cache_creation_input_tokens, reported.cache_read_input_tokens)
    )


# ---------------------------------------------------------------- in the log


def stats(
    message: SdkMessage, before: Counters | None, *, goes_on: bool = False, work: Work | None = None
) -> ExchangeStats:
    """The stats of the exchange that this result ends."""
    result = message.result or Result()
    usage, now = result.usage or ReportedUsage(), counters_of(result)
    added = share(result, before, goes_on=goes_on, work=work)
    return ExchangeStats(
        num_turns=result.num_turns,
        duration_ms=result.duration_ms,
        duration_api_ms=added.api_ms,
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        cache_creation=usage.cache_creation_input_tokens,
        cache_read=usage.cache_read_input_tokens,
        cost_usd=added.cost_usd,
        cost_from=added.cost_from,
        reported_total_cost_usd=now.cost_usd,
        reported_duration_api_ms=now.api_ms,
        reported_model_usage=raw(now.models) if now.models else UNSET,
        inherited=added.inherited,
        model_usage=UNSET if added.models is None else raw(added.models),
        cache_creation_1h=usage.cache_creation.ephemeral_1h_input_tokens if usage.cache_creation else None,
        is_error=True if (message.subtype or "").startswith("error") else result.is_error,
        subtype=message.subtype,
        terminal_reason=result.terminal_reason,
        api_error_status=result.api_error_status,
        stop_reason=result.stop_reason,
        permission_denials=result.permission_denials,
        errors=result.errors,
    )


def checked(stats: ExchangeStats, work: Work) -> ExchangeStats:
    """Correct the stats of a log's first result: older versions took the whole counter for the exchange's own."""
    now, usage = counters_in(stats), last(stats)
    if usage is None or stats.cost_from != "own" or not any(now.tokens):
        return stats
    own = (usage.input, usage.output, usage.cache_creation, usage.cache_read)
    if now.tokens == own or work.explains(now, own):
        return stats
    return replace(stats, cost_usd=None, cost_from=None, duration_api_ms=None, model_usage=UNSET, inherited=True)


def billed(stats: ExchangeStats) -> Tokens | None:
    """The tokens of each response once, sub-agents included if the client counts by model; else the main thread's
    alone."""
    if not stats.model_usage:
        return last(stats)
    models: ModelUsage = msgspec.json.decode(stats.model_usage)
    return _tokens(Counters(models=models).tokens)


def tokens_in(usage: ReportedUsage) -> Tokens:
    return _tokens(_of_usage(usage))


def sum_of(tokens: Iterable[Tokens]) -> Tokens | None:
    counts = list(tokens)
    return Tokens(**{name: sum(getattr(tokens, name) for tokens in counts) for name in _NAMES}) if counts else None


def models_of(results: Iterable[ExchangeStats]) -> ModelUsage | None:
    """What several exchanges added, by model; `None` if the client does not say."""
    usages = [msgspec.json.decode(result.model_usage) for result in results if result.model_usage]
    models: ModelUsage = {}
    for name, usage in (pair for models in usages for pair in models.items()):
        models[name] = _added(models.get(name, {}), usage)
    return models if usages else None


def _added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    counted = {key for key, value in other.items() if key not in _CONSTANT and _number(value)}
    sums = {key: round(_number(one.get(key)) + other[key], COST_DIGITS) for key in counted}
    return {**one, **other, **sums}


_NAMES = ("input", "output", "cache_creation", "cache_read")


def last(stats: ExchangeStats) -> Tokens | None:
    """The tokens in the `usage` of the result; `None` if the client does not count."""
    counts = (stats.tokens_in, stats.tokens_out, stats.cache_creation, stats.cache_read)
    return None if set(counts) == {None} else _tokens(count or 0 for count in counts)


def _tokens(counts: Iterable[int]) -> Tokens:
    return Tokens(**dict(zip(_NAMES, counts, strict=True)))
