"""`agent-logger rm`: get rid of sessions."""

from errno import ENOSPC
from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import output
from agent_logger.cli.named import one_called
from agent_logger.cli.scanning import opened
from agent_logger.cli.settings import settings_options
from agent_logger.errors import StoreError
from agent_logger.export.figures import bytes_text, counted

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.removal import OwnFiles
    from agent_logger.catalog.summary import SessionSummary


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    title: str | None
    bytes: int  # of files of ours
    paths: list[str]
    stays: list[str]  # files of agents


@click.command()
@click.argument("sessions", metavar="ID...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/rm.json).")
@settings_options()
def command(
    settings: config.Settings, sessions: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Delete what was recorded of sessions, for good: shows it and asks.

    Logs and copies of ours are deleted, and the sessions are not listed, counted or found any more, also if the
    catalog is made anew. The files of the agents themselves are not ours: they stay, and are named.

    \b
    Examples:
      agent-logger rm 1f320356
      agent-logger rm 1f320356 --dry-run
      agent-logger rm 1f320356 --yes
    """
    with opened(settings) as catalog:
        ids = dict.fromkeys(one_called(catalog, it) for it in sessions)
        return remove(catalog, told_of(catalog, [*ids]), dry_run=dry_run, yes=yes, as_json=as_json)


def told_of(catalog: "Catalog", sessions: list[str]) -> list[Removed]:
    ours: dict[str, list[OwnFiles]] = {it: [] for it in sessions}
    for file in catalog.files_of_ours(*sessions):
        ours[file.session].append(file)
    return [_removed(session, files, catalog.summary(session)) for session, files in ours.items()]


def _removed(session: str, files: "list[OwnFiles]", summary: "SessionSummary | None") -> Removed:
    mine = [str(it.path) for it in files]
    return Removed(
        session=session,
        title=summary.title if summary else None,
        bytes=sum(it.size for it in files),
        paths=mine,
        stays=[str(path) for path in (summary.paths if summary else ()) if str(path) not in mine],
    )


def remove(catalog: "Catalog", doomed: list[Removed], *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """The exit code."""
    if as_json and not (dry_run or yes):
        raise click.UsageError("--json does not ask: say --yes, or --dry-run")
    if not as_json:
        _show(doomed)
    if not dry_run and doomed:
        if not output.is_agreed(f"Delete {_size(doomed)} for good?", yes=yes):
            return 1
        _delete(catalog, doomed)
    if as_json:
        output.json(doomed)
    else:
        output.echo(f"{_size(doomed)} {'would be ' if dry_run else ''}deleted")
    return 0


def _delete(catalog: "Catalog", doomed: list[Removed]) -> None:
    try:
        catalog.remove(*(it.session for it in doomed))
    except OSError as error:
        room = f"; {catalog.home / 'catalog-text.db'} may be deleted to make room" * (error.errno == ENOSPC)
        where = error.filename or catalog.home
        raise StoreError(f"{where}: {error.strerror or error}; not all was deleted{room}") from error


def _show(doomed: list[Removed]) -> None:
    for it in doomed:
        title = output.cut(output.printable(" ".join((it.title or "").split())), 40)
        output.echo(f"delete {output.short_id(it.session)}  {title}  {bytes_text(it.bytes)}")
        for path in it.paths:
            output.echo(f"  {path}")
        for path in it.stays:
            output.note(f"  {path} stays")
    if any(it.stays for it in doomed):
        output.note("What stays is the agents' own; it is not shown any more.")


def _size(doomed: list[Removed]) -> str:
    return f"{counted(len(doomed), 'session')}, {bytes_text(sum(it.bytes for it in doomed))}"
