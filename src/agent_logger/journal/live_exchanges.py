"""Exchanges in flight, from the records of a live file."""

from collections.abc import Iterable

from agent_logger.messages.entries import is_thinking_progress
from agent_logger.model.records import AnyRecord, ExchangeRecord, LiveMessage, LiveStart, Message


def from_live(records: Iterable[AnyRecord]) -> list[ExchangeRecord]:
    """The exchanges of a live file, as far as they came; without the progress of thoughts, which no log keeps."""
    starts: dict[str, LiveStart] = {}
    messages: dict[str, list[Message]] = {}
    for record in records:
        if isinstance(record, LiveStart):
            starts[record.id] = record
            messages.setdefault(record.id, [])
        elif isinstance(record, LiveMessage):
            messages_of_exchange = messages.setdefault(record.id, [])
            if record.id not in starts:  # the beginning was lost; `exchange` 0 is no number
                starts[record.id] = LiveStart(id=record.id, session_id=None, exchange=0, ts_start=record.message.ts)
            if not is_thinking_progress(record.message):
                messages_of_exchange.append(record.message)
    return [_in_flight(start, messages[start.id]) for start in starts.values()]


def _in_flight(start: LiveStart, messages: list[Message]) -> ExchangeRecord:
    return ExchangeRecord(
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
