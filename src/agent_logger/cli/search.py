"""`agent-logger search`: search for words in all sessions."""

from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import NOTHING_YET, bar, opened
from agent_logger.cli._highlight import echo_marked
from agent_logger.cli._select import short_ids
from agent_logger.cli._settings import settings_options
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.summary import Hit

SECONDS = 3.0  # that a person waits for sessions that are not in the index yet


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Number of matches."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/search.json).")
@settings_options()
def command(settings: config.Configuration, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Search for words in all sessions.

    Searches what was typed, said and thought, what tools were given and what they answered. All words must occur. Put a
    phrase in quotes; word* finds words that begin so. tool:Bash, file:login.py, is:error, project:NAME and agent:NAME
    narrow the search. Of equally good matches, newer ones come first.

    \b
    Examples:
      agent-logger search timer
      agent-logger search '"connection refused"' tool:Bash
      agent-logger search 'migrat*' file:models.py project:shop
      agent-logger search is:error agent:codex
    """
    typed = " ".join(words)
    _check(typed)
    with opened(settings) as catalog:
        with bar("reading texts") as progress:
            whole = catalog.index(progress, seconds=SECONDS)
        hits = catalog.search(typed, limit=limit)
        if as_json:
            _output.json(hits)
        else:
            _print(hits, short_ids(catalog, {name for hit in hits for name in (hit.session, *hit.forks)}))
            if not hits:
                _output.note("Nothing found." if catalog.count() else NOTHING_YET, lines=True)
        if not whole:
            _say_how_far(settings, catalog)


def _check(typed: str) -> None:
    """Report a query that cannot be understood, before anything is read."""
    from agent_logger.catalog.search.query import read

    try:
        read(typed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _say_how_far(settings: config.Configuration, catalog: "Catalog") -> None:
    from agent_logger.catalog.background import start

    done, total = catalog.coverage
    going = start(settings.home, settings.seal_after)
    rest = "the rest is being read in the background" if going else "the rest is read with the next searches"
    _output.note(f"index is {100 * done // max(total, 1)}% complete (newest sessions first); {rest}")


def _print(hits: "Sequence[Hit]", ids: dict[str, str]) -> None:
    for hit in hits:
        when = f"{hit.at.astimezone():%Y-%m-%d %H:%M}" if hit.at else "-"
        title = " ".join((hit.title or "").split())
        head = f"{when}  {hit.kind.replace('_', ' ')}  {title}"
        _output.echo(screen.cut(_output.printable(head), screen.columns()))
        echo_marked(hit.snippet, hit.marks, indent="  ")
        turn = "" if hit.turn is None else f" --turn {hit.turn}"
        line = f"  agent-logger show {ids[hit.session]}{turn}"
        _output.echo(line + screen.cut(_in_forks(hit, ids), screen.columns() - screen.width(line)))


def _in_forks(hit: "Hit", ids: dict[str, str]) -> str:
    if not hit.forks:
        return ""
    more = f" and {len(hit.forks) - 1} more" if len(hit.forks) > 1 else ""
    return f"  (copied to the fork {ids[hit.forks[0]]}{more})"
