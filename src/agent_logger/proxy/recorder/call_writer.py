"""The records of calls, written to their logs, each once: a record that was there before a crash is skipped."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from agent_logger.clock import timestamp
from agent_logger.model.plurals import pluralize
from agent_logger.model.records import Gap, Refusals, Response, Rewrite, Timing
from agent_logger.providers.answer import Answer
from agent_logger.proxy.call_lines import LONGEST_PATH, CallLine, Show
from agent_logger.proxy.recorder.calls.known_request import LARGEST_KNOWN, SMALLEST_KNOWN, KnownRequests, RequestText
from agent_logger.proxy.recorder.calls.open_call import OpenCall
from agent_logger.proxy.recorder.calls.recorded_call import RecordedCall, RecordToWrite
from agent_logger.proxy.recorder.calls.refusals import refused
from agent_logger.proxy.recorder.calls.secrets import Secrets
from agent_logger.proxy.recorder.filing import REFUSED, Filing
from agent_logger.proxy.recorder.logs import LogName, Logs, RecoveredCalls
from agent_logger.proxy.spool import frames
from agent_logger.proxy.spool.segments import SpoolFollower, SpoolRead
from agent_logger.proxy.tracking.known_history import RequestHistory
from agent_logger.proxy.tracking.tracker import Decision, TrackedAnswer, TrackedRequest, UnfinishedCall

UNATTRIBUTED = LogName("", "unattributed")


class CallWriter:
    """Writes the records of calls. `open_calls`: all calls that have not ended."""

    def __init__(self, logs: Logs, filing: Filing, show: Show | None, open_calls: Mapping[Any, OpenCall]) -> None:
        self._logs, self._filing, self._show, self._open = logs, filing, show, open_calls
        self.recovered = RecoveredCalls()  # records that the logs had when we began
        self.not_understood = 0  # calls to models that are kept as bytes alone
        self._known_requests = KnownRequests()
        self._second, self._second_text = -1, ""

    # ------------------------------------------------------------ calls

    def write_request(self, open_call: OpenCall, call: RecordedCall) -> None:
        open_call.request_written, open_call.last = True, call
        if self._skip_if_logged(open_call, call, "request"):
            if call.log:
                open_call.unanswered[call.id] = call.log, call.seq
            call.skip_request()
            return
        body, ts = call.request_body(), self.time(open_call.relay, call.state.began_ns)
        text = self._text_to_compare(call, body)
        history = text.history if text else None
        request = _tracked_request(call, body, history, ts, self._unfinished(open_call))
        call.decision, call.log, call.seq = self._filing.file(request)
        for record in call.decision.before(request):
            if not (isinstance(record, Rewrite) and (call.log, record.seq) in self.recovered.rewrites):
                self._logs.append(call.log, record)
        if text:
            text.note_history(call.decision.api)
        entry, upstream = entry_id(open_call.relay, open_call.last_entry), self._filing.upstream(call.decision)
        self._append(call.log, call.request_record(ts=ts, seq=call.seq, entry=entry, upstream=upstream, text=text))
        if text:
            self._known_requests.remember(text)
        open_call.unanswered[call.id] = call.log, call.seq

    def _unfinished(self, but: OpenCall) -> list[UnfinishedCall]:
        """Other calls that are being answered."""
        return [
            UnfinishedCall(other.call.decision, partial(self._answer_so_far, other))
            for other in self._open.values()
            if other is not but and other.call.decision and other.call.state.response.size
        ]

    def _answer_so_far(self, open_call: OpenCall) -> TrackedAnswer | None:
        call = open_call.call
        answer = call.answer_so_far()
        if answer is None:
            return None
        return _tracked_answer(call, answer, self.time(open_call.relay, call.state.response.last_ns), complete=True)

    def _text_to_compare(self, call: RecordedCall, body: bytes) -> RequestText | None:
        """The text of a request, if it may begin as an earlier one. A short one is worked on as fast without it."""
        if call.has_large_request or not SMALLEST_KNOWN <= len(body) <= LARGEST_KNOWN:
            return None
        return self._known_requests.begin(body)

    def write_response(self, open_call: OpenCall, call: RecordedCall) -> None:
        if self._skip_if_logged(open_call, call, "response"):
            call.skip_response()
            open_call.unanswered.pop(call.id, None)
            return
        assert call.log
        ts = self.time(open_call.relay, call.state.ended_ns)
        decision = call.decision or self._filing.logged_decision(
            call.log, call.seq, call.request_start, message=call.message
        )
        call.read_answer()
        response = call.response_record(
            ts=ts,
            seq=call.seq,
            entry=entry_id(open_call.relay, open_call.last_entry),
            fingerprint=self._filing.answered(decision, _tracked_answer(call, call.answer, ts, complete=call.complete)),
            times_of=partial(self._times, open_call.relay),
        )
        self._append(call.log, response)
        self.not_understood += not call.is_understood
        if self._show and isinstance(response.record, Response):
            self._show(_line(call, decision, response.record, ts))
        open_call.unanswered.pop(call.id, None)

    def _append(self, log: LogName, to_write: RecordToWrite) -> None:
        record, size = to_write.record, to_write.record.bytes or 0
        if to_write.file:
            size = 0
            name = self._logs.adopt(log, to_write.file, to_write.file_name)
            record = msgspec.structs.replace(record, body_file=name)
        self._logs.append(log, record, size)

    def _skip_if_logged(self, open_call: OpenCall, call: RecordedCall, kind: str) -> bool:
        """Count the next record of a call. Returns whether the record is in a log already; then the call gets the log
        and the number that it has there."""
        open_call.records += 1
        if open_call.was and open_call.records <= open_call.was.records:
            first = call is open_call.call
            call.seq = (open_call.was.seq if first else open_call.was.last_seq) or 0
            log = open_call.was.log if first else open_call.was.last_log
            call.log = LogName(*log) if log else None
            return True
        name = self.recovered.calls.pop((call.id, kind), None)
        if name is None:
            return False
        call.log, call.seq = name
        return True

    # ------------------------------------------------------------ losses and refusals

    def write_lost(self, relay: SpoolFollower, call: int, open_call: OpenCall | None, number: int) -> None:
        """Write that a call is missing: something was wrong with it, or with us, at the entry of this number."""
        ts, entry = self.time(relay, relay.latest_ns), entry_id(relay, number)
        if not open_call or not open_call.unanswered:
            reason = f"a call could not be recorded: {open_call.call.id if open_call else call}, at {entry}"
            self._write_gap((open_call and open_call.call.log) or UNATTRIBUTED, ts, 1, reason)
            return
        for id_, (log, seq) in open_call.unanswered.items():
            if not self.recovered.calls.pop((id_, "response"), None):
                self._logs.append(log, _dropped_response(id_, seq, ts, entry))

    def write_dropped(self, read: SpoolRead, frame: frames.Dropped) -> None:
        """Write a gap for calls of which nothing is known but that they were dropped."""
        reason = f"dropped by the relay: {frame.frames} frames before {entry_id(read.relay, read.number)}"
        self._write_gap(UNATTRIBUTED, self.time(read.relay, frame.ns), frame.frames, reason)

    def _write_gap(self, log: LogName, ts: str, lost: int, reason: str) -> None:
        """Write a gap, unless the log has it already. `reason` names an entry of the spool, by which the gap is
        recognised after a crash."""
        if reason not in self.recovered.gaps:
            self._logs.append(log, Gap(ts=ts, lost=lost, since=ts, seconds=0.0, reason=reason))

    def write_refusal(self, read: SpoolRead, frame: frames.Refusal, head: bytes, secrets: Secrets) -> None:
        ts, entry = self.time(read.relay, frame.ns), entry_id(read.relay, read.number)
        logged = self.recovered.calls.get((frame.id, "request"))
        seq = (logged[1] if logged else 0) or self._filing.next_number(REFUSED)
        request, response = refused(frame, head, secrets, ts=ts, seq=seq, entry=entry)
        for kind, record in (("request", request), ("response", response)):
            if not self.recovered.calls.pop((frame.id, kind), None):
                self._logs.append(REFUSED, record)
        if self._show:
            reason = response.status_text
            self._show(CallLine(method=request.method, path="(refused)", status=frame.status, reason=reason))

    def write_refusals(self, read: SpoolRead, frame: frames.RefusalsFrame) -> None:
        """Write the requests that were refused and only counted."""
        entry, count = entry_id(read.relay, read.number), sum(count for _, count in frame.counts)
        if entry not in self.recovered.refusals:
            record = Refusals(
                ts=self.time(read.relay, frame.ns),
                since=self.time(read.relay, frame.since_ns),
                count=count,
                statuses={str(status): count for status, count in frame.counts},
                frame=entry,
            )
            self._logs.append(REFUSED, record)
        if self._show:
            self._show(CallLine(method="", path="(refused)", reason=pluralize(count, "more request")))

    def time(self, relay: SpoolFollower, ns: int) -> str:
        second, rest = divmod(relay.wall_ns + ns, 1_000_000_000)
        if second != self._second:  # most calls fall into the same one as the last
            self._second, self._second_text = second, timestamp(second)[:-4]
        return f"{self._second_text}{rest // 1_000_000:03d}Z"

    def _times(self, relay: SpoolFollower, moments: Sequence[int]) -> list[str]:
        """The times of moments of one call, many of which may fall into one millisecond."""
        times: list[str] = []
        last, text = -1, ""
        for ns in moments:
            millisecond = (relay.wall_ns + ns) // 1_000_000
            if millisecond != last:
                last, text = millisecond, self.time(relay, ns)
            times.append(text)
        return times


def entry_id(relay: SpoolFollower, number: int) -> str:
    """Return the name of an entry of the spool, as the field `frame` of a record has it."""
    return f"{relay.relay}:{number}"


def _tracked_request(
    call: RecordedCall, body: bytes, history: RequestHistory | None, ts: str, unfinished: Sequence[UnfinishedCall]
) -> TrackedRequest:
    start = call.request_start
    return TrackedRequest(
        provider=start.frame.provider,
        upstream=start.frame.upstream,
        method=start.head.method,
        path=start.tracked_path,
        headers=start.head.by_name(),
        body=body,
        history=history,
        ts=ts,
        message=call.message,
        redact=call.secrets.redact,
        unfinished=unfinished,
    )


def _tracked_answer(call: RecordedCall, answer: Answer | None, ts: str, *, complete: bool) -> TrackedAnswer:
    return TrackedAnswer(
        ts=ts,
        status=call.status,
        complete=complete,
        message=answer.message if answer else None,
        message_id=answer.message_id if answer else None,
        stop_reason=answer.stop_reason if answer else None,
    )


def _dropped_response(call: str, seq: int, ts: str, entry: str) -> Response:
    """The record of a response that we could not make a record of."""
    timing = Timing(ttfb_ms=None, total_ms=None)
    return Response(
        ts=ts,
        seq=seq,
        status=None,
        headers=None,
        timing=timing,
        call=call,
        complete=False,
        reason="dropped",
        frame=entry,
    )


def _line(call: RecordedCall, decision: Decision, record: Response, ts: str) -> CallLine:
    usage = call.answer.usage if call.answer else None
    return CallLine(
        method=call.secrets.text(call.request_start.head.method),
        path=call.shown_path[:LONGEST_PATH],
        status=record.status,
        bytes=record.bytes or 0,
        ttfb_ms=record.timing.ttfb_ms,
        total_ms=record.timing.total_ms,
        reason=None if record.complete else record.reason,
        session=decision.session,
        thread=decision.thread,
        model=record.model,
        input_tokens=usage.context_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        forked_from=decision.fork.parent if decision.fork else None,
        retry_of=decision.retry_of,
        rewrites=decision.link == "rewrite",
        run=call.request_start.frame.run,
        kind=decision.kind,
        # The upgrade is a call of its own; its body is one of messages, too.
        is_message=call.id != call.request_start.frame.id,
        client_session=decision.identity.session,
        ts=ts,
        usage=usage,
        tier=call.answer.service_tier if call.answer else None,
        is_understood=call.is_understood,
        message_id=call.answer.message_id if call.answer else None,
    )
