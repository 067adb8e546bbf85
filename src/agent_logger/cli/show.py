"""`agent-logger show`: one session, readable."""

from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import output
from agent_logger.cli.session_text import session_lines
from agent_logger.errors import SourceError

if TYPE_CHECKING:
    from agent_logger.catalog.sessions import Place

MOST_CANDIDATES = 10


@click.command()
@click.argument("session", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/show.json).")
@config.settings_options()
def command(settings: config.Settings, session: str, as_json: bool) -> None:
    """Print a session as a conversation.

    ID is the client's id of a session, the name of its log, the beginning of one of them that no other has, or a
    path. Tools are shortened, sub-agents are indented, and what looks like a key is not shown.

    \b
    Examples:
      agent-logger show 1f320356
      agent-logger show logs/anthropic/20261115-084532-a7f3.jsonl
      agent-logger show 1f320356 --json | jq '.exchanges[0].user_input'
    """
    from agent_logger.export.json import session_json

    read = one_called(settings, session).read()
    if as_json:
        output.json_text(session_json(read))
        return
    for line in session_lines(read, output.columns()):
        output.echo(line)


def one_called(settings: config.Settings, wanted: str) -> "Place":
    from agent_logger.catalog.sessions import called

    found = called(settings.home, wanted)
    if not found:
        raise SourceError(f"no session {wanted!r}; 'agent-logger ls' lists them")
    if len(found) > 1:
        names = [it.name for it in found[:MOST_CANDIDATES]] + ["..."] * (len(found) > MOST_CANDIDATES)
        raise click.UsageError(f"{wanted!r} may be any of {', '.join(names)}; say more of it, or the path")
    return found[0]
