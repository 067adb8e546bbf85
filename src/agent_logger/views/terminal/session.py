"""A session as rows of a terminal: exchanges as chapters, turns with their number, cost and time in the margin."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from agent_logger.catalog.ledger.metrics import Metrics, exchange_total, metrics_of
from agent_logger.catalog.ledger.unlisted import session_has_unlisted_calls
from agent_logger.model.plurals import pluralize
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session, Turn
from agent_logger.views.facts import (
    UNLISTED_TEXT,
    context_of,
    counts_text,
    durations,
    inherited_text,
    unread_text,
)
from agent_logger.views.figures import between, money, seconds_text, tokens, turn_seconds, utc
from agent_logger.views.outline import (
    AgentWork,
    Chapter,
    NumberedTurn,
    Part,
    TextPart,
    Thought,
    ToolUse,
    chapters,
    side_turns,
)
from agent_logger.views.pieces import Prose, Terminal, ToolView
from agent_logger.views.terminal.pieces import piece_lines
from agent_logger.views.terminal.rows import Segment, TextRow, fit, fold, note_if_room, room, row_text
from agent_logger.views.terminal.screen import short_id, width

SHORTEST = 0.1  # seconds; shorter tool calls have no duration in the margin
FEW_LINES = 10  # of the input or result of a tool; `--turn` shows the rest


class SessionText:
    """A session as rows. With `whole`, nothing is left out; with `thinking`, thoughts are not folded to a line. `marks`
    are lines for the head: what people say of the session."""

    def __init__(
        self, session: Session, columns: int, *, thinking: bool = False, whole: bool = False, marks: Sequence[str] = ()
    ) -> None:
        self._session, self._columns, self._marks = session, columns, marks
        self._thinking, self._whole = thinking or whole, whole

    def rows(self) -> Iterator[TextRow]:
        yield from self._head(metrics_of(self._session))
        for chapter in chapters(self._session):
            yield TextRow()
            yield from self._chapter(chapter)
        if side := side_turns(self._session):
            yield from (TextRow(), TextRow.of("Side calls", "strong"))
            for turn in side:
                yield from self._turn(turn, 0)

    def turn(self, number: int) -> Iterator[TextRow] | None:
        """The rows of one turn, and of what the agents that it started did. `None` if there is no such turn."""
        for numbered_turn in _all_turns(self._session):
            if numbered_turn.number == number:
                return chain(self._turn(numbered_turn, 0), [TextRow.of(_witness_text(numbered_turn.turn), "quiet")])
        return None

    # ------------------------------------------------------------ chapters

    def _head(self, metrics: Metrics) -> Iterator[TextRow]:
        session = self._session
        started = f"{utc(session.started).astimezone():%Y-%m-%d %H:%M}" if session.started else ""
        cost = money(metrics.cost)
        lines = (
            (f"session {short_id(session.id)}", session.agent, session.project),
            ("" if any(exchange.user_input for exchange in session.exchanges) else session.title,),
            (*metrics.models, started, durations(metrics), cost if cost != "unknown" else "cost unknown"),
            (counts_text(metrics), tokens(metrics.usage, metrics.cost)),
            (inherited_text(session, short_id),),
            (f"not understood: {unread}" if (unread := unread_text(session)) else "",),
            (f"not included: {UNLISTED_TEXT}" if session_has_unlisted_calls(session) else "",),
            (f"context files: {files}" if (files := context_of(session)) else "",),
            (
                "The agent's session file is gone; only the prompts are left, from its history file."
                if session.prompts_only
                else "",
            ),
            (
                "The session's main file is missing; only its sub-agents' files are left."
                if session.main_missing
                else "",
            ),
            (_hook_text(session),),
            *((origin.text,) for origin in session.imported),
            *((mark,) for mark in self._marks),
        )
        for line in lines:
            text = " · ".join(filter(None, line))
            yield from (TextRow.of(text_line) for text_line in fold(hidden(text), room(self._columns, 0)))

    def _chapter(self, chapter: Chapter) -> Iterator[TextRow]:
        exchange, total = chapter.exchange, exchange_total(self._session, chapter.exchange)
        at = f"{utc(exchange.started).astimezone():%m-%d %H:%M} " if exchange.started else ""
        note = note_if_room(self._columns, 0, f"{at} {money(total.cost)}".strip())
        number = f"{exchange.number}"
        prompt = chapter.user_input if chapter.user_input is not None else "(no input)"
        prompt = f"[{chapter.origin}] {prompt}" if chapter.origin else prompt
        rows = (TextRow.of(line, "person") for line in fold(prompt, room(self._columns, 0, note)))
        yield from _with_margin(rows, number, note)
        if chapter.output:
            yield from self._piece(piece_lines(chapter.output), 0, whole=True)
        for turn in chapter.turns:
            yield from self._turn(turn, 0)
        for agent in chapter.agents:
            yield from self._agent(agent, 0)
        for remark in chapter.remarks:
            yield TextRow.of(fit(f"({remark})", room(self._columns, 0)), "quiet")

    def _turn(self, turn: NumberedTurn, depth: int) -> Iterator[TextRow]:
        for event in turn.preceding_events():
            yield TextRow(((fit(f"-- {event} --", room(self._columns, depth)), "quiet"),), depth)
        seconds, cost = turn_seconds(turn.turn), turn.turn.cost
        figures = (seconds_text(seconds) if seconds else "", money(cost) if cost else "")
        note = note_if_room(self._columns, depth, "  ".join(filter(None, figures)))
        yield from _with_margin(self._parts(turn, depth, note), f"#{turn.number}", note)

    def _parts(self, turn: NumberedTurn, depth: int, note: str) -> Iterator[TextRow]:
        beside = note  # the first row is as much shorter
        for part in turn.parts():
            yield from self._part(part, depth, beside)
            beside = ""
        for remark in turn.remarks():
            for line in fold(f"({remark})", room(self._columns, depth)):
                yield TextRow(((line, "quiet"),), depth)

    # ------------------------------------------------------------ parts

    def _part(self, part: Part, depth: int, beside: str) -> Iterator[TextRow]:
        columns = room(self._columns, depth, beside)
        match part:
            case Thought(text):
                lines = fold(text, columns - 2) if self._thinking else [fit(" ".join(text.split()), columns - 2)]
                yield from (TextRow(((f"~ {line}", "quiet"),), depth) for line in lines)
            case TextPart(Prose(text)):
                yield from (TextRow(((line, ""),), depth) for line in fold(text, columns))
            case TextPart(piece):
                yield from self._piece(piece_lines(piece), depth)
            case ToolUse():
                yield from self._tool_use(part, depth, columns)

    def _tool_use(self, tool_use: ToolUse, depth: int, columns: int) -> Iterator[TextRow]:
        call, state = tool_use.call, _state(tool_use.view)
        seconds = between(call.started, call.ended)
        took = seconds_text(seconds) if seconds and seconds >= SHORTEST else ""
        tool = fit(tool_use.view.tool, columns // 2)
        note = fit("  ".join(filter(None, (took, state))), columns - width(tool) - 3)
        summary = fit(tool_use.view.summary, columns - width(tool) - width(note) - 3)
        yield TextRow(((f"{tool} ", "strong"), (f"{summary}  ", ""), (note, "failed" if state else "quiet")), depth)
        for piece in tool_use.view.pieces:
            yield from self._piece(piece_lines(piece), depth)
        for agent in tool_use.agents:
            yield from self._agent(agent, depth)

    def _piece(self, lines: Iterable[Segment], depth: int, *, whole: bool = False) -> Iterator[TextRow]:
        columns, lines, whole = room(self._columns, depth) - 2, list(lines), whole or self._whole
        visible = lines if whole or len(lines) <= FEW_LINES + 1 else lines[:FEW_LINES]
        for text, style in visible:
            folded_lines = list(fold(text, columns)) or [""] if whole else [fit(text, columns)]
            yield from (TextRow(((f"  {line}", style),), depth) for line in folded_lines)
        if more := len(lines) - len(visible):
            yield TextRow(((f"  ({pluralize(more, 'more line')})", "quiet"),), depth)

    def _agent(self, agent: AgentWork, depth: int) -> Iterator[TextRow]:
        turns = f"  {pluralize(len(agent.turns), 'turn')}"
        name = fit(agent.name, room(self._columns, depth + 1) - len(turns))
        yield TextRow(((name, "strong"), (turns, "quiet")), depth + 1)
        for turn in agent.turns:
            yield from self._turn(turn, depth + 1)


def _witness_text(turn: Turn) -> str:
    joined = f", matched by {turn.joined_by}" if turn.joined_by else ""
    return f"seen by {', '.join(sorted(turn.witnesses)) or 'no witness'}{joined}"


def _state(view: ToolView) -> str:
    """What is wrong with a tool call; empty if nothing is."""
    if code := next((piece.exit for piece in view.pieces if isinstance(piece, Terminal)), None):
        return f"exit code {code}"
    return "failed" if view.is_error else "" if view.is_answered else "no result"


def session_lines(session: Session, columns: int) -> Iterator[str]:
    return (row_text(row, columns) for row in SessionText(session, columns).rows())


def _hook_text(session: Session) -> str:
    if not session.hooked:
        return ""
    ended = f"; ended: {session.end_reason}" if session.end_reason else ""
    return f"seen by {', '.join(sorted(session.witnesses))}{ended}"


def _with_margin(rows: Iterator[TextRow], number: str, note: str) -> Iterator[TextRow]:
    """The rows with a number and a note on the first one; if there are no rows, one that has them."""
    first = next(rows, TextRow())
    yield replace(first, number=number, note=note)
    yield from rows


def _all_turns(session: Session) -> Iterator[NumberedTurn]:
    for chapter in chapters(session):
        yield from _nested_turns(chapter.turns, chapter.agents)
    yield from side_turns(session)


def _nested_turns(turns: Iterable[NumberedTurn], agents: Iterable[AgentWork]) -> Iterator[NumberedTurn]:
    for turn in turns:
        yield turn
        yield from _nested_turns((), (agent for agents in turn.agents.values() for agent in agents))
    for agent in agents:
        yield from _nested_turns(agent.turns, ())
