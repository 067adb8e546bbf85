"""The totals of a session's exchanges: the numbers of `session_end`, which a reader can derive at any time."""

from collections import Counter
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from agent_logger.messages import counters
from agent_logger.messages.counters import COST_DIGITS, Counters, Work
from agent_logger.messages.sdk import ReportedUsage
from agent_logger.model.records import ExchangeRecord, ExchangeStats, Message, SessionEnd, Tokens
from agent_logger.model.session import SYNTHETIC


class Tally(msgspec.Struct):
    """What the messages of one exchange add up to, counted as they come."""

    count: int = 0
    tools: dict[str, str] = msgspec.field(default_factory=dict)  # tool use to tool
    context_tokens: int | None = None
    peak_context_tokens: int = 0
    # By response: the usage, and whether it belongs to the main thread.
    usage: dict[str, tuple[ReportedUsage, bool]] = msgspec.field(default_factory=dict)

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
        usage, is_main = counters.reported_in(message), message.parent_tool_use_id is None
        if usage is None or message.model == SYNTHETIC:
            return
        self.take(message.message_id or f"message {self.count}", usage, is_main=is_main)
        if is_main and usage.context:
            self.context_tokens = usage.context
            self.peak_context_tokens = max(usage.context, self.peak_context_tokens)

    def take(self, response: str, usage: ReportedUsage, *, is_main: bool) -> None:
        """Keep the usage of a response. All its lines report the same, except the last one, which has the most
        output."""
        earlier = self.usage.get(response)
        if earlier is None or (earlier[0].output_tokens or 0) <= (usage.output_tokens or 0):
            self.usage[response] = (usage, is_main)

    def billed(self, *, agents_alone: bool = False) -> Tokens | None:
        """The tokens of all responses that reported usage, or of sub-agents' responses alone."""
        usages = [usage for usage, is_main in self.usage.values() if not (agents_alone and is_main)]
        return counters.sum_of(map(counters.tokens_in, usages))


class Totals(msgspec.Struct):
    """The totals of the exchanges that were added so far."""

    exchanges: int = 0
    last_number: int = 0
    duration_ms: int = 0
    duration_api_ms: int = 0
    cost_usd: float | None = None
    unknown_costs: int = 0  # results whose cost is not known
    last_tokens: Tokens | None = None
    billed_tokens: Tokens | None = None
    context_tokens: int | None = None
    peak_context_tokens: int | None = None
    counters: Counters | None = None  # as the log has them
    tools: dict[str, str] = msgspec.field(default_factory=dict)  # exchange and tool use to tool

    @classmethod
    def of(cls, exchanges: Iterable[ExchangeRecord], *, is_new: bool = False) -> "Totals":
        totals = cls()
        for exchange in exchanges:
            if exchange.stats and totals.counters is None:
                work = Work.of(exchange.messages, is_new=is_new)
                exchange = replace(exchange, stats=counters.checked(exchange.stats, work))
            totals.add(exchange)
        return totals

    def add(self, exchange: ExchangeRecord, tally: Tally | None = None) -> None:
        """Add an exchange. `tally` is that of its messages, if the caller has it."""
        tally = tally or Tally.of(exchange.messages)
        self.exchanges += 1
        self.last_number = max(self.last_number, exchange.exchange)
        # Some clients restart the numbers of their tool uses in every exchange.
        self.tools |= {f"{exchange.exchange} {use}": name for use, name in tally.tools.items()}
        if tally.context_tokens:
            self.context_tokens = tally.context_tokens
            self.peak_context_tokens = max(tally.peak_context_tokens, self.peak_context_tokens or 0)
        if exchange.stats:
            self._add_stats(exchange.stats)
        self._add_billed(exchange.stats, tally)

    def _add_billed(self, stats: ExchangeStats | None, tally: Tally) -> None:
        """Add the tokens that the result counts. If there is no result, or it counts the main thread alone, add those
        that the responses reported."""
        counted = counters.billed(stats) if stats else None
        tokens = tally.billed(agents_alone=counted is not None)
        beside = None if stats and stats.model_usage else tokens
        self.billed_tokens = counters.sum_of(filter(None, (self.billed_tokens, counted, beside)))

    def _add_stats(self, stats: ExchangeStats) -> None:
        self.duration_ms += stats.duration_ms or 0
        self.duration_api_ms += stats.duration_api_ms or 0
        if stats.cost_usd is not None:
            self.cost_usd = round((self.cost_usd or 0) + stats.cost_usd, COST_DIGITS)
        else:
            self.unknown_costs += 1
        self.last_tokens = counters.last(stats)
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
