"""A session over time: when the model was asked, when its answer began and ended, when tools ran."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.joining.calls import WireCall
from agent_logger.model.session import MAIN, Exchange, Turn
from agent_logger.web import formatting
from agent_logger.web.pages.call import call_speed
from agent_logger.web.pages.session import render_view, session_view_of
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.site import site_of

MOST_ROWS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """A bar, faint until the first word of an answer; the bar of a tool has no faint part."""

    kind: str  # model, or the tool's
    label: str
    detail: str
    turn: int
    is_inner: bool
    began: datetime
    first: datetime
    ended: datetime
    failed: bool = False
    tokens: int | None = None
    call: WireCall | None = None  # the proxied call, which has the measured times

    @property
    def seconds(self) -> float | None:
        measured = self.call.total_ms if self.call else None
        return formatting.between(self.began, self.ended) if measured is None else measured / 1000

    @property
    def tokens_per_second(self) -> float | None:
        """Only for a call that the proxy saw: files have no time of the first word."""
        return call_speed(self.call) if self.call else None


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """The time that is shown."""

    start: datetime
    end: datetime

    def at(self, moment: datetime) -> float:
        """The position of a moment, in thousandths of the span."""
        whole = (self.end - self.start).total_seconds() or 1.0
        return min(1000.0, max(0.0, 1000 * (moment - self.start).total_seconds() / whole))


async def timeline(request: Request) -> Response:
    site, view = site_of(request), await session_view_of(request)
    calls: list[WireCall] = []
    if "wire" in view.summary.witnesses:
        calls = await site.pool.query(lambda catalog: catalog.calls(view.summary.id))
    exchange = _selected_exchange(view, request.query_params.get("exchange", ""))
    span = _span(exchange) if exchange else None
    rows: list[TimelineRow] = []
    if exchange and exchange.turns and span:
        rows = list(_rows(view, exchange, span, {call.message_id: call for call in calls if call.message_id}))
    return await render_view(
        request,
        view,
        "timeline.html",
        exchange=exchange,
        span=span,
        rows=rows[:MOST_ROWS],
        omitted_rows=len(rows) - MOST_ROWS,
        has_speeds=any(row.tokens_per_second for row in rows),
    )


def _selected_exchange(view: SessionView, number: str) -> Exchange | None:
    """The requested exchange, or else the longest."""
    exchanges = view.session.exchanges
    longest = max(exchanges, key=lambda other: formatting.between(other.started, other.ended) or 0, default=None)
    return next((exchange for exchange in exchanges if str(exchange.number) == number), longest)


def _rows(
    view: SessionView, exchange: Exchange, span: TimeSpan, calls: Mapping[str, WireCall]
) -> Iterator[TimelineRow]:
    first = next((at for at, turn in enumerate(view.turns) if turn is exchange.turns[0]), 0)
    times = _ThreadTimes(exchange.started or span.start)
    for number, turn in enumerate(exchange.turns, first):
        yield from times.answer(turn, number, calls.get(turn.message_id or ""))
        yield from times.tools(turn, number)


class _ThreadTimes:
    """The times when models were asked. If the proxy did not see one, it is when the thread had finished what came
    before."""

    def __init__(self, began: datetime) -> None:
        self._end_times = {MAIN: began}  # the end of each thread so far

    def answer(self, turn: Turn, number: int, call: WireCall | None) -> Iterator[TimelineRow]:
        start, end = turn.started or turn.ended, turn.ended or turn.started
        if not start or not end:
            return
        request_time = call.started if call and call.started else min(self._end_times.get(turn.thread, start), start)
        self._advance(turn.thread, end)
        yield TimelineRow(
            kind="model",
            label=formatting.model(turn.model) or "model",
            detail="" if turn.thread == MAIN else turn.thread,
            turn=number,
            is_inner=turn.thread != MAIN,
            began=request_time,
            first=request_time + timedelta(milliseconds=call.ttfb_ms) if call and call.ttfb_ms else start,
            ended=end,
            tokens=turn.usage.output_tokens if turn.usage else None,
            call=call,
        )

    def tools(self, turn: Turn, number: int) -> Iterator[TimelineRow]:
        at = turn.ended or turn.started
        for tool in turn.tool_calls:
            began, ended = tool.started or at, tool.ended or tool.started or at
            if not began or not ended:
                continue
            self._advance(turn.thread, ended)
            yield TimelineRow(
                kind=tool.kind,
                label=tool.name or "tool",
                detail="no result" if tool.result is None else "",
                turn=number,
                is_inner=True,
                began=began,
                first=began,
                ended=ended,
                failed=tool.is_error,
            )

    def _advance(self, thread: str, moment: datetime) -> None:
        self._end_times[thread] = max(moment, self._end_times.get(thread, moment))


def _span(exchange: Exchange) -> TimeSpan | None:
    moments = [exchange.started, exchange.ended]
    for turn in exchange.turns:
        moments += (turn.started, turn.ended, *(block.at for block in turn.blocks))
    times = [moment for moment in moments if moment]
    return TimeSpan(min(times), max(times)) if times else None
