"""`agent-logger usage`: show tokens and cost."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._agents import agent_option, check_agent
from agent_logger.cli._catalog import bar, check_machine, homes_option, machine_option, note_nothing, open_catalog
from agent_logger.cli._pager import paged, pager_option
from agent_logger.cli._select import resolve_id, short_ids
from agent_logger.cli._settings import settings_options
from agent_logger.cli._times import time_options
from agent_logger.cli._usage_tables import print_blocks, print_sessions, print_totals
from agent_logger.home.homes import Homes
from agent_logger.model.plurals import pluralize
from agent_logger.model.times import read_span
from agent_logger.views.lists import UsageRow

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.ledger.blocks import UsageBlock
    from agent_logger.catalog.summary import Filter, SessionHeading

BLOCK: Final = "block"
SESSION: Final = "session"
TOOL: Final = "tool"
BY = ("day", "week", "month", BLOCK, SESSION, "model", "project", "agent", "machine", TOOL)
OTHER_WORDS = {"daily": "day", "weekly": "week", "monthly": "month"}


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[UsageRow]
    totals: UsageRow
    # Sessions whose only witnesses, the agents' files, do not have side calls.
    unlisted_calls: int
    unpriced_models: list[str]  # of the unpriced responses in the totals
    price_date: str | None


class BlockRow(UsageRow, frozen=True, kw_only=True):
    """A block of five hours. Its key is its start."""

    start: datetime
    end: datetime
    first_response: datetime
    last_response: datetime
    models: tuple[str, ...]
    active: bool
    # Of an active block that has more than one response: how fast it is used, and where that leads.
    tokens_per_minute: float | None
    usd_per_hour: float | None
    projected_tokens: int | None
    projected_usd: float | None


class BlockReport(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[BlockRow]
    totals: UsageRow
    unlisted_calls: int
    unpriced_models: list[str]
    price_date: str | None


class Grouping(click.Choice[str]):
    """A key of `BY`, or what people say for it: `daily`, `models`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word = str(value).lower()
        key = OTHER_WORDS.get(word, word)
        key = key if key in BY else key.removesuffix("s")
        if key not in BY:
            self.fail(_hint(word), param, ctx)
        return key


def _hint(word: str) -> str:
    if read_span(word, datetime.now().astimezone()):
        return f"{word!r} is a time: use --since {repr(word) if ' ' in word else word}"
    return f"{word!r} is not one of {', '.join(BY)}"


@click.command()
@click.argument("by", metavar="[KEY]", type=Grouping(BY), required=False)
@click.option("--by", "by_option", type=Grouping(BY), metavar="KEY", help="The same as the argument.")
@time_options("responses")
@agent_option("responses")
@machine_option("responses")
@click.option("--model", help="Only models with this in their name.")
@click.option("--project", help="Only projects with this in their path.")
@click.option(
    "--explain",
    metavar="SESSION",
    help="List every response of a session: its cost, and why it is counted or not.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON; 'agent-logger schema usage' (also usage-block, usage-explain) describes it.",
)
@pager_option()
@settings_options()
@homes_option(with_database=True)
def command(
    settings: config.Configuration,
    homes: Homes,
    by: str | None,
    by_option: str | None,
    explain: str | None,
    as_json: bool,
    pager: bool,
    **given: Any,
) -> None:
    """Show tokens and cost by day, week, month, block, session, model, project, agent, machine or tool: this is
    KEY.

    Every model response is counted once, even if several files contain it: the agents' own files, their forks and
    copies, and the recordings made here. Costs are list prices on the day of the response; a response without a known
    price is not in the sum, and is counted as unpriced. By tool, the cost of a response is divided among the tools that
    it called. By machine, a response that several machines have counts for the one that had it first, or else for the
    machine of your own home. Days, weeks, months and blocks are in order; everything else is sorted by cost, highest
    first.

    A block is five hours in which a plan of Claude limits usage. It begins at the full hour of its first response. A
    star marks the active one.

    \b
    Examples:
      agent-logger usage
      agent-logger usage month
      agent-logger usage model --since 7d
      agent-logger usage session --since 'last week' --until 'last week'
      agent-logger usage block --since today
      agent-logger usage tool --project agent-logger
      agent-logger usage --explain last
      agent-logger usage month --json
      agent-logger usage machine --home ~/homes/laptop --home ~/.agent-logger
    """
    from agent_logger.catalog.summary import Filter

    if by and by_option and by != by_option:
        raise click.UsageError(f"{by} and --by {by_option} differ; use one of them")
    key, conditions = by_option or by or "day", Filter(**given)
    with open_catalog(settings, homes) as catalog:
        check_agent(catalog, conditions.agent)
        check_machine(catalog, conditions.machine)
        _read_what_is_needed(catalog, key, conditions)
        with paged(pager):
            if explain:
                from agent_logger.cli._explain import explain as print_explanation

                print_explanation(catalog, resolve_id(catalog, explain), conditions, as_json=as_json)
            elif key == BLOCK:
                _report_blocks(catalog, conditions, as_json=as_json)
            else:
                _report(catalog, key, conditions, as_json=as_json)


def _read_what_is_needed(catalog: "Catalog", by: str, where: "Filter") -> None:
    """Read what may take long, with a progress bar."""
    if by in (SESSION, TOOL):
        with bar("reading sessions") as progress:
            sessions = filter(None, catalog.usage(SESSION, where)) if by == SESSION else None
            catalog.read_details(sessions, progress)


def _report(catalog: "Catalog", by: str, where: "Filter", *, as_json: bool) -> None:
    from agent_logger.model.prices import price_date

    sums, whole = catalog.usage(by, where), catalog.total(where)  # type: ignore[arg-type]  # one of `BY`
    headings = catalog.headings(filter(None, sums)) if by == SESSION else {}
    if as_json:
        rows = [UsageRow.of(key, total) for key, total in sums.items()]
        report = UsageReport(
            rows=[_with_heading(row, headings.get(row.key or "")) for row in rows],
            totals=UsageRow.of("total", whole),
            unlisted_calls=catalog.sessions_with_unlisted_calls(where),
            unpriced_models=_unpriced_models(catalog, where),
            price_date=price_date(),
        )
        _output.json(report)
    elif not sums:
        _note_nothing(catalog)
    else:
        unpriced = catalog.unpriced_models(where) if whole.unpriced else {}
        if by == SESSION:
            print_sessions(sums, whole, unpriced, headings, short_ids(catalog, headings))
        else:
            print_totals(by, sums, whole, unpriced)
        _note_unlisted(catalog, where)


def _with_heading(row: UsageRow, heading: "SessionHeading | None") -> UsageRow:
    if heading is None:
        return row
    return msgspec.structs.replace(row, title=heading.title, project=heading.project, ended=heading.ended)


def _unpriced_models(catalog: "Catalog", where: "Filter") -> list[str]:
    return [name for name in catalog.unpriced_models(where) if name]


def _note_unlisted(catalog: "Catalog", where: "Filter") -> None:
    """Say below the table why the sums may be too low."""
    if count := catalog.sessions_with_unlisted_calls(where):
        sessions = pluralize(count, "session")
        _output.note(f"not included: side calls (titles, compactions) not in the files of {sessions}")


def _note_nothing(catalog: "Catalog") -> None:
    note_nothing(catalog, "No usage found.")


# ---------------------------------------------------------------- blocks


def _report_blocks(catalog: "Catalog", where: "Filter", *, as_json: bool) -> None:
    from agent_logger.agents.registry import block_limited_agent
    from agent_logger.catalog.ledger.totals import sum_of
    from agent_logger.model.prices import price_date

    where = where if where.agent else msgspec.structs.replace(where, agent=block_limited_agent())
    blocks, now = catalog.usage_blocks(where), datetime.now(UTC)
    whole = sum_of(block.total for block in blocks)
    if as_json:
        report = BlockReport(
            rows=[_block_row(block, now) for block in blocks],
            totals=UsageRow.of("total", whole),
            unlisted_calls=catalog.sessions_with_unlisted_calls(where),
            unpriced_models=_unpriced_models(catalog, where),
            price_date=price_date(),
        )
        _output.json(report)
    elif blocks:
        print_blocks(blocks, whole, catalog.unpriced_models(where) if whole.unpriced else {}, now)
        _note_unlisted(catalog, where)
    else:
        _note_nothing(catalog)


def _block_row(block: "UsageBlock", now: datetime) -> BlockRow:
    rate = block.burn_rate(now)
    return BlockRow(
        **msgspec.structs.asdict(UsageRow.of(block.start.isoformat(), block.total)),
        start=block.start,
        end=block.end,
        first_response=block.first,
        last_response=block.last,
        models=block.models,
        active=block.is_active(now),
        tokens_per_minute=rate.tokens_per_minute if rate else None,
        usd_per_hour=rate.usd_per_hour if rate else None,
        projected_tokens=rate.projected_tokens if rate else None,
        projected_usd=rate.projected_usd if rate else None,
    )
