"""Lists of sessions and sums for programs, the same in commands and on the page.

Fields are added, never renamed or removed.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from agent_logger.catalog.summary import SessionSummary

if TYPE_CHECKING:  # `ls` imports this, and sums nothing
    from agent_logger.catalog.ledger.ledger import LedgerRow
    from agent_logger.catalog.ledger.totals import Total


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    agent: str | None
    project: str | None
    title: str | None
    models: tuple[str, ...]  # the one that answered most in the main thread first
    side_models: tuple[str, ...]  # those among them that answered beside the conversation alone: titles
    started: datetime | None
    ended: datetime | None
    wall_seconds: float | None  # from the first moment to the last
    active_seconds: float | None  # that the agent was at work: in exchanges, of no pause more than 5 minutes
    exchanges: int  # of a fork, those that came after it
    inherited_exchanges: int | None  # of a fork, those that came before it; null: its files do not tell
    turns: int  # of a fork, those that came after it
    tool_calls: int
    errors: int  # tool calls that failed
    witnesses: list[str]
    parent: str | None
    live: bool  # its agent runs, as far as that can be known
    ending: (
        str | None
    )  # how its last exchange ended: result, failed, cut, exit code 1, interrupted; none: no end yet
    prompts_only: bool  # the agent's file is gone; its history has what was typed
    damaged_lines: int  # of its files, which cannot be read
    unlisted_calls: bool  # calls may be in no sum: for titles and the like, which its agent's file leaves out
    main_missing: bool  # the session's main file is gone; the files of its sub-agents are left
    cost_usd: float | None  # of the responses that have a price
    unpriced: int  # how many have none
    reported_cost_usd: float | None  # what the client said
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    context_tokens: int | None
    peak_context_tokens: int | None


_SAME = frozenset(ListedSession.__struct_fields__) & frozenset(SessionSummary.__struct_fields__)
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def listed(summary: SessionSummary) -> dict[str, Any]:
    """The values of a `ListedSession`, or of a type that has more fields."""
    return {
        **{name: getattr(summary, name) for name in _SAME},
        **{name: getattr(summary.usage, name) for name in _COUNTS},
        "wall_seconds": summary.wall_seconds,
        "witnesses": sorted(summary.witnesses),
        "cost_usd": summary.cost.usd,
        "unpriced": summary.cost.unpriced,
    }


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    key: str | None  # the day, model, project, ...
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    unpriced: int  # responses whose price is not known; they are not in the cost
    responses: int
    reported_cost_usd: float | None  # what clients said, as far as they did
    partial: int  # responses whose end was not recorded; they count as far as they were
    unknown_usage: int  # responses that reported no usage; they are in no sum of tokens

    @classmethod
    def of(cls, key: str | None, total: "Total") -> "UsageRow":
        return cls(
            key=key,
            **{name: getattr(total.usage, name) for name in _COUNTS},
            cost_usd=total.cost.usd,
            unpriced=total.unpriced,
            responses=total.responses,
            reported_cost_usd=total.reported_cost_usd,
            partial=total.partial,
            unknown_usage=total.unknown_usage,
        )


class LedgerItem(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime | None
    session: str
    thread: str
    project: str | None
    agent: str
    model: str | None
    tier: str | None
    message_id: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    unpriced: str | None  # why there is no price
    reported_cost_usd: float | None
    witnesses: list[str]
    copies: int
    partial: bool  # its end was not recorded; it counts as far as it was
    # How copies of it were known; `result`: it is what the client's total has beyond them.
    joined_by: str | None
    why: str

    @classmethod
    def of(cls, row: "LedgerRow") -> "LedgerItem":
        more: dict[str, Any] = {name: getattr(row.usage, name, None) for name in _COUNTS}
        more |= {"cost_usd": row.cost.usd, "unpriced": row.cost.reason, "witnesses": sorted(row.witnesses)}
        same = {name: getattr(row, name) for name in cls.__struct_fields__ if name not in more}
        return cls(**same, **more)
