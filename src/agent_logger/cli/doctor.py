"""`agent-logger doctor`: is all well, and if not, what to do."""

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import output

if TYPE_CHECKING:
    from agent_logger.cli.checks import Finding

MARKS = {"ok": "ok", "note": "-", "wrong": "WRONG"}
MARGIN = 18  # columns: the mark and what was looked at


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/doctor.json).")
@config.settings_options()
def command(settings: config.Settings, as_json: bool) -> int:
    """Is all well? If not, what to do.

    Looks at the proxy, at known log folders and damage in them, at which agents are set up and which run unseen,
    at hooks, and at what agents will delete and when; --json lists those sessions. Changes nothing. Exit code: 0
    nothing is wrong, 1 something is.

    \b
    Examples:
      agent-logger doctor
      agent-logger doctor --json | jq '.doomed[].path'
    """
    from agent_logger.capture.proxy.status import proxy_reports
    from agent_logger.cli.checks import examine

    examined = examine(settings.home, proxy_reports(settings.home))
    if as_json:
        output.json(examined)
    else:
        for it in examined.findings:
            for line in _lines(it):
                output.echo(line)
    return 1 if any(it.mark == "wrong" for it in examined.findings) else 0


def _lines(it: "Finding") -> Iterator[str]:
    """On a terminal what was found is folded, not what to type; in a pipe it is one line."""
    first = f"{MARKS[it.mark]:6}{it.check:12}"
    if output.is_terminal():
        room, rest = max(2 * MARGIN, output.columns()), " " * MARGIN
        yield fill(it.found, room, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    else:
        yield first + it.found
    if it.next:
        yield f"{'':{MARGIN}}> {it.next}"
