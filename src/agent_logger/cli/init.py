"""`agent-logger init`: set up a project folder for logs."""

from pathlib import Path

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

RULES = ("/sessions/*", "!/sessions/.gitkeep", "/logs/")


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False, exists=True))
@settings_options()
def command(settings: config.Configuration, folder: Path, yes: bool) -> int:  # noqa: ARG001
    """Set up a project folder so that its logs stay out of git.

    Shows what it will do and asks: sessions/.gitkeep keeps the folder, lines in .gitignore keep the logs out. Existing
    lines and files stay; a second run changes nothing.

    \b
    Examples:
      agent-logger init
      agent-logger init --yes ~/project
    """
    keep, ignore = folder / "sessions" / ".gitkeep", folder / ".gitignore"
    ignored = ignore.read_text("utf-8", "surrogateescape") if ignore.exists() else ""
    rules = [rule for rule in RULES if rule not in ignored.splitlines()]
    if keep.exists() and not rules:
        _output.note("nothing to do: this folder is set up")
        return 0
    if not keep.exists():
        _output.echo(f"make {keep}")
    for rule in rules:
        _output.echo(f"add to {ignore}: {rule}")
    if not _output.is_agreed("Do it?", yes=yes):
        return 1
    keep.parent.mkdir(mode=0o700, exist_ok=True)
    keep.touch()
    if rules:
        gap = "" if not ignored or ignored.endswith("\n") else "\n"
        with ignore.open("a", encoding="utf-8") as file:
            file.write(gap + "".join(f"{rule}\n" for rule in rules))
    return 0
