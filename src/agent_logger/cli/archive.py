"""`agent-logger archive`: keep what agents delete, and put it back."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

if TYPE_CHECKING:
    from agent_logger.archive.collect import CopyReport, Trouble
    from agent_logger.archive.restore import Plan

WATCH_SECONDS = 5.0  # between two looks, at least
# And so many times what a look takes, so that it never takes more than a twentieth of a core.
WATCH_SHARE = 20
QUIET_SECONDS = 60.0  # a database is copied as a whole, so not while it is being written to
SEAL_SECONDS = 3600.0


class FileTrouble(msgspec.Struct, frozen=True):
    path: str
    reason: str


class ArchiveReport(msgspec.Struct, frozen=True, kw_only=True):
    files: int  # that belong to sessions
    new: int
    grown: int
    rewritten: int  # the older copy stays, as a generation
    bytes: int  # that were copied
    sealed: int
    left_out: list[FileTrouble]
    failed: list[FileTrouble]


@click.command()
@click.option("--watch", is_flag=True, help="Go on until stopped, and keep what is new.")
@click.option("--restore", metavar="ID", help="Put a session back: shows the files and asks.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/archive.json).")
@settings_options("seal_after")
def command(
    settings: config.Configuration, watch: bool, restore: str | None, yes: bool, as_json: bool
) -> int:
    """Keep what agents delete, byte for byte.

    Copies the sessions of Claude Code, Codex, Gemini CLI, opencode and Qwen Code, with all that belongs to them, to
    archive/ of the home; of what it has already, only what is new. What an agent deletes stays, what it writes anew is
    a new generation. Agents' own files are never changed, but by --restore. Exit code: 0 all is kept, 1 not all.

    \b
    Examples:
      agent-logger archive
      agent-logger archive --watch
      agent-logger archive --restore 707575f7
    """
    if restore is not None:
        if watch or as_json:
            raise click.UsageError("--restore goes with --yes alone")
        return _restore(settings.home, restore, yes)
    if watch:
        return _watch(settings, as_json)
    report = _run(settings)
    _show(report, as_json)
    return 1 if report.failed else 0


def _run(settings: config.Configuration) -> "CopyReport":
    from agent_logger.archive.run import archive_all, seal_archive, sweep

    report = archive_all(settings.home)
    seal_archive(settings.home, settings.seal_after, report)
    sweep(settings.home)
    return report


def _watch(settings: config.Configuration, as_json: bool) -> int:
    """Looks again and again: what is told of is what changed."""
    from agent_logger.archive.run import archive_all

    _show(_run(settings), as_json)
    _output.note("watching; Ctrl-C stops")
    sealed = time.monotonic()
    while True:
        began = time.monotonic()
        report = archive_all(settings.home, QUIET_SECONDS)
        if report.new or report.grown or report.rewritten or report.failed:
            _show(report, as_json)
        if began - sealed > SEAL_SECONDS:
            _run(settings)
            sealed = began
        time.sleep(max(WATCH_SECONDS, WATCH_SHARE * (time.monotonic() - began)))


def _show(report: "CopyReport", as_json: bool) -> None:
    if as_json:
        _output.json(_report_item(report))
        return
    for trouble in report.failed:
        _output.note(f"{trouble.path}: {trouble.reason}; tried again next time")
    for trouble in report.left_out:
        _output.note(f"{trouble.path}: left out: {trouble.reason}")
    _output.echo(
        f"{report.files:,} files: {report.new:,} new, {report.grown:,} grown, {report.rewritten:,} rewritten; "
        f"{report.bytes:,} bytes copied, {report.sealed:,} sealed"
    )


def _report_item(report: "CopyReport") -> ArchiveReport:
    return ArchiveReport(
        files=report.files,
        new=report.new,
        grown=report.grown,
        rewritten=report.rewritten,
        bytes=report.bytes,
        sealed=report.sealed,
        left_out=list(map(_trouble, report.left_out)),
        failed=list(map(_trouble, report.failed)),
    )


def _trouble(trouble: "Trouble") -> FileTrouble:
    return FileTrouble(str(trouble.path), trouble.reason)


# ---------------------------------------------------------------- restoring


def _restore(home: Path, name: str, yes: bool) -> int:
    from agent_logger.archive.restore import carry_out, find, plan

    planned = plan(find(home, name))
    if not planned.missing and not (planned.rows and planned.rows.missing):
        return _nothing_to_restore(planned)
    for line in _lines(planned):
        _output.echo(line)
    if not _output.is_agreed("Write this?", yes=yes):
        return 1
    carry_out(planned)
    _output.note(f"{planned.session.id} is back where {planned.session.agent} finds it")
    return 0


def _nothing_to_restore(planned: "Plan") -> int:
    others = [step for step in planned.steps if step.state == "other"]
    for other in others:
        _output.note(f"{other.to}: is there, and is not what was kept; move it away to get {other.copy}")
    if not others:
        _output.note(f"nothing to do: {planned.session.agent} has session {planned.session.id}")
    return 1 if others else 0


def _lines(planned: "Plan") -> list[str]:
    lines = [f"write {step.to}" for step in planned.missing]
    lines += [
        f"leave {step.to}, which is not what was kept" for step in planned.steps if step.state == "other"
    ]
    if planned.rows:
        counts = ", ".join(f"{count:,} of {table}" for table, count in planned.rows.missing.items())
        lines.append(f"add rows to {planned.rows.database}: {counts}")
    return lines
