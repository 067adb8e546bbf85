"""A session as JSON: everything derived from it, turn by turn: the text of a long one is never whole in memory."""

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Exchange, Session, Turn
from agent_logger.views.json import json_of

Texts = Iterator[tuple[str, str]]  # each with its place
INDENT = "  "
_LINE_ENDS = re.compile(r"\n *")  # those in strings are escaped


def pieces(session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
    """Yield the document; of several in one file, each is one line."""
    for place, text in session_json_pieces(context.mask.session(session.read())):
        form = _LINE_ENDS.sub("", text) if context.is_joined else text
        yield ExportPiece(place, hidden(form).encode("utf-8", "surrogatepass"))
    if context.is_joined:
        yield ExportPiece("end", b"\n")


def session_json_pieces(session: Session) -> Texts:
    """Yield what `json_of` returns for the session, and a newline, in pieces with their places."""
    frame = json_of(replace(session, exchanges=(), side_turns=()))
    head, between, tail = _around_arrays(frame, ("exchanges", "side_turns"), 1)
    yield "beginning", head
    yield from _array(_exchanges(session), 1)
    yield "side calls", between
    first = sum(len(exchange.turns) for exchange in session.exchanges)
    yield from _array(_turns(session.side_turns, first, 2), 1)
    yield "end", f"{tail}\n"


def _exchanges(session: Session) -> Iterator[Texts]:
    first = 0
    for exchange in session.exchanges:
        yield _exchange(exchange, first)
        first += len(exchange.turns)


def _exchange(exchange: Exchange, first: int) -> Texts:
    place = f"exchange {exchange.number}"
    head, tail = _around_arrays(_indented(json_of(replace(exchange, turns=())), 2), ("turns",), 3)
    yield place, head
    yield from _array(_turns(exchange.turns, first, 4), 3)
    yield place, tail


def _turns(turns: Iterable[Turn], first: int, depth: int) -> Iterator[Texts]:
    for number, turn in enumerate(turns, first):
        yield iter([(f"turn {number}", _indented(json_of(turn), depth))])


def _array(items: Iterable[Texts], depth: int) -> Texts:
    """Yield an array that is the value of a member at this depth."""
    place, opening = "", "["
    for item in items:
        for place, text in item:
            yield place, f"{opening}\n{INDENT * (depth + 1)}{text}" if opening else text
            opening = ""
        opening = ","
    yield place, f"\n{INDENT * depth}]" if place else "[]"


def _indented(text: str, depth: int) -> str:
    """Return indented JSON as a value deeper in a document. Line ends in its strings are escaped."""
    return text.replace("\n", "\n" + INDENT * depth)


def _around_arrays(text: str, members: Iterable[str], depth: int) -> list[str]:
    """Split a document at empty arrays that are the values of these members of one object."""
    parts = []
    for member in members:
        name = f'\n{INDENT * depth}"{member}": '
        before, _, text = text.partition(f"{name}[]")
        parts.append(before + name)
    return [*parts, text]
