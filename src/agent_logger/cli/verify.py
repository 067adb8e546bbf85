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
from agent_logger.model.plurals import pluralize

if TYPE_CHECKING:
    from agent_logger.logs.verify import FileReport


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema verify' describes it.")
@settings_options("log_dir", "sessions_dir")
def command(settings: config.Configuration, paths: tuple[Path, ...], as_json: bool) -> int:
    """Read all logs and report damage.

    PATHS are files, or folders to search for logs: our own, plain or sealed, and the JSONL files of agents. Without
    PATHS: the home, and every folder that was ever recorded to or chosen with --log-dir or --sessions-dir.

    A torn end is not damage: the line is still being written, or its writer was killed and the next writer will end it.
    Exit code: 0 if everything can be read, 1 if there is damage.

    \b
    Examples:
      agent-logger verify
      agent-logger verify ~/.claude/projects
      agent-logger verify logs/anthropic/20261115-084532-a7f3.jsonl.zst --json
    """
    from agent_logger.logs.verify import log_files, summary

    for path in paths:
        if not path.exists():
            raise SourceError(f"{path}: no such file or folder")
    files = [file for path in paths or folders_of_logs(settings) for file in log_files(path)]
    reports = list(_with_progress(files))
    report = summary(reports)
    if as_json:
        _output.json(report)
        return 1 if report.damage else 0
    for file_report in reports:
        for line in _trouble_lines(file_report):
            _output.echo(line)
    _output.echo(
        f"{pluralize(len(files), 'file')}, {pluralize(report.records, 'record')}, {pluralize(report.bytes, 'byte')}: "
        f"{pluralize(report.torn, 'torn end')}, {report.mended:,} repaired, {report.damage:,} damaged"
    )
    if not files:
        _output.note("No logs found." if paths else "No logs yet.")
    return 1 if report.damage else 0


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
        yield f"{report.path}:{bad.line}: offset {bad.offset}, {pluralize(bad.length, 'byte')}: {bad.reason}"
    if report.lost:
        yield f"{report.path}: {pluralize(report.lost, 'record')} lost, which could not be written to disk"
    if report.torn_bytes:
        yield f"{report.path}: torn end of {pluralize(report.torn_bytes, 'byte')}"
