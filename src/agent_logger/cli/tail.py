"""`agent-logger tail`: follow what live sessions do."""

import time
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import homes_option, open_catalog, register_folders
from agent_logger.cli._select import resolve_id
from agent_logger.cli._settings import settings_options
from agent_logger.home.homes import Homes
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.live.moments import Moment

POLL_SECONDS = 0.5


@click.command()
@click.option("--session", metavar="ID", help="Follow only this session, live or not.")
@click.option(
    "-n",
    "lines",
    type=click.IntRange(min=0),
    metavar="N",
    default=10,
    show_default=True,
    help="Number of earlier lines to show first.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON, one object per line; 'agent-logger schema tail' describes it.",
)
@settings_options()
@homes_option()
def command(settings: config.Configuration, homes: Homes, session: str | None, lines: int, as_json: bool) -> None:
    """Follow all live sessions until Ctrl-C.

    Prints one line per event: the time, the session, the thread, and the kind: input (a prompt), text, thinking, tool
    (a call), result, error. Follows agents' own files if there are any, otherwise the recordings of the proxy or an
    SDK.

    \b
    Examples:
      agent-logger tail
      agent-logger tail --session 1f320356 -n 100
      agent-logger tail --json | jq 'select(.what == "error")'
    """
    from agent_logger.catalog.live.tail import Tail

    if not session and homes.has_own:  # else it is done when the catalog is opened
        register_folders(settings)
    tail = Tail(homes, _meant(settings, homes, session) if session else None)
    moments = tail.poll()
    if not tail.sessions:
        _output.note("No live sessions. New ones appear here; press Ctrl-C to stop.")
    _print(moments[len(moments) - lines :] if lines < len(moments) else moments, as_json=as_json)
    while True:
        time.sleep(POLL_SECONDS)
        _print(tail.poll(), as_json=as_json)


def _meant(settings: config.Configuration, homes: Homes, name: str) -> str:
    with open_catalog(settings, homes) as catalog:
        return resolve_id(catalog, name)


def _print(moments: "list[Moment]", *, as_json: bool) -> None:
    import msgspec

    for moment in moments:
        redacted = msgspec.structs.replace(moment, text=_output.hidden(moment.text))
        if as_json:
            _output.json_lines([msgspec.json.encode(redacted) + b"\n"])
        else:
            _output.echo(_line(redacted))


def _line(moment: "Moment") -> str:
    """The line of an event: cut to the width of a terminal, whole in a pipe."""
    at = f"{moment.at.astimezone():%H:%M:%S}" if moment.at else "        "
    thread = moment.thread.partition(":")[2][:8] or moment.thread
    text = _output.printable(" ".join(moment.text.split()))
    line = f"{at}  {screen.short_id(moment.session)}  {thread:<8}  {moment.what:<8}  {text}"
    return screen.cut(line, screen.columns()) if screen.is_terminal() else line
