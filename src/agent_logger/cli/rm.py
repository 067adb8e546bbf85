"""`agent-logger rm`: delete sessions."""

from errno import ENOSPC
from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import opened
from agent_logger.cli._select import one_called
from agent_logger.cli._settings import settings_options
from agent_logger.errors import StoreError
from agent_logger.views.figures import bytes_text, counted
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.removal import OwnFiles
    from agent_logger.catalog.summary import SessionSummary


MOST_STRANGERS = 10  # files that are not ours, in a list for people


class RemovedFile(msgspec.Struct, frozen=True):
    path: str
    bytes: int


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    title: str | None
    bytes: int  # of files of ours
    paths: list[str]  # every file that is deleted
    files: list[RemovedFile]  # the same with their sizes
    stays: list[str]  # files of agents
    not_ours: list[str]  # have a name like those that are deleted, and stay
    branch_of: str | None  # goes with this session, whose log it begins in


@click.command()
@click.argument("sessions", metavar="ID...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/rm.json).")
@settings_options()
def command(
    settings: config.Configuration, sessions: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Delete what was recorded of sessions, for good: shows it and asks.

    Our logs and copies are deleted, and the sessions are not listed, counted or found any more, even if the catalog is
    rebuilt. Every file is shown first. The agents' own files are not ours: they stay, and are named; so do files whose
    names only look like ours. A branch begins in the log of the session that it was forked from, and is deleted with
    it.

    \b
    Examples:
      agent-logger rm 1f320356
      agent-logger rm 1f320356 --dry-run
      agent-logger rm 1f320356 --yes
    """
    with opened(settings) as catalog:
        ids = dict.fromkeys(one_called(catalog, session) for session in sessions)
        branches = catalog.branches(*ids)
        doomed = told_of(catalog, [*ids, *branches], branches)
        return remove(catalog, doomed, dry_run=dry_run, yes=yes, as_json=as_json)


def told_of(catalog: "Catalog", sessions: list[str], branches: "Mapping[str, str]") -> list[Removed]:
    """What would be removed of these sessions. `branches` maps those that the user did not name to the session that
    they were forked from."""
    ours: dict[str, list[OwnFiles]] = {session: [] for session in sessions}
    for file in catalog.files_of_ours(*sessions):
        ours[file.session].append(file)
    return [
        _removed(session, files, catalog.summary(session), branches.get(session))
        for session, files in ours.items()
    ]


def _removed(
    session: str, files: "list[OwnFiles]", summary: "SessionSummary | None", branch_of: str | None
) -> Removed:
    mine = {str(file.path) for file in files}
    deleted = [RemovedFile(str(file.path), file.size) for own in files for file in own.removal.files]
    return Removed(
        session=session,
        title=summary.title if summary else None,
        bytes=sum(file.bytes for file in deleted),
        paths=[file.path for file in deleted],
        files=deleted,
        stays=[str(path) for path in (summary.paths if summary else ()) if str(path) not in mine],
        not_ours=[str(path) for own in files for path in own.removal.strangers],
        branch_of=branch_of,
    )


def remove(catalog: "Catalog", doomed: list[Removed], *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Show what is removed, ask, delete it, and return the exit code."""
    if as_json and not (dry_run or yes):
        raise click.UsageError("--json does not ask: say --yes, or --dry-run")
    if not as_json:
        _show(doomed)
    if not dry_run and doomed:
        if not _output.is_agreed(f"Delete {_size(doomed)} for good?", yes=yes):
            return 1
        _delete(catalog, doomed)
    if as_json:
        _output.json(doomed)
    else:
        _output.echo(f"{_size(doomed)} {'would be ' if dry_run else ''}deleted")
    return 0


def _delete(catalog: "Catalog", doomed: list[Removed]) -> None:
    try:
        catalog.remove(*(removal.session for removal in doomed))
    except OSError as error:
        room = f"; {catalog.home / 'catalog-text.db'} may be deleted to make room" * (error.errno == ENOSPC)
        where = error.filename or catalog.home
        raise StoreError(f"{where}: {error.strerror or error}; not all was deleted{room}") from error


def _show(doomed: list[Removed]) -> None:
    for removal in doomed:
        title = screen.cut(_output.printable(" ".join((removal.title or "").split())), 40)
        branch = f"  branch of {screen.short_id(removal.branch_of)}" if removal.branch_of else ""
        size = bytes_text(removal.bytes)
        _output.echo(f"delete {screen.short_id(removal.session)}  {title}  {size}{branch}")
        for file in removal.files:
            _output.echo(f"  {_output.printable(file.path)}  {bytes_text(file.bytes)}")
        _show_what_stays(removal)
    if any(removal.stays for removal in doomed):
        _output.note("What stays is the agents' own; it is not shown any more.")


def _show_what_stays(removal: Removed) -> None:
    for path in removal.stays:
        _output.note(f"  {_output.printable(path)} stays")
    for path in removal.not_ours[:MOST_STRANGERS]:
        _output.note(f"  {_output.printable(path)} stays: it is not known to be ours")
    if (more := len(removal.not_ours) - MOST_STRANGERS) > 0:
        _output.note(f"  {more:,} more files stay: they are not known to be ours")


def _size(doomed: list[Removed]) -> str:
    return f"{counted(len(doomed), 'session')}, {bytes_text(sum(removal.bytes for removal in doomed))}"
