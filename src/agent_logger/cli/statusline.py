"""`agent-logger statusline`: print one line for an agent's status bar."""

import sys

import click

from agent_logger.cli import _output


@click.command()
def command() -> None:
    """Print one line for Claude Code's status bar.

    Reads the JSON that Claude Code passes to the command of its statusLine setting, and prints the model, the cost of
    the session, of today and of the active block of five hours, and how much of the context is used. To set it up, add
    this to ~/.claude/settings.json:

    \b
      "statusLine": {"type": "command", "command": "agent-logger statusline"}

    The exit code is always 0, and there is always a line: an error would blank the status bar.

    \b
    Examples:
      echo '{"model": {"display_name": "Opus"}}' | agent-logger statusline
    """
    from agent_logger.statusline import print_line

    if sys.stdin is not None and sys.stdin.isatty():
        _output.note("waits for the JSON that Claude Code passes; --help shows the setting")
    print_line()
