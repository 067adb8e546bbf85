"""A session as text for a terminal."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from agent_logger.cli.output import hidden
from agent_logger.formats.history import LOST
from agent_logger.session import MAIN, Block, Exchange, Session, Usage

LONGEST_OUTPUT = 6  # lines of a tool's output; the log has the rest


def session_lines(session: Session, width: int) -> Iterator[str]:
    models = dict.fromkeys(turn.model for turn in session.turns if turn.model)
    yield " · ".join(filter(None, [f"session {session.id[:8]}", *models, session.project]))
    yield " · ".join(
        [
            _count(len(session.exchanges), "exchange"),
            _count(len(session.turns), "turn"),
            _count(len(session.tool_calls), "tool call"),
            _tokens(session.usage),
        ]
    )
    if session.prompts_only:
        yield "The agent's file is gone; its history has what was typed, and nothing else."
    for exchange in session.exchanges:
        yield ""
        yield from _exchange_lines(exchange, width)


def _exchange_lines(exchange: Exchange, width: int) -> Iterator[str]:
    yield from _hung(f"{exchange.number:>2}  ", exchange.user_input or "(no input)", width)
    for turn in exchange.turns:
        margin = "    " if turn.thread == MAIN else "      | "
        for block in turn.blocks:
            yield from _block_lines(block, margin, width)
    if not exchange.complete and exchange.end_reason != LOST:
        yield f"    ({exchange.end_reason or 'in flight'}: not complete)"


def _block_lines(block: Block, margin: str, width: int) -> Iterator[str]:
    match block.kind:
        case "thinking":
            yield from _hung(f"{margin}~ ", block.text, width)
        case "tool_use":
            yield from _hung(f"{margin}> {block.name} ", _summary(block.input), width)
        case "tool_result":
            yield from _output_lines(block, margin, width)
        case "text":
            yield from _hung(margin, block.text, width)
        case _:
            yield from _hung(f"{margin}· ", block.text or f"({block.kind})", width)


def _output_lines(block: Block, margin: str, width: int) -> Iterator[str]:
    lines = [line for line in hidden(block.text).split("\n") if line.strip()]
    mark = "x" if block.is_error else "="
    for number, line in enumerate(lines[:LONGEST_OUTPUT]):
        text = f"{margin}{' ' if number else mark} {line}"
        yield text if len(text) <= width else f"{text[: width - 3]}..."
    if len(lines) > LONGEST_OUTPUT:
        yield f"{margin}  ({len(lines) - LONGEST_OUTPUT} more lines)"


def _hung(first: str, text: str, width: int) -> list[str]:
    """Folded at words, the lines after the first indented as far as its beginning is wide."""
    lines = wrap(" ".join(hidden(text).split()), max(20, width - len(first)))
    return [(" " * len(first) if number else first) + line for number, line in enumerate(lines)]


def _summary(tool_input: Any) -> str:
    """What a reader wants of a tool's input: its first texts."""
    if not isinstance(tool_input, dict):
        return str(tool_input)
    return ", ".join(value for value in tool_input.values() if isinstance(value, str))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _tokens(usage: Usage) -> str:
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return f"{usage.input_tokens:,} in, {usage.output_tokens:,} out, {cached:,} cached tokens"
