"""`agent-logger archive`: copy agents' sessions before they delete them, and restore one."""

import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.model.plurals import pluralize

if TYPE_CHECKING:
    from agent_logger.archive.collect import ArchiveReport
    from agent_logger.archive.restore import ImportCommand, Plan

WATCH_SECONDS = 5.0  # between two checks, at least
# And this many times the duration of a check, so that checks use at most a twentieth of a core.
WATCH_SHARE = 20
QUIET_SECONDS = 60.0  # a database is copied as a whole, so not while it is being written to
SEAL_SECONDS = 3600.0
COLUMNS = 80  # for commands that are printed to be copied
MOST_ROWS = 10  # that are listed individually


@click.command()
@click.option("--watch", is_flag=True, help="Keep running and copy new data until stopped.")
@click.option("--restore", metavar="ID", help="Restore a session: shows the files and asks.")
@click.option(
    "--to",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Folder for the files of an opencode, Kilo or Goose session, with --restore. [default: restored/ in the home]",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON; 'agent-logger schema archive' (with --restore: restore) describes it.",
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
    """Copy agents' sessions, byte for byte, before agents delete them.

    Copies the sessions of every known agent, with all their files, to archive/ in the home. Later runs copy only what
    is new. What an agent deletes stays in the archive; when it rewrites a file, the old copy is kept beside the new
    one. Exit code: 0 if everything was copied, 1 if not.

    Agents' own files are never changed. --restore creates files that are missing in the agent's folders. For
    sessions of opencode, Kilo and Goose it writes files for their own import instead, and prints the commands to run.

    \b
    Examples:
      agent-logger archive
      agent-logger archive --watch
      agent-logger archive --restore 707575f7
      agent-logger archive --restore ses_e1b7f1b26 --to ~/Downloads
    """
    if restore is not None:
        if watch:
            raise click.UsageError("use either --restore or --watch, not both")
        return _restore(settings.home, restore, to, yes, as_json)
    if to is not None:
        raise click.UsageError("--to works only with --restore")
    if watch:
        return _watch(settings, as_json)
    report = _run(settings)
    _show(report, as_json)
    return 1 if report.failed else 0


def _run(settings: config.Configuration) -> "ArchiveReport":
    from agent_logger.archive.run import archive_all, seal_archive, sweep

    report = archive_all(settings.home)
    seal_archive(settings.home, settings.seal_after, report)
    sweep(settings.home)
    return report


def _watch(settings: config.Configuration, as_json: bool) -> int:
    """Archive repeatedly, and report only changes."""
    from agent_logger.archive.run import archive_all

    _show(_run(settings), as_json)
    _output.note("watching for changes; press Ctrl-C to stop")
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


def _show(report: "ArchiveReport", as_json: bool) -> None:
    if as_json:
        _output.json(report)
        return
    for trouble in report.failed:
        _output.note(f"{trouble.path}: {trouble.reason}; the next run tries again")
    for trouble in report.left_out:
        _output.note(f"{trouble.path}: skipped: {trouble.reason}")
    _output.echo(
        f"{pluralize(report.files, 'file')}: {report.new:,} new, {report.grown:,} grown, "
        f"{report.rewritten:,} rewritten; "
        f"{pluralize(report.bytes, 'byte')} copied, {report.sealed:,} sealed"
    )


# ---------------------------------------------------------------- restoring


def _restore(home: Path, name: str, to: Path | None, yes: bool, as_json: bool) -> int:
    from agent_logger.agents.registry import AGENTS
    from agent_logger.archive.restore import carry_out, find, plan

    session = find(home, name)
    importing = [agent.name for agent in AGENTS if agent.imports]
    if to is not None and session.agent not in importing:
        raise click.UsageError(
            f"--to is for sessions of {', '.join(importing)}; {session.agent} reads only its own folders"
        )
    planned = plan(home, session, to)
    is_blocked = not planned.missing and any(step.state == "other" for step in planned.steps)
    if planned.missing:
        for line in _lines(planned):
            (_output.note if as_json else _output.echo)(line)
        if not _output.confirm("Write this?", yes=yes):
            return 1
        carry_out(planned)
    _note_losses(planned)
    if as_json:
        _output.json(planned.report())
    elif planned.commands:
        _show_commands(planned)
    elif planned.missing:
        _output.note(f"restored: {session.agent} can open session {session.id} again")
    else:
        _note_nothing(planned)
    return 1 if is_blocked else 0


def _note_nothing(planned: "Plan") -> None:
    others = [step for step in planned.steps if step.state == "other"]
    for other in others:
        _output.note(f"{other.to} exists and differs from the archived copy; move it away to restore {other.copy}")
    if not others:
        _output.note(f"nothing to do: {planned.session.agent} still has session {planned.session.id}")


def _lines(planned: "Plan") -> list[str]:
    lines = [f"write {step.to}" for step in planned.missing]
    return lines + [
        f"keep {step.to}, which differs from the archived copy" for step in planned.steps if step.state == "other"
    ]


def _note_losses(planned: "Plan") -> None:
    for lost in planned.left_out[:MOST_ROWS]:
        _output.note(f"not restored to {lost.session}: {lost.row}: {lost.reason}")
    if len(planned.left_out) > MOST_ROWS:
        _output.note(f"not restored: {pluralize(len(planned.left_out), 'row')} in total; --json lists all of them")
    if planned.completed:
        rows = pluralize(planned.completed, "row")
        _output.note(f"added fields that the import requires to {rows} of older versions")


def _show_commands(planned: "Plan") -> None:
    for step in planned.steps:
        if step.state == "there":
            _output.echo(f"keep {step.to}, which is identical")
    _output.echo("Run these commands to import the session:")
    for line in _command_lines(planned.commands):
        _output.echo(f"  {line}")
    folders = {command.folder for command in planned.commands if command.folder}
    for folder in sorted(folders):
        if not _is_folder(folder):
            _output.note(f"{folder} does not exist: run the commands in the folder that the session should belong to")
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
