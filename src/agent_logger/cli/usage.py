"""`agent-logger usage`: tokens and cost."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import output
from agent_logger.cli.when import When
from agent_logger.errors import SourceError

if TYPE_CHECKING:
    from agent_logger.catalog.ledger import Ledger, LedgerRow
    from agent_logger.catalog.totals import Total

BY = ("day", "week", "month", "session", "model", "project", "agent")


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    key: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    unpriced: int  # responses whose price is not known; they are not in the cost
    responses: int


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[UsageRow]
    totals: UsageRow
    price_date: str | None


@click.command()
@click.argument("by", type=click.Choice(BY), default="day")
@click.option("--since", type=When(), help="From then on: 2026-11-01, today, '2 days ago'.")
@click.option("--until", type=When(), help="Up to then.")
@click.option("--agent", help="Only this agent, for example claude-code.")
@click.option("--model", help="Only models with this in their name.")
@click.option("--project", help="Only projects with this in their path.")
@click.option("--explain", is_flag=True, help="Every response that counts, and why it counts once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/usage.json).")
@config.settings_options()
def command(
    settings: config.Settings,
    by: str,
    since: datetime | None,
    until: datetime | None,
    agent: str | None,
    model: str | None,
    project: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Tokens and cost, by day, week, month, session, model, project or agent.

    Every response of a model counts once, however many files tell of it: the agents' own files, their forks and
    copies, and what was recorded here. Prices are list prices of the day; what has none is not in the sum, and
    is counted as unpriced.

    \b
    Examples:
      agent-logger usage
      agent-logger usage model --since '7 days ago'
      agent-logger usage session --project agent-logger --explain
      agent-logger usage month --json
    """
    from agent_logger.catalog.totals import total, totals
    from agent_logger.prices import price_date

    wanted = _filter(since, until, agent, model, project)
    rows = [row for row in _ledger(settings).rows() if wanted(row)]
    if explain:
        _explain(rows)
        return
    sums = totals(rows, by)  # type: ignore[arg-type]  # one of `BY`
    if as_json:
        told = [_told(key, it) for key, it in sums.items()]
        output.json(UsageReport(rows=told, totals=_told("total", total(rows)), price_date=price_date()))
    elif rows:
        head = (by, "input", "output", "cache read", "cache write", "cost")
        cells = [_cells(key or "unknown", it) for key, it in sums.items()]
        output.table(head, [*cells, _cells("total", total(rows))])
    else:
        output.note(
            "No usage found. 'agent-logger' starts recording; 'agent-logger demo' shows how it looks."
        )


def _ledger(settings: config.Settings) -> "Ledger":
    from agent_logger.catalog.ledger import Ledger
    from agent_logger.catalog.sessions import places

    ledger = Ledger()
    found = places(settings.home)
    with output.progress("reading", sum(place.size for place in found)) as done:
        for place in found:
            try:
                ledger.add(place.responses())
            except (SourceError, OSError) as error:
                output.note(f"{place.path}: {error}")
            done(place.size)
    return ledger


def _filter(
    since: datetime | None,
    until: datetime | None,
    agent: str | None,
    model: str | None,
    project: str | None,
) -> "Callable[[LedgerRow], bool]":
    def wanted(row: "LedgerRow") -> bool:
        if (since and not (row.at and row.at >= since)) or (until and not (row.at and row.at < until)):
            return False
        if agent not in (None, row.agent):
            return False
        return (model or "") in (row.model or "") and (project or "") in (row.project or "")

    return wanted


def _told(key: str | None, it: "Total") -> UsageRow:
    usage = it.usage
    return UsageRow(
        key=key,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cost_usd=it.cost.usd,
        unpriced=it.unpriced,
        responses=it.responses,
    )


def _cells(key: str, it: "Total") -> list[str | int]:
    usage = it.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return [key, *(f"{count:,}" for count in counts), _money(it)]


def _money(it: "Total") -> str:
    usd = it.cost.usd
    known = "unknown" if usd is None else f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"
    return known + (f" + {it.unpriced} unpriced" if it.unpriced and it.cost.usd is not None else "")


def _explain(rows: "list[LedgerRow]") -> None:
    for row in sorted(rows, key=lambda row: (row.at is None, row.at)):
        when = f"{row.at.astimezone():%Y-%m-%d %H:%M:%S}" if row.at else "-"
        cost = "unknown" if row.cost.usd is None else f"${row.cost.usd:.6f}"
        output.echo(f"{when}  {cost}  {row.model or 'no model'}  {row.session}  {row.message_id or '-'}")
        output.echo(f"    {row.why}")
