"""Tables of tokens and cost, for people."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_logger.cli import _output
from agent_logger.cli._columns import fit_columns
from agent_logger.views.figures import dollars, money, seconds_text, short
from agent_logger.views.terminal import screen
from agent_logger.views.terminal.rows import fold

if TYPE_CHECKING:
    from agent_logger.catalog.ledger.blocks import UsageBlock
    from agent_logger.catalog.ledger.totals import Total
    from agent_logger.catalog.summary import SessionHeading

Totals = Mapping[str | None, "Total"]
COUNTS = ("input", "output", "cache read", "cache write")
NONE = {"tool": "no tool"}


def _counts(total: "Total") -> list[str]:
    usage = total.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return [*(f"{count:,}" if total.knows_tokens else "unknown" for count in counts), money(total.cost)]


def _print_table(
    head: list[str], rows: list[list[str]], last: list[str], right: Sequence[int], unpriced: Mapping[str | None, int]
) -> None:
    """Print the table with its total in the last row. That names the models without a price, or the line below it does
    if a terminal has no room."""
    names = ", ".join(f"{name or 'no model'} ({count:,})" for name, count in unpriced.items())
    widths = [max(map(screen.width, column)) for column in zip(head, *rows, last, strict=True)]
    fits = not screen.is_terminal() or sum(widths) + 2 * len(widths) + screen.width(names) <= screen.columns()
    if names and fits:
        head, last, rows = [*head, ""], [*last, _output.printable(names)], [[*row, ""] for row in rows]
    _output.table(head, [*rows, last], fold=False, right=right)
    if names and not fits:
        _output.echo(screen.cut(f"unpriced: {names}", screen.columns()))


# ---------------------------------------------------------------- by day, model, project, ...

LESS = (4, 3, 1, 2)  # columns that are dropped on a narrow terminal, in this order
LEAST_BAR, LONGEST_BAR = 5, 30  # columns
SHORTEST_NAME = 12
EIGHTHS = " ▏▎▍▌▋▊▉"


def print_totals(by: str, sums: Totals, whole: "Total", unpriced: Mapping[str | None, int]) -> None:
    rows = [[_output.printable(key or NONE.get(by, "unknown")), *_counts(total)] for key, total in sums.items()]
    head, *rows, last = _fitting([[by, *COUNTS, "cost"], *rows, ["total", *_counts(whole)]])
    widths = [max(map(screen.width, column)) for column in zip(head, *rows, last, strict=True)]
    room = screen.columns() - sum(widths) - 2 * len(widths)
    if screen.is_terminal() and room < -2:  # no bar, so no gap after the last column
        least = max(SHORTEST_NAME, widths[0] + room + 2)
        rows = [[_cut(by, name, least), *counts] for name, *counts in rows]
    if screen.is_terminal() and room >= LEAST_BAR and len(rows) > 1:
        most = max((total.cost.nano_usd or 0 for total in sums.values()), default=0)
        head.append("")
        bars = [_bar(total.cost.nano_usd or 0, most, min(room, LONGEST_BAR)) for total in sums.values()]
        rows = [[*row, bar] for row, bar in zip(rows, bars, strict=True)]
        last.append("")
    _print_table(head, rows, last, range(1, len(widths)), unpriced)


def _fitting(rows: list[list[str]]) -> list[list[str]]:
    """The rows without the columns for which a terminal has no room."""
    widths = [max(map(screen.width, column)) for column in zip(*rows, strict=True)]
    widths[0] = min(widths[0], SHORTEST_NAME)
    columns = list(range(len(widths)))
    for column in LESS:
        if screen.is_terminal() and sum(widths[column] + 2 for column in columns) > screen.columns() + 2:
            columns.remove(column)
    return [[row[column] for column in columns] for row in rows]


def _cut(by: str, name: str, room: int) -> str:
    """The name cut to the room. Of a path the end is kept, which distinguishes it from others."""
    if by != "project" or screen.width(name) <= room:
        return screen.cut(name, room)
    while screen.width(name) > room - 1:
        name = name[1:]
    return f"…{name}"


def _bar(value: int, most: int, room: int) -> str:
    eighths = round(8 * room * value / most) if most else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


# ---------------------------------------------------------------- by session

TITLE, PROJECT, INPUT, OUTPUT, READ, WRITE = range(2, 8)
LONGEST_TITLE = 40  # columns, where there is no terminal to fill


def print_sessions(
    sums: Totals,
    whole: "Total",
    unpriced: Mapping[str | None, int],
    headings: "Mapping[str, SessionHeading]",
    ids: Mapping[str, str],
) -> None:
    """Print a row for each session: what it is known by, and what it used."""
    rows = [[*_heading(key, headings, ids), *_counts(total)] for key, total in sums.items()]
    table = [
        ["session", "last active", "title", "project", *COUNTS, "cost"],
        *rows,
        ["total", "", "", "", *_counts(whole)],
    ]
    widths = [max(map(screen.width, column)) for column in zip(*table, strict=True)]
    columns = list(range(len(widths)))
    widths[TITLE] = min(widths[TITLE], max(LONGEST_TITLE, screen.columns() // 3))
    if screen.is_terminal():
        columns = fit_columns(widths, {PROJECT: 8, TITLE: 20}, (WRITE, READ, INPUT, OUTPUT, PROJECT), TITLE)
    for row in table:
        row[TITLE], row[PROJECT] = screen.cut(row[TITLE], widths[TITLE]), screen.cut(row[PROJECT], widths[PROJECT])
    head, *body, last = [[row[column] for column in columns] for row in table]
    right = [place for place, column in enumerate(columns) if column > PROJECT]
    _print_table(head, body, last, right, unpriced)


def _heading(key: str | None, headings: "Mapping[str, SessionHeading]", ids: Mapping[str, str]) -> list[str]:
    heading = headings.get(key) if key else None
    if key is None or heading is None:
        return [key or "unknown", "-", "-", "-"]
    title = " ".join((heading.title or "").split()) or "-"
    project = Path(heading.project).name if heading.project else "-"
    when = screen.day_and_time(heading.ended) if heading.ended else "-"
    return [ids.get(key, key), when, _output.printable(title), _output.printable(project)]


# ---------------------------------------------------------------- by block


def print_blocks(
    blocks: "Sequence[UsageBlock]", whole: "Total", unpriced: Mapping[str | None, int], now: datetime
) -> None:
    """Print a row for each block of five hours, and below the table how the active one goes on."""
    rows = [[_span(block, now), *_counts(block.total)] for block in blocks]
    head, *rows, last = _fitting([["block", *COUNTS, "cost"], *rows, ["total", *_counts(whole)]])
    _print_table(head, rows, last, range(1, len(head)), unpriced)
    for block in blocks:
        if block.is_active(now):
            text = _active_text(block, now)
            for line in fold(text, screen.columns()) if screen.is_terminal() else [text]:
                _output.echo(line)


def _span(block: "UsageBlock", now: datetime) -> str:
    mark = "*" if block.is_active(now) else ""
    return f"{block.start.astimezone():%Y-%m-%d %H:%M}-{block.end.astimezone():%H:%M}{mark}"


def _active_text(block: "UsageBlock", now: datetime) -> str:
    """The text `* active, 2 h 10 m left; $5.30 an hour, 2.1k tokens a minute; $16.68 at its end`."""
    left = f"* active, {seconds_text((block.end - now).total_seconds())} left"
    if not (rate := block.burn_rate(now)):
        return left
    speed = f"{dollars(rate.usd_per_hour)} an hour, {short(rate.tokens_per_minute)} tokens a minute"
    return f"{left}; {speed}; {dollars(rate.projected_usd)} at its end"
