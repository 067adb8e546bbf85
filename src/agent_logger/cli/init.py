"""`agent-logger init`: set up a project folder for logs."""

from collections.abc import Sequence
from pathlib import Path

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

RULES = ("/sessions/*", "!/sessions/.gitkeep", "/logs/")
KEEP = "!/.gitkeep"  # in a sessions folder with a recording, which has a .gitignore of its own


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False, exists=True))
@settings_options()
def command(settings: config.Configuration, folder: Path, yes: bool) -> int:  # noqa: ARG001
    """Set up a project folder so that its logs stay out of git.

    Shows the changes and asks: sessions/.gitkeep keeps the folder in git, lines in .gitignore keep the logs out.
    Existing lines and files are not changed; a second run does nothing. It makes no difference whether something was
    recorded before.

    \b
    Examples:
      agent-logger init
      agent-logger init --yes ~/project
    """
    keep = folder / "sessions" / ".gitkeep"
    rules = [*_missing(folder / ".gitignore", RULES), *_missing(keep.with_name(".gitignore"), [KEEP], must_exist=True)]
    if keep.exists() and not rules:
        _output.note("nothing to do: this folder is already set up")
        return 0
    if not keep.exists():
        _output.echo(f"create {keep}")
    for ignore, rule in rules:
        _output.echo(f"add to {ignore}: {rule}")
    if not _output.confirm("Make these changes?", yes=yes):
        return 1
    keep.parent.mkdir(mode=0o700, exist_ok=True)
    keep.touch()
    for ignore, rule in rules:
        _add(ignore, rule)
    return 0


def _missing(ignore: Path, rules: Sequence[str], *, must_exist: bool = False) -> list[tuple[Path, str]]:
    """The rules that the file does not have."""
    if must_exist and not ignore.exists():
        return []
    lines = _text(ignore).splitlines()
    return [(ignore, rule) for rule in rules if rule not in lines]


def _add(ignore: Path, rule: str) -> None:
    text = _text(ignore)
    gap = "" if not text or text.endswith("\n") else "\n"
    with ignore.open("a", encoding="utf-8") as file:
        file.write(f"{gap}{rule}\n")


def _text(path: Path) -> str:
    return path.read_text("utf-8", "surrogateescape") if path.exists() else ""
