"""The history that a fork inherits. It counts in the sessions that had it first."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from agent_logger.catalog.database import Database, json_list
from agent_logger.catalog.ledger.rows import NEVER, micros_of
from agent_logger.catalog.ledger.session_responses import responses_of_session
from agent_logger.catalog.ledger.totals import total_of
from agent_logger.model.session import Exchange, Inherited, Session, Turn

ResponseKey = str | int  # the identity of a response: its id, else its time in microseconds


def mark_inherited(database: Database, name: str, session: Session) -> Session:
    """Return the session with its parent as the catalog knows it, and mark each turn that counts in another session."""
    row = database.execute("SELECT parent, family FROM sessions WHERE id = ?", (name,)).fetchone()
    if row is None:
        return session
    parent, family = row
    session = session if session.parent == parent else replace(session, parent=parent)
    (relatives,) = database.execute(
        "SELECT count(*) FROM sessions WHERE family = ? AND id <> ?", (family, name)
    ).fetchone()
    return _mark_turns(session, _counting_sessions(database, name, family, session.turns)) if relatives else session


class _LedgerPosition(NamedTuple):
    """A row of the ledger: the session that a response counts in, and that session's place in its family."""

    at: int
    session: str
    place: int


def _counting_sessions(database: Database, name: str, family: str, turns: Sequence[Turn]) -> list[str | None]:
    """Return for each turn the other session of the family that it counts in; None: it counts in its own."""
    keys = {key for turn in turns for key in _response_keys(turn)}
    ids = json_list(key for key in keys if isinstance(key, str))
    times = json_list(key for key in keys if isinstance(key, int))
    rows = database.execute(_FAMILY_RESPONSES, (family, ids, times))
    counted: dict[ResponseKey, list[_LedgerPosition]] = {}
    for message_id, at, session, place in rows:
        counted.setdefault(at if message_id is None else message_id, []).append(_LedgerPosition(at, session, place))
    return [_counting_session(turn, name, counted) for turn in turns]


_FAMILY_RESPONSES = """
    SELECT message_id, at, session, family_position
    FROM ledger JOIN ledger_places ON ledger_places.id = place JOIN sessions ON sessions.id = session
    WHERE sessions.family = ? AND (
        message_id IN (SELECT value FROM json_each(?))
        OR message_id IS NULL AND at IN (SELECT value + 0 FROM json_each(?))
    )
"""


def _counting_session(turn: Turn, name: str, counted: Mapping[ResponseKey, Sequence[_LedgerPosition]]) -> str | None:
    """Return the other session that a turn counts in. A server may reuse an id: then the response with the same time is
    the same, else that of the session which comes first in the family."""
    rows = next((rows for key in _response_keys(turn) if (rows := counted.get(key))), [])
    rows = [row for row in rows if row.at == _time(turn)] or rows
    if any(row.session == name for row in rows):
        return None
    return min(rows, key=lambda row: row.place).session if rows else None


def _response_keys(turn: Turn) -> Sequence[ResponseKey]:
    """Return what may identify the response in the ledger, the best first. An id that the client made is not there."""
    if not turn.is_billed:
        return ()
    at = _time(turn)
    return (*filter(None, (turn.message_id,)), *(() if at == NEVER else (at,)))


def _time(turn: Turn) -> int:
    return micros_of(turn.started or turn.ended)


def _mark_turns(session: Session, places: list[str | None]) -> Session:
    """Mark turns. `places`: for each turn, the other session that it counts in."""
    if not any(places):
        return session
    _place_unbilled_turns(session, places)
    turns = [
        turn if place is None else replace(turn, counted_in=place)
        for turn, place in zip(session.turns, places, strict=True)
    ]
    exchanges = _exchanges(session.exchanges, turns)
    whole = replace(session, exchanges=exchanges, side_turns=turns[len(turns) - len(session.side_turns) :])
    return replace(whole, inherited=_inherited(whole, [turn for turn in turns if turn.counted_in]))


def _place_unbilled_turns(session: Session, places: list[str | None]) -> None:
    """Place what was not billed, such as a failed attempt, with the response after it, at the end of an exchange with
    the one before it."""
    following: str | None = None
    end = len(places) - len(session.side_turns)
    for exchange in reversed(session.exchanges):
        begin = end - len(exchange.turns)
        latest = next((places[at] for at in reversed(range(begin, end)) if session.turns[at].is_billed), following)
        for at in reversed(range(begin, end)):
            if session.turns[at].is_billed:
                latest = places[at]
            places[at] = latest
        following, end = latest, begin


def _exchanges(exchanges: Iterable[Exchange], turns: Sequence[Turn]) -> list[Exchange]:
    pieces, first = [], 0
    for exchange in exchanges:
        last = first + len(exchange.turns)
        pieces.append(replace(exchange, turns=turns[first:last]))
        first = last
    return pieces


def _inherited(session: Session, turns: Sequence[Turn]) -> Inherited:
    """Sum up the inherited turns. An exchange is inherited if it has no turns of its own, up to the last that has turns
    of another session."""
    copied = [
        bool(exchange.turns) and all(turn.counted_in for turn in exchange.turns) for exchange in session.exchanges
    ]
    last = max((at for at, is_copy in enumerate(copied) if is_copy), default=-1)
    before = [exchange for exchange in session.exchanges[: last + 1] if all(turn.counted_in for turn in exchange.turns)]
    # The session's totals are left out: they cover its own exchanges, and do not replace the sums of inherited ones.
    billed = total_of(responses_of_session(replace(session, exchanges=(), side_turns=turns, totals=())))
    return Inherited(
        exchanges=len(before),
        turns=len(turns),
        usage=billed.usage,
        cost=billed.cost,
        counted_in=list(dict.fromkeys(turn.counted_in for turn in turns if turn.counted_in)),
    )
