"""The calls of a session, as the wire saw them: all of them in short, or a single one in full."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import msgspec

from agent_logger.files.parts import PartFile, part_of
from agent_logger.logs.branches import lineage_of
from agent_logger.logs.exchange_log import time_of
from agent_logger.logs.log_records import kind_of_log, read_log
from agent_logger.logs.wire_log.requests import Changes, RequestView, asked_of, changes
from agent_logger.model.records import Request, Response, WireStart
from agent_logger.model.session import MAIN, SIDE, Usage
from agent_logger.providers.blocks.base import value_of
from agent_logger.providers.ending import is_answered, is_complete, read_again
from agent_logger.providers.registry import dialect_of
from agent_logger.providers.token_counts import usage_of


@dataclass(frozen=True, slots=True, kw_only=True)
class WireCall:
    """A call that the proxy recorded, in short: a request and its outcome."""

    call: str  # the id; in old logs, which have none, the log's name and the number
    log: Path  # the first file of it
    seq: int  # the number in its log
    thread: str
    kind: str | None  # main, subagent, compact, side, count_tokens, models, probe, other
    started: datetime | None
    method: str
    path: str
    status: int | None = None  # none: there is no answer, or none yet
    ttfb_ms: float | None = None  # time until the first byte of the answer
    total_ms: float | None = None
    request_bytes: int | None = None
    response_bytes: int | None = None
    message_id: str | None = None
    request_id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    complete: bool | None = None  # whether the answer has ended; none: it is in flight
    error: str | None = None  # the error that the API sent instead of the rest of the answer
    reason: str | None = None  # why the call ended abnormally, also if its answer has ended
    retry_of: int | None = None  # the number of the first attempt
    tokens_per_second: float | None = None

    @property
    def stream_seconds(self) -> float | None:
        """How long the answer took from its first byte to its last."""
        if self.ttfb_ms is None or self.total_ms is None:
            return None
        return max(0.0, self.total_ms - self.ttfb_ms) / 1000


class CallDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A call as it was stored: heads, bodies, the pieces of a stream with their times, all redacted."""

    call: WireCall
    request: Request
    response: Response | None
    request_view: RequestView | None = msgspec.field(name="asked")  # none for a call that asked no model
    changes: Changes | None  # against the call before in its thread, or another; none for the first


def calls_of(logs: Iterable[Path]) -> list[WireCall]:
    """Return the calls of wire logs and of the logs these continue from, each once, in the order of time. Other logs
    have none."""
    by_place: dict[tuple[Path, int], WireCall] = {}
    for part in filter(None, map(part_of, logs)):
        if kind_of_log(part.folder, part.name) == "wire":
            for name, last in lineage_of(part.folder, part.name):
                log = PartFile(part.folder, name)
                by_place |= {(call.log, call.seq): call for call in _calls(log) if last is None or call.seq <= last}
    return sorted(_each_once(by_place.values()), key=_time_key)


def _each_once(calls: Iterable[WireCall]) -> Iterable[WireCall]:
    """Return one copy of each call: another home may have a copy of the log, which may lack the answer."""
    by_id: dict[str, WireCall] = {}
    for call in calls:
        other = by_id.setdefault(call.call, call)
        if other.status is None and call.status is not None:
            by_id[call.call] = call
    return by_id.values()


def call_detail(calls: Sequence[WireCall], name: str, since: str | None = None) -> CallDetail | None:
    """Return the call of this name, or the only one whose name begins so, and what changed in it since the call before
    in its thread, or since another. None if there is none, or it was deleted meanwhile."""
    call = call_named(calls, name)
    if call is None:
        return None
    before = call_named(calls, since) if since else _previous_call(calls, call)
    records = _records([one for one in (before, call) if one])
    records_of_call = records[call.log, call.seq]
    if records_of_call.request is None:
        return None
    request = asked_of(records_of_call.request, records_of_call.provider)
    return CallDetail(
        call=call,
        request=records_of_call.request,
        response=records_of_call.response,
        request_view=request,
        changes=_changes(before, records[before.log, before.seq], request) if before and request else None,
    )


# ---------------------------------------------------------------- all of them in short


def _calls(log: PartFile) -> Iterable[WireCall]:
    provider, by_number, messages = "", dict[int, WireCall](), set[int]()
    for item in read_log(log.folder, log.name):
        match item.value:
            case WireStart() as start:
                provider = start.provider
            case Request() as request:
                by_number[request.seq] = _requested_call(log, request)
                if request.transport == "websocket":
                    messages.add(request.seq)
            case Response() as response if response.seq in by_number:
                call, websocket = by_number[response.seq], response.seq in messages
                by_number[response.seq] = _add_response(call, response, provider, websocket=websocket)
    return by_number.values()


def _requested_call(log: PartFile, request: Request) -> WireCall:
    return WireCall(
        call=request.call or f"{log.name}:{request.seq}",
        log=log.path,
        seq=request.seq,
        thread=request.thread or MAIN,
        kind=request.kind,
        started=time_of(request.ts),
        method=request.method,
        path=request.path,
        request_bytes=request.bytes,
        retry_of=request.retry_of,
    )


def _add_response(call: WireCall, response: Response, provider: str, *, websocket: bool) -> WireCall:
    dialect = dialect_of(provider, call.path)
    reported = value_of(response.usage) if response.usage else None
    complete = is_complete(response, dialect, websocket=websocket)
    failure = None
    if dialect and is_answered(response.status) and not complete:
        failure = read_again(response, dialect, websocket=websocket).error
    return replace(
        call,
        status=response.status,
        ttfb_ms=response.timing.ttfb_ms,
        total_ms=response.timing.total_ms,
        response_bytes=response.bytes,
        message_id=response.message_id,
        request_id=response.request_id,
        model=response.model,
        usage=usage_of(reported) if dialect else None,
        complete=complete,
        error=failure.name if failure else None,
        reason=response.reason,
        tokens_per_second=response.tokens_per_second,
    )


def _time_key(call: WireCall) -> tuple[bool, float, str, int]:
    at = call.started
    return at is None, at.timestamp() if at else 0.0, str(call.log), call.seq


# ---------------------------------------------------------------- one in full


@dataclass(slots=True)
class _Records:
    provider: str = ""
    request: Request | None = None
    response: Response | None = None


def _records(calls: Sequence[WireCall]) -> dict[tuple[Path, int], _Records]:
    """Read the records of calls. Each log is read once, up to the last of its calls."""
    records_by_path: dict[Path, dict[int, _Records]] = {}
    for call in calls:
        records_by_path.setdefault(call.log, {})[call.seq] = _Records()
    for path, records in records_by_path.items():
        _read(path, records)
    return {(path, seq): record for path, records in records_by_path.items() for seq, record in records.items()}


def _read(path: Path, records: dict[int, _Records]) -> None:
    log, last = part_of(path), max(records)
    for item in read_log(log.folder, log.name) if log else ():
        match item.value:
            case WireStart() as start:
                for record in records.values():
                    record.provider = start.provider
            case Request() as request if request.seq in records:
                records[request.seq].request = request
            case Response() as response if response.seq in records:
                records[response.seq].response = response
                if response.seq == last:
                    return


def call_named(calls: Sequence[WireCall], name: str) -> WireCall | None:
    """Return the call of this name, or the only one whose name begins so."""
    return next((call for call in calls if call.call == name), None) or _call_beginning_with(calls, name)


def _call_beginning_with(calls: Sequence[WireCall], name: str) -> WireCall | None:
    begun = [call for call in calls if name and call.call.startswith(name)]
    return begun[0] if len(begun) == 1 else None


def _previous_call(calls: Sequence[WireCall], call: WireCall) -> WireCall | None:
    """Return the last call of its thread before it; for the first call in a branch, the one that the branch continues
    from. Side calls do not continue earlier side calls."""
    log = part_of(call.log)
    if log is None or call.thread == SIDE:
        return None
    lasts = {PartFile(log.folder, name).path: last for name, last in lineage_of(log.folder, log.name)}
    order = {path: at for at, path in enumerate(lasts)}
    lasts[call.log] = call.seq - 1
    threaded = [other for other in calls if other.thread == call.thread and other.log in lasts]
    earlier = [other for other in threaded if other.seq <= (lasts[other.log] or 0)]
    return max(earlier, key=lambda other: (order[other.log], other.seq), default=None)


def _changes(before: WireCall, records: _Records, request: RequestView) -> Changes | None:
    earlier = asked_of(records.request, records.provider) if records.request else None
    try:
        return changes(earlier, request, before.call) if earlier else None
    except RecursionError:  # nested too deeply to be read
        return None
