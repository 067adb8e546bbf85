"""`agent-logger archive`: keep what agents delete, and put it back."""

import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

if TYPE_CHECKING:
    from agent_logger.archive.collect import CopyReport, Trouble
    from agent_logger.archive.restore import ImportCommand, Plan

WATCH_SECONDS = 5.0  # between two looks, at least
# And so many times what a look takes, so that it never takes more than a twentieth of a core.
WATCH_SHARE = 20
QUIET_SECONDS = 60.0  # a database is copied as a whole, so not while it is being written to
SEAL_SECONDS = 3600.0
COLUMNS = 80  # of a command that is printed to be copied
MOST_ROWS = 10  # that are named one by one


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


class RestoredFile(msgspec.Struct, frozen=True):
    path: str
    state: Literal["written", "there", "other"]  # other: something else is in its place, and stays


class NextCommand(msgspec.Struct, frozen=True):
    folder: str | None  # where to run it
    arguments: list[str]


class MissingRow(msgspec.Struct, frozen=True):
    session: str
    row: str  # its table and id
    reason: str


class RestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    agent: str
    files: list[RestoredFile]
    next: list[NextCommand]  # what to run so that the agent has the session; nothing: it has it
    left_out: list[MissingRow]  # rows of the archived database that the agent's import refuses
    completed_rows: int  # of older versions: they got fields that the agent's import requires


@click.command()
@click.option("--watch", is_flag=True, help="Keep running, and copy what is new until stopped.")
@click.option("--restore", metavar="ID", help="Put a session back: shows the files and asks.")
@click.option(
    "--to",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Folder for the files of an opencode session, with --restore. [default: restored/ of the home]",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON (docs/schemas/archive.json; restore.json for --restore).",
)
@settings_options("seal_after")
def command(
    settings: config.Configuration,
    watch: bool,
    restore: str | None,
    to: Path | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Keep copies of what agents delete, byte for byte.

    Copies the sessions of every known agent, with all files that belong to them, to archive/ of the home; of a file
    that it has already, only what is new. What an agent deletes stays here; a file that it rewrites becomes a new
    generation. Exit code: 0 everything was copied, 1 not everything.

    Agents' own files are never changed. --restore writes files that are missing where the agent looks for them. For an
    opencode session it writes files for `opencode import`, and prints the commands to run next.

    \b
    Examples:
      agent-logger archive
      agent-logger archive --watch
      agent-logger archive --restore 707575f7
      agent-logger archive --restore ses_e1b7f1b26 --to ~/Downloads
    """
    if restore is not None:
        if watch:
            raise click.UsageError("--restore and --watch exclude each other")
        return _restore(settings.home, restore, to, yes, as_json)
    if to is not None:
        raise click.UsageError("--to needs --restore")
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
    """Run again and again, and report only changes."""
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


def _restore(home: Path, name: str, to: Path | None, yes: bool, as_json: bool) -> int:
    from agent_logger.agents.registry import AGENTS
    from agent_logger.archive.restore import carry_out, find, plan

    session = find(home, name)
    importing = [agent.name for agent in AGENTS if agent.imports]
    if to is not None and session.agent not in importing:
        raise click.UsageError(
            f"--to is for sessions of {', '.join(importing)}; {session.agent} looks in its own folders only"
        )
    planned = plan(home, session, to)
    is_blocked = not planned.missing and any(step.state == "other" for step in planned.steps)
    if planned.missing:
        for line in _lines(planned):
            (_output.note if as_json else _output.echo)(line)
        if not _output.is_agreed("Write this?", yes=yes):
            return 1
        carry_out(planned)
    _note_losses(planned)
    if as_json:
        _output.json(_restore_report(planned))
    elif planned.commands:
        _show_commands(planned)
    elif planned.missing:
        _output.note(f"{session.id} is back where {session.agent} finds it")
    else:
        _note_nothing(planned)
    return 1 if is_blocked else 0


def _note_nothing(planned: "Plan") -> None:
    others = [step for step in planned.steps if step.state == "other"]
    for other in others:
        _output.note(f"{other.to}: is there, and is not what was kept; move it away to get {other.copy}")
    if not others:
        _output.note(f"nothing to do: {planned.session.agent} has session {planned.session.id}")


def _lines(planned: "Plan") -> list[str]:
    lines = [f"write {step.to}" for step in planned.missing]
    return lines + [
        f"leave {step.to}, which is not what was kept" for step in planned.steps if step.state == "other"
    ]


def _note_losses(planned: "Plan") -> None:
    for lost in planned.left_out[:MOST_ROWS]:
        _output.note(f"left out of {lost.session}: {lost.row}: {lost.reason}")
    if len(planned.left_out) > MOST_ROWS:
        _output.note(f"left out: {len(planned.left_out):,} rows in all; --json names each of them")
    if planned.completed:
        rows = "1 row" if planned.completed == 1 else f"{planned.completed:,} rows"
        _output.note(f"added to {rows} of older versions: fields that the import requires")


def _show_commands(planned: "Plan") -> None:
    for step in planned.steps:
        if step.state == "there":
            _output.echo(f"keep {step.to}, which is the same")
    _output.echo("Run these commands to import the session:")
    for line in _command_lines(planned.commands):
        _output.echo(f"  {line}")
    folders = {command.folder for command in planned.commands if command.folder}
    for folder in sorted(folders):
        if not _is_folder(folder):
            _output.note(
                f"{folder} is not there: run the commands in the folder the session should belong to"
            )
    _output.note("The files hold the session unredacted: delete them after the import.")


def _command_lines(commands: "tuple[ImportCommand, ...]") -> Iterator[str]:
    """The commands as lines for a shell, with `cd` where the folder changes. A long command continues on a second
    line."""
    folder: str | None = None
    for command in commands:
        if command.folder and command.folder != folder and _is_folder(command.folder):
            folder = command.folder
            yield f"cd {_shell_path(folder)}"
        *words, path = command.arguments
        line = f"{shlex.join(words)} {_shell_path(path)}"
        if len(line) + 2 <= COLUMNS:
            yield line
        else:
            yield f"{shlex.join(words)} \\"
            yield f"  {_shell_path(path)}"


def _is_folder(name: str) -> bool:
    return name.startswith("/") and "\0" not in name and os.path.isdir(name)


def _shell_path(path: str) -> str:
    home = f"{os.path.expanduser('~')}/"
    below = path.removeprefix(home)
    return f"~/{shlex.quote(below)}" if below and below != path else shlex.quote(path)


def _restore_report(planned: "Plan") -> RestoreReport:
    def state(of: str) -> Literal["written", "there", "other"]:
        return "written" if of == "missing" else "there" if of == "there" else "other"

    return RestoreReport(
        session=planned.session.id,
        agent=planned.session.agent,
        files=[RestoredFile(str(step.to), state(step.state)) for step in planned.steps],
        next=[NextCommand(command.folder, list(command.arguments)) for command in planned.commands],
        left_out=[MissingRow(*row) for row in planned.left_out],
        completed_rows=planned.completed,
    )
