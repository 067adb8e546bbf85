"""`agent-logger usage`: show tokens and cost."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from agent_logger import config
from agent_logger.catalog.summary import Uncounted
from agent_logger.cli import _output
from agent_logger.cli._catalog import NOTHING_YET, bar, opened
from agent_logger.cli._select import one_called, short_ids
from agent_logger.cli._settings import settings_options
from agent_logger.cli._times import When
from agent_logger.model.session import MAIN
from agent_logger.views.figures import counted, dollars, money
from agent_logger.views.lists import LedgerItem, UsageRow
from agent_logger.views.terminal import screen
from agent_logger.views.terminal.rows import folded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.ledger.ledger import LedgerRow
    from agent_logger.catalog.ledger.totals import Total
    from agent_logger.catalog.summary import Filter
    from agent_logger.model.session import Cost

BY = ("day", "week", "month", "session", "model", "project", "agent", "tool")


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[UsageRow]
    totals: UsageRow
    unlisted_calls: (
        int  # sessions whose agents' files, the only witnesses, leave out calls beside the conversation
    )
    price_date: str | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[LedgerItem]  # that the totals are the sum of
    elsewhere: list[LedgerItem]  # that the session has too, and another had first
    not_counted: list[Uncounted]  # these, and all else that is in no sum, each with the reason
    totals: UsageRow
    reported_cost_usd: float | None  # what the client says
    price_date: str | None


@click.command()
@click.argument("by", type=click.Choice(BY), default="day")
@click.option("--since", type=When(), help="Only responses since: 2026-11-01, today, '2 days ago'.")
@click.option("--until", type=When(), help="Only responses before this time.")
@click.option("--agent", help="Only this agent, for example claude-code.")
@click.option("--model", help="Only models with this in their name.")
@click.option("--project", help="Only projects with this in their path.")
@click.option(
    "--explain",
    metavar="SESSION",
    help="Explain every response of a session: its cost, and why it counts or not.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/usage*.json).")
@settings_options()
def command(
    settings: config.Configuration,
    by: str,
    explain: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Show tokens and cost by day, week, month, session, model, project, agent or tool.

    Every response of a model counts once, however many files contain it: the agents' own files, their forks and copies,
    and what was recorded here. Prices are list prices of the day; a response without a price is not in the sum, and is
    counted as unpriced. By tool, the cost of a response is divided among the tools that it called. Days, weeks and
    months are in order; everything else is sorted by cost, the highest first.

    \b
    Examples:
      agent-logger usage
      agent-logger usage model --since '7 days ago'
      agent-logger usage tool --project agent-logger
      agent-logger usage --explain 1f320356
      agent-logger usage month --json
    """
    from agent_logger.catalog.summary import Filter

    conditions = Filter(**given)
    with opened(settings) as catalog:
        if explain:
            _explain(catalog, one_called(catalog, explain), conditions, as_json=as_json)
        else:
            _report(catalog, by, conditions, as_json=as_json)


def _report(catalog: "Catalog", by: str, where: "Filter", *, as_json: bool) -> None:
    from agent_logger.model.prices import price_date

    if by == "tool":
        with bar("reading tools") as progress:
            catalog.read_details(progress=progress)
    sums, whole = catalog.usage(by, where), catalog.total(where)  # type: ignore[arg-type]  # one of `BY`
    unlisted = catalog.sessions_with_unlisted_calls(where)
    if as_json:
        rows = [UsageRow.of(key, total) for key, total in sums.items()]
        report = UsageReport(
            rows=rows,
            totals=UsageRow.of("total", whole),
            unlisted_calls=unlisted,
            price_date=price_date(),
        )
        _output.json(report)
    elif sums:
        _print(by, sums, whole, short_ids(catalog, filter(None, sums)) if by == "session" else {})
        if unlisted:
            _output.note(_unlisted_text(unlisted))
    else:
        _output.note("No usage found." if catalog.count() else NOTHING_YET, lines=True)


def _unlisted_text(count: int) -> str:
    """The text below the table that says why the sums may be too low."""
    files = "its agent's file" if count == 1 else "their agents' files"
    return f"side calls (titles, compactions) of {counted(count, 'session')} are not in {files}"


def _print(by: str, sums: "dict[str | None, Total]", whole: "Total", names: dict[str, str]) -> None:
    rows = [
        _cells(names.get(key, key) if key else NONE.get(by, "unknown"), total) for key, total in sums.items()
    ]
    head, *rows, last = _fitting([[by, *COUNTS, "cost"], *rows, _cells("total", whole)])
    widths = [max(map(screen.width, column)) for column in zip(head, *rows, last, strict=True)]
    room = screen.columns() - sum(widths) - 2 * len(widths)
    if screen.is_terminal() and room < -2:  # no bar, so no gap behind the last column
        least = max(SHORTEST_NAME, widths[0] + room + 2)
        rows = [[_cut(by, name, least), *counts] for name, *counts in rows]
    if screen.is_terminal() and room >= LEAST_BAR and len(rows) > 1:
        most = max((total.cost.nano_usd or 0 for total in sums.values()), default=0)
        head.append("")
        bars = [_bar(total.cost.nano_usd or 0, most, min(room, LONGEST_BAR)) for total in sums.values()]
        rows = [[*row, bar] for row, bar in zip(rows, bars, strict=True)]
        last.append("")
    _output.table(head, [*rows, last], fold=False, right=range(1, len(widths)))


COUNTS = ("input", "output", "cache read", "cache write")
LESS = (4, 3, 1, 2)  # columns of counts that a narrow terminal has no room for, the first to go first


def _fitting(rows: list[list[str]]) -> list[list[str]]:
    """The rows without the columns for which a terminal has no room."""
    widths = [max(map(screen.width, column)) for column in zip(*rows, strict=True)]
    widths[0] = min(widths[0], SHORTEST_NAME)
    columns = list(range(len(widths)))
    for column in LESS:
        if screen.is_terminal() and sum(widths[column] + 2 for column in columns) > screen.columns() + 2:
            columns.remove(column)
    return [[row[column] for column in columns] for row in rows]


LEAST_BAR, LONGEST_BAR = 5, 30  # columns
SHORTEST_NAME = 12
EIGHTHS = " ▏▎▍▌▋▊▉"
NONE = {"tool": "no tool"}


def _cut(by: str, name: str, room: int) -> str:
    """The name cut to the room. Of a path the end is kept, which distinguishes it from others."""
    if by != "project" or screen.width(name) <= room:
        return screen.cut(name, room)
    while screen.width(name) > room - 1:
        name = name[1:]
    return f"…{name}"


def _bar(value: int, most: int, room: int) -> str:
    eighths = round(8 * room * value / most) if most else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _cells(key: str, total: "Total") -> list[str]:
    usage = total.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    is_known = total.unknown_usage < total.responses or not total.responses
    texts = [f"{count:,}" if is_known else "unknown" for count in counts]
    return [_output.printable(key), *texts, money(total.cost)]


def _explain(catalog: "Catalog", session: str, where: "Filter", *, as_json: bool) -> None:
    """Print every row of the ledger that is the session's, and those that it has but that count elsewhere."""
    from agent_logger.catalog.ledger.totals import total
    from agent_logger.model.prices import price_date

    rows, elsewhere = list(catalog.ledger(where, session=session)), catalog.counted_elsewhere(session)
    not_counted = catalog.uncounted(session, where)
    whole, summary = total(rows), catalog.summary(session)
    reported = summary.reported_cost_usd if summary else None
    if as_json:
        explanation = Explanation(
            rows=[LedgerItem.of(row) for row in rows],
            elsewhere=[LedgerItem.of(row) for row in elsewhere],
            not_counted=not_counted,
            totals=UsageRow.of(session, whole),
            reported_cost_usd=reported,
            price_date=price_date(),
        )
        _output.json(explanation)
        return
    _print_rows(rows)
    _print_uncounted(not_counted)
    responses = counted(whole.responses, "response")
    _output.echo(f"billed: {money(whole.cost)} for {responses}, at prices of {price_date()}")
    _output.echo(f"the client says: {'nothing' if reported is None else dollars(reported)}")


def _print_rows(rows: "Sequence[LedgerRow]") -> None:
    for row in rows:
        _print_head(row, _exact(row.cost))
        _print_below(_counts(row))
        _print_below(row.why)


def _print_uncounted(rows: "Sequence[Uncounted]") -> None:
    for uncounted in rows:
        if uncounted.at is None and uncounted.message_id is None and uncounted.model is None:
            _print_folded(uncounted.why)
        else:
            _print_head(uncounted, "-")
            _print_below(
                f"{uncounted.thread}: {uncounted.why}" if uncounted.thread != MAIN else uncounted.why
            )


def _print_below(text: str) -> None:
    """Print the text indented, below its head."""
    _print_folded(text, " " * 4)


def _print_folded(text: str, indent: str = "") -> None:
    """Print the text, folded to the width of a terminal."""
    room = screen.columns() - len(indent) if screen.is_terminal() else len(text) + 1
    for line in folded(text, max(room, 20)):
        _output.echo(f"{indent}{line}")


def _print_head(row: "LedgerRow | Uncounted", cost: str) -> None:
    head, name = f"{_when(row)}  {cost}  {row.model or 'no model'}", row.message_id or "-"
    if screen.is_terminal() and screen.width(f"{head}  {name}") > screen.columns():
        _output.echo(head)
        _output.echo(f"    {name}")
    else:
        _output.echo(f"{head}  {name}")


def _when(row: "LedgerRow | Uncounted") -> str:
    return f"{row.at.astimezone():%Y-%m-%d %H:%M:%S}" if row.at else "-"


def _counts(row: "LedgerRow") -> str:
    if row.tokens is None:
        return f"{row.thread}: tokens unknown: no usage was recorded"
    given, output_tokens, read, write, hour = row.tokens
    long = f" ({hour:,} for an hour)" if hour else ""
    cache = f"{read:,} cache read, {write:,} cache write{long}"
    return f"{row.thread}: {given:,} input, {output_tokens:,} output, {cache}"


def _exact(cost: "Cost") -> str:
    return "unknown" if cost.usd is None else f"${cost.usd:.6f}"
