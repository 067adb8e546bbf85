"""The turn that a call was made for: its own answer, a failed attempt at it, or a side call."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from agent_logger.catalog.joining.calls import WireCall
from agent_logger.model.session import SIDE, Session, Turn


def calls_by_turn(session: Session, calls: Iterable[WireCall]) -> dict[int | None, list[WireCall]]:
    """Group calls by the turn's place in `Session.turns`, in the order of time. `None`: there is no turn at all.

    Attempts at an answer are under the turn that it became. Titles, token counts and other side calls are under the
    turn of the conversation that last began before them, as are calls without an outcome.
    """
    calls = list(calls)
    turns = session.turns
    answers = _answers(turns)
    own = {
        (wire_call.log, wire_call.seq): at
        for wire_call in calls
        if wire_call.thread != SIDE
        and (at := next((answers[key] for key in _keys_of(wire_call) if key in answers), None)) is not None
    }
    of_first = {
        (wire_call.log, wire_call.retry_of or wire_call.seq): own[wire_call.log, wire_call.seq]
        for wire_call in calls
        if (wire_call.log, wire_call.seq) in own
    }
    by_turn: dict[int | None, list[WireCall]] = {}
    for call in calls:
        at = own.get((call.log, call.seq))
        if at is None:
            at = of_first.get((call.log, call.retry_of or call.seq))
        by_turn.setdefault(_turn_at_time(call, turns) if at is None else at, []).append(call)
    return by_turn


Answers = Mapping[tuple[str, object], int]


def _answers(turns: Sequence[Turn]) -> Answers:
    """Map what identifies a turn to its place. Where there is no id, the time does: a turn's times are the wire's."""
    turn_by_key: dict[tuple[str, object], int] = {}
    for at, turn in enumerate(turns):
        for key in _keys_of(turn) if "wire" in turn.witnesses else ():
            turn_by_key.setdefault(key, at)
    return turn_by_key


def _keys_of(answer: Turn | WireCall) -> list[tuple[str, object]]:
    keys = (("message", answer.message_id), ("request", answer.request_id), (answer.thread, answer.started))
    return [key for key in keys if key[1] is not None]


def _turn_at_time(call: WireCall, turns: Sequence[Turn]) -> int | None:
    spoken = [(at, turn) for at, turn in enumerate(turns) if turn.thread != SIDE]
    begun = [at for at, turn in spoken if _is_before(turn.started, call.started)]
    return begun[-1] if begun else next((at for at, _ in spoken), None)


def _is_before(one: datetime | None, two: datetime | None) -> bool:
    return one is not None and two is not None and one.timestamp() <= two.timestamp()
