"""`agent-logger doctor`: check the setup and suggest fixes."""

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import register_folders
from agent_logger.cli._settings import settings_options
from agent_logger.views.terminal import screen
from agent_logger.views.terminal.rows import SMALLEST, fold

MARKS = {"ok": "ok", "note": "-", "wrong": "WRONG"}
MARGIN = 18  # columns before what was found


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema doctor' describes it.")
@settings_options()
def command(settings: config.Configuration, as_json: bool) -> int:
    """Check the setup and suggest fixes.

    Checks the proxy, the known log folders, damage in logs and in agents' files, which agents use the proxy and which
    bypass it, the hooks, and which sessions agents will delete, and when; --json lists these sessions. Changes nothing.
    Exit code: 0 if nothing is wrong, 1 otherwise.

    \b
    Examples:
      agent-logger doctor
      agent-logger doctor --json | jq '.doomed[].path'
    """
    from agent_logger.cli._checks import examine
    from agent_logger.proxy.status import proxy_reports

    register_folders(settings)
    examined = examine(settings.home, proxy_reports(settings.home))
    if as_json:
        _output.json(examined)
    else:
        for finding in examined.findings:
            _echo(f"{MARKS[finding.mark]:6}{finding.check}".ljust(MARGIN), finding.text)
            if finding.next:
                _echo(" " * MARGIN + "> ", finding.next)
    return 1 if any(finding.mark == "wrong" for finding in examined.findings) else 0


def _echo(head: str, text: str) -> None:
    """Print the text: on a terminal folded to its width and indented below its start, in a pipe as one line."""
    lines = fold(text, max(SMALLEST, screen.columns() - len(head))) if screen.is_terminal() else [text]
    _output.echo(head + ("\n" + " " * len(head)).join(map(_output.printable, lines)), lines=True)
