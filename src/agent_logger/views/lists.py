"""Lists of sessions and sums for programs, the same in commands and on the page.

Fields are added, never renamed or removed.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from agent_logger.catalog.summary import SessionSummary
from agent_logger.views.endings import failure_text

if TYPE_CHECKING:  # `ls` imports this, and sums nothing
    from agent_logger.catalog.ledger.rows import LedgerRow
    from agent_logger.catalog.ledger.totals import Total


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    agent: str | None
    project: str | None
    title: str | None
    models: tuple[str, ...]  # the one with most responses in the main thread first
    side_models: tuple[str, ...]  # those that were used only for side calls, such as titles
    started: datetime | None
    ended: datetime | None
    wall_seconds: float | None  # from the first moment to the last
    # The time that the agent was working: in exchanges, with at most 5 minutes of each pause.
    active_seconds: float | None
    exchanges: int  # of a fork, those that came after it
    inherited_exchanges: int | None  # of a fork, those before it; null: unknown
    turns: int  # of a fork, those that came after it
    tool_calls: int  # of a fork, those that came after it
    errors: int  # tool calls that failed
    witnesses: list[str]
    parent: str | None
    live: bool  # its agent is running, as far as this can be known
    # How its last exchange ended: result, failed, cut, exit code 1, interrupted; none: no end yet.
    ending: str | None
    failure: str | None  # the same in words if it did not end well: interrupted, failed: max turns
    prompts_only: bool  # the agent's file is gone; only the prompts are left
    damaged_lines: int  # of its files, which cannot be read
    # Side calls (titles and the like) may be missing in the sums: the agent's file does not have them.
    unlisted_calls: bool
    main_missing: bool  # the session's main file is gone; the files of its sub-agents are left
    cost_usd: float | None  # of the responses that have a price
    unpriced: int  # how many have none
    reported_cost_usd: float | None  # as reported by the client
    input_tokens: int | None  # null, as the following: the tokens of no response are known
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    context_tokens: int | None
    peak_context_tokens: int | None
    labels: tuple[str, ...] = ()
    pinned: bool = False
    note: str | None = None
    imported: tuple[str, ...] = ()  # names of the imports that it is from; empty: this machine recorded it
    # Whose homes have it, the own one first. The cost counts for the machine that had a response first.
    machines: tuple[str, ...] = ()
    people: tuple[str, ...] = ()  # whose machines these are, on a hub


def mark_text(labels: tuple[str, ...], *, pinned: bool) -> str:
    """The text `[pinned, todo]`; empty without a mark."""
    words = [*(["pinned"] if pinned else []), *labels]
    return f"[{', '.join(words)}]" if words else ""


# What a list calls a witness, where that is not its name.
_SOURCE_NAMES = {"transcript": "file", "wire": "proxy"}


def sources_text(witnesses: Iterable[str]) -> str:
    """What recorded a session: `file, proxy`."""
    return ", ".join(_SOURCE_NAMES.get(name, name) for name in sorted(witnesses))


_SAME = frozenset(ListedSession.__struct_fields__) & frozenset(SessionSummary.__struct_fields__)
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def failure_of(summary: SessionSummary) -> str | None:
    """Return what went wrong at the end of a session; `None` if nothing did, or if it goes on."""
    return None if summary.live else failure_text(summary.ending)


def session_values(summary: SessionSummary) -> dict[str, Any]:
    """The values of a `ListedSession`, or of a type that has more fields."""
    return {
        **{name: getattr(summary, name) for name in _SAME},
        **{name: getattr(summary.usage, name) if summary.knows_tokens else None for name in _COUNTS},
        "wall_seconds": summary.wall_seconds,
        "failure": failure_of(summary),
        "witnesses": sorted(summary.witnesses),
        "cost_usd": summary.cost.usd,
        "unpriced": summary.cost.unpriced,
    }


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    key: str | None  # the day, model, project, ...
    input_tokens: int | None  # null, as the following: the tokens of no response are known
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    unpriced: int  # responses whose price is not known; they are not in the cost
    responses: int
    reported_cost_usd: float | None  # as reported by clients, if they do
    partial: int  # responses whose end was not recorded; they count as far as they got
    unknown_usage: int  # responses that reported no usage; they are in no sum of tokens
    # By session only: what it is known by, and its last moment.
    title: str | None = None
    project: str | None = None
    ended: datetime | None = None

    @classmethod
    def of(cls, key: str | None, total: "Total") -> "UsageRow":
        return cls(
            key=key,
            **{name: getattr(total.usage, name) if total.knows_tokens else None for name in _COUNTS},
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
    partial: bool  # its end was not recorded; it counts as far as it got
    # How copies were matched; `result`: the part of the client's total beyond all responses.
    joined_by: str | None
    why: str

    @classmethod
    def of(cls, row: "LedgerRow") -> "LedgerItem":
        more: dict[str, Any] = {name: getattr(row.usage, name, None) for name in _COUNTS}
        more |= {"cost_usd": row.cost.usd, "unpriced": row.cost.reason, "witnesses": sorted(row.witnesses)}
        same = {name: getattr(row, name) for name in cls.__struct_fields__ if name not in more}
        return cls(**same, **more)
