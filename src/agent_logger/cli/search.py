"""`agent-logger search`: search for words in all sessions."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import bar, homes_option, note_nothing, open_catalog
from agent_logger.cli._highlight import echo_marked
from agent_logger.cli._pager import paged, pager_option
from agent_logger.cli._select import short_ids
from agent_logger.cli._settings import settings_options
from agent_logger.cli._times import time_options
from agent_logger.home.homes import Homes
from agent_logger.model.plurals import pluralize
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.summary import Hit

MOST_COUNTED = 10_000  # matches; the catalog counts no further
SECONDS = 3.0  # to wait for sessions that are not in the index yet


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), metavar="N", default=10, show_default=True, help="Number of matches."
)
@time_options("matches")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema search' describes it.")
@pager_option()
@settings_options()
@homes_option(with_database=True)
def command(
    settings: config.Configuration,
    homes: Homes,
    words: tuple[str, ...],
    limit: int,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
    pager: bool,
) -> None:
    """Search for words in all sessions.

    Searches prompts, answers, thinking, the input and results of tools, and notes and labels (see tag). All words must
    occur. Put a phrase in quotes; word* finds words with this prefix. tool:Bash, file:login.py, is:error, project:NAME,
    agent:NAME, machine:NAME, label:NAME and is:pinned narrow the search. Among equally good matches, newer ones come
    first.

    \b
    Examples:
      agent-logger search timer
      agent-logger search '"connection refused"' tool:Bash
      agent-logger search 'migrat*' file:models.py project:shop
      agent-logger search is:error agent:codex --since 7d
    """
    typed = " ".join(words)
    _check(typed)
    with open_catalog(settings, homes) as catalog:
        with bar("indexing") as progress:
            whole = catalog.index(progress, seconds=SECONDS)
        hits = catalog.search(typed, limit=limit, since=since, until=until)
        with paged(pager):
            if as_json:
                _output.json(hits)
            else:
                _print(hits, short_ids(catalog, {name for hit in hits for name in (hit.session, *hit.forks)}))
                if not hits:
                    note_nothing(catalog, "No matches.")
                else:
                    _note_more(len(hits), catalog.count_hits(typed, since=since, until=until))
            if not whole:
                _note_coverage(settings, catalog)


def _check(typed: str) -> None:
    """Report a query that cannot be understood, before anything is read."""
    from agent_logger.catalog.search.query import read

    try:
        read(typed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _note_more(count: int, there: int) -> None:
    if there > count:
        least = "at least " if there == MOST_COUNTED else ""
        _output.note(f"{count:,} of {least}{pluralize(there, 'match', 'matches')}; -n shows more")


def _note_coverage(settings: config.Configuration, catalog: "Catalog") -> None:
    from agent_logger.catalog.background import start

    done, total = catalog.coverage
    if catalog.is_read_only:
        _output.note(f"index is {100 * done // max(total, 1)}% complete (newest sessions first)")
        return
    going = start(catalog.homes, settings.seal_after)
    rest = "the rest is being indexed in the background" if going else "the next searches index the rest"
    _output.note(f"index is {100 * done // max(total, 1)}% complete (newest sessions first); {rest}")


def _print(hits: "Sequence[Hit]", ids: dict[str, str]) -> None:
    for hit in hits:
        when = f"{hit.at.astimezone():%Y-%m-%d %H:%M}" if hit.at else "-"
        title = " ".join((hit.title or "").split())
        head = f"{when}  {_place(hit)}  {title}"
        _output.echo(screen.cut(_output.printable(head), screen.columns()))
        echo_marked(hit.snippet, hit.marks, indent="  ")
        turn = hit.answer if hit.turn is None else hit.turn
        line = f"  agent-logger show {ids[hit.session]}" + ("" if turn is None else f" --turn {turn}")
        _output.echo(line + screen.cut(_in_forks(hit, ids), screen.columns() - screen.width(line)))


def _place(hit: "Hit") -> str:
    """Where in the session the match is: `exchange 3, turn 12, tool use`; `exchange 3, prompt`."""
    kind = "prompt" if hit.kind == "input" else hit.kind.replace("_", " ")
    places = (f"exchange {hit.exchange}" if hit.exchange else "", "" if hit.turn is None else f"turn {hit.turn}", kind)
    return ", ".join(filter(None, places))


def _in_forks(hit: "Hit", ids: dict[str, str]) -> str:
    if not hit.forks:
        return ""
    more = f" and {len(hit.forks) - 1} more" if len(hit.forks) > 1 else ""
    return f"  (also in the fork {ids[hit.forks[0]]}{more})"
