"""What the API tells: one type for each kind of thing. Fields are added, never renamed or taken away."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import asdict

from agent_logger.catalog.calls import WireCall
from agent_logger.catalog.ledger import LedgerRow
from agent_logger.catalog.summary import Hit, SessionSummary
from agent_logger.catalog.tree import SessionNode
from agent_logger.export.listed import ListedSession, listed
from agent_logger.session import Block, Cost, Exchange, Turn
from agent_logger.web.book import Book
from agent_logger.web.sessions import hit_url
from agent_logger.web.site import session_url


class Item(msgspec.Struct, frozen=True, kw_only=True):
    pass


class SessionItem(ListedSession, frozen=True, kw_only=True):
    url: str  # of its page

    @classmethod
    def of(cls, it: SessionSummary) -> "SessionItem":
        return cls(**listed(it), url=session_url(it.id))


class CompactionItem(Item, frozen=True, kw_only=True):
    at: datetime | None
    thread: str
    trigger: str | None  # manual, auto
    tokens_before: int | None
    tokens_after: int | None


class ContextFileItem(Item, frozen=True, kw_only=True):
    path: str
    kind: str  # instructions, settings
    bytes: int | None
    hmac: str | None  # under the key of this installation: the same one is the same text


class WholeSession(SessionItem, frozen=True, kw_only=True):
    """With what only the whole session tells."""

    compactions: list[CompactionItem]
    context_files: list[ContextFileItem]

    @classmethod
    def of_book(cls, book: Book) -> "WholeSession":
        return cls(
            **asdict(SessionItem.of(book.summary)),
            compactions=[CompactionItem(**asdict(it)) for it in book.session.compactions],
            context_files=[ContextFileItem(**asdict(it)) for it in book.session.context_files],
        )


class BlockItem(Item, frozen=True, kw_only=True):
    kind: str
    text: str
    id: str | None = None
    name: str | None = None
    input: Any = None
    is_error: bool = False
    at: datetime | None = None

    @classmethod
    def of(cls, it: Block) -> "BlockItem":
        return cls(
            kind=it.kind, text=it.text, id=it.id, name=it.name, input=it.input, is_error=it.is_error, at=it.at
        )


class TurnItem(Item, frozen=True, kw_only=True):
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
    blocks: list[BlockItem]

    @classmethod
    def of(cls, number: int, turn: Turn, cost: Cost | None) -> "TurnItem":
        usage = turn.usage
        return cls(
            number=number,
            message_id=turn.message_id,
            request_id=turn.request_id,
            thread=turn.thread,
            model=turn.model,
            stop_reason=turn.stop_reason,
            started=turn.started,
            ended=turn.ended,
            complete=turn.complete,
            witnesses=sorted(turn.witnesses),
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            cache_read_tokens=usage.cache_read_tokens if usage else None,
            cache_write_tokens=usage.cache_write_tokens if usage else None,
            cost_usd=cost.usd if cost else None,
            blocks=[BlockItem.of(block) for block in turn.blocks],
        )


class BesideTurn(TurnItem, frozen=True, kw_only=True):
    """A turn of one of two sessions, behind the last that they share."""

    session: str
    exchange: int

    @classmethod
    def of_book(cls, book: Book, exchange: int, number: int) -> "BesideTurn":
        turn = TurnItem.of(number, book.turns[number], book.cost(number))
        return cls(**asdict(turn), session=book.summary.id, exchange=exchange)


class ExchangeItem(Item, frozen=True, kw_only=True):
    number: int
    started: datetime | None
    ended: datetime | None
    user_input: str | None
    origin: str | None
    turns: int
    complete: bool
    end_reason: str | None
    printed: str | None  # by a run, where nothing else is known of it
    cost_usd: float | None

    @classmethod
    def of(cls, book: Book, it: Exchange) -> "ExchangeItem":
        return cls(
            number=it.number,
            started=it.started,
            ended=it.ended,
            user_input=it.user_input,
            origin=it.origin,
            turns=len(it.turns),
            complete=it.complete,
            end_reason=it.end_reason,
            printed=it.printed,
            cost_usd=book.cost_of(it).usd,
        )


class LedgerItem(Item, frozen=True, kw_only=True):
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
    why: str

    @classmethod
    def of(cls, row: LedgerRow) -> "LedgerItem":
        usage = row.usage
        return cls(
            at=row.at,
            session=row.session,
            thread=row.thread,
            project=row.project,
            agent=row.agent,
            model=row.model,
            tier=row.tier,
            message_id=row.message_id,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            cache_read_tokens=usage.cache_read_tokens if usage else None,
            cache_write_tokens=usage.cache_write_tokens if usage else None,
            cost_usd=row.cost.usd,
            unpriced=row.cost.reason,
            reported_cost_usd=row.reported_cost_usd,
            witnesses=sorted(row.witnesses),
            copies=row.copies,
            why=row.why,
        )


class HitItem(Item, frozen=True, kw_only=True):
    session: str
    title: str | None
    exchange: int
    turn: int | None  # its number
    kind: str
    at: datetime | None
    snippet: str
    forks: tuple[str, ...]
    url: str

    @classmethod
    def of(cls, hit: Hit) -> "HitItem":
        return cls(
            session=hit.session,
            title=hit.title,
            exchange=hit.exchange,
            turn=hit.turn,
            kind=hit.kind,
            at=hit.at,
            snippet=hit.snippet,
            forks=hit.forks,
            url=hit_url(hit),
        )


class CallItem(Item, frozen=True, kw_only=True):
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
    def of(cls, it: WireCall) -> "CallItem":
        return cls(
            call=it.call,
            seq=it.seq,
            thread=it.thread,
            kind=it.kind,
            started=it.started,
            method=it.method,
            path=it.path,
            status=it.status,
            model=it.model,
            message_id=it.message_id,
            request_id=it.request_id,
            ttfb_ms=it.ttfb_ms,
            total_ms=it.total_ms,
            tokens_per_second=it.tokens_per_second,
            request_bytes=it.request_bytes,
            response_bytes=it.response_bytes,
            input_tokens=it.usage.input_tokens if it.usage else None,
            output_tokens=it.usage.output_tokens if it.usage else None,
            cache_read_tokens=it.usage.cache_read_tokens if it.usage else None,
            cache_write_tokens=it.usage.cache_write_tokens if it.usage else None,
            complete=it.complete,
            reason=it.reason,
            retry_of=it.retry_of,
        )


class EventItem(Item, frozen=True, kw_only=True):
    at_ms: float
    name: str
    data: str


class CallBody(Item, frozen=True, kw_only=True):
    """One call in full."""

    call: CallItem
    request_headers: list[tuple[str, str]]
    request_body: str
    response_headers: list[tuple[str, str]]
    response_body: str | None
    events: list[EventItem]
    new_messages: int | None  # against the call before in its thread
    kept_messages: int | None


class BranchItem(Item, frozen=True, kw_only=True):
    """A session among its forks."""

    id: str
    depth: int  # 0 for the one that all come from
    title: str | None
    agent: str | None
    started: datetime | None
    turns: int
    agents: int  # that it started
    cost_usd: float | None
    live: bool

    @classmethod
    def all_of(cls, node: SessionNode, depth: int = 0) -> "list[BranchItem]":
        own = cls(
            id=node.id,
            depth=depth,
            title=node.title,
            agent=node.agent,
            started=node.started,
            turns=node.turns,
            agents=len(node.agents),
            cost_usd=node.cost_usd,
            live=node.live,
        )
        return [own, *(branch for fork in node.forks for branch in cls.all_of(fork, depth + 1))]


class ProxyItem(Item, frozen=True, kw_only=True):
    port: int
    log_dir: str
    started: str
    recording: bool
    problem: str | None
    calls: int | None
    sessions: int | None
    written: int | None
    lost: int | None
    lag_ms: float | None
    free_bytes: int


class DamageItem(Item, frozen=True, kw_only=True):
    path: str
    line: int | None
    offset: int
    bytes: int
    reason: str
    text: str  # what stands there, its beginning


class CheckupItem(Item, frozen=True, kw_only=True):
    """What reading every byte has found. `at` is null until that was done once."""

    at: datetime | None
    running: bool
    problem: str | None  # why it did not come to its end
    files: int | None
    records: int | None
    torn: int | None
    lost: int | None
    redactions: dict[str, int]  # by rule
    damage: list[DamageItem]
