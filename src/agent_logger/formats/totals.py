"""What a session's exchanges come to: the numbers of `session_end`, which a reader can derive at any time."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from agent_logger.formats import counters
from agent_logger.formats.counters import COST_DIGITS, Counters
from agent_logger.records import Exchange, ExchangeStats, Message, SessionEnd, Tokens
from agent_logger.wire.token_counts import usage_of


@dataclass(slots=True)
class Tally:
    """What the messages of one exchange add, noted as they come."""

    count: int = 0
    tools: dict[str, str] = field(default_factory=dict)  # tool use to tool
    context_tokens: int | None = None
    peak_context_tokens: int = 0

    @classmethod
    def of(cls, messages: Iterable[Message]) -> "Tally":
        tally = cls()
        for message in messages:
            tally.note(message)
        return tally

    def note(self, message: Message) -> None:
        self.count += 1
        if message.source != "assistant":
            return
        if message.name:
            self.tools[message.tool_use_id or str(self.count)] = message.name
        if context := _context(message):
            self.context_tokens = context
            self.peak_context_tokens = max(context, self.peak_context_tokens)


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
    tools: dict[str, str] = field(default_factory=dict)  # exchange and tool use to tool

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> "Totals":
        totals = cls()
        for exchange in exchanges:
            totals.add(exchange)
        return totals

    def add(self, exchange: Exchange, tally: Tally | None = None) -> None:
        """`tally` of its messages, if somebody kept it."""
        tally = tally or Tally.of(exchange.messages)
        self.exchanges += 1
        self.last_number = max(self.last_number, exchange.exchange)
        # Some clients number their tool uses anew in every exchange.
        self.tools |= {f"{exchange.exchange} {use}": name for use, name in tally.tools.items()}
        if tally.context_tokens:
            self.context_tokens = tally.context_tokens
            self.peak_context_tokens = max(tally.peak_context_tokens, self.peak_context_tokens or 0)
        if exchange.stats:
            self._add_stats(exchange.stats)

    def _add_stats(self, stats: ExchangeStats) -> None:
        self.duration_ms += stats.duration_ms or 0
        self.duration_api_ms += stats.duration_api_ms or 0
        if stats.cost_usd is not None:
            self.cost_usd = round((self.cost_usd or 0) + stats.cost_usd, COST_DIGITS)
        self.last_tokens = counters.last(stats)
        if billed := counters.billed(stats):
            self.billed_tokens = counters.sum_of([*filter(None, [self.billed_tokens]), billed])
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


def _context(message: Message) -> int:
    """How much the model read for this; 0 if none answered. Sub-agents have a context of their own."""
    if not message.usage or message.parent_tool_use_id:
        return 0
    try:
        usage = usage_of(msgspec.json.decode(message.usage))
    except (msgspec.MsgspecError, RecursionError):
        return 0
    return usage.context_tokens if usage else 0
