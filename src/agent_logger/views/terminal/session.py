"""A session as rows of a terminal: exchanges as chapters, turns with their number, cost and time in the margin."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from agent_logger.catalog.ledger.metrics import Metrics, exchange_total, metrics_of
from agent_logger.catalog.ledger.unlisted import session_has_unlisted_calls
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session, Turn
from agent_logger.views.facts import UNLISTED_TEXT, context_of, durations, inherited_text
from agent_logger.views.figures import call_seconds, counted, money, seconds_text, tokens, turn_seconds, utc
from agent_logger.views.outline import (
    AgentAtWork,
    Chapter,
    NumberedTurn,
    Part,
    Said,
    Thought,
    Used,
    chapters,
    side_turns,
)
from agent_logger.views.pieces import Prose, Shown, Terminal
from agent_logger.views.terminal.pieces import piece_lines
from agent_logger.views.terminal.rows import Row, Segment, fitted, folded, noted, room, row_text
from agent_logger.views.terminal.screen import short_id, width

SHORTEST = 0.1  # seconds of a tool call that are worth telling
FEW_LINES = 10  # of what a tool was given or answered; `--turn` shows the rest


class SessionText:
    """`whole`: nothing is left out; `thinking`: thoughts are not folded to a line."""

    def __init__(
        self, session: Session, columns: int, *, thinking: bool = False, whole: bool = False
    ) -> None:
        self._session, self._columns = session, columns
        self._thinking, self._whole = thinking or whole, whole

    def rows(self) -> Iterator[Row]:
        yield from self._head(metrics_of(self._session))
        for chapter in chapters(self._session):
            yield Row()
            yield from self._chapter(chapter)
        if side := side_turns(self._session):
            yield from (Row(), Row.of("Beside the conversation", "strong"))
            for turn in side:
                yield from self._turn(turn, 0)

    def turn(self, number: int) -> Iterator[Row] | None:
        """One alone; of an agent's that it started, what these did too. None if there is no such turn."""
        for it in _all_turns(self._session):
            if it.number == number:
                return chain(self._turn(it, 0), [Row.of(_seen_by(it.turn), "quiet")])
        return None

    # ------------------------------------------------------------ chapters

    def _head(self, metrics: Metrics) -> Iterator[Row]:
        session = self._session
        calls = sum(tool.calls for tool in metrics.tools)
        counts = (
            counted(metrics.exchanges, "exchange"),
            counted(metrics.turns, "turn"),
            counted(calls, "tool call"),
        )
        started = f"{utc(session.started).astimezone():%Y-%m-%d %H:%M}" if session.started else ""
        cost = money(metrics.cost)
        lines = (
            (f"session {short_id(session.id)}", session.agent, session.project),
            ("" if any(it.user_input for it in session.exchanges) else session.title,),
            (*metrics.models, started, durations(metrics), cost if cost != "unknown" else "cost unknown"),
            (", ".join(counts), tokens(metrics.usage, metrics.cost)),
            (inherited_text(session, short_id),),
            (f"without {UNLISTED_TEXT}" if session_has_unlisted_calls(session) else "",),
            (f"with {files}" if (files := context_of(session)) else "",),
            ("The agent's file is gone; its history has what was typed." if session.prompts_only else "",),
            (
                "The session's main file is missing; its sub-agents' files are here."
                if session.main_missing
                else "",
            ),
            (_hooked(session),),
        )
        for line in lines:
            text = " · ".join(filter(None, line))
            yield from (Row.of(it) for it in folded(hidden(text), room(self._columns, 0)))

    def _chapter(self, chapter: Chapter) -> Iterator[Row]:
        exchange, total = chapter.exchange, exchange_total(self._session, chapter.exchange)
        at = f"{utc(exchange.started).astimezone():%m-%d %H:%M} " if exchange.started else ""
        note = noted(self._columns, 0, f"{at} {money(total.cost)}".strip())
        number = f"{exchange.number}"
        asked = chapter.user_input if chapter.user_input is not None else "(no input)"
        asked = f"[{chapter.origin}] {asked}" if chapter.origin else asked
        rows = (Row.of(line, "person") for line in folded(asked, room(self._columns, 0, note)))
        yield from _marked(rows, number, note)
        if chapter.printed:
            yield from self._piece(piece_lines(chapter.printed), 0, whole=True)
        for turn in chapter.turns:
            yield from self._turn(turn, 0)
        for agent in chapter.agents:
            yield from self._agent(agent, 0)
        for remark in chapter.remarks:
            yield Row.of(fitted(f"({remark})", room(self._columns, 0)), "quiet")

    def _turn(self, it: NumberedTurn, depth: int) -> Iterator[Row]:
        for event in it.before():
            yield Row(((fitted(f"-- {event} --", room(self._columns, depth)), "quiet"),), depth)
        seconds, cost = turn_seconds(it.turn), it.turn.cost
        figures = (seconds_text(seconds) if seconds else "", money(cost) if cost else "")
        note = noted(self._columns, depth, "  ".join(filter(None, figures)))
        yield from _marked(self._parts(it, depth, note), f"#{it.number}", note)

    def _parts(self, it: NumberedTurn, depth: int, note: str) -> Iterator[Row]:
        beside = note  # the first row is as much shorter
        for part in it.parts():
            yield from self._part(part, depth, beside)
            beside = ""
        for remark in it.remarks():
            for line in folded(f"({remark})", room(self._columns, depth)):
                yield Row(((line, "quiet"),), depth)

    # ------------------------------------------------------------ parts

    def _part(self, part: Part, depth: int, beside: str) -> Iterator[Row]:
        columns = room(self._columns, depth, beside)
        match part:
            case Thought(text):
                lines = (
                    folded(text, columns - 2)
                    if self._thinking
                    else [fitted(" ".join(text.split()), columns - 2)]
                )
                yield from (Row(((f"~ {line}", "quiet"),), depth) for line in lines)
            case Said(Prose(text)):
                yield from (Row(((line, ""),), depth) for line in folded(text, columns))
            case Said(piece):
                yield from self._piece(piece_lines(piece), depth)
            case Used():
                yield from self._used(part, depth, columns)

    def _used(self, it: Used, depth: int, columns: int) -> Iterator[Row]:
        seconds, state = call_seconds(it.call), _state(it.shown)
        took = seconds_text(seconds) if seconds and seconds >= SHORTEST else ""
        tool = fitted(it.shown.tool, columns // 2)
        told = fitted("  ".join(filter(None, (took, state))), columns - width(tool) - 3)
        summary = fitted(it.shown.summary, columns - width(tool) - width(told) - 3)
        yield Row(
            ((f"{tool} ", "strong"), (f"{summary}  ", ""), (told, "failed" if state else "quiet")), depth
        )
        for piece in it.shown.pieces:
            yield from self._piece(piece_lines(piece), depth)
        for agent in it.agents:
            yield from self._agent(agent, depth)

    def _piece(self, lines: Iterable[Segment], depth: int, *, whole: bool = False) -> Iterator[Row]:
        columns, lines, whole = room(self._columns, depth) - 2, list(lines), whole or self._whole
        few = lines if whole or len(lines) <= FEW_LINES + 1 else lines[:FEW_LINES]
        for text, style in few:
            fitting = list(folded(text, columns)) or [""] if whole else [fitted(text, columns)]
            yield from (Row(((f"  {line}", style),), depth) for line in fitting)
        if more := len(lines) - len(few):
            yield Row(((f"  ({counted(more, 'more line')})", "quiet"),), depth)

    def _agent(self, it: AgentAtWork, depth: int) -> Iterator[Row]:
        turns = f"  {counted(len(it.turns), 'turn')}"
        name = fitted(it.name, room(self._columns, depth + 1) - len(turns))
        yield Row(((name, "strong"), (turns, "quiet")), depth + 1)
        for turn in it.turns:
            yield from self._turn(turn, depth + 1)


def _seen_by(turn: Turn) -> str:
    joined = f", known to be the same by {turn.joined_by}" if turn.joined_by else ""
    return f"seen by {', '.join(sorted(turn.witnesses)) or 'nobody'}{joined}"


def _state(shown: Shown) -> str:
    """What is wrong with it; empty if nothing is."""
    if code := next((piece.exit for piece in shown.pieces if isinstance(piece, Terminal)), None):
        return f"exit code {code}"
    return "failed" if shown.is_error else "" if shown.is_answered else "no answer"


def session_lines(session: Session, columns: int) -> Iterator[str]:
    return (row_text(row, columns) for row in SessionText(session, columns).rows())


def _hooked(session: Session) -> str:
    if not session.hooked:
        return ""
    ended = f"; ended: {session.end_reason}" if session.end_reason else ""
    return f"seen by {', '.join(sorted(session.witnesses))}{ended}"


def _marked(rows: Iterator[Row], number: str, note: str) -> Iterator[Row]:
    """With a number and a note on the first; if there is none, one that has them."""
    first = next(rows, Row())
    yield replace(first, number=number, note=note)
    yield from rows


def _all_turns(session: Session) -> Iterator[NumberedTurn]:
    for chapter in chapters(session):
        yield from _below(chapter.turns, chapter.agents)
    yield from side_turns(session)


def _below(turns: Iterable[NumberedTurn], agents: Iterable[AgentAtWork]) -> Iterator[NumberedTurn]:
    for turn in turns:
        yield turn
        yield from _below((), (agent for started in turn.agents.values() for agent in started))
    for agent in agents:
        yield from _below(agent.turns, ())
