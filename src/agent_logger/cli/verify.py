"""`agent-logger verify`: check that everything recorded can still be read."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import folders_of_logs
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError
from agent_logger.views.figures import counted

if TYPE_CHECKING:
    from agent_logger.logs.verify import FileReport


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/verify.json).")
@settings_options("log_dir", "sessions_dir")
def command(settings: config.Configuration, paths: tuple[Path, ...], as_json: bool) -> int:
    """Read every byte of the logs, and report damage.

    PATHS are files, or folders to search for logs: ours, plain or sealed, and the JSONL files that agents leave behind.
    Without PATHS: the log folder, the sessions folder, the home, and every other folder that was ever recorded to.

    A torn end is not damage: the line is being written, or its writer was killed, and the next writer ends it. Exit
    code: 0 everything can be read, 1 there is damage.

    \b
    Examples:
      agent-logger verify
      agent-logger verify ~/.claude/projects
      agent-logger verify logs/anthropic/20261115-084532-a7f3.jsonl.zst --json
    """
    from agent_logger.logs.verify import log_files, summary

    files = [file for path in paths or folders_of_logs(settings) for file in log_files(_existing(path))]
    reports = list(_with_progress(files))
    report = summary(reports)
    if as_json:
        _output.json(report)
        return 1 if report.damage else 0
    for file_report in reports:
        for line in _trouble_lines(file_report):
            _output.echo(line)
    _output.echo(
        f"{counted(len(files), 'file')}, {counted(report.records, 'record')}, {report.bytes:,} bytes: "
        f"{counted(report.torn, 'torn end')}, {report.mended:,} mended, {report.damage:,} damaged"
    )
    if not files:
        _output.note("There is no log there." if paths else "Nothing is recorded yet.")
    return 1 if report.damage else 0


def _existing(path: Path) -> Path:
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder")
    return path


def _with_progress(files: list[Path]) -> Iterator["FileReport"]:
    from agent_logger.logs.verify import verify_file
    from agent_logger.platform import size_of

    sizes = [size_of(path) for path in files]
    with _output.progress("reading", sum(sizes)) as advance:
        for path, size in zip(files, sizes, strict=True):
            yield verify_file(path)
            advance(size)


def _trouble_lines(report: "FileReport") -> Iterable[str]:
    for bad in report.damage:
        yield f"{report.path}:{bad.line}: offset {bad.offset}, {counted(bad.length, 'byte')}: {bad.reason}"
    if report.lost:
        yield f"{report.path}: {counted(report.lost, 'record')} could not be written, as it says itself"
    if report.torn_bytes:
        yield f"{report.path}: torn end of {counted(report.torn_bytes, 'byte')}"
