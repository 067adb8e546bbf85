"""Print a text with its matches marked, as wide as the terminal."""

from collections.abc import Iterator, Sequence

import click

from agent_logger.cli import _output
from agent_logger.config import no_color
from agent_logger.views.terminal import screen
from agent_logger.views.terminal.rows import SMALLEST, fold

Marks = Sequence[tuple[int, int]]  # start and end, in order and not overlapping


def echo_marked(text: str, marks: Marks, *, indent: str) -> None:
    """Print the text. On a terminal, matches are bold and lines are folded; in a pipe it is one line, however long."""
    text_shown, marks = _printable(text, marks)
    if not screen.is_terminal():
        click.echo(indent + text_shown)
        return
    for low, high in _lines(text_shown, max(SMALLEST, screen.columns() - screen.width(indent))):
        click.echo(indent + "".join(_styled(text_shown, low, high, () if no_color() else marks)))


def _printable(text: str, marks: Marks) -> tuple[str, Marks]:
    """The text with control characters made visible, and the marks moved, because it is longer."""
    printable_text, moved, at = "", [], 0
    for low, high in marks:
        printable_text += _output.printable(text[at:low])
        start = len(printable_text)
        printable_text += _output.printable(text[low:high])
        moved.append((start, len(printable_text)))
        at = high
    return printable_text + _output.printable(text[at:]), moved


def _lines(text: str, columns: int) -> Iterator[tuple[int, int]]:
    """The start and end of each line: folding leaves out nothing but spaces."""
    end = 0
    for line in fold(text, columns):
        start = text.index(line, end)
        end = start + len(line)
        yield start, end


def _styled(text: str, low: int, high: int, marks: Marks) -> Iterator[str]:
    for start, end in ((max(mark[0], low), min(mark[1], high)) for mark in marks):
        if start < end:
            yield text[low:start] + click.style(text[start:end], bold=True)
            low = end
    yield text[low:high]
