"""`agent-logger ls`: list sessions, the newest first."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._agents import agent_option, check_agent
from agent_logger.cli._catalog import check_machine, homes_option, machine_option, note_nothing, open_catalog
from agent_logger.cli._columns import fit_columns
from agent_logger.cli._pager import paged, pager_option
from agent_logger.cli._select import short_ids
from agent_logger.cli._settings import settings_options
from agent_logger.cli._times import time_options
from agent_logger.home.homes import Homes
from agent_logger.model.plurals import pluralize
from agent_logger.views.lists import ListedSession, failure_of, mark_text, session_values, sources_text
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.summary import Filter, SessionSummary

WITNESSES = ("wire", "sdk", "run", "transcript", "hook")


NEWEST = "time"
OTHER_WORDS = {
    **dict.fromkeys(("price", "money", "usd", "spend", "expensive"), "cost"),
    **dict.fromkeys(("date", "newest", "recent", "active", "last", "started", "created", "updated"), NEWEST),
    **dict.fromkeys(("token", "size", "usage"), "tokens"),
    **dict.fromkeys(("length", "long", "longest"), "duration"),
    **dict.fromkeys(("failed", "failures", "error"), "errors"),
}


class SortKey(click.Choice[str]):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if meant := OTHER_WORDS.get(str(value).lower()):
            self.fail(f"{value!r} is not a sort key; did you mean {meant}?", param, ctx)
        return super().convert(value, param, ctx)


class SessionRow(ListedSession, frozen=True, kw_only=True):
    log: str  # the name of its log or file
    path: str
    paths: list[str]


@click.command()
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), metavar="N", default=20, show_default=True, help="Number of sessions."
)
@click.option("--all", "everything", is_flag=True, help="List all sessions.")
@click.option(
    "--sort",
    type=SortKey((NEWEST, "cost", "tokens", "duration", "errors")),
    default=NEWEST,
    show_default=True,
    help="List by last activity, or the most of this first.",
)
@agent_option("sessions")
@machine_option("sessions")
@click.option("--project", help="Only sessions with this in the path of their project.")
@click.option("--model", help="Only sessions with this in the name of a model.")
@click.option("--title", help="Only sessions with this in their title.")
@time_options("sessions", since="active since", until="that began until")
@click.option("--min-cost", "min_cost_usd", type=float, metavar="USD", help="Only sessions that cost at least this.")
@click.option("--witness", type=click.Choice(WITNESSES), help="Only sessions that this witness recorded.")
@click.option("--live", is_flag=True, help="Only live sessions.")
@click.option("--label", metavar="NAME", help="Only sessions with this label; tag gives one.")
@click.option("--pinned", is_flag=True, help="Only pinned sessions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema ls' describes it.")
@pager_option()
@settings_options()
@homes_option(with_database=True)
def command(
    settings: config.Configuration,
    homes: Homes,
    limit: int,
    everything: bool,
    sort: str,
    as_json: bool,
    pager: bool,
    **given: Any,
) -> None:
    """List sessions, most recently active first.

    One row is one conversation. A star marks a live session, an exclamation mark one that failed or was interrupted;
    lines below the list say which. A fork is listed under the session that it was forked from; its exchanges, tool
    calls, tokens and cost are those after the fork. Labels and pins are in brackets before the title.

    The model is the one with most responses in the main thread; +1 means that there is another. Exchanges are prompts
    with all that followed. Active is the time that the agent was working. Tokens are all billed tokens. Sources are
    what recorded the session: the agent's own file, the proxy, an SDK, `run`, hooks. If the agent's file is gone, only
    the files of its sub-agents or the prompts may be left. A session that was imported says so. With several homes, a
    column names the machines that have the session. A narrow terminal has fewer columns.

    \b
    Examples:
      agent-logger ls
      agent-logger ls --agent claude --since yesterday
      agent-logger ls --sort cost --since 'this month'
      agent-logger ls --project agent-logger --min-cost 5
      agent-logger ls --all --json
      agent-logger ls --home ~/homes/laptop --home ~/.agent-logger
    """
    from agent_logger.catalog.summary import Filter

    conditions = Filter(**given)
    with open_catalog(settings, homes) as catalog:
        check_agent(catalog, conditions.agent)
        check_machine(catalog, conditions.machine)
        order: Any = "active" if sort == NEWEST else sort
        rows = catalog.sessions(conditions, limit=None if everything else limit, order=order)
        with paged(pager):
            if as_json:
                _output.json([_session_row(row) for row in rows])
            elif rows:
                ids = short_ids(catalog, [row.id for row in rows])
                _print(rows, ids, sort, several_machines=len(catalog.homes.machines) > 1)
                _print_failures(rows, ids)
                _note_others(catalog, rows, conditions)
            else:
                note_nothing(catalog, "No sessions match.")


def _note_others(catalog: "Catalog", rows: "Sequence[SessionSummary]", conditions: "Filter") -> None:
    if (there := catalog.count(conditions)) > len(rows):
        _output.note(f"{len(rows):,} of {pluralize(there, 'session')}; --all lists all")
    _note_damage(catalog, rows)


def _note_damage(catalog: "Catalog", rows: "Sequence[SessionSummary]") -> None:
    if damaged := [row.id for row in rows if row.damaged_lines]:
        from agent_logger.cli._damaged import note_damage

        by_session = catalog.damaged_files(*damaged)
        files = {path: lines for them in by_session.values() for path, lines in them.items()}
        note_damage(files, f" in {pluralize(len(damaged), 'session')}")


def _session_row(summary: "SessionSummary") -> SessionRow:
    paths = [str(path) for path in summary.paths]
    log = summary.paths[0].stem if summary.paths else summary.id
    return SessionRow(**session_values(summary), log=log, path=paths[0] if paths else "", paths=paths)


# ---------------------------------------------------------------- for people

HEAD = ("last active", "id", "title", "project", "model", "exchanges", "active", "tokens", "cost", "sources", "machine")
TITLE, PROJECT, MODEL, *NUMBERS, SOURCES, MACHINE = range(2, len(HEAD))
EXCHANGES, TIME, TOKENS, COST = NUMBERS
# Columns that are cut if there is no room, with their least width.
LEAST = {PROJECT: 8, MODEL: 8, TITLE: 20, MACHINE: 12}
# Columns that are dropped if there is still no room.
LESS = (EXCHANGES, TIME, SOURCES, PROJECT, MODEL, MACHINE, TOKENS, COST)
# The column that a list in this order must have. There is no other place for errors than that of exchanges.
SORTED_BY = {"cost": COST, "tokens": TOKENS, "duration": TIME, "errors": EXCHANGES}


def _print(rows: "Sequence[SessionSummary]", ids: dict[str, str], sort: str, *, several_machines: bool) -> None:
    tree = _as_tree(rows) if sort == NEWEST else ((row, 0) for row in rows)
    cells = [_cells(row, ids[row.id], depth, sort) for row, depth in tree]
    head = [*HEAD]
    if not several_machines:
        head, cells = head[:MACHINE], [row[:MACHINE] for row in cells]
    head[EXCHANGES] = "errors" if sort == "errors" else head[EXCHANGES]
    widths = [max(screen.width(str(cell)) for cell in column) for column in zip(head, *cells, strict=True)]
    least = {column: width for column, width in LEAST.items() if column < len(head)}
    less = [column for column in LESS if column < len(head) and column != SORTED_BY.get(sort)]
    columns = fit_columns(widths, least, less, TITLE)
    for row in cells:
        for column in least:
            row[column] = screen.cut(str(row[column]), widths[column])
    right = [at for at, column in enumerate(columns) if column in NUMBERS]
    _output.table(
        [head[column] for column in columns],
        [[row[column] for column in columns] for row in cells],
        fold=False,
        right=right,
    )


def _print_failures(rows: "Sequence[SessionSummary]", ids: dict[str, str]) -> None:
    """Print what went wrong in the sessions with an exclamation mark: a line for each reason, with their ids."""
    by_failure: dict[str, list[str]] = {}
    for row in rows:
        if failure := failure_of(row):
            by_failure.setdefault(failure, []).append(ids[row.id])
    for failure, names in by_failure.items():
        _output.note(screen.cut(f"! {_output.printable(failure)} ({', '.join(names)})", screen.columns()))


def _as_tree(rows: "Sequence[SessionSummary]") -> "Iterator[tuple[SessionSummary, int]]":
    """The rows with forks after their parent, if that is in the list too."""
    ids = {row.id for row in rows}
    below: dict[str | None, list[SessionSummary]] = {}
    for row in rows:
        below.setdefault(row.parent if row.parent in ids and row.parent != row.id else None, []).append(row)
    left = [(row, 0) for row in reversed(below.pop(None, []))]
    while left:
        row, depth = left.pop()
        yield row, depth
        left += [(fork, depth + 1) for fork in reversed(below.pop(row.id, []))]
    # Each of them names another one as its parent.
    yield from ((row, 0) for forks in below.values() for row in forks)


def _cells(row: "SessionSummary", short_id: str, depth: int, sort: str) -> list[str | int]:
    when = row.ended or row.started
    time_text = screen.day_and_time(when) if when else "-"
    title = _output.printable(" ".join((row.title or (row.paths[0].stem if row.paths else "")).split()))
    marks = mark_text(row.labels, pinned=row.pinned)
    return [
        time_text + ("*" if row.live else "!" if failure_of(row) else ""),
        short_id,
        "  " * (depth - 1) + ("└ " if depth else "") + f"{_output.printable(marks)} {title}".lstrip(),
        _output.printable(Path(row.project).name) if row.project else "-",
        _model(row),
        row.errors if sort == "errors" else row.exchanges,
        _duration(row.active_seconds),
        _tokens(row),
        _money(row),
        _sources(row),
        ", ".join(map(_output.printable, row.machines)),
    ]


def _sources(row: "SessionSummary") -> str:
    """What recorded the session: `file, proxy`. Of an agent's files, some may be gone."""
    if row.prompts_only:
        return "prompts only"
    text = sources_text(row.witnesses)
    text = text.replace("file", "sub-agents' files") if row.main_missing else text
    return f"{text}, imported" if row.imported else text


def _model(row: "SessionSummary") -> str:
    """The model's name without its vendor and its date, which are long and say little."""
    if not row.models:
        return "-"
    short = re.sub(r"^claude-|-\d{8}$", "", row.models[0])
    more = len(set(row.models[1:]) - set(row.side_models))
    return short + (f" +{more}" if more else "")


def _tokens(row: "SessionSummary") -> str:
    return _thousands(row.usage.context_tokens + row.usage.output_tokens) if row.knows_tokens else "?"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m" if whole < 6000 else f"{whole / 3600:.1f}h"


def _thousands(count: int) -> str:
    for unit, size in (("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if count < 1000 * size or unit == "G":
            return f"{count / size:.1f}{unit}" if unit and count < 10 * size else f"{count / size:.0f}{unit}"
    raise AssertionError


def _money(row: "SessionSummary") -> str:
    usd = row.cost.usd
    if usd is None:
        return "?" if row.cost.unpriced else "-"
    return (f"${usd:,.2f}" if usd < 100 else f"${usd:,.0f}") + ("+?" if row.cost.unpriced else "")
