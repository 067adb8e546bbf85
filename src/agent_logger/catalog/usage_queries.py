"""Rows of the ledger and sums over them, as SQL. What a person typed is always a parameter, never a part of the SQL."""

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import cache, partial
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from agent_logger.agents.registry import canonical_name
from agent_logger.catalog.database import QUARTERS, Database, json_list
from agent_logger.catalog.ledger.blocks import BLOCK, Slice, UsageBlock, blocks
from agent_logger.catalog.ledger.rows import BIT, EPOCH, WITNESS_SETS, LedgerRow, micros_of
from agent_logger.catalog.ledger.stored_responses import decode_responses
from agent_logger.catalog.ledger.totals import (
    ATTRIBUTES,
    DAY,
    FORMS,
    QUARTER,
    By,
    DatabaseSums,
    Sum,
    Total,
    in_order,
    offsets,
    time_key,
    totals,
)
from agent_logger.catalog.queries import moment, owner_terms, since, until, where_clause, whole_or_part
from agent_logger.catalog.source_queries import COUNTING
from agent_logger.catalog.summary import Filter
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Usage

_PROJECT_TERM = whole_or_part(
    "SELECT 1 FROM ledger_places WHERE project = ?", "project = ?", "instr(folded(project), folded(?)) > 0"
)
_MODEL_TERM = whole_or_part(
    "SELECT 1 FROM model_tiers WHERE model = ?", "model = ?", "instr(folded(model), folded(?)) > 0"
)


def _where(where: Filter, session: str | None) -> tuple[str, list[object]]:
    terms: list[tuple[str, object]] = [
        ("session = ?", session),
        ("agent = ?", where.agent and canonical_name(where.agent)),
        (_PROJECT_TERM, where.project),
        (_MODEL_TERM, where.model),
        ("at >= ?", where.since and since(where.since)),
        ("at < ?", where.until and until(where.until)),
        ("witnesses & ? <> 0", where.witness and BIT.get(where.witness, 0)),
        ("home IN (SELECT value FROM json_each(?))", None if where.homes is None else json_list(where.homes)),
        ("session IN (SELECT value FROM json_each(?))", None if where.sessions is None else json_list(where.sessions)),
        *owner_terms("ledger_places.session", where.owner),
    ]
    return where_clause(terms)


_ROWS = """
    FROM ledger JOIN ledger_places ON ledger_places.id = place JOIN model_tiers ON model_tiers.id = model_tier
"""


def ledger_rows(database: Database, where: Filter, session: str | None = None) -> Iterator[LedgerRow]:
    return _ledger_rows(database, *_where(where, session))


def session_source_responses(database: Database, session: str) -> Iterator[ModelResponse]:
    """Yield all responses that the session's sources report, whether they count or not."""
    blobs = database.execute(
        f"SELECT responses FROM source_responses JOIN sources ON sources.id = source WHERE session = ? AND {COUNTING}",
        (session,),
    ).fetchall()
    return (response for (data,) in blobs for response in decode_responses(data))


def counted_elsewhere(database: Database, session: str) -> Iterator[LedgerRow]:
    """Yield the responses that the session has too, but another had before it."""
    ids = {response.message_id for response in session_source_responses(database, session) if response.message_id}
    where = """
        session <> ? AND message_id IN (SELECT value FROM json_each(?)) AND session IN (
            SELECT id FROM sessions WHERE family = (SELECT family FROM sessions WHERE id = ?)
        )
    """
    return _ledger_rows(database, where, [session, json_list(ids), session])


def _ledger_rows(database: Database, where: str, values: list[object]) -> Iterator[LedgerRow]:
    query = f"""
        SELECT vendor, message_id, model, tier, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
            cache_write_1h_tokens, nano_usd, unpriced_reason, reported_cost_usd, at, session, project, agent, thread,
            home, witnesses, copies, joined_by, partial
        {_ROWS} WHERE {where} ORDER BY at IS NULL, at, ledger.rowid
    """
    return map(_ledger_row, database.execute(query, values))


def _ledger_row(row: Sequence[Any]) -> LedgerRow:
    family, message_id, model, tier, *tokens, nano, reason, reported, at = row[:13]
    session, project, agent, thread, home, witnesses, copies, joined_by, partial = row[13:]
    return LedgerRow(
        family=family,
        message_id=message_id,
        model=model,
        tier=tier,
        usage=None if tokens[0] is None else Usage.from_counts(*tokens),
        nano_usd=reason if nano is None else nano,
        reported_cost_usd=reported,
        at=moment(at),
        session=session,
        project=project,
        agent=agent,
        thread=thread,
        home=home,
        witnesses=WITNESS_SETS[witnesses],
        copies=copies,
        joined_by=joined_by,
        final=not partial,
    )


# ---------------------------------------------------------------- sums

# The columns of `DatabaseSums`, in its order.
_SUMS = """
    count(nullif(copies, 0)), sum(partial), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_tokens), sum(cache_write_1h_tokens), sum(nano_usd), count(unpriced_reason), min(unpriced_reason),
    sum(reported_cost_usd), count(*) - count(input_tokens)
"""
# The same over sums of quarters of an hour.
_SUMS_OF_QUARTERS = """
    coalesce(sum(responses), 0), sum(partial), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_tokens), sum(cache_write_1h_tokens), sum(nano_usd), coalesce(sum(unpriced), 0),
    min(unpriced_reason), sum(reported_cost_usd), coalesce(sum(unknown_usage), 0)
"""
# A left join costs nothing where no column of the other table is asked for.
_QUARTERS = f"""
    FROM {QUARTERS} LEFT JOIN ledger_places ON ledger_places.id = place
        LEFT JOIN model_tiers ON model_tiers.id = model_tier
"""
# Keys that are not the column of this name.
_KEYS: Mapping[By, str] = {
    "tool": """(
        SELECT calls FROM response_tools
        WHERE response_tools.session = ledger_places.session AND message_key = hashed(message_id)
    )""",
    "machine": "home",
    "person": "home",
}


def _summed(database: Database, conditions: Filter) -> tuple[str, str]:
    """Return the sums to ask for, and where they are from: sums of quarters, if the database keeps them and the filter
    begins and ends with one."""
    ends = (conditions.since and since(conditions.since), conditions.until and until(conditions.until))
    if QUARTERS in database.ledger_tables and all(not end or end % (QUARTER * 1_000_000) == 0 for end in ends):
        return _SUMS_OF_QUARTERS, _QUARTERS
    return _SUMS, _ROWS


FIRST_DAY = 1_672_531_200  # 2023-01-01: older responses, and those from the future, are few


def _day(conditions: Filter, zone: tzinfo | None) -> str:
    """Return a number that all rows of some time within one day of the zone have in common: of a day, or where a day is
    not worth computing, of a quarter. (A multiple of a quarter in microseconds is no number of these days.)"""
    quarter, day = QUARTER * 1_000_000, DAY * 1_000_000
    last = max(int(time.time()) + DAY, FIRST_DAY)
    first = FIRST_DAY
    if conditions.since:
        first = min(max(since(conditions.since) // 1_000_000, first), last)
    if conditions.until:
        last = max(min(until(conditions.until) // 1_000_000, last), first)
    (begin, ahead), *changes = offsets(zone, first, last)
    terms = [f"WHEN at < {begin * 1_000_000} THEN at / {quarter} * {quarter}"]
    for at, later in changes:
        terms.append(f"WHEN at < {at * 1_000_000} THEN (at + {ahead * 1_000_000}) / {day}")
        ahead = later
    terms.append(f"WHEN at < {last * 1_000_000} THEN (at + {ahead * 1_000_000}) / {day}")
    return f"CASE {' '.join(terms)} ELSE at / {quarter} * {quarter} END"


def _quarter(micros: int) -> int:
    """Return the quarter of a moment, in seconds."""
    return micros // 1_000_000 // QUARTER * QUARTER


def usage(database: Database, by: By, conditions: Filter, zone: tzinfo | None = None) -> dict[str | None, Total]:
    """Return the same as `totals` over the rows, summed in the database."""
    where, values = _where(conditions, None)
    summed, rows = (_SUMS, _ROWS) if by == "tool" else _summed(database, conditions)
    key, group = ("min(at)", _day(conditions, zone)) if by in FORMS else (_KEYS.get(by, by), "1")
    query = f"SELECT {key}, {summed} {rows} WHERE {where} GROUP BY {group}"
    sums: dict[str | None, Sum] = {}
    try:
        for key, *columns in database.execute(query, values):
            for name, share in _shares(by, key, columns, zone):
                sums.setdefault(name, Sum()).add_sums(DatabaseSums._make(share))
    except (sqlite3.OperationalError, OverflowError):  # numbers that no model ever reached
        if by == "tool":
            raise
        return totals(ledger_rows(database, conditions), by, zone)
    return in_order({key: group.total() for key, group in sums.items()}, by)


def usage_over_time(
    database: Database, step: By, by: By, conditions: Filter, zone: tzinfo | None = None
) -> dict[str | None, dict[str | None, Total]]:
    """Return totals by day, week or month, and within each by model, project, agent or machine."""
    where, values = _where(conditions, None)
    summed, rows = _summed(database, conditions)
    day = _day(conditions, zone)
    query = f"SELECT min(at), {_KEYS.get(by, by)}, {summed} {rows} WHERE {where} GROUP BY {day}, 2"
    key_of_quarter = cache(partial(time_key, step, zone=zone))
    sums: defaultdict[tuple[str | None, str | None], Sum] = defaultdict(Sum)
    try:
        for at, name, *columns in database.execute(query, values):
            sums[None if at is None else key_of_quarter(_quarter(at)), name].add_sums(DatabaseSums._make(columns))
    except (sqlite3.OperationalError, OverflowError):  # numbers that no model ever reached
        sums.clear()
        for row in ledger_rows(database, conditions):
            key = key_of_quarter(_quarter(micros_of(row.at))) if row.at else None
            sums[key, getattr(row, ATTRIBUTES.get(by, by))].add(row)
    over_time: dict[str | None, dict[str | None, Total]] = {}
    for (key, name), group in sums.items():
        over_time.setdefault(key, {})[name] = group.total()
    return over_time


def total_usage(database: Database, conditions: Filter) -> Total:
    where, values = _where(conditions, None)
    summed, rows = _summed(database, conditions)
    whole = Sum()
    row = database.execute(f"SELECT {summed} {rows} WHERE {where}", values).fetchone()
    whole.add_sums(DatabaseSums._make(row))
    return whole.total()


_HOUR = 3_600_000_000  # microseconds


def usage_blocks(database: Database, conditions: Filter) -> list[UsageBlock]:
    """Return the blocks of the rows. A response at a full hour may still be in the block that ends then, so it is in a
    slice of its own."""
    where, values = _where(conditions, None)
    query = f"""
        SELECT min(at), max(at), model, {_SUMS} {_ROWS} WHERE at IS NOT NULL AND {where}
        GROUP BY at / {_HOUR}, at % {_HOUR} > 0, model ORDER BY at / {_HOUR}, at % {_HOUR} > 0, min(at)
    """
    slices = (
        Slice(
            first=EPOCH + timedelta(microseconds=first),
            last=EPOCH + timedelta(microseconds=last),
            model=model,
            sums=sums,
        )
        for first, last, model, *sums in database.execute(query, values)
    )
    return blocks(slices)


def active_block(database: Database, conditions: Filter, now: datetime) -> UsageBlock | None:
    """Return the block that is not over yet. Blocks before a pause of five hours do not matter for it, so the last days
    are enough if they have one."""
    recent = usage_blocks(database, replace(conditions, since=now - RECENT))
    if all(after.first - before.last < BLOCK for before, after in pairwise(recent)):
        recent = usage_blocks(database, conditions)
    return recent[-1] if recent and recent[-1].is_active(now) else None


RECENT = timedelta(days=3)


def unpriced_models(database: Database, conditions: Filter) -> dict[str | None, int]:
    """Return the models that have responses without a price, the one with most of them first."""
    where, values = _where(conditions, None)
    query = f"""
        SELECT model, count(*) {_ROWS} WHERE unpriced_reason IS NOT NULL AND {where}
        GROUP BY model ORDER BY count(*) DESC, model
    """
    return dict(database.execute(query, values))


def sessions_with_unlisted_calls(database: Database, conditions: Filter) -> int:
    """Return how many of the sessions in the rows have calls that are in no sum."""
    where, values = _where(conditions, None)
    query = "SELECT count(*) FROM sessions WHERE has_unlisted_calls <> 0 AND responses > 0"
    if values:
        query = f"""
            SELECT count(DISTINCT session) {_ROWS} WHERE {where}
                AND session IN (SELECT id FROM sessions WHERE has_unlisted_calls <> 0)
        """
    (count,) = database.execute(query, values).fetchone()
    return int(count)


def _shares(
    by: By, key: object, values: Sequence[object], zone: tzinfo | None
) -> Iterator[tuple[str | None, Sequence[object]]]:
    if by == "tool":
        yield from _shares_by_tool(json.loads(str(key)) if key else [], values)
    elif by in FORMS:
        yield (None if key is None else time_key(by, _quarter(int(str(key))), zone)), values
    else:
        yield (None if key is None else str(key)), values


def _shares_by_tool(
    calls: Sequence[tuple[str, int]], values: Sequence[object]
) -> Iterator[tuple[str | None, Sequence[object]]]:
    """Divide the cost of responses among the tools that they called, by the number of calls."""
    if not calls:
        yield None, values
        return
    left: list[Any] = list(values)
    parts = sum(count for _, count in calls)
    for tool, count in sorted(calls):
        share = [_part(value, count, parts) for value in left]
        pairs = zip(left, share, strict=True)
        left = [value - part if isinstance(value, int | float) else value for value, part in pairs]
        parts -= count
        yield tool, share


def _part(left: Any, count: int, parts: int) -> Any:
    if isinstance(left, int):
        return left * count // parts
    return left * count / parts if isinstance(left, float) else left
