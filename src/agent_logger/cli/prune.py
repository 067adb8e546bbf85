"""`agent-logger prune`: delete what is old or large."""

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import opened
from agent_logger.cli._settings import settings_options
from agent_logger.cli.rm import Removed, remove, told_of
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog

_SIZE = re.compile(r"(\d{1,18}(?:\.\d+)?)\s*([kMGT]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_AGE = re.compile(r"(\d{1,5})\s*(d|day|w|week|m|month|y|year)s?")
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}
_LONGEST = 700_000  # days: as far back as dates go, and nothing is older


class Age(click.ParamType[timedelta]):
    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        match = _AGE.fullmatch(str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is no age: say 90d, 12w, 6m or 1y", param, ctx)
        return timedelta(days=min(int(match[1]) * _DAYS[match[2][0]], _LONGEST))


class Size(click.ParamType[int]):
    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no size: say 500MB or 2GB", param, ctx)
        return round(float(match[1]) * _UNITS[match[2].lower()])


@click.command()
@click.option("--older-than", type=Age(), help="Sessions not active for this long: 90d, 12w, 6m, 1y.")
@click.option("--larger-than", type=Size(), help="Sessions with more than this recorded: 500MB, 2GB.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/rm.json).")
@settings_options()
def command(
    settings: config.Configuration,
    older_than: timedelta | None,
    larger_than: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Delete what was recorded of old or large sessions, as `rm` does.

    With both options, only sessions that are both old and large. Left alone are sessions that only an agent's own files
    hold, of which nothing was recorded here; those that are being written to; and those in whose log a branch begins
    that is not deleted.

    \b
    Examples:
      agent-logger prune --older-than 90d --dry-run
      agent-logger prune --older-than 90d --larger-than 1GB
      agent-logger prune --older-than 1y --yes
    """
    from agent_logger.catalog.summary import Filter

    if older_than is None and larger_than is None:
        raise click.UsageError("say what is to go: --older-than, --larger-than")
    before = datetime.now().astimezone() - older_than if older_than else None
    with opened(settings) as catalog:
        old = [
            summary
            for summary in catalog.sessions(Filter(until=before))
            if not summary.live and (before is None or (summary.ended or summary.started or before) < before)
        ]
        in_use = {
            file.session for file in catalog.files_of_ours(*(summary.id for summary in old)) if file.is_in_use
        }
        removals = [
            removal
            for removal in told_of(catalog, [summary.id for summary in old if summary.id not in in_use], {})
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
                _output.note(f"{screen.short_id(parent)} stays: its branch {screen.short_id(branch)} does")
        removals = [removal for removal in removals if removal.session not in needed]
    return removals
