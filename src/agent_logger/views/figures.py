"""Amounts as people read them: money, tokens, sizes, times."""

from datetime import UTC, datetime

from agent_logger.model.plurals import pluralize
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Compaction, Cost, NotItemised, Turn, Usage


def short(number: float) -> str:
    """The number in short form: `9,500`, `12.3k`, `4.5M`."""
    for unit, size, least in (("G", 1e9, 1e9), ("M", 1e6, 1e6), ("k", 1e3, 1e4)):
        if number >= least:
            return f"{number / size:.1f}{unit}"
    return f"{number:,.0f}"


def bytes_text(size: float) -> str:
    for unit, top in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= top:
            return f"{size / top:.1f} {unit}"
    return pluralize(round(size), "byte")


def seconds_text(seconds: float) -> str:
    """A duration: `340 ms`, `4.2 s`, `42 s`, `3 m 7 s`, `21 m`, `2 h 10 m`. It must not look like the time of day next
    to it."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest} s" if rest and minutes < 10 else f"{minutes} m"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} m" if minutes else f"{hours} h"


def dollars(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 1 or not usd else f"${usd:.4f}"


def money(cost: Cost) -> str:
    """An amount of money. An unknown amount is shown as unknown, never as 0."""
    usd = cost.usd
    if usd is None:
        return "unknown" if cost.unpriced or cost.reason else "-"
    return dollars(usd) + (f" + {cost.unpriced} unpriced" if cost.unpriced else "")


def tokens(usage: Usage, cost: Cost | None = None) -> str:
    """The token counts as text. `cost`, their cost together, says whether counts of 0 mean that nothing was
    reported."""
    if cost and cost.unpriced and not any(usage.counts):
        return "unknown tokens"
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return f"{short(usage.input_tokens)} in, {short(usage.output_tokens)} out, {short(cached)} cached tokens"


def not_itemised_text(remainder: NotItemised) -> str:
    """The text `not itemised: claude-opus-5-5, 4 in, 93 out, 1,210 cached tokens, $0.0013`."""
    amount = tokens(remainder.usage) if remainder.usage else "an unknown number of tokens"
    cost = "cost unknown" if remainder.cost is None or remainder.cost.usd is None else money(remainder.cost)
    return f"not itemised: {', '.join(filter(None, (hidden(remainder.model or ''), amount, cost)))}"


def turn_seconds(turn: Turn) -> float | None:
    """How long the model took. Agents' files have only the time when a block was complete, which does not say this."""
    return between(turn.started, turn.ended) if "wire" in turn.witnesses else None


STREAM_SECONDS = 0.5  # shorter streams come out of a buffer at once
STREAM_TOKENS = 10


def stream_speed(tokens: int | None, seconds: float | None) -> float | None:
    """Tokens per second; `None` where it would say nothing about the model."""
    if not tokens or not seconds or seconds < STREAM_SECONDS or tokens < STREAM_TOKENS:
        return None
    return tokens / seconds


def turn_figures(turn: Turn) -> str:
    """The text in the margin: the model, how long it took, what it cost."""
    seconds, cost = turn_seconds(turn), turn.cost
    took = "" if seconds is None else seconds_text(seconds)
    return " · ".join(filter(None, (hidden(turn.model or ""), took, money(cost) if cost else "")))


def compaction_text(compaction: Compaction) -> str:
    """The text `compacted (auto), 155.0k to 12.4k tokens`."""
    sizes = [None if size is None else short(size) for size in (compaction.tokens_before, compaction.tokens_after)]
    sizes_text = " to ".join(filter(None, sizes))
    by = f" ({hidden(compaction.trigger)})" if compaction.trigger else ""
    return f"compacted{by}" + (f", {sizes_text} tokens" if sizes_text else "")


def between(start: datetime | None, end: datetime | None) -> float | None:
    """The seconds between two times; never negative, although clocks may be set back."""
    return max(0.0, (utc(end) - utc(start)).total_seconds()) if start and end else None


def utc(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def moment(time: datetime | None) -> str:
    """The time in the same form everywhere: `2026-11-15 08:45:32 UTC`."""
    return f"{utc(time):%Y-%m-%d %H:%M:%S} UTC" if time else ""
