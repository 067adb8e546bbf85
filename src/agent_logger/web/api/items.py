"""Types of the API that are neither in the model nor in `views.lists`. Fields are added, never renamed or removed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

import msgspec
from msgspec.structs import asdict

from agent_logger.catalog.joining.calls import WireCall
from agent_logger.catalog.summary import Hit, SessionSummary
from agent_logger.catalog.tree import SessionNode
from agent_logger.model.session import Block, Compaction, ContextFile, Exchange, Usage
from agent_logger.views.lists import ListedSession, session_values
from agent_logger.web.addresses import session_url
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.pages.sessions import hit_place


class ApiItem(msgspec.Struct, frozen=True, kw_only=True):
    @classmethod
    def like(cls, source: object, **more: Any) -> Self:
        """An item with the fields that `source` has under the same names, and `more`."""
        return cls(**{name: getattr(source, name) for name in cls.__struct_fields__ if name not in more}, **more)


def _tokens(usage: Usage | None) -> dict[str, int | None]:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return {name: getattr(usage, name) if usage else None for name in names}


class SessionItem(ListedSession, frozen=True, kw_only=True):
    url: str  # of its page

    @classmethod
    def of(cls, summary: SessionSummary) -> "SessionItem":
        return cls(**session_values(summary), url=session_url(summary.id))


class WholeSession(SessionItem, frozen=True, kw_only=True):
    """A session, with the fields that need the whole session to be read."""

    compactions: Sequence[Compaction]
    context_files: Sequence[ContextFile]

    @classmethod
    def of_view(cls, view: SessionView) -> "WholeSession":
        return cls(
            **asdict(SessionItem.of(view.summary)),
            compactions=view.session.compactions,
            context_files=view.session.context_files,
        )


class TurnItem(ApiItem, frozen=True, kw_only=True):
    number: int  # its place in the session, from 0; `#turn-0` on the page
    message_id: str | None
    request_id: str | None
    thread: str
    model: str | None
    stop_reason: str | None
    started: datetime | None
    ended: datetime | None
    complete: bool
    witnesses: list[str]
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    blocks: Sequence[Block]

    @classmethod
    def of(cls, view: SessionView, number: int) -> "TurnItem":
        turn, cost = view.turns[number], view.cost(number)
        return cls.like(
            turn,
            number=number,
            witnesses=sorted(turn.witnesses),
            cost_usd=cost.usd if cost else None,
            **_tokens(turn.usage),
        )


class BesideTurn(TurnItem, frozen=True, kw_only=True):
    """A turn of one of two sessions, after the last turn that they share."""

    session: str
    exchange: int

    @classmethod
    def of_view(cls, view: SessionView, exchange: int, number: int) -> "BesideTurn":
        return cls(**asdict(TurnItem.of(view, number)), session=view.summary.id, exchange=exchange)


class ExchangeItem(ApiItem, frozen=True, kw_only=True):
    number: int
    started: datetime | None
    ended: datetime | None
    user_input: str | None
    origin: str | None
    turns: int
    complete: bool
    end_reason: str | None
    printed: str | None  # the output of a run about which nothing else is known
    cost_usd: float | None

    @classmethod
    def of(cls, view: SessionView, exchange: Exchange) -> "ExchangeItem":
        return cls.like(exchange, turns=len(exchange.turns), cost_usd=view.cost_of(exchange).usd)


class HitItem(Hit, frozen=True, kw_only=True):
    url: str

    @classmethod
    def of(cls, hit: Hit) -> "HitItem":
        return cls(**asdict(hit), url=session_url(hit.session, hit_place(hit)))


class CallItem(ApiItem, frozen=True, kw_only=True):
    call: str
    seq: int
    thread: str
    kind: str | None
    started: datetime | None
    method: str
    path: str
    status: int | None
    model: str | None
    message_id: str | None
    request_id: str | None
    ttfb_ms: float | None
    total_ms: float | None
    tokens_per_second: float | None
    request_bytes: int | None
    response_bytes: int | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    complete: bool | None
    reason: str | None
    retry_of: int | None

    @classmethod
    def of(cls, call: WireCall) -> "CallItem":
        return cls.like(call, **_tokens(call.usage))


class EventItem(ApiItem, frozen=True, kw_only=True):
    at_ms: float
    name: str
    data: str


class CallBody(ApiItem, frozen=True, kw_only=True):
    """A call in full."""

    call: CallItem
    request_headers: list[tuple[str, str]]
    request_body: str
    response_headers: list[tuple[str, str]]
    response_body: str | None
    events: list[EventItem]
    new_messages: int | None  # since the previous call in its thread
    kept_messages: int | None


class BranchItem(ApiItem, frozen=True, kw_only=True):
    """A session among its forks."""

    id: str
    depth: int  # 0 for the root
    title: str | None
    agent: str | None
    started: datetime | None
    turns: int
    agents: int  # that it started
    cost_usd: float | None
    live: bool

    @classmethod
    def all_of(cls, node: SessionNode, depth: int = 0) -> "list[BranchItem]":
        own = cls.like(node, depth=depth, agents=len(node.agents))
        return [own, *(branch for fork in node.forks for branch in cls.all_of(fork, depth + 1))]


class DamageItem(ApiItem, frozen=True, kw_only=True):
    path: str
    line: int | None
    offset: int
    bytes: int
    reason: str
    text: str  # the beginning of its text


class CheckupItem(ApiItem, frozen=True, kw_only=True):
    """The result of reading every byte. `at` is null until that was done once."""

    at: datetime | None
    running: bool
    problem: str | None  # why the check failed
    files: int | None
    records: int | None
    torn: int | None
    lost: int | None
    redactions: dict[str, int]  # by rule
    damage: list[DamageItem]
