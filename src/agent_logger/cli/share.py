"""`agent-logger share`: how much of which project is shared with the hub."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

if TYPE_CHECKING:
    from agent_logger.push.levels import ShareRules

LEVELS = ("none", "numbers", "titles", "contents")


@click.command()
@click.argument("pattern", metavar="[GLOB]", required=False)
@click.option("--level", type=click.Choice(LEVELS), help="Share projects that match GLOB, or all, at this level.")
@click.option("--show", is_flag=True, help="Print exactly what would be sent, as JSON lines.")
@settings_options()
def command(settings: config.Configuration, pattern: str | None, level: str | None, show: bool) -> None:
    """Show or set how much of which project is shared with the hub.

    GLOB matches the folders of projects and those above them; the last one that matches counts. Without GLOB, --level
    is that of all other projects. The levels are kept in the table [share.levels] of config.toml in the home.

    \b
    none      nothing
    numbers   per response: time, model, tokens, ids of the vendor; the
              session's id, its agent, and a name for the project that says
              nothing (the default)
    titles    also the session's title, and names of tools and files
    contents  everything, with keys removed once more

    A lower level deletes on the hub what is above it, with the next push. --show prints a line for each object: its
    head, then its content.

    \b
    Examples:
      agent-logger share
      agent-logger share '~/work/*' --level contents
      agent-logger share --level titles
      agent-logger share '~/work/*' --show
    """
    if level:
        if show:
            raise click.UsageError("give --level or --show, not both")
        _set(settings, pattern, level)
        return
    from agent_logger.push.levels import share_rules

    rules = share_rules(settings.share, settings.file)
    if show:
        _show(settings, rules, pattern)
    else:
        for name, each in {"*": "numbers", **rules.levels}.items():
            if pattern in (None, name):
                _output.echo(f"{each:9} {name}")


def _set(settings: config.Configuration, pattern: str | None, level: str) -> None:
    from agent_logger.files.replace import Edited
    from agent_logger.push.levels import EVERYTHING, with_level

    path = settings.file or settings.home / "config.toml"
    edited = Edited.read(path)
    text = with_level(edited.text, _full(pattern) if pattern else EVERYTHING, level)  # type: ignore[arg-type]
    if text == edited.text:
        _output.note(f"{path} says so already")
        return
    for line in edited.diff(text):
        _output.note(line)
    edited.write(text)
    _output.note("The next push sends what is new, and deletes on the hub what is no longer shared.")


def _full(pattern: str) -> str:
    """Return the pattern as an absolute path, unless it begins with a home folder or a wildcard."""
    return pattern if pattern[0] in "~*/" else str(Path(pattern).absolute())


def _show(settings: config.Configuration, rules: "ShareRules", pattern: str | None) -> None:
    from agent_logger.cli._catalog import open_catalog
    from agent_logger.home.layout import install_key
    from agent_logger.push.show import lines_of

    with open_catalog(settings) as catalog:
        for line in lines_of(catalog, install_key(settings.home), rules, pattern):
            _output.json_bytes(line + b"\n")
