"""Rows of a conversation on a terminal: a number to the left, a note to the right, colours where they can be seen.

#12 │ Bash  Run the tests                                   3.0 s  $0.0066
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from textwrap import wrap
from typing import Any, Literal

import click

from agent_logger.config import no_color
from agent_logger.views.printable import printable
from agent_logger.views.terminal.screen import beginning, cut, is_terminal, width

Style = Literal["", "quiet", "strong", "person", "failed", "added", "removed"]
Segment = tuple[str, Style]

LEFT = 6  # columns for the number
BAR = "│ "  # for each agent that a row is nested in
SMALLEST = 20  # columns of text, however deeply nested
# Rows printed at once: the first appear soon, and a long session is not written row by row.
BATCH = 100

_LOOKS: dict[Style, dict[str, Any]] = {
    "quiet": {"dim": True},
    "strong": {"bold": True},
    "person": {"fg": "cyan", "bold": True},
    "failed": {"fg": "red"},
    "added": {"fg": "green"},
    "removed": {"fg": "red"},
}


@dataclass(frozen=True, slots=True)
class TextRow:
    segments: tuple[Segment, ...] = ()
    depth: int = 0  # of agents
    number: str = ""
    note: str = ""

    @staticmethod
    def of(text: str, style: Style = "") -> "TextRow":
        return TextRow(((text, style),))


def room(columns: int, depth: int, note: str = "") -> int:
    """The columns that the text of a row may take."""
    return max(SMALLEST, _text_columns(columns, depth, note))


def note_if_room(columns: int, depth: int, note: str) -> str:
    """The note, if there is room for one beside the text."""
    return note if _text_columns(columns, depth, note) >= SMALLEST else ""


def _text_columns(columns: int, depth: int, note: str) -> int:
    return columns - LEFT - len(BAR) * depth - (width(note) + 2 if note else 0)


def print_rows(rows: Iterable[TextRow], columns: int) -> None:
    coloured = is_terminal() and not no_color()
    lines = (_line(row, columns, coloured=coloured) for row in rows)
    while batch := list(islice(lines, BATCH)):
        click.echo("\n".join(batch), color=coloured)


def row_text(row: TextRow, columns: int) -> str:
    return _line(row, columns, coloured=False)


def _line(row: TextRow, columns: int, *, coloured: bool) -> str:
    left = f"{row.number:>{LEFT - 1}} "
    segments: list[Segment] = [(left + BAR * row.depth, "quiet"), *row.segments]
    visible = [(printable(text), style) for text, style in segments]
    if row.note:
        gap = columns - sum(width(text) for text, _ in visible) - width(row.note)
        visible.append((" " * max(1, gap) + printable(row.note), "quiet"))
    if not coloured:
        return "".join(text for text, _ in visible).rstrip(" ")
    return "".join(click.style(text, **_LOOKS[style]) if style else text for text, style in visible)


# ---------------------------------------------------------------- fitting


def fit(text: str, columns: int) -> str:
    """The text as one line, cut where it does not fit."""
    return cut(printable(text.expandtabs(4)), columns)


def fold(text: str, columns: int) -> Iterator[str]:
    """The lines of a text, folded at words; indentation stays. Of several empty lines, one is kept."""
    empty = True
    for line in printable(text, lines=True).expandtabs(4).rstrip(" \n").split("\n"):
        if line.strip(" "):
            yield from _fold_line(line, columns)
        elif not empty:
            yield ""
        empty = not line.strip(" ")


def _fold_line(line: str, columns: int) -> list[str]:
    text = line.strip(" ")
    indent = " " * min(len(line) - len(line.lstrip(" ")), columns // 2)
    fits = columns - len(indent)
    lines = wrap(text, fits, break_on_hyphens=False) if line.isascii() else list(_fold_wide(text, fits))
    return [indent + line for line in lines]


def _fold_wide(text: str, columns: int) -> Iterator[str]:
    """Fold text in which a character may take two columns, or none."""
    line = ""
    for word in text.split(" "):
        if line and width(line) + 1 + width(word) <= columns:
            line = f"{line} {word}"
            continue
        if line:
            yield line
        line = word
        while width(line) > columns:
            head = beginning(line, columns) or line[0]
            yield head
            line = line[len(head) :]
    yield line
