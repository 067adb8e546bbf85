"""`agent-logger prune`: delete what is old or large."""

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import open_catalog
from agent_logger.cli._settings import settings_options
from agent_logger.cli.rm import Removed, plan_removals, remove
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog

_SIZE = re.compile(r"(\d{1,18}(?:\.\d+)?)\s*([kMGT]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_AGE = re.compile(r"(\d{1,5})\s*(d|day|w|week|m|month|y|year)s?")
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}
_LONGEST = 700_000  # days; dates go no further back


class Age(click.ParamType[timedelta]):
    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        match = _AGE.fullmatch(str(value).strip().lower())
        if match is None:
            self.fail(f"cannot read {value!r} as an age; try 90d, 12w, 6m or 1y", param, ctx)
        return timedelta(days=min(int(match[1]) * _DAYS[match[2][0]], _LONGEST))


class Size(click.ParamType[int]):
    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"cannot read {value!r} as a size; try 500MB or 2GB", param, ctx)
        return round(float(match[1]) * _UNITS[match[2].lower()])


@click.command()
@click.option("--older-than", type=Age(), help="Sessions that have been inactive for this long: 90d, 12w, 6m, 1y.")
@click.option("--larger-than", type=Size(), help="Sessions whose recordings are larger than this: 500MB, 2GB.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, but delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema rm' describes it.")
@settings_options()
def command(
    settings: config.Configuration,
    older_than: timedelta | None,
    larger_than: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Delete the recordings of old or large sessions, as `rm` does.

    With both options, only sessions that are both old and large are deleted. Four kinds of sessions are kept: those
    that only the agent's own files hold, those that are pinned (see tag), those that are being written to, and those
    that have a branch which is kept, because a branch begins in the log of its parent.

    \b
    Examples:
      agent-logger prune --older-than 90d --dry-run
      agent-logger prune --older-than 90d --larger-than 1GB
      agent-logger prune --older-than 1y --yes
    """
    from agent_logger.catalog.summary import Filter

    if older_than is None and larger_than is None:
        raise click.UsageError("specify what to delete with --older-than or --larger-than")
    before = datetime.now().astimezone() - older_than if older_than else None
    with open_catalog(settings) as catalog:
        old = [
            summary
            for summary in catalog.sessions(Filter(until=before))
            if not summary.live
            and not summary.pinned
            and (before is None or (summary.ended or summary.started or before) < before)
        ]
        in_use = {file.session for file in catalog.files_of_ours(*(summary.id for summary in old)) if file.is_in_use}
        removals = [
            removal
            for removal in plan_removals(catalog, [summary.id for summary in old if summary.id not in in_use], {})
            if removal.paths and removal.bytes > (larger_than or 0)
        ]
        doomed = _without_parents_of_others(catalog, removals)
        return remove(catalog, doomed, dry_run=dry_run, yes=yes, as_json=as_json)


def _without_parents_of_others(catalog: "Catalog", removals: list[Removed]) -> list[Removed]:
    """The removals without sessions that have a branch that stays, which begins in their log."""
    while branches := catalog.branches(*(removal.session for removal in removals)):
        needed = set(branches.values())
        for branch, parent in branches.items():
            if parent in {removal.session for removal in removals}:
                _output.note(f"{screen.short_id(parent)} is kept, because its branch {screen.short_id(branch)} is kept")
        removals = [removal for removal in removals if removal.session not in needed]
    return removals
