"""The columns of a session that its responses tell; `details` has those that only the whole session tells."""

import hashlib
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

from msgspec.structs import asdict

from agent_logger.catalog.database import json_list
from agent_logger.catalog.ledger.ledger import NOBODY
from agent_logger.catalog.ledger.models import AnswerModel, SessionModels, models_of
from agent_logger.catalog.ledger.rows import WITNESS_SETS, LedgerRow, micros_of
from agent_logger.catalog.ledger.totals import total
from agent_logger.catalog.ledger.unlisted import has_unlisted_calls
from agent_logger.catalog.refresh.changes import unread_stamp
from agent_logger.catalog.refresh.session_sources import SessionSources
from agent_logger.files.stored_text import hashed, storable
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, SIDE, SYNTHETIC


def session_columns(
    name: str, group: SessionSources, family: str, parent: str | None, place: int, inherited_hash: int
) -> dict[str, object]:
    billed = total(group.rows)
    times = [row.at for source in group.sources for row in source.responses if row.at]
    modified = max(source.modified for source in group.sources)
    started, ended = (micros_of(min(times)), micros_of(max(times))) if times else (None, None)
    models = _models(group)
    context, peak = _context(group)
    stamps = "\n".join(sorted(source.stamp for source in group.sources))
    return {
        "id": name,
        "family": family,
        "agent": _agent(group),
        "response_project": storable(_project(group) or "") or None,
        "models": json_list(models.all),
        "side_models": json_list(models.aside),
        "first_response": started,
        "last_response": ended,
        "last_active": ended if ended is not None else round(modified * 1e6),
        "responses": billed.responses,
        **asdict(billed.usage),
        "nano_usd": billed.cost.nano_usd,
        "unpriced_responses": billed.unpriced,
        "unpriced_reason": billed.cost.reason,
        "reported_cost_usd": billed.reported_cost_usd,
        "context_tokens": context,
        "peak_context_tokens": peak,
        "witnesses": _witnesses(group),
        "parent": parent,
        "family_position": place,
        "inherited_hash": inherited_hash,
        "has_unlisted_calls": _has_unlisted_calls(group),
        "modified": modified,
        "size": sum(source.size for source in group.sources),
        "stamp": hashlib.sha256(stamps.encode()).hexdigest()[:32],
        "details_stamp": unread_stamp(),
    }


# The columns of a session that exists which do not just get the new value.
_SAME_DESCENT = "sessions.inherited_hash = excluded.inherited_hash AND sessions.parent IS excluded.parent"
SESSION_CHANGES = {
    "agent": "coalesce(excluded.agent, sessions.agent)",
    "last_active": """CASE WHEN sessions.details_stamp IS excluded.stamp
        THEN coalesce(sessions.ended, excluded.last_active)
        ELSE max(coalesce(sessions.ended, excluded.last_active), excluded.last_active) END""",
    "details_stamp": f"CASE WHEN {_SAME_DESCENT} THEN sessions.details_stamp ELSE excluded.details_stamp END",
    "details_position": f"CASE WHEN {_SAME_DESCENT} THEN sessions.details_position END",
}


ResponseKey = str | int | tuple[str, int]


def keys_of(rows: Iterable[ModelResponse]) -> Iterator[ResponseKey]:
    """Yield what the turns of a session are found by in these rows of the ledger (`ledger.inherited`)."""
    for row in rows:
        if row.message_id is None:
            yield micros_of(row.at)
        else:
            yield row.message_id
            yield row.message_id, micros_of(row.at)


def inherited_hash(group: SessionSources, counted: Container[ResponseKey]) -> int:
    """Return a hash of the responses that other sessions have, of which the details are without; 0 if there are none.
    `counted`: the keys of all rows of its family."""
    own = set(keys_of(group.rows))
    responses = [response for source in group.sources for response in source.responses]
    keys = {*keys_of(responses), *(micros_of(response.at) for response in responses)}
    inherited = sorted(repr(key) for key in keys if key not in own and key in counted)
    return hashed("\n".join(inherited)) if inherited else 0


def _has_unlisted_calls(gathered: SessionSources) -> int:
    totals = (batch_total.total for source in gathered.sources for batch_total in source.billed.totals)
    return int(has_unlisted_calls(_agent(gathered), WITNESS_SETS[_witnesses(gathered)], totals))


def _agent(group: SessionSources) -> str | None:
    names = [source.agent for source in group.sources if source.agent]
    names += [row.agent for source in group.sources for row in source.responses if row.agent not in NOBODY]
    return next(iter(names), None)


def _project(group: SessionSources) -> str | None:
    projects = (row.project for source in (group.best, *group.sources) for row in source.responses if row.project)
    return next(projects, None)


def _models(group: SessionSources) -> SessionModels:
    """Return the models of the session's own responses; where all are a parent's, of those."""
    if only := _only_model(group.rows):
        return SessionModels([only], [])
    rows: Iterable[ModelResponse] = group.rows
    if not rows:
        rows = (row for source in group.sources for row in source.responses)
    in_order = sorted(rows, key=lambda row: (row.at is None, micros_of(row.at), row.model or ""))
    return models_of(AnswerModel(row.model, row.thread, row.usage is not None) for row in in_order)


def _only_model(rows: Sequence[LedgerRow]) -> str | None:
    """Return the model that gave all of these answers, none of them outside the conversation; `None` if there is no
    such model."""
    models = {row.model if row.thread != SIDE else None for row in rows}
    only = models.pop() if len(models) == 1 else None
    return None if only == SYNTHETIC else only


def _context(group: SessionSources) -> tuple[int | None, int | None]:
    sizes = [row.usage.context_tokens for row in group.best.responses if row.thread == MAIN and row.usage]
    return (sizes[-1], max(sizes)) if sizes else (None, None)


def _witnesses(group: SessionSources) -> int:
    return reduce(or_, (source.witnesses for source in group.sources))
