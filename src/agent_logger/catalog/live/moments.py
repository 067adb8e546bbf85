"""What happens in a session, one event after the other, for watching it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from agent_logger.model.session import MAIN, Block, BlockKind, Session, Turn

What = Literal["input", "text", "thinking", "tool", "result", "error"]

KINDS: Mapping[BlockKind, What] = {
    "text": "text",
    "thinking": "thinking",
    "tool_use": "tool",
    "tool_result": "result",
}


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime | None
    session: str
    agent: str | None
    thread: str
    what: What
    text: str  # the words that were said, typed or given; for a tool, its name and its first input


def moments_of(session: Session) -> Iterator[Moment]:
    """Yield the moments in the order of the conversation."""
    for exchange in session.exchanges:
        if exchange.user_input:
            yield _moment(session, MAIN, exchange.started, "input", exchange.user_input)
        for turn in exchange.turns:
            yield from _turn_moments(session, turn)
    for turn in session.side_turns:
        yield from _turn_moments(session, turn)


def _turn_moments(session: Session, turn: Turn) -> Iterator[Moment]:
    for block in turn.blocks:
        what = KINDS.get(block.kind)
        if what and (text := _text(block)).strip():
            failed = block.is_error or (what == "text" and turn.is_synthetic)
            at = block.at or turn.ended or turn.started
            yield _moment(session, turn.thread, at, "error" if failed else what, text)


def _moment(session: Session, thread: str, at: datetime | None, what: What, text: str) -> Moment:
    time = at.replace(tzinfo=UTC) if at and not at.tzinfo else at
    return Moment(at=time, session=session.id, agent=session.agent, thread=thread, what=what, text=text)


def _text(block: Block) -> str:
    if block.kind != "tool_use":
        return block.text or ("(no output)" if block.kind == "tool_result" else "")
    return f"{block.name or '?'} {_first(block.input)}".strip()


def _first(given: Any) -> str:
    """Return what matters most of a tool's input: its first text."""
    if isinstance(given, Mapping):
        return next((value for value in given.values() if isinstance(value, str) and value.strip()), "")
    return given if isinstance(given, str) else ""
