"""`agent-logger hook`: what an agent's hooks call, and the setup of the hooks."""

import sys
from pathlib import Path

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError


@click.command()
@click.option("--print-settings", is_flag=True, help="Print the block to paste into settings.json.")
@click.option("--install", is_flag=True, help="Add the block to your settings: shows the change and asks.")
@click.option(
    "--uninstall", is_flag=True, help="Remove the block from your settings: shows the change and asks."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options()
def command(
    settings: config.Configuration,  # noqa: ARG001
    print_settings: bool,
    install: bool,
    uninstall: bool,
    yes: bool,
) -> int:
    """Store what an agent sends to its hook on stdin, and its transcript.

    Agents call this, not people: it prints nothing and exits with 0 whatever happens. The input is stored, redacted, in
    hooks/ of the home; the transcript that it names in archive/. The options set up Claude Code to call it.

    \b
    Examples:
      agent-logger hook --print-settings
      agent-logger hook --install
    """
    if print_settings + install + uninstall > 1:
        raise click.UsageError("one of --print-settings, --install, --uninstall")
    if print_settings:
        return _print_settings()
    if install or uninstall:
        return _change(install, yes)
    raise click.UsageError("an agent calls this, with its input on stdin; --install tells it to")


def _print_settings() -> int:
    import json

    from agent_logger.hooks.settings import block

    _output.json_text(json.dumps(block(_own_command()), indent=2))
    return 0


def _own_command() -> list[str]:
    """The command with its full path: the PATH of an agent need not contain it."""
    program = Path(sys.argv[0]).absolute()
    if program.name == "agent-logger" and program.exists():
        return [str(program), "hook"]
    return [sys.executable, "-m", "agent_logger", "hook"]


def _change(install: bool, yes: bool) -> int:
    from agent_logger.agents.claude_code.folders import claude_roots
    from agent_logger.files.replace import Edited
    from agent_logger.hooks.settings import installed, uninstalled

    edited = Edited.read(claude_roots()[0] / "settings.json")
    try:
        after = installed(edited.text, _own_command()) if install else uninstalled(edited.text)
    except SourceError as error:
        raise SourceError(f"{edited.path}: {error}; nothing was changed") from error
    if after == edited.text:
        _output.note("nothing to do: " + ("the hooks are there" if install else "no hook of ours is there"))
        return 0
    for line in edited.diff(after):
        _output.echo(line)
    if not _output.is_agreed(f"Write this to {edited.path}?", yes=yes):
        return 1
    edited.write(after)
    _output.note("done; sessions that run now call the hooks after their next start" if install else "done")
    return 0
