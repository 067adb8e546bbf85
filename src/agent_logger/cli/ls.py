"""`agent-logger ls`: list sessions, the newest first."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import NOTHING_YET, opened
from agent_logger.cli._select import short_ids
from agent_logger.cli._settings import settings_options
from agent_logger.cli._times import When
from agent_logger.views.endings import ended_well
from agent_logger.views.lists import ListedSession, listed
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.summary import SessionSummary

WITNESSES = ("wire", "sdk", "run", "transcript", "hook")


class SessionRow(ListedSession, frozen=True, kw_only=True):
    log: str  # the name of its log or file
    path: str
    paths: list[str]


@click.command()
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Number of sessions."
)
@click.option("--all", "everything", is_flag=True, help="List all sessions.")
@click.option("--agent", help="Only sessions of this agent, for example claude-code.")
@click.option("--project", help="Only sessions with this in the path of their project.")
@click.option("--model", help="Only sessions answered by a model with this in its name.")
@click.option("--title", help="Only sessions with this in their title.")
@click.option("--since", type=When(), help="Only sessions active since: 2026-11-01, today, '2 days ago'.")
@click.option("--until", type=When(), help="Only sessions that began before this time.")
@click.option(
    "--min-cost", "min_cost_usd", type=float, metavar="USD", help="Only sessions that cost at least this."
)
@click.option("--witness", type=click.Choice(WITNESSES), help="Only sessions that this witness recorded.")
@click.option("--live", is_flag=True, help="Only sessions whose agent runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/ls.json).")
@settings_options()
def command(
    settings: config.Configuration,
    limit: int,
    everything: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """List sessions, the one last active first.

    A session is one conversation, whoever recorded it: the agent's own file (t), the proxy's log (w), an SDK's (s), a
    run's (r), hooks (h); if the agent's file is gone, the files of its sub-agents (a) or what was typed (p) may be
    left. Forks are listed under the session that they were forked from. The model is the one that answered most in the
    main thread; +1 means that there is another. Active is how long the agent was at work. Tokens are all that were
    billed. Exchanges, tokens and cost of a fork are what came after it. A star marks a session whose agent runs, an
    exclamation mark one that failed or was interrupted.

    \b
    Examples:
      agent-logger ls
      agent-logger ls --agent claude-code --since yesterday
      agent-logger ls --project agent-logger --min-cost 5
      agent-logger ls --all --json
    """
    from agent_logger.catalog.summary import Filter

    conditions = Filter(**given)
    with opened(settings) as catalog:
        rows = catalog.sessions(conditions, limit=None if everything else limit)
        if as_json:
            _output.json([_session_row(row) for row in rows])
        elif rows:
            _print(rows, short_ids(catalog, [row.id for row in rows]))
            if (there := catalog.count(conditions)) > len(rows):
                _output.note(f"{len(rows)} of {there} sessions; --all shows them all")
            _note_damage(catalog, rows)
        else:
            _output.note("No sessions match." if catalog.count() else NOTHING_YET, lines=True)


def _note_damage(catalog: "Catalog", rows: "Sequence[SessionSummary]") -> None:
    if damaged := [row.id for row in rows if row.damaged_lines]:
        from agent_logger.cli._damaged import note_damage
        from agent_logger.views.figures import counted

        by_session = catalog.damaged_files(*damaged)
        files = {path: lines for them in by_session.values() for path, lines in them.items()}
        note_damage(files, f" in {counted(len(damaged), 'session')}")


def _session_row(summary: "SessionSummary") -> SessionRow:
    paths = [str(path) for path in summary.paths]
    log = summary.paths[0].stem if summary.paths else summary.id
    return SessionRow(**listed(summary), log=log, path=paths[0] if paths else "", paths=paths)


# ---------------------------------------------------------------- for people

HEAD = ("last active", "id", "title", "project", "model", "ex", "active", "tokens", "cost", "by")
TITLE, PROJECT, MODEL, *NUMBERS, BY = range(2, len(HEAD))
EXCHANGES, TIME, TOKENS, COST = NUMBERS
LEAST = {PROJECT: 8, MODEL: 8, TITLE: 14}  # columns that are cut where there is no room, and to what
LESS = (PROJECT, MODEL, TIME, EXCHANGES, BY, TOKENS, COST)  # that are left out where there is still none


def _print(rows: "Sequence[SessionSummary]", ids: dict[str, str]) -> None:
    cells = [_cells(row, ids[row.id], depth) for row, depth in _as_tree(rows)]
    widths = [max(screen.width(str(cell)) for cell in column) for column in zip(HEAD, *cells, strict=True)]
    columns = _fitting(widths)
    for row in cells:
        for column in LEAST:
            row[column] = screen.cut(str(row[column]), widths[column])
    right = [at for at, column in enumerate(columns) if column in NUMBERS]
    _output.table(
        [HEAD[column] for column in columns],
        [[row[column] for column in columns] for row in cells],
        fold=False,
        right=right,
    )


def _fitting(widths: list[int]) -> list[int]:
    """The columns for which there is room. Reduces `widths` to what each column gets."""
    room = screen.columns() + 2 - sum(widths) - 2 * len(HEAD)
    for column, least in LEAST.items():
        taken = min(max(0, widths[column] - least), max(0, -room))
        widths[column] -= taken
        room += taken
    gone = []
    for column in LESS:
        if room < 0:
            gone.append(column)
            room += widths[column] + 2
    widths[TITLE] = max(0, widths[TITLE] + room) if gone else widths[TITLE]
    return [column for column in range(len(HEAD)) if column not in gone]


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
    yield from ((row, 0) for forks in below.values() for row in forks)  # each says it is of another


def _cells(row: "SessionSummary", short_id: str, depth: int) -> list[str | int]:
    when = row.ended or row.started
    time_text = screen.day_and_time(when) if when else "-"
    title = _output.printable(" ".join((row.title or (row.paths[0].stem if row.paths else "")).split()))
    return [
        time_text + ("*" if row.live else "" if ended_well(row.ending) else "!"),
        short_id,
        "  " * (depth - 1) + ("└ " if depth else "") + title,
        _output.printable(Path(row.project).name) if row.project else "-",
        _model(row),
        row.exchanges,
        _duration(row.active_seconds),
        _tokens(row),
        _money(row),
        "p" if row.prompts_only else "".join(_letter(witness, row) for witness in sorted(row.witnesses)),
    ]


def _letter(witness: str, row: "SessionSummary") -> str:
    """The letter of a witness: `a` for a transcript whose main file is missing, of which only agents' files are
    left."""
    return "a" if witness == "transcript" and row.main_missing else witness[0]


def _model(row: "SessionSummary") -> str:
    """The model's name without its vendor and its date, which are long and say little."""
    if not row.models:
        return "-"
    short = re.sub(r"^claude-|-\d{8}$", "", row.models[0])
    more = len(set(row.models[1:]) - set(row.side_models))
    return short + (f" +{more}" if more else "")


def _tokens(row: "SessionSummary") -> str:
    count = row.usage.context_tokens + row.usage.output_tokens
    return "?" if row.cost.unpriced and not count else _thousands(count)


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
    return (f"{usd:,.2f}" if usd < 100 else f"{usd:,.0f}") + ("+?" if row.cost.unpriced else "")
