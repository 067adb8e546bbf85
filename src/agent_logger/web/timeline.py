"""A session over time: when the model was asked, when it began and ended to answer, when tools ran."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.calls import WireCall
from agent_logger.session import Exchange, Turn
from agent_logger.web import shown
from agent_logger.web.book import Book
from agent_logger.web.session import Drawing, book_of
from agent_logger.web.site import session_url, site_of

MOST_ROWS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A bar, in thousandths of the time that is shown; `waits` is what passes before the first word."""

    kind: str  # model, or the tool's
    label: str
    detail: str
    turn: int
    begins: float
    waits: float
    lasts: float
    seconds: float | None
    ttfb_ms: float | None = None
    tokens: int | None = None
    speed: float | None = None  # tokens a second
    failed: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    start: datetime
    end: datetime

    def at(self, moment: datetime) -> float:
        whole = (self.end - self.start).total_seconds() or 1.0
        return min(1000.0, max(0.0, 1000 * (moment - self.start).total_seconds() / whole))


async def timeline(request: Request) -> Response:
    site, book = site_of(request), await book_of(request)
    calls: list[WireCall] = []
    if "wire" in book.summary.witnesses:
        calls = await site.archive.ask(lambda catalog: catalog.calls(book.summary.id))
    exchange = _chosen(book, request.query_params.get("exchange", ""))
    rows = (
        list(_rows(book, exchange, {it.message_id: it for it in calls if it.message_id})) if exchange else []
    )
    return site.render(
        request,
        "timeline.html",
        book=book,
        it=book.summary,
        drawing=Drawing(book),
        exchange=exchange,
        rows=rows[:MOST_ROWS],
        more=len(rows) - MOST_ROWS,
        data=f"/api/v1{session_url(book.summary.id)}",
    )


def _chosen(book: Book, number: str) -> Exchange | None:
    """The one that is asked for, else the one that took longest."""
    exchanges = book.session.exchanges
    asked = [it for it in exchanges if str(it.number) == number]
    return (
        asked[0]
        if asked
        else max(exchanges, key=lambda it: shown.between(it.started, it.ended) or 0, default=None)
    )


def _rows(book: Book, exchange: Exchange, calls: Mapping[str | None, WireCall]) -> Iterator[Row]:
    span = _span(exchange)
    if span is None:
        return
    number = (
        next((at for at, turn in enumerate(book.turns) if turn is exchange.turns[0]), 0)
        if exchange.turns
        else 0
    )
    before: dict[str, datetime] = {"main": exchange.started or span.start}
    for at, turn in enumerate(exchange.turns, number):
        yield from _of_turn(turn, at, span, before, calls.get(turn.message_id) if turn.message_id else None)


def _of_turn(
    turn: Turn, number: int, span: Span, before: dict[str, datetime], call: WireCall | None
) -> Iterator[Row]:
    start, end = turn.started or turn.ended, turn.ended or turn.started
    depth = 0 if turn.thread == "main" else 1
    if start and end:
        asked = call.started if call and call.started else min(before.get(turn.thread, start), start)
        first = asked + timedelta(milliseconds=call.ttfb_ms) if call and call.ttfb_ms else start
        seconds = shown.between(asked, end)
        output = turn.usage.output_tokens if turn.usage else None
        yield Row(
            kind="model",
            label=shown.model(turn.model) or "model",
            detail="" if depth == 0 else turn.thread,
            turn=number,
            begins=span.at(asked),
            waits=span.at(first) - span.at(asked),
            lasts=span.at(end) - span.at(asked),
            seconds=call.total_ms / 1000 if call and call.total_ms is not None else seconds,
            ttfb_ms=call.ttfb_ms if call else None,
            tokens=output,
            speed=call.tokens_per_second if call else output / seconds if output and seconds else None,
            depth=depth,
        )
        before[turn.thread] = max(end, before.get(turn.thread, end))
    for tool in turn.tool_calls:
        began, ended = tool.started or end, tool.ended or tool.started or end
        if began and ended:
            before[turn.thread] = max(ended, before.get(turn.thread, ended))
            yield Row(
                kind=tool.kind,
                label=tool.name or "tool",
                detail="no answer" if tool.result is None else "",
                turn=number,
                begins=span.at(began),
                waits=0,
                lasts=span.at(ended) - span.at(began),
                seconds=shown.between(began, ended),
                failed=tool.is_error,
                depth=depth + 1,
            )


def _span(exchange: Exchange) -> Span | None:
    moments = [exchange.started, exchange.ended, *_moments(exchange.turns)]
    known = [it for it in moments if it]
    return Span(min(known), max(known)) if known else None


def _moments(turns: Sequence[Turn]) -> Iterator[datetime | None]:
    for turn in turns:
        yield from (turn.started, turn.ended, *(block.at for block in turn.blocks))
