"""What is asked of the catalog's tables, as SQL. Whatever a person typed is a parameter, never a part of it."""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Literal

from agent_logger.catalog.columns import BIT, micros_of, time_of
from agent_logger.catalog.found import Found
from agent_logger.catalog.ledger import WITNESS_SETS, LedgerRow
from agent_logger.catalog.posting import listed
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.catalog.totals import By, Sum, Total, time_key, totals
from agent_logger.catalog.witness import unpacked
from agent_logger.prices import price_date
from agent_logger.session import Cost, Usage
from agent_logger.store.layout import claude_roots
from agent_logger.store.running import running_sessions

LIVE_SECONDS = 300

Order = Literal["active", "started", "cost", "tokens", "turns", "exchanges", "duration"]
ORDERS: Mapping[Order, str] = {
    "active": "active DESC",
    "started": "started DESC",
    "cost": "nano_usd DESC",
    "tokens": "input_tokens + output_tokens + cache_read_tokens + cache_write_tokens DESC",
    "turns": "turns DESC",
    "exchanges": "exchanges DESC",
    "duration": "active_seconds DESC",
}
NEED_DETAILS = ("exchanges", "duration")  # orders


def prepare(database: sqlite3.Connection) -> None:
    database.create_function("folded", 1, lambda text: (text or "").lower(), deterministic=True)


def _since(at: datetime) -> int:
    return micros_of(at if at.tzinfo else at.astimezone(UTC))


# ---------------------------------------------------------------- sessions


def _where(wanted: Filter) -> tuple[str, list[object]]:
    terms: list[tuple[str, object]] = [
        ("agent = ?", wanted.agent),
        ("instr(folded(project), ?)", wanted.project and wanted.project.lower()),
        ("instr(folded(models), ?)", wanted.model and json.dumps(wanted.model.lower())[1:-1]),
        ("instr(folded(title), ?)", wanted.title and wanted.title.lower()),
        ("coalesce(ended, started) >= ?", wanted.since and _since(wanted.since)),
        ("started < ?", wanted.until and _since(wanted.until)),
        ("nano_usd >= ?", wanted.min_cost_usd and wanted.min_cost_usd * 1e9),
        ("witnesses & ?", wanted.witness and BIT.get(wanted.witness, 0)),
    ]
    given = [(term, [value]) for term, value in terms if value is not None and value != ""]
    if wanted.live:
        live = _Live()
        is_live = "(modified >= ? OR id IN (SELECT value FROM json_each(?)))"
        given.append((is_live, [live.since, listed(live.running)]))
    return " AND ".join(term for term, _ in given) or "1", [value for _, values in given for value in values]


def session_ids(
    database: sqlite3.Connection, wanted: Filter, order: Order, limit: int | None, offset: int
) -> list[str]:
    where, values = _where(wanted)
    query = f"SELECT id FROM sessions WHERE {where} ORDER BY {ORDERS[order]}, id LIMIT ? OFFSET ?"
    return [name for (name,) in database.execute(query, [*values, -1 if limit is None else limit, offset])]


def count_sessions(database: sqlite3.Connection, wanted: Filter) -> int:
    where, values = _where(wanted)
    (count,) = database.execute(f"SELECT count(*) FROM sessions WHERE {where}", values).fetchone()
    return int(count)


_SUMMARY = """
    SELECT id, agent, project, title, models, started, ended, exchanges, turns, tool_calls, errors, active_seconds,
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, nano_usd,
        unpriced, unpriced_reason, reported_cost_usd, context_tokens, peak_context_tokens, witnesses,
        (SELECT coalesce(min(log.session), own.parent) FROM sources log
            WHERE log.name = own.parent AND log.agent IS NULL),
        modified
    FROM sessions own WHERE id IN (SELECT value FROM json_each(?))
"""


def summaries(database: sqlite3.Connection, ids: Sequence[str]) -> list[SessionSummary]:
    """In this order; those that are not there are left out."""
    given = (listed(ids),)
    sources: dict[str, list[Found]] = {}
    query = """
        SELECT session, key, agent, path, name, modified, size, stamp FROM sources
        WHERE session IN (SELECT value FROM json_each(?)) ORDER BY agent IS NULL, key
    """
    for session, *source in database.execute(query, given):
        sources.setdefault(session, []).append(Found(*source))
    live = _Live()
    found = {
        row[0]: _summary(row, sources.get(row[0], []), live) for row in database.execute(_SUMMARY, given)
    }
    return [found[name] for name in ids if name in found]


class _Live:
    """Which sessions somebody is at: their agent says so, or they were written to just now."""

    def __init__(self) -> None:
        self.since = time.time() - LIVE_SECONDS
        self.running = running_sessions(claude_roots())

    def holds(self, name: str, modified: float) -> bool:
        return modified >= self.since or name in self.running


def _summary(row: Sequence[Any], sources: list[Found], live: _Live) -> SessionSummary:
    (
        name,
        agent,
        project,
        title,
        models,
        started,
        ended,
        exchanges,
        turns,
        tool_calls,
        errors,
        seconds,
        *rest,
    ) = row
    (
        given,
        output,
        read,
        write,
        hour,
        nano,
        unpriced,
        reason,
        reported,
        context,
        peak,
        bits,
        parent,
        modified,
    ) = rest
    return SessionSummary(
        id=name,
        agent=agent,
        project=project,
        title=title,
        models=tuple(json.loads(models)),
        started=_time(started),
        ended=_time(ended),
        exchanges=exchanges,
        turns=turns,
        tool_calls=tool_calls,
        errors=errors,
        active_seconds=seconds,
        usage=Usage(
            input_tokens=given,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=write,
            cache_write_1h_tokens=hour,
        ),
        cost=_cost(nano, unpriced, reason),
        reported_cost_usd=reported,
        context_tokens=context,
        peak_context_tokens=peak,
        witnesses=WITNESS_SETS[bits],
        parent=parent if parent != name else None,
        live=live.holds(name, modified),
        paths=tuple(dict.fromkeys(Path(it.path) for it in sources)),
        prompts_only=bool(sources) and all(it.prompts_only for it in sources),
    )


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else time_of(micros)


def _cost(nano: int | None, unpriced: int, reason: str | None) -> Cost:
    return Cost(
        nano_usd=nano, price_date=None if nano is None else price_date(), reason=reason, unpriced=unpriced
    )


def called(database: sqlite3.Connection, wanted: str) -> list[str]:
    """The sessions that are meant: by id, by the name of a log or its path; else all that begin so."""
    for where in ("id = ?1", "id IN (SELECT session FROM sources WHERE name = ?1 OR path = ?1)", _BEGINS):
        rows = database.execute(f"SELECT id FROM sessions WHERE {where} ORDER BY active DESC", (wanted,))
        if found := [name for (name,) in rows]:
            return found
    return []


_BEGINS = """
    ?1 <> '' AND (substr(id, 1, length(?1)) = ?1
        OR id IN (SELECT session FROM sources WHERE substr(name, 1, length(?1)) = ?1))
"""


# ---------------------------------------------------------------- the ledger


def _ledger_where(wanted: Filter, session: str | None) -> tuple[str, list[object]]:
    terms: list[tuple[str, object]] = [
        ("session = ?", session),
        ("agent = ?", wanted.agent),
        ("instr(folded(project), ?)", wanted.project and wanted.project.lower()),
        ("instr(folded(model), ?)", wanted.model and wanted.model.lower()),
        ("at >= ?", wanted.since and _since(wanted.since)),
        ("at < ?", wanted.until and _since(wanted.until)),
        ("witnesses & ?", wanted.witness and BIT.get(wanted.witness, 0)),
    ]
    given = [(term, value) for term, value in terms if value is not None and value != ""]
    return " AND ".join(term for term, _ in given) or "1", [value for _, value in given]


_ROWS = "FROM ledger JOIN places ON places.id = place JOIN kinds ON kinds.id = kind"


def ledger_rows(
    database: sqlite3.Connection, wanted: Filter, session: str | None = None
) -> Iterator[LedgerRow]:
    return _ledger_rows(database, *_ledger_where(wanted, session))


def counted_elsewhere(database: sqlite3.Connection, session: str) -> Iterator[LedgerRow]:
    """What the session tells of too, but another had before it."""
    blobs = database.execute("SELECT responses FROM sources WHERE session = ?", (session,))
    told = {it.message_id for (data,) in blobs for it in unpacked(data) if it.message_id}
    where = """
        session <> ? AND message_id IN (SELECT value FROM json_each(?)) AND session IN (
            SELECT id FROM sessions WHERE family = (SELECT family FROM sessions WHERE id = ?)
        )
    """
    return _ledger_rows(database, where, [session, listed(told), session])


def _ledger_rows(database: sqlite3.Connection, where: str, values: list[object]) -> Iterator[LedgerRow]:
    query = f"""
        SELECT family, message_id, model, tier, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
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
        at=_time(at),
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
    count(*), sum(partial), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens),
    sum(cache_write_1h_tokens), sum(nano_usd), count(unpriced_reason), min(unpriced_reason), sum(reported_cost_usd)
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
        SELECT json_group_array(json_array(tool, calls)) FROM tools
        WHERE tools.session = places.session AND tools.message_id = ledger.message_id
    )""",
}


def usage(
    database: sqlite3.Connection, by: By, wanted: Filter, zone: tzinfo | None = None
) -> dict[str | None, Total]:
    """The same as `totals` over the rows, summed where they are."""
    where, values = _ledger_where(wanted, None)
    query = f"SELECT {_KEYS[by]}, {_SUMS} {_ROWS} WHERE {where} GROUP BY 1"
    sums: dict[str | None, Sum] = {}
    try:
        for key, *told in database.execute(query, values):
            for name, share in _shared_out(by, key, told, zone):
                sums.setdefault(name, Sum()).add_sums(share)
    except (sqlite3.OperationalError, OverflowError):  # numbers that no model ever counted to
        if by == "tool":
            raise
        return totals(ledger_rows(database, wanted), by, zone)
    return {key: sums[key].total() for key in sorted(sums, key=lambda it: (it is None, it or ""))}


def total_usage(database: sqlite3.Connection, wanted: Filter) -> Total:
    where, values = _ledger_where(wanted, None)
    summed = Sum()
    summed.add_sums(database.execute(f"SELECT {_SUMS} {_ROWS} WHERE {where}", values).fetchone())
    return summed.total()


def _shared_out(
    by: By, key: object, told: Sequence[object], zone: tzinfo | None
) -> Iterator[tuple[str | None, Sequence[object]]]:
    if by == "tool":
        yield from _by_tool(json.loads(str(key)), told)
    elif by in ("day", "week", "month"):
        yield (None if key is None else time_key(by, int(str(key)) * 900, zone)), told
    else:
        yield (None if key is None else str(key)), told


def _by_tool(
    calls: Sequence[tuple[str, int]], told: Sequence[object]
) -> Iterator[tuple[str | None, Sequence[object]]]:
    """What responses cost is shared out among the tools that they called, by the number of calls."""
    if not calls:
        yield None, told
        return
    left = list(told)
    parts = sum(count for _, count in calls)
    for tool, count in sorted(calls):
        share = [_part(value, count, parts) for value in left]
        left = [_less(value, it) for value, it in zip(left, share, strict=True)]
        parts -= count
        yield tool, share


def _part(left: Any, count: int, parts: int) -> Any:
    if isinstance(left, int):
        return left * count // parts
    return left * count / parts if isinstance(left, float) else left


def _less(value: Any, share: Any) -> Any:
    return value - share if isinstance(value, int | float) else value
