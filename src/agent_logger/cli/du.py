"""`agent-logger du`: what the logs take on the disk."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import output
from agent_logger.errors import SourceError

if TYPE_CHECKING:
    from agent_logger.store.usage import FolderUsage


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/du.json).")
@config.settings_options("log_dir", "sessions_dir")
def command(settings: config.Settings, paths: tuple[Path, ...], as_json: bool) -> None:
    """What logs take on the disk, in megabytes.

    PATHS are folders. Without PATHS: the log folder, the sessions folder and the home.
    Sealed parts are compressed to about a fortieth; `seal_after` says when that happens.

    \b
    Examples:
      agent-logger du
      agent-logger du ~/work/logs --json
    """
    from agent_logger.store.usage import folder_usage

    wanted = paths or [it for it in (settings.log_dir, settings.sessions_dir, settings.home) if it.exists()]
    for path in wanted:
        if not path.is_dir():
            raise SourceError(f"{path}: no such folder")
    usages = [folder_usage(path) for path in wanted]
    if as_json:
        output.json(usages)
        return
    if not usages:
        output.echo("No logs yet: neither a log folder, a sessions folder nor a home is there.")
        return
    head = ("folder", "logs", "plain", "sealed", "live", "bodies", "other", "total", "free")
    output.table(head, [_row(it) for it in usages])


def _row(usage: "FolderUsage") -> list[str | int]:
    sizes = (usage.plain_bytes, usage.sealed_bytes, usage.live_bytes, usage.body_bytes, usage.other_bytes)
    return [usage.path, usage.logs, *map(_megabytes, (*sizes, usage.total_bytes, usage.free_bytes))]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"
