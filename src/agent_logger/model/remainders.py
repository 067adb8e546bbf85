"""A session with what its clients count beyond its turns."""

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from agent_logger.model.not_itemised import Remainder, Stretch, remainders
from agent_logger.model.prices import NO_USAGE, cost_of, nano_usd
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import NotItemised, Session, Turn


def with_remainders(session: Session, times: Iterable[tuple[datetime | None, datetime | None]] = ()) -> Session:
    """Add what the session's clients count beyond its turns. `times`: for each turn, the times that its first and its
    last witness give, where it has several."""
    has_sums = any(turn.is_sum for turn in session.turns)  # such a turn has the whole usage of its exchange
    stretches = [
        Stretch(session.id, total) for total in session.totals if total.message_ids or total.is_request or not has_sums
    ]
    turns = session.turns
    spans = list(times) or [(turn.started or turn.ended, None) for turn in turns]
    responses = [_response(turn, session.id, *span) for turn, span in zip(turns, spans, strict=True)]
    not_itemised = [_not_itemised(remainder) for remainder in remainders(stretches, responses)]
    return replace(session, not_itemised=not_itemised)


def _response(turn: Turn, session: str, first: datetime | None, last: datetime | None) -> ModelResponse:
    return ModelResponse(
        family="",
        message_id=turn.message_id,
        model=turn.model,
        usage=turn.usage,
        at=first,
        session=session,
        project=None,
        agent="",
        thread=turn.thread,
        final=turn.is_final,
        witnesses=turn.witnesses,
        last_at=last,
    )


def _not_itemised(remainder: Remainder) -> NotItemised:
    total = remainder.stretch.total
    at = total.ended or total.started
    nano = nano_usd(remainder.usage.counts, remainder.model, at, None, is_sum=True) if remainder.usage else NO_USAGE
    return NotItemised(model=remainder.model, usage=remainder.usage, cost=cost_of(nano), at=at, exchange=total.exchange)
