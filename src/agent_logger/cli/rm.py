"""`agent-logger rm`: delete sessions."""

from errno import ENOSPC
from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import open_catalog
from agent_logger.cli._select import resolve_id
from agent_logger.cli._settings import settings_options
from agent_logger.errors import StoreError
from agent_logger.model.plurals import pluralize
from agent_logger.views.figures import bytes_text
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
    bytes: int  # of our files
    paths: list[str]  # every file that is deleted
    files: list[RemovedFile]  # the same with their sizes
    stays: list[str]  # files of agents
    not_ours: list[str]  # have names like our files, and are kept
    branch_of: str | None  # deleted with this session, in whose log it begins


@click.command()
@click.argument("sessions", metavar="ID...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, but delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema rm' describes it.")
@settings_options()
def command(settings: config.Configuration, sessions: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool) -> int:
    """Delete the recordings of sessions permanently: shows the files and asks.

    Deletes our logs and copies. The sessions are no longer listed, counted or found, even if the catalog is rebuilt.
    Agents' own files are kept and listed; so are files that only look like ours. A branch begins in the log of the
    session that it was forked from, and is deleted with it.

    \b
    Examples:
      agent-logger rm 1f320356
      agent-logger rm 1f320356 --dry-run
      agent-logger rm 1f320356 --yes
    """
    with open_catalog(settings) as catalog:
        ids = dict.fromkeys(resolve_id(catalog, session) for session in sessions)
        branches = catalog.branches(*ids)
        doomed = plan_removals(catalog, [*ids, *branches], branches)
        return remove(catalog, doomed, dry_run=dry_run, yes=yes, as_json=as_json)


def plan_removals(catalog: "Catalog", sessions: list[str], branches: "Mapping[str, str]") -> list[Removed]:
    """What would be removed of these sessions. `branches` maps those that the user did not name to the session that
    they were forked from."""
    ours: dict[str, list[OwnFiles]] = {session: [] for session in sessions}
    for file in catalog.files_of_ours(*sessions):
        ours[file.session].append(file)
    return [
        _removed(session, files, catalog.summary(session), branches.get(session)) for session, files in ours.items()
    ]


def _removed(session: str, files: "list[OwnFiles]", summary: "SessionSummary | None", branch_of: str | None) -> Removed:
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
        raise click.UsageError("--json does not ask for confirmation: add --yes or --dry-run")
    if not as_json:
        _show(doomed)
    if not dry_run and doomed:
        if not _output.confirm(f"Permanently delete {_size(doomed)}?", yes=yes):
            return 1
        _delete(catalog, doomed)
    if as_json:
        _output.json(doomed)
    elif doomed:
        _output.echo(f"{_size(doomed)} {'would be ' if dry_run else ''}deleted")
    else:
        _output.note("No sessions match.")
    return 0


def _delete(catalog: "Catalog", doomed: list[Removed]) -> None:
    try:
        catalog.remove(*(removal.session for removal in doomed))
    except OSError as error:
        room = f"; delete {catalog.home / 'catalog-text.db'} to free space" * (error.errno == ENOSPC)
        where = error.filename or catalog.home
        raise StoreError(f"{where}: {error.strerror or error}; not everything was deleted{room}") from error


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
        _output.note("The agents' own files are kept, but the sessions are no longer listed.")


def _show_what_stays(removal: Removed) -> None:
    for path in removal.stays:
        _output.note(f"  keep {_output.printable(path)}")
    for path in removal.not_ours[:MOST_STRANGERS]:
        _output.note(f"  keep {_output.printable(path)}: not written by agent-logger")
    if (more := len(removal.not_ours) - MOST_STRANGERS) > 0:
        _output.note(f"  keep {pluralize(more, 'more file')} not written by agent-logger")


def _size(doomed: list[Removed]) -> str:
    return f"{pluralize(len(doomed), 'session')}, {bytes_text(sum(removal.bytes for removal in doomed))}"
