"""A session with what its clients count beyond its turns."""

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec.structs import replace

from agent_logger.model.not_itemised import Remainder, SeenResponse, Stretch, remainders
from agent_logger.model.prices import NO_USAGE, nano_usd, price_date
from agent_logger.model.session import Cost, NotItemised, Session, Turn


def with_remainders(session: Session, times: Iterable[tuple[float | None, float | None]] = ()) -> Session:
    """Add what the session's clients count beyond its turns. `times`: for each turn, the times that its first and its
    last witness give, where it has several."""
    has_sums = any(turn.is_sum for turn in session.turns)  # such a turn has all of its exchange already
    stretches = [
        Stretch(session.id, total)
        for total in session.totals
        if total.message_ids or total.is_request or not has_sums
    ]
    turns = session.turns
    spans = list(times) or [(_seconds(turn),) * 2 for turn in turns]
    responses = [_seen_response(turn, session.id, *span) for turn, span in zip(turns, spans, strict=True)]
    not_itemised = [_not_itemised(remainder) for remainder in remainders(stretches, responses)]
    return replace(session, not_itemised=not_itemised)


def _seen_response(turn: Turn, session: str, first: float | None, last: float | None) -> SeenResponse:
    return SeenResponse(
        message_id=turn.message_id,
        session=session,
        thread=turn.thread,
        model=turn.model,
        tokens=turn.usage.counts if turn.usage else None,
        first=first,
        last=last,
        is_final=turn.is_final,
        witnesses=turn.witnesses,
    )


def _seconds(turn: Turn) -> float | None:
    time = turn.started or turn.ended
    return seconds_of(time) if time else None


def seconds_of(time: datetime) -> float:
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _not_itemised(remainder: Remainder) -> NotItemised:
    total = remainder.stretch.total
    at = total.ended or total.started
    nano = (
        nano_usd(remainder.usage.counts, remainder.model, at, None, is_sum=True)
        if remainder.usage
        else NO_USAGE
    )
    cost = (
        Cost(nano_usd=None, reason=nano)
        if isinstance(nano, str)
        else Cost(nano_usd=nano, price_date=price_date())
    )
    return NotItemised(
        model=remainder.model, usage=remainder.usage, cost=cost, at=at, exchange=total.exchange
    )
