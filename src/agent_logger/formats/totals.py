"""What a session's exchanges come to: the numbers of `session_end`, which a reader can derive at any time."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from agent_logger.formats import counters
from agent_logger.formats.counters import COST_DIGITS, Counters
from agent_logger.formats.sdk_messages import ReportedUsage
from agent_logger.records import Exchange, ExchangeStats, Message, SessionEnd, Tokens


@dataclass(slots=True)
class Totals:
    """Of the exchanges that were added so far."""

    exchanges: int = 0
    last_number: int = 0
    duration_ms: int = 0
    duration_api_ms: int = 0
    cost_usd: float | None = None
    last_tokens: Tokens | None = None
    billed_tokens: Tokens | None = None
    context_tokens: int | None = None
    peak_context_tokens: int | None = None
    counters: Counters | None = None  # as the log has them
    tools: dict[str, str] = field(default_factory=dict)  # tool use to tool

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> "Totals":
        totals = cls()
        for exchange in exchanges:
            totals.add(exchange)
        return totals

    def add(self, exchange: Exchange) -> None:
        self.exchanges += 1
        self.last_number = max(self.last_number, exchange.exchange)
        for number, message in enumerate(exchange.messages):
            if message.name and message.source == "assistant":
                self.tools[message.tool_use_id or f"{exchange.exchange} {number}"] = message.name
        for context in _contexts(exchange.messages):
            self.context_tokens = context
            self.peak_context_tokens = max(context, self.peak_context_tokens or 0)
        if exchange.stats:
            self._add_stats(exchange.stats)

    def _add_stats(self, stats: ExchangeStats) -> None:
        self.duration_ms += stats.duration_ms or 0
        self.duration_api_ms += stats.duration_api_ms or 0
        if stats.cost_usd is not None:
            self.cost_usd = round((self.cost_usd or 0) + stats.cost_usd, COST_DIGITS)
        self.last_tokens = counters.last(stats)
        if billed := counters.billed(stats):
            self.billed_tokens = _sum(self.billed_tokens, billed)
        self.counters = counters.later(counters.counters_in(stats), self.counters)

    def end(self, session_id: str | None, ts: str, reason: str | None) -> SessionEnd:
        return SessionEnd(
            session_id=session_id,
            ts=ts,
            total_exchanges=self.exchanges,
            total_duration_ms=self.duration_ms,
            total_duration_api_ms=self.duration_api_ms,
            total_cost_usd=self.cost_usd,
            total_tokens=self.last_tokens,
            tools_used=dict(Counter(self.tools.values())),
            billed_tokens=self.billed_tokens,
            context_tokens=self.context_tokens,
            peak_context_tokens=self.peak_context_tokens,
            reason=reason,
        )


def _contexts(messages: Iterable[Message]) -> Iterator[int]:
    """How much the model read, response by response. Sub-agents have a context of their own."""
    for message in messages:
        if message.usage and message.source == "assistant" and not message.parent_tool_use_id:
            try:
                context = msgspec.json.decode(message.usage, type=ReportedUsage).context
            except msgspec.MsgspecError:
                continue
            if context:  # else no model answered
                yield context


def _sum(one: Tokens | None, other: Tokens) -> Tokens:
    if one is None:
        return other
    return Tokens(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_creation=one.cache_creation + other.cache_creation,
        cache_read=one.cache_read + other.cache_read,
    )
