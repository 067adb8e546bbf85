"""`agent-logger ls`: sessions, the newest first."""

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import output
from agent_logger.errors import SourceError

if TYPE_CHECKING:
    from agent_logger.catalog.sessions import Place
    from agent_logger.session import Session

LIVE_SECONDS = 300
_LOG_NAME = re.compile(r"\d{8}-\d{6}-")  # its beginning is a date, and tells nothing


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    agent: str | None
    project: str | None
    title: str | None
    started: datetime | None
    ended: datetime | None
    exchanges: int
    turns: int
    witnesses: list[str]
    parent: str | None
    live: bool
    cost_usd: float | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    log: str  # the name of its log or file
    path: str


@click.command()
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--agent", help="Only those of this agent, for example claude-code.")
@click.option("--project", help="Only those whose project folder has this in its path.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/ls.json).")
@config.settings_options()
def command(
    settings: config.Settings,
    limit: int,
    everything: bool,
    agent: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """List sessions, the one last active first.

    They are read from the logs themselves: all folders that were ever recorded to.

    \b
    Examples:
      agent-logger ls
      agent-logger ls --agent claude-code -n 5
      agent-logger ls --all --json
    """
    from agent_logger.catalog.sessions import places

    rows: list[SessionRow] = []
    found = places(settings.home)
    with output.progress("reading", len(found)) as done:
        for place in found:
            if len(rows) == limit and not everything:
                break
            if (row := _row(place)) and _is_wanted(row, agent, project):
                rows.append(row)
            done(1)
    if as_json:
        output.json(rows)
    elif rows:
        _print(rows)
    else:
        output.note(
            "No sessions yet. 'agent-logger' starts recording; 'agent-logger demo' shows how it looks."
        )


def _row(place: "Place") -> SessionRow | None:
    try:
        session = place.read()
    except (SourceError, OSError) as error:
        output.note(f"{place.path}: {error}")
        return None
    return _told(place, session)


def _told(place: "Place", session: "Session") -> SessionRow:
    import time

    usage = session.usage
    return SessionRow(
        id=session.id,
        agent=session.agent or place.agent,
        project=session.project,
        title=output.hidden(session.title) if session.title else None,
        started=session.started,
        ended=session.ended,
        exchanges=len(session.exchanges),
        turns=len(session.turns),
        witnesses=sorted(session.witnesses),
        parent=session.parent,
        live=time.time() - place.modified < LIVE_SECONDS,
        cost_usd=session.cost.usd,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        log=place.name,
        path=str(place.path),
    )


def _is_wanted(row: SessionRow, agent: str | None, project: str | None) -> bool:
    return agent in (None, row.agent) and (project is None or project in (row.project or ""))


def _print(rows: list[SessionRow]) -> None:
    head = ("active", "id", "agent", "title", "turns", "in", "out")
    cells = [_cells(row) for row in rows]
    others = [max(len(str(it)) for it in column) for column in zip(head, *cells, strict=True)]
    room = max(10, output.columns() - sum(others) + others[3] - 2 * (len(head) - 1))
    output.table(head, [[*row[:3], str(row[3])[:room], *row[4:]] for row in cells])


def _cells(row: SessionRow) -> list[str | int]:
    when = row.ended or row.started
    told = f"{when.astimezone():%m-%d %H:%M}" if when else "-"
    context = row.input_tokens + row.cache_read_tokens + row.cache_write_tokens
    title = " ".join((row.title or Path(row.path).stem).split())
    is_branch = row.parent is not None and row.log.startswith(row.parent)
    name = row.log if is_branch or _LOG_NAME.match(row.id) else row.id[:8]
    return [
        told + (" *" if row.live else ""),
        name,
        row.agent or "-",
        title,
        row.turns,
        context,
        row.output_tokens,
    ]
