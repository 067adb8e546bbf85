"""What commands print: data on stdout, notes on stderr, and nothing that controls a terminal.

Whatever comes out of a log is hostile (docs/SECURITY.md): an escape sequence can rewrite the screen, a bidi control can
turn a line around, a tag character can hide a sentence. All functions here show such characters as text; `printable`
does so for what is printed otherwise.
"""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import click

from agent_logger.config import no_color
from agent_logger.views.printable import printable as printable
from agent_logger.views.printable import printable_json
from agent_logger.views.terminal.screen import columns, is_terminal, width

WAIT_SECONDS = 0.5  # before a progress bar appears


def hidden(text: str) -> str:
    """Return `text` without what looks like a key. Call this before the text is cut or folded."""
    from agent_logger.model.redaction.redactor import hidden

    return hidden(text)


def echo(text: str = "", *, lines: bool = False) -> None:
    """Print one line to stdout; with `lines`, as many as the text has."""
    click.echo(printable(text, lines=lines))


def note(text: str, *, lines: bool = False) -> None:
    """Print one line to stderr, for progress, hints and warnings, which a pipe must not carry; with `lines`, as many as
    the text has."""
    click.echo(printable(text, lines=lines), err=True)


def confirm(question: str, *, yes: bool) -> bool:
    """Whether to continue: the user said so before (`--yes`), or confirms it now."""
    try:
        return yes or click.confirm(printable(question), err=True)
    except click.Abort:
        click.echo(err=True)  # the question has no line end yet
        if sys.stdin is None or not sys.stdin.isatty():
            raise click.UsageError("not a terminal, so nothing was changed; pass --yes to confirm") from None
        raise


def json(value: object) -> None:
    """Print any value that msgspec can encode, as indented JSON.

    What a terminal would act on is written as `\\uXXXX`, which means the same to a reader.
    """
    from agent_logger.views.json import json_of

    json_text(json_of(value))


def hidden_json(value: object) -> None:
    """Print a value as JSON, without what looks like a key."""
    from agent_logger.views.json import json_of

    json_text(hidden(json_of(value)))


def json_text(text: str) -> None:
    """Print text that is JSON already."""
    click.echo(printable_json(text))


def json_lines(lines: Iterable[bytes]) -> None:
    """Print lines of JSON as they are; on a terminal, what it would act on is written as `\\uXXXX`."""
    on_terminal = is_terminal()
    for line in lines:
        click.echo(printable_json(line.decode("utf-8", "replace")).encode() if on_terminal else line, nl=False)


def json_bytes(data: bytes) -> None:
    """Print a piece of JSON, as `json_text` does."""
    click.echo(printable_json(data.decode("utf-8", "replace")).encode(), nl=False)


def texts(pieces: Iterable[str]) -> None:
    """Print pieces of one long text, which contain their own newlines."""
    for piece in pieces:
        click.echo(printable(piece, lines=True), nl=False)


def raw_lines(lines: Iterable[bytes]) -> None:
    """Print lines of a foreign file without keys; on a terminal, what it would act on is shown as text."""
    from agent_logger.views.hide import hidden_line

    on_terminal = is_terminal()
    for line in lines:
        safe = hidden_line(line)
        click.echo(printable(safe.decode("utf-8", "surrogateescape")) if on_terminal else safe)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str | int]],
    *,
    fold: bool = True,
    right: Collection[int] = (),
) -> None:
    """Print rows under a head; a column that holds only numbers is aligned right, and so are those of `right`.

    On a terminal, long cells are folded to its width. In a pipe, or without `fold`, every row is one line, however
    long.
    """
    rows = [list(row) for row in rows]
    numeric = [i in right or (bool(rows) and all(isinstance(row[i], int) for row in rows)) for i in range(len(head))]
    cells = [[printable(str(cell)) for cell in row] for row in (head, *rows)]
    if fold and is_terminal():
        _print_rich(cells, numeric)
    else:
        _print_plain(cells, numeric)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr, on a terminal only, if the work takes longer than `WAIT_SECONDS`; remove it at the end.

    Yields the function to call with how much more was done.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    began, done = time.monotonic(), 0
    move: Callable[[int], None] | None = None
    with ExitStack() as stack:

        def advance(more: int) -> None:
            nonlocal done, move
            done += more
            if move is None and time.monotonic() - began >= WAIT_SECONDS:
                move = stack.enter_context(_bar(label, total))
            if move:
                move(done)

        yield advance


@contextmanager
def _bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True, no_color=no_color()), transient=True) as bar:
        task = bar.add_task(printable(label), total=total)
        yield lambda done: bar.update(task, completed=done)


def _print_plain(cells: list[list[str]], numeric: list[bool]) -> None:
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(_pad, row, widths, numeric)).rstrip(" ") for row in cells)
    click.echo("\n".join(lines))


def _pad(cell: str, columns: int, right: bool) -> str:
    space = " " * (columns - width(cell))
    return space + cell if right else cell + space


def _print_rich(cells: list[list[str]], numeric: list[bool]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    head, *rows = cells
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    for name, right in zip(head, numeric, strict=True):
        grid.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))  # as `Text`, so that a cell like "[red]" is not markup
    Console(width=columns(), no_color=no_color()).print(grid)
