"""What a session contains that is in no sum, each with the reason: the other half of what `usage --explain` says."""

from collections.abc import Collection, Iterable, Iterator

from agent_logger.catalog.joining.calls import WireCall
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.catalog.ledger.unlisted import UNLISTED_CALLS, session_has_unlisted_calls
from agent_logger.catalog.summary import Uncounted, UncountedReason
from agent_logger.model.plurals import pluralize
from agent_logger.model.responses import utc
from agent_logger.model.session import Session

# Kinds of calls that no provider bills.
FREE = {
    "count_tokens": ("token count", "token counts"),
    "models": ("list of models", "lists of models"),
    "probe": ("probe", "probes"),
    "other": ("other request", "other requests"),
}


def uncounted(
    rows: Iterable[LedgerRow],
    elsewhere: Iterable[LedgerRow],
    session: Session | None,
    calls: Iterable[WireCall],
) -> list[Uncounted]:
    """Return what does not count, in the order of time, with calls that are never billed last. `rows` count for the
    session; `elsewhere` count for another; `calls` are those of its own wire logs."""
    rows, elsewhere = list(rows), list(elsewhere)
    counted = {row.message_id for row in (*rows, *elsewhere) if row.message_id}
    calls = list(calls)
    omitted = [
        *map(_copy, elsewhere),
        *_synthetic(session),
        *(row for call in calls if (row := _call(call, counted))),
    ]
    has_more = session is not None and session_has_unlisted_calls(session)
    unlisted = [Uncounted(reason="unlisted", why=UNLISTED_CALLS, thread="side", count=0)] if has_more else []
    return [*sorted(omitted, key=_moment), *_free(calls), *unlisted]


def _moment(row: Uncounted) -> float:
    return float("inf") if row.at is None else utc(row.at).timestamp()


def _copy(row: LedgerRow) -> Uncounted:
    return Uncounted(
        reason="copy",
        why=f"counted in {row.session}, which had it first",
        at=row.at,
        thread=row.thread,
        model=row.model,
        message_id=row.message_id,
    )


def _synthetic(session: Session | None) -> Iterator[Uncounted]:
    for turn in session.turns if session else ():
        if turn.is_synthetic:
            yield Uncounted(
                reason="synthetic",
                why="not counted: written by the client, not by a model",
                at=turn.started or turn.ended,
                thread=turn.thread,
                model=turn.model,
                message_id=turn.message_id,
            )


def _call(call: WireCall, counted: Collection[str]) -> Uncounted | None:
    """Return why a call to a model does not count; None if it does, or if it requested nothing that is billed."""
    if call.kind in FREE:
        return None
    reason: UncountedReason
    if call.complete is None:
        reason, why = "in_flight", "not counted yet: no response so far"
    elif call.status is None:
        reason, why = "no_answer", f"not counted: no response ({call.reason or 'unknown reason'})"
    elif call.status >= 400:
        reason, why = "error_status", f"not billed: the API answered with status {call.status}"
    elif call.error and call.message_id not in counted:
        reason, why = "error_event", f"not billed: the API ended the response with an error ({call.error})"
    elif call.message_id and call.message_id not in counted and call.usage is None and call.complete:
        reason, why = "error_event", "not billed: the API reported a failure instead of a response"
    elif not call.complete and not call.message_id and call.usage is None and not call.model:
        reason, why = "no_answer", f"not counted: cut off before the response began ({call.reason})"
    else:
        return None
    return Uncounted(
        reason=reason,
        why=why,
        at=call.started,
        thread=call.thread,
        model=call.model,
        message_id=call.message_id,
        status=call.status,
    )


def _free(calls: Iterable[WireCall]) -> Iterator[Uncounted]:
    kinds = [call.kind for call in calls if call.usage is None and call.message_id is None]
    for kind, (one, several) in FREE.items():
        if number := kinds.count(kind):
            yield Uncounted(
                reason="free",
                why=f"not billed: {pluralize(number, one, several)}",
                thread="side",
                count=number,
            )
