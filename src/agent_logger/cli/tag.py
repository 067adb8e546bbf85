"""`agent-logger tag`: put labels, a pin or a note on a session."""

from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import note_nothing, open_catalog
from agent_logger.cli._select import resolve_id, short_ids
from agent_logger.cli._settings import settings_options
from agent_logger.errors import StoreError
from agent_logger.views.lists import mark_text
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_logger.catalog.catalog import Catalog
    from agent_logger.home.marks import Marks

LONGEST = 100  # characters of a label


class MarkedSession(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    title: str | None
    labels: tuple[str, ...]
    pinned: bool
    note: str | None


def _labels(_ctx: click.Context, _parameter: click.Parameter, labels: tuple[str, ...]) -> tuple[str, ...]:
    clean = tuple(" ".join(label.split()) for label in labels)
    if any(not label or len(label) > LONGEST for label in clean):
        raise click.BadParameter(f"a label has 1 to {LONGEST} characters")
    return clean


@click.command()
@click.argument("session", metavar="[ID]", required=False)
@click.argument("labels", metavar="[LABEL]...", nargs=-1, callback=_labels)
@click.option("--remove", "removed", metavar="LABEL", multiple=True, callback=_labels, help="Remove a label.")
@click.option("--pin/--unpin", "pinned", default=None, help="Pin the session: prune keeps it. Or unpin it.")
@click.option("--note", metavar="TEXT", help="Set the note; an empty one removes it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema tag' describes it.")
@settings_options()
def command(
    settings: config.Configuration,
    session: str | None,
    labels: tuple[str, ...],
    removed: tuple[str, ...],
    pinned: bool | None,
    note: str | None,
    as_json: bool,
) -> None:
    """Keep labels, a pin or a note with a session, and show them.

    Without anything to change, shows the marks of a session; without ID, those of all sessions. Marks are kept in
    facts.jsonl in the home, and stay if the catalog is deleted. `ls` and `show` have them; `ls --label NAME`, `ls
    --pinned` and `search` find them. A label is also a name: the session that got it last is meant wherever a command
    takes an ID.

    \b
    Examples:
      agent-logger tag last todo
      agent-logger tag 1f320356 --pin --note 'the fix that worked'
      agent-logger tag 1f320356 --remove todo
      agent-logger tag
      agent-logger ls --label todo
    """
    is_change = bool(labels or removed or pinned is not None or note is not None)
    if is_change and session is None:
        raise click.UsageError("name the session to mark: agent-logger tag ID LABEL")
    with open_catalog(settings) as catalog:
        marks = catalog.marks()
        if session is not None:
            name = resolve_id(catalog, session)
            marks = {name: marks[name]} if name in marks else {}
            if is_change:
                marks = {name: _change(catalog, name, labels, removed, pinned, note)}
        marked = _marked_sessions(catalog, marks)
        if as_json:
            _output.json(marked)
        elif marked:
            _print(marked, short_ids(catalog, [row.session for row in marked]))
        else:
            note_nothing(catalog, "No marks.")


def _change(
    catalog: "Catalog",
    session: str,
    labels: tuple[str, ...],
    removed: tuple[str, ...],
    pinned: bool | None,
    note: str | None,
) -> "Marks":
    try:
        return catalog.mark(session, labels=labels, without_labels=removed, pinned=pinned, note=note)
    except OSError as error:
        raise StoreError(f"cannot write marks to {error.filename or catalog.home}: {error.strerror}") from error


def _marked_sessions(catalog: "Catalog", marks: "Mapping[str, Marks]") -> list[MarkedSession]:
    headings = catalog.headings(marks)
    return [
        MarkedSession(
            session=session,
            title=headings[session].title if session in headings else None,
            labels=own.labels,
            pinned=own.pinned,
            note=own.note,
        )
        for session, own in marks.items()
    ]


def _print(rows: list[MarkedSession], ids: "Mapping[str, str]") -> None:
    for row in rows:
        title = " ".join((row.title or "-").split())
        head = (
            f"{ids.get(row.session, row.session)}  {mark_text(row.labels, pinned=row.pinned) or 'no labels'}  {title}"
        )
        _output.echo(screen.cut(_output.printable(head), screen.columns()) if screen.is_terminal() else head)
        if row.note:
            _output.echo(f"  {row.note}")
