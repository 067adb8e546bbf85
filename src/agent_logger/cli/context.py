"""`agent-logger context`: which instructions and settings apply here."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.model.plurals import pluralize

if TYPE_CHECKING:
    from agent_logger.agents.claude_code.context import Context, Settings

SCOPES = {
    "folder": "this folder",
    "parent": "on the way to the git root",
    "above": "above the git root",
    "user": "yours",
}


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema context' describes it.")
@settings_options()
def command(settings: config.Configuration, folder: Path, as_json: bool) -> None:  # noqa: ARG001
    """Show which instructions and settings Claude Code loads in FOLDER.

    Lists the CLAUDE.md files that apply, the settings files in order, and the environment variables that Claude Code
    reads. Only sizes are shown, not the text; --json adds an HMAC of each file, to compare two sessions.

    \b
    Examples:
      agent-logger context
      agent-logger context ~/project --json
    """
    from agent_logger.recording.context import context

    applied = context(folder)
    if as_json:
        _output.json(_without_secrets(applied))
    else:
        _print(applied)


def _without_secrets(context: "Context") -> "Context":
    """The context with only the names of the variables that `env` sets: their values may be keys of any form."""
    from msgspec.structs import replace

    files = [
        replace(settings_file, settings=settings_file.settings and _names_only(settings_file.settings))
        for settings_file in context.settings_files
    ]
    return replace(context, settings_files=files, settings=_names_only(context.settings))


def _names_only(settings: "Settings") -> "Settings":
    from msgspec.structs import replace

    env = settings.rest.get("env")
    if not isinstance(env, dict):
        return settings
    return replace(settings, rest={**settings.rest, "env": dict.fromkeys(env, "[redacted]")})


def _print(context: "Context") -> None:
    from agent_logger.agents.claude_code.context import DEFAULT_CLEANUP_DAYS

    _output.echo(f"folder    {context.cwd}")
    _output.echo(f"git root  {context.git_root or 'none (not a repository)'}")
    _output.echo("")
    rows: list[tuple[str | int, ...]] = [
        (instruction.path, SCOPES[instruction.scope], instruction.bytes) for instruction in context.instructions
    ]
    _table(("instructions", "whose", "bytes"), rows, "no CLAUDE.md applies here")
    files = [
        (settings_file.path, _state(settings_file.is_there, settings_file.applies, settings_file.problem))
        for settings_file in context.settings_files
    ]
    _table(("settings (later files win)", ""), files, "")
    merged = context.settings
    days = merged.cleanup_period_days
    cleanup = f"{DEFAULT_CLEANUP_DAYS} days (default)" if days is None else pluralize(days, "day")
    detail_rows: list[tuple[str | int, ...]] = [
        ("hooks", ", ".join(merged.hooks) or "none"),
        ("agent", merged.agent or "not set"),
        ("permission mode", merged.permission_mode or "not set"),
        ("sessions are deleted after", cleanup),
        ("other settings", ", ".join(merged.rest) or "none"),
    ]
    _table(("combined", ""), detail_rows, "")
    _table(("variable", "value"), list(context.variables.items()), "no variables of Claude Code are set")


def _state(is_there: bool, applies: bool, problem: str | None) -> str:
    if not is_there:
        return "missing"
    if problem:
        return f"cannot be parsed: {problem}"
    return "applies" if applies else "does not apply: CLAUDE_CONFIG_DIR is set"


def _table(head: tuple[str, ...], rows: "list[tuple[str | int, ...]] | list[tuple[str, str]]", none: str) -> None:
    if rows:
        _output.table(head, rows)
    else:
        _output.echo(none)
    _output.echo("")
