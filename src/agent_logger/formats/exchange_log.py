"""What the lines of an exchange log mean."""

from collections.abc import Iterable

from agent_logger.records import AnyRecord, Exchange, LiveMessage, LiveStart, Message


def from_live(records: Iterable[AnyRecord]) -> list[Exchange]:
    """The exchanges of a live file, as far as they came."""
    starts: dict[str, LiveStart] = {}
    messages: dict[str, list[Message]] = {}
    for record in records:
        if isinstance(record, LiveStart):
            starts[record.id] = record
            messages.setdefault(record.id, [])
        elif isinstance(record, LiveMessage):
            messages.setdefault(record.id, []).append(record.message)
    return [_in_flight(start, messages[start.id]) for start in starts.values()]


def _in_flight(start: LiveStart, messages: list[Message]) -> Exchange:
    return Exchange(
        id=start.id,
        session_id=start.session_id,
        exchange=start.exchange,
        ts_start=start.ts_start,
        ts_end=messages[-1].ts if messages else None,
        user_input=start.user_input,
        user_content=start.user_content,
        user_inputs=start.user_inputs,
        origin=start.origin,
        messages=messages,
        stats=None,
        complete=False,
    )
