"""Print every response of a session: its cost, and why it is counted or not."""

from typing import TYPE_CHECKING

import msgspec

from agent_logger.catalog.summary import Uncounted
from agent_logger.cli import _output
from agent_logger.model.plurals import pluralize
from agent_logger.model.session import MAIN
from agent_logger.views.figures import dollars, money
from agent_logger.views.lists import LedgerItem, UsageRow
from agent_logger.views.terminal import screen
from agent_logger.views.terminal.rows import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.ledger.rows import LedgerRow
    from agent_logger.catalog.summary import Filter


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[LedgerItem]  # the totals are their sum
    elsewhere: list[LedgerItem]  # that the session also has, but another had first
    not_counted: list[Uncounted]  # these, and everything else that is in no sum, with the reason
    totals: UsageRow
    reported_cost_usd: float | None  # as reported by the client
    price_date: str | None


def explain(catalog: "Catalog", session: str, where: "Filter", *, as_json: bool) -> None:
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
    for row in rows:
        _print_head(row, "unknown" if row.cost.usd is None else f"${row.cost.usd:.6f}")
        _print_folded(_counts(row), BELOW)
        _print_folded(row.why, BELOW)
    _print_uncounted(not_counted)
    responses = pluralize(whole.responses, "response")
    _output.echo(f"estimated cost: {money(whole.cost)} for {responses}, at list prices of {price_date()}")
    _output.echo(f"reported by the client: {'nothing' if reported is None else dollars(reported)}")


def _print_uncounted(rows: "Sequence[Uncounted]") -> None:
    for uncounted in rows:
        if uncounted.at is None and uncounted.message_id is None and uncounted.model is None:
            _print_folded(uncounted.why)
        else:
            _print_head(uncounted, "-")
            thread = f"{uncounted.thread}: " if uncounted.thread != MAIN else ""
            _print_folded(thread + uncounted.why, BELOW)


BELOW = " " * 4  # the indent of a text below its head


def _print_folded(text: str, indent: str = "") -> None:
    """Print the text, folded to the width of a terminal."""
    room = screen.columns() - len(indent) if screen.is_terminal() else len(text) + 1
    for line in fold(text, max(room, 20)):
        _output.echo(f"{indent}{line}")


def _print_head(row: "LedgerRow | Uncounted", cost: str) -> None:
    when = f"{row.at.astimezone():%Y-%m-%d %H:%M:%S}" if row.at else "-"
    head, name = f"{when}  {cost}  {row.model or 'no model'}", row.message_id or "-"
    if screen.is_terminal() and screen.width(f"{head}  {name}") > screen.columns():
        _output.echo(head)
        _output.echo(BELOW + name)
    else:
        _output.echo(f"{head}  {name}")


def _counts(row: "LedgerRow") -> str:
    if row.tokens is None:
        return f"{row.thread}: tokens unknown: no usage was recorded"
    given, output_tokens, read, write, hour = row.tokens
    long = f" ({hour:,} of it for one hour)" if hour else ""
    cache = f"{read:,} cache read, {write:,} cache write{long}"
    return f"{row.thread}: {given:,} input, {output_tokens:,} output, {cache}"
