"""Rows of the ledger and sums over them, as SQL. What a person typed is always a parameter, never a part of the SQL."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from agent_logger.catalog.database import json_list
from agent_logger.catalog.discovery.reader import unpacked
from agent_logger.catalog.ledger.ledger import LedgerRow
from agent_logger.catalog.ledger.rows import BIT, WITNESS_SETS
from agent_logger.catalog.ledger.totals import By, Sum, Total, in_order, time_key, totals
from agent_logger.catalog.queries import moment, since, where_clause
from agent_logger.catalog.summary import Filter
from agent_logger.model.responses import ModelResponse


def _where(where: Filter, session: str | None) -> tuple[str, list[object]]:
    terms: list[tuple[str, object]] = [
        ("session = ?", session),
        ("agent = ?", where.agent),
        ("instr(folded(project), ?)", where.project and where.project.lower()),
        ("instr(folded(model), ?)", where.model and where.model.lower()),
        ("at >= ?", where.since and since(where.since)),
        ("at < ?", where.until and since(where.until)),
        ("witnesses & ?", where.witness and BIT.get(where.witness, 0)),
    ]
    return where_clause(terms)


_ROWS = """
    FROM ledger JOIN ledger_places ON ledger_places.id = place JOIN model_tiers ON model_tiers.id = model_tier
"""


def ledger_rows(
    database: sqlite3.Connection, where: Filter, session: str | None = None
) -> Iterator[LedgerRow]:
    return _ledger_rows(database, *_where(where, session))


def session_source_responses(database: sqlite3.Connection, session: str) -> Iterator[ModelResponse]:
    """Yield all responses that the session's sources report, whether they count or not."""
    blobs = database.execute(
        "SELECT responses FROM source_responses JOIN sources ON sources.id = source WHERE session = ?",
        (session,),
    ).fetchall()
    return (response for (data,) in blobs for response in unpacked(data))


def counted_elsewhere(database: sqlite3.Connection, session: str) -> Iterator[LedgerRow]:
    """Yield the responses that the session has too, but another had before it."""
    ids = {
        response.message_id for response in session_source_responses(database, session) if response.message_id
    }
    where = """
        session <> ? AND message_id IN (SELECT value FROM json_each(?)) AND session IN (
            SELECT id FROM sessions WHERE family = (SELECT family FROM sessions WHERE id = ?)
        )
    """
    return _ledger_rows(database, where, [session, json_list(ids), session])


def _ledger_rows(database: sqlite3.Connection, where: str, values: list[object]) -> Iterator[LedgerRow]:
    query = f"""
        SELECT vendor, message_id, model, tier, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
            cache_write_1h_tokens, nano_usd, unpriced_reason, reported_cost_usd, at, session, project, agent, thread,
            witnesses, copies, joined_by, partial
        {_ROWS} WHERE {where} ORDER BY at IS NULL, at, ledger.rowid
    """
    return map(_ledger_row, database.execute(query, values))


def _ledger_row(row: Sequence[Any]) -> LedgerRow:
    family, message_id, model, tier, given, output, read, write, hour, nano, reason, reported, at, *rest = row
    session, project, agent, thread, witnesses, copies, joined_by, partial = rest
    return LedgerRow(
        family=family,
        message_id=message_id,
        model=model,
        tier=tier,
        tokens=None if given is None else (given, output, read, write, hour),
        nano_usd=reason if nano is None else nano,
        reported_cost_usd=reported,
        at=moment(at),
        session=session,
        project=project,
        agent=agent,
        thread=thread,
        witnesses=WITNESS_SETS[witnesses],
        copies=copies,
        joined_by=joined_by,
        partial=bool(partial),
    )


# ---------------------------------------------------------------- sums

_SUMS = """
    count(nullif(copies, 0)), sum(partial), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_tokens), sum(cache_write_1h_tokens), sum(nano_usd), count(unpriced_reason), min(unpriced_reason),
    sum(reported_cost_usd), count(*) - count(input_tokens)
"""
_QUARTER = 900_000_000  # microseconds; no zone changes its offset within one
_KEYS: Mapping[By, str] = {
    "day": f"at / {_QUARTER}",
    "week": f"at / {_QUARTER}",
    "month": f"at / {_QUARTER}",
    "session": "session",
    "model": "model",
    "project": "project",
    "agent": "agent",
    "tool": """(
        SELECT calls FROM response_tools
        WHERE response_tools.session = ledger_places.session AND message_key = hashed(message_id)
    )""",
}


def usage(
    database: sqlite3.Connection, by: By, conditions: Filter, zone: tzinfo | None = None
) -> dict[str | None, Total]:
    """Return the same as `totals` over the rows, summed in the database."""
    where, values = _where(conditions, None)
    query = f"SELECT {_KEYS[by]}, {_SUMS} {_ROWS} WHERE {where} GROUP BY 1"
    sums: dict[str | None, Sum] = {}
    try:
        for key, *columns in database.execute(query, values):
            for name, share in _shares(by, key, columns, zone):
                sums.setdefault(name, Sum()).add_sums(share)
    except (sqlite3.OperationalError, OverflowError):  # numbers that no model ever reached
        if by == "tool":
            raise
        return totals(ledger_rows(database, conditions), by, zone)
    return in_order({key: group.total() for key, group in sums.items()}, by)


def total_usage(database: sqlite3.Connection, conditions: Filter) -> Total:
    where, values = _where(conditions, None)
    summed = Sum()
    summed.add_sums(database.execute(f"SELECT {_SUMS} {_ROWS} WHERE {where}", values).fetchone())
    return summed.total()


def sessions_with_unlisted_calls(database: sqlite3.Connection, conditions: Filter) -> int:
    """Return how many of the sessions in the rows have calls that are in no sum."""
    where, values = _where(conditions, None)
    query = "SELECT count(*) FROM sessions WHERE has_unlisted_calls AND responses > 0"
    if values:
        query = f"""
            SELECT count(DISTINCT session) {_ROWS} WHERE {where}
                AND session IN (SELECT id FROM sessions WHERE has_unlisted_calls)
        """
    (count,) = database.execute(query, values).fetchone()
    return int(count)


def _shares(
    by: By, key: object, values: Sequence[object], zone: tzinfo | None
) -> Iterator[tuple[str | None, Sequence[object]]]:
    if by == "tool":
        yield from _shares_by_tool(json.loads(str(key)) if key else [], values)
    elif by in ("day", "week", "month"):
        yield (None if key is None else time_key(by, int(str(key)) * 900, zone)), values
    else:
        yield (None if key is None else str(key)), values


def _shares_by_tool(
    calls: Sequence[tuple[str, int]], values: Sequence[object]
) -> Iterator[tuple[str | None, Sequence[object]]]:
    """Divide the cost of responses among the tools that they called, by the number of calls."""
    if not calls:
        yield None, values
        return
    left = list(values)
    parts = sum(count for _, count in calls)
    for tool, count in sorted(calls):
        share = [_part(value, count, parts) for value in left]
        left = [_subtract(value, amount) for value, amount in zip(left, share, strict=True)]
        parts -= count
        yield tool, share


def _part(left: Any, count: int, parts: int) -> Any:
    if isinstance(left, int):
        return left * count // parts
    return left * count / parts if isinstance(left, float) else left


def _subtract(value: Any, share: Any) -> Any:
    return value - share if isinstance(value, int | float) else value
