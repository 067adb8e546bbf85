"""`agent-logger hook`: what an agent's hooks call, and the setup of the hooks."""

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._own_command import own_command
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError


@click.command()
@click.option("--print-settings", is_flag=True, help="Print the block to paste into settings.json.")
@click.option("--install", is_flag=True, help="Add the block to your settings: shows the change and asks.")
@click.option("--uninstall", is_flag=True, help="Remove the block from your settings: shows the change and asks.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options()
def command(
    settings: config.Configuration,  # noqa: ARG001
    print_settings: bool,
    install: bool,
    uninstall: bool,
    yes: bool,
) -> int:
    """Store the input of an agent's hook, and its transcript.

    Agents call this command; people do not. It reads the hook's input from stdin, prints nothing, and always exits with
    0. The input is redacted and stored in hooks/ in the home; the transcript that it names is copied to archive/. The
    options set up Claude Code to call this command.

    \b
    Examples:
      agent-logger hook --print-settings
      agent-logger hook --install
    """
    if print_settings + install + uninstall > 1:
        raise click.UsageError("use only one of --print-settings, --install, --uninstall")
    if print_settings:
        return _print_settings()
    if install or uninstall:
        return _change(install, yes)
    raise click.UsageError("this command is called by an agent, with input on stdin; --install sets that up")


def _print_settings() -> int:
    import json

    from agent_logger.hooks.settings import block

    _output.json_text(json.dumps(block(own_command("hook")), indent=2))
    return 0


def _change(install: bool, yes: bool) -> int:
    from agent_logger.agents.claude_code.folders import claude_roots
    from agent_logger.files.replace import Edited
    from agent_logger.hooks.settings import add_hooks, remove_hooks

    edited = Edited.read(claude_roots()[0] / "settings.json")
    try:
        after = add_hooks(edited.text, own_command("hook")) if install else remove_hooks(edited.text)
    except SourceError as error:
        raise SourceError(f"{edited.path}: {error}; nothing was changed") from error
    if after == edited.text:
        _output.note(
            "nothing to do: "
            + ("the hooks are already installed" if install else "no hook of agent-logger is installed")
        )
        return 0
    for line in edited.diff(after):
        _output.echo(line)
    if not _output.confirm(f"Write this to {edited.path}?", yes=yes):
        return 1
    edited.write(after)
    _output.note("done; running sessions use the hooks after a restart" if install else "done")
    return 0
