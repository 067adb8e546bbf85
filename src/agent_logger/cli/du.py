"""`agent-logger du`: show how much disk space the logs use."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import folders_of_logs
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError
from agent_logger.views.figures import bytes_text

if TYPE_CHECKING:
    from agent_logger.logs.disk_usage import FolderUsage

HEAD = ("plain", "sealed", "live", "bodies", "other", "total", "free", "logs", "folder")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema du' describes it.")
@settings_options("log_dir", "sessions_dir")
def command(settings: config.Configuration, paths: tuple[Path, ...], as_json: bool) -> None:
    """Show how much disk space the logs use.

    PATHS are folders. Without PATHS: the home, and every folder that was ever recorded to or chosen with --log-dir or
    --sessions-dir. Sealing compresses old parts of a log to about a fortieth of their size; `seal_after` sets when.

    \b
    Examples:
      agent-logger du
      agent-logger du ~/work/logs --json
    """
    from agent_logger.logs.disk_usage import folder_usage

    folders = paths or folders_of_logs(settings)
    for path in folders:
        if not path.is_dir():
            raise SourceError(f"{path}: no such folder")
    usages = [folder_usage(path) for path in folders]
    if as_json:
        _output.json(usages)
        return
    if not usages:
        _output.echo("No logs yet: there is no log folder, no sessions folder and no home.")
        return
    _print([_row(usage) for usage in usages])


def _print(rows: list[list[str | int]]) -> None:
    """Print the rows, without empty columns."""
    used = [at for at in range(len(HEAD)) if any(row[at] != "-" for row in rows)]
    cells = [[row[at] for at in used] for row in rows]
    _output.table([HEAD[at] for at in used], cells, fold=False, right=range(len(used) - 1))


def _row(usage: "FolderUsage") -> list[str | int]:
    sizes = (usage.plain_bytes, usage.sealed_bytes, usage.live_bytes, usage.body_bytes, usage.other_bytes)
    texts = [bytes_text(size) if size else "-" for size in (*sizes, usage.total_bytes, usage.free_bytes)]
    return [*texts, usage.logs, usage.path]
