"""`agent-logger rm`: get rid of sessions."""

from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import output
from agent_logger.cli.named import one_called
from agent_logger.cli.scanning import opened
from agent_logger.export.figures import bytes_text

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    title: str | None
    bytes: int  # of files of ours
    paths: list[str]
    stays: list[str]  # files of agents


@click.command()
@click.argument("sessions", metavar="ID...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/rm.json).")
@config.settings_options()
def command(settings: config.Settings, sessions: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Delete what was recorded of sessions, for good.

    Logs and copies of ours are deleted, and the sessions are not listed, counted or found any more, also if the
    catalog is made anew. The files of the agents themselves are not ours: they stay, and are named.

    \b
    Examples:
      agent-logger rm 1f320356
      agent-logger rm 1f320356 --dry-run
    """
    with opened(settings) as catalog:
        told = [told_of(catalog, one_called(catalog, it)) for it in sessions]
        for it in told if not dry_run else ():
            catalog.remove(it.session)
    tell(told, dry_run=dry_run, as_json=as_json)


def told_of(catalog: "Catalog", session: str) -> Removed:
    ours, summary = catalog.files_of_ours(session), catalog.summary(session)
    mine = [str(it.path) for it in ours]
    return Removed(
        session=session,
        title=summary.title if summary else None,
        bytes=sum(it.size for it in ours),
        paths=mine,
        stays=[str(path) for path in (summary.paths if summary else ()) if str(path) not in mine],
    )


def tell(removed: list[Removed], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        output.json(removed)
        return
    verb = "would delete" if dry_run else "deleted"
    for it in removed:
        title = output.cut(output.printable(" ".join((it.title or "").split())), 40)
        output.echo(f"{verb} {output.short_id(it.session)}  {title}  {bytes_text(it.bytes)}")
        for path in it.paths:
            output.echo(f"  {path}")
        for path in it.stays:
            output.note(f"  {path} is the agent's own: it stays, and is not shown any more")
