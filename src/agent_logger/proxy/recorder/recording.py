"""The recording of calls: frames, in the order they happened, become records in the logs.

A request is written as soon as it is whole, a response when it ends. After a crash the same frames come again, and
records that are in the logs already are not written twice: the position says how many records of an open call there
are, the tails of the logs say which were written since.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from agent_logger.clock import timestamp
from agent_logger.model.records import Gap, Refusals, Response, Rewrite, Timing
from agent_logger.protocols.websocket import MessageKind, WebSocketMessage, WebSocketMessages
from agent_logger.providers.ending import ends_answer
from agent_logger.proxy.call_lines import LONGEST_PATH, CallLine, Show
from agent_logger.proxy.recorder.checkpoint import CheckpointPosition, Ended, Open, Retained
from agent_logger.proxy.recorder.filing import REFUSED, Filing, method_and_path
from agent_logger.proxy.recorder.heads import Secrets
from agent_logger.proxy.recorder.large import SecretSearch
from agent_logger.proxy.recorder.logs import LogName, Logs, RecoveredCalls
from agent_logger.proxy.recorder.open_call import OpenCall, Tunnel, message_id
from agent_logger.proxy.recorder.payload import REDACTED, SMALLEST_KNOWN, KnownBodies, restored
from agent_logger.proxy.recorder.recorded_call import RecordedCall, RecorderContext, Written
from agent_logger.proxy.recorder.refusals import refused
from agent_logger.proxy.recorder.unmask import TakeLasting, Unmask, Values
from agent_logger.proxy.spool import frames
from agent_logger.proxy.spool.segments import SpoolFollower, SpoolRead
from agent_logger.proxy.tracking.identity import headers_of
from agent_logger.proxy.tracking.tracker import Decision, TrackedAnswer, TrackedRequest

UNATTRIBUTED = LogName("", "unattributed")

log = logging.getLogger("agent_logger.proxy")


@dataclass(slots=True)
class RecordedCounts:
    calls: int = 0
    failed: int = 0  # calls that we could not make records of
    dropped_frames: int = 0
    dropped_bytes: int = 0
    damaged_calls: int = 0  # that lack what was dropped
    open: dict[tuple[str, int], OpenCall] = field(default_factory=dict)


class CallRecording:
    def __init__(
        self,
        logs: Logs,
        filing: Filing,
        bench: RecorderContext,
        values: Values,
        take_lasting: TakeLasting,
        *,
        patterns: bool = True,
        show: Show | None = None,
    ) -> None:
        self.counts = RecordedCounts()
        self.open = self.counts.open
        self.ended = Ended()  # what the spool may still have of calls that are not open any more
        self.filing, self._show = filing, show
        self._logs, self._bench = logs, bench
        self._unmask = Unmask(bench.key, values, take_lasting, patterns=patterns)
        self._recovered = RecoveredCalls()
        self._resumed: dict[tuple[str, int], Open] = {}
        self._known_bodies = KnownBodies()
        self._second, self._second_text = -1, ""
        self._takes: Mapping[type, Callable[[SpoolRead, Any], None]] = {
            frames.RequestHeadFrame: self._request_head,
            frames.Refusal: self._refusal,
            frames.RefusalsFrame: self._refusals,
            frames.Dropped: self._dropped,
        }
        self._goes_on: Mapping[type, Callable[[OpenCall, Any], None]] = {
            frames.RequestData: self._request_data,
            frames.RequestEnd: self._request_end,
            frames.ResponseHead: self._response_head,
            frames.ResponseData: self._response_data,
            frames.TunnelData: self._tunnel_data,
            frames.CallEnd: self._call_end,
        }

    def resume(self, position: CheckpointPosition, recovered: RecoveredCalls) -> None:
        """Continue from a checkpoint. Call this before the first frame."""
        self._recovered = recovered
        self._resumed = {(call.relay, call.call): call for call in position.open}
        for folder, name, number in position.numbers:
            self.filing.numbers[LogName(folder, name)] = number
        for log, number in recovered.last.items():
            self.filing.numbers[log] = max(number, self.filing.numbers.get(log, 0))

    def take(self, read: SpoolRead) -> None:
        open_call: OpenCall | None = None
        for frame in read.frames:
            goes_on = self._goes_on.get(type(frame))
            if goes_on is None:
                self._takes[type(frame)](read, frame)
            elif open_call := open_call or self._call(read):
                goes_on(open_call, frame)
        if (read.relay.relay, read.frames[0].call) not in self.open:
            self.ended.add(
                read.relay.relay,
                open_call.retained.first_segment if open_call else read.segment,
                read.segment,
            )

    def is_replaying(self, relays: Mapping[str, SpoolFollower]) -> bool:
        """Whether something that was in the logs when we began is still to come: frames, or the death of their
        relay."""
        ahead = (
            (relays[relay], number) for relay, number in self._recovered.frames.items() if relay in relays
        )
        return any(
            follower.number <= number or (follower.gone and not follower.exhausted)
            for follower, number in ahead
        )

    def picture(self) -> CheckpointPosition:
        """A checkpoint position without the places of the relays."""
        return CheckpointPosition(
            open=[open_call.for_position() for open_call in self.open.values()],
            numbers=[(*log, number) for log, number in self.filing.numbers.items()],
        )

    def give_up(self, relay: SpoolFollower, call: int, number: int) -> None:
        """Give up a call: something is wrong with it, or with us, at the frame of that number. The log says that it is
        missing."""
        self.counts.failed += 1
        open_call = self.open.pop((relay.relay, call), None)
        self.ended.add(
            relay.relay, open_call.retained.first_segment if open_call else relay.segment, relay.segment
        )
        ts, frame = self._ts(relay, relay.latest_ns), _entry_id(relay, number)
        if not open_call or not open_call.unanswered:
            reason = f"a call could not be recorded: {open_call.pair.id if open_call else call}, at {frame}"
            self._append_gap((open_call and open_call.pair.log) or UNATTRIBUTED, ts, 1, reason)
            return
        for id_, (log_name, seq) in open_call.unanswered.items():
            if not self._recovered.calls.pop((id_, "response"), None):
                self._logs.append(log_name, _dropped_response(id_, seq, ts, frame))

    def relay_died(self, relay: SpoolFollower) -> None:
        """End the open calls of a relay that is gone: all of its frames were read."""
        for (name, number), open_call in list(self.open.items()):
            if name == relay.relay:
                try:
                    self._end(open_call, relay.latest_ns, "relay_died")
                except Exception:  # of one call: the others are to be recorded all the same
                    log.exception("call %s of relay %s is lost", number, name)
                    self.give_up(relay, number, open_call.last_entry)

    def forget(self, relay: str) -> None:
        self._unmask.forget(relay)

    # ------------------------------------------------------------ frames

    def _request_head(self, read: SpoolRead, frame: frames.RequestHeadFrame) -> None:
        key = read.relay.relay, frame.call
        request = self._unmask.request_start(read.relay, frame)
        secrets = self._unmask.secrets(read.relay, request.credentials, request.head, request.path)
        open_call = OpenCall(
            read.relay,
            frame.call,
            RecordedCall(request, frame.id, frame.ns, secrets, self._bench),
            Retained(read.segment, read.size),
            self._resumed.pop(key, None),
            last_entry=read.number,
            credentials=request.credentials,
            blind=request.unknown > 0,
        )
        self.open[key] = open_call

    def _request_data(self, open_call: OpenCall, frame: frames.RequestData) -> None:
        data, unknown = self._restored(open_call, frame)
        open_call.pair.request_data(data, frame.ns, unknown)

    def _request_end(self, open_call: OpenCall, frame: frames.RequestEnd) -> None:
        open_call.pair.call.request_end(self._trailers(open_call, frame))
        self._write_request(open_call, open_call.pair)

    def _response_head(self, open_call: OpenCall, frame: frames.ResponseHead) -> None:
        head, unknown = self._unmask.restored(open_call.relay, frame.head, frame.masked)
        open_call.blind = open_call.blind or unknown > 0
        if frame.masked:
            open_call.credentials |= {mask.credential for mask in frame.masked}
            secrets = self._unmask.secrets(
                open_call.relay,
                open_call.credentials,
                open_call.pair.request_start.head,
                open_call.pair.request_start.path,
                head,
            )
        else:
            secrets = open_call.pair.secrets
        open_call.pair.response_head(head, frame.ns, secrets)

    def _response_data(self, open_call: OpenCall, frame: frames.ResponseData) -> None:
        data, unknown = self._restored(open_call, frame)
        open_call.pair.response_data(data, frame.ns, ends_chunk=frame.ends_chunk, unknown=unknown)

    def _tunnel_data(self, open_call: OpenCall, frame: frames.TunnelData) -> None:
        if open_call.passed_over:
            return
        self._ask_whole(open_call)
        data, _ = self._restored(open_call, frame)
        tunnel = self._tunnel(open_call)
        for message in (tunnel.client if frame.from_client else tunnel.server).feed(data):
            self._message(open_call, tunnel, message, frame.ns, from_client=frame.from_client)

    def _restored(
        self, open_call: OpenCall, frame: frames.RequestData | frames.ResponseData | frames.TunnelData
    ) -> tuple[bytes, int]:
        """Put credentials back that the call's redaction knows too; it does not know one that came too late for a
        head."""
        if not frame.masked:
            return frame.data, 0
        return self._put_back(open_call, frame.data, frame.masked, open_call.pair.secrets)

    def _trailers(self, open_call: OpenCall, frame: frames.RequestEnd | frames.CallEnd) -> bytes:
        return self._put_back(open_call, frame.trailers, frame.masked)[0] if frame.masked else frame.trailers

    def _put_back(
        self, open_call: OpenCall, data: bytes, masks: Sequence[frames.Mask], secrets: Secrets | None = None
    ) -> tuple[bytes, int]:
        if open_call.blind:
            return restored(data, masks, {})
        return self._unmask.restored(open_call.relay, data, masks, secrets)

    def _call_end(self, open_call: OpenCall, frame: frames.CallEnd) -> None:
        self._end(open_call, frame.ns, frame.reason, self._trailers(open_call, frame))

    def _dropped(self, read: SpoolRead, frame: frames.Dropped) -> None:
        self.counts.dropped_frames += frame.frames
        self.counts.dropped_bytes += frame.bytes
        if frame.call:
            if open_call := self._call(read):
                open_call.pair.call.dropped()
                if open_call.tunnel and open_call.tunnel.pair:
                    open_call.tunnel.pair.call.dropped()
                if frame.let_go and open_call.pair.request_start.frame.websocket:
                    open_call.passed_over = True
                    open_call.records = max(open_call.records, open_call.was.records if open_call.was else 0)
            else:
                self._write_gap(read, frame)
            return
        for (relay, _), open_call in list(
            self.open.items()
        ):  # whose they were is not known, nor which of these go on
            if relay == read.relay.relay:
                open_call.last_entry = read.number
                open_call.pair.call.dropped()
                self._end(open_call, frame.ns, "dropped")
                self.ended.add(relay, open_call.retained.first_segment, read.segment)
        self._write_gap(read, frame)

    def _write_gap(self, read: SpoolRead, frame: frames.Dropped) -> None:
        """Write a gap for calls of which nothing is known but that they were dropped."""
        reason = f"dropped by the relay: {frame.frames} frames before {_entry_id(read.relay, read.number)}"
        self._append_gap(UNATTRIBUTED, self._ts(read.relay, frame.ns), frame.frames, reason)

    def _append_gap(self, log: LogName, ts: str, lost: int, reason: str) -> None:
        """Append a gap, unless the log has it already. `reason` names a frame: by that the gap is recognised after a
        crash."""
        if reason not in self._recovered.gaps:
            self._logs.append(log, Gap(ts=ts, lost=lost, since=ts, seconds=0.0, reason=reason))

    def _refusal(self, read: SpoolRead, frame: frames.Refusal) -> None:
        relay, ts, name = read.relay, self._ts(read.relay, frame.ns), _entry_id(read.relay, read.number)
        head, _ = self._unmask.restored(relay, frame.head, frame.masked)
        secrets = self._unmask.secrets(relay, frozenset(mask.credential for mask in frame.masked), head)
        seq = self._recovered.calls.get((frame.id, "request"), (REFUSED, 0))[1] or self.filing.next_number(
            REFUSED
        )
        request, response = refused(frame, head, secrets, ts=ts, seq=seq, name=name)
        for kind, record in (("request", request), ("response", response)):
            if not self._recovered.calls.pop((frame.id, kind), None):
                self._logs.append(REFUSED, record)
        if self._show:
            self._show(
                CallLine(
                    method=request.method, path="(refused)", status=frame.status, reason=response.status_text
                )
            )

    def _refusals(self, read: SpoolRead, frame: frames.RefusalsFrame) -> None:
        """Record the requests that were refused and only counted."""
        name, count = _entry_id(read.relay, read.number), sum(count for _, count in frame.counts)
        if name not in self._recovered.refusals:
            record = Refusals(
                ts=self._ts(read.relay, frame.ns),
                since=self._ts(read.relay, frame.since_ns),
                count=count,
                statuses={str(status): count for status, count in frame.counts},
                frame=name,
            )
            self._logs.append(REFUSED, record)
        if self._show:
            self._show(CallLine(method="", path="(refused)", reason=f"{count:,} more requests"))

    # ------------------------------------------------------------ WebSocket

    def _tunnel(self, open_call: OpenCall) -> Tunnel:
        if open_call.tunnel is None:
            extensions = open_call.pair.header("sec-websocket-extensions")
            search = partial(SecretSearch, open_call.pair.secrets.redactor)
            open_call.tunnel = Tunnel(
                WebSocketMessages(extensions=extensions, masked=True, search=search),
                WebSocketMessages(extensions=extensions, masked=False, search=search),
            )
            open_call.pair.message = True
        return open_call.tunnel

    def _message(
        self, open_call: OpenCall, tunnel: Tunnel, message: WebSocketMessage, ns: int, *, from_client: bool
    ) -> None:
        if message.kind in (MessageKind.PING, MessageKind.PONG, MessageKind.CLOSE):
            return
        data, unknown = message.data, 0
        if (
            message.kind is MessageKind.UNDECODABLE
            and (tunnel.client if from_client else tunnel.server).hides
        ):
            data, unknown = REDACTED, 1
        deflated = message.kind is MessageKind.DEFLATED
        if deflated and message.matched:
            data, unknown, deflated = REDACTED, 1, False
        if from_client:
            self._end_message(open_call, tunnel, ns, "no_stream_end")
            tunnel.count += 1
            first = open_call.pair
            pair = RecordedCall(
                first.request_start,
                message_id(first.id, tunnel.count, ns - first.call.began_ns),
                ns,
                first.secrets,
                self._bench,
            )
            pair.message, pair.asked_deflated = True, deflated
            pair.request_data(data, ns, unknown)
            pair.call.request_end()
            tunnel.pair = pair
            self._write_request(open_call, pair)
            return
        pair = tunnel.pair or open_call.pair
        if pair is not open_call.pair:
            pair.begin_message_answer(ns)
        if deflated:
            pair.deflated_chunks.append(pair.call.response.chunks)
        pair.response_data(data, ns, unknown=unknown)
        if tunnel.pair and not deflated and (last := ends_answer(data)):
            self._end_message(open_call, tunnel, ns, "no_stream_end" if last == "error" else None)

    def _end_message(self, open_call: OpenCall, tunnel: Tunnel, ns: int, reason: str | None) -> None:
        pair, tunnel.pair = tunnel.pair, None
        if pair:
            pair.call.end(ns, reason)
            self._write_response(open_call, pair)

    # ------------------------------------------------------------ records

    def _ask_whole(self, open_call: OpenCall) -> None:
        if not open_call.request_written:
            self._write_request(open_call, open_call.pair)

    def _end(self, open_call: OpenCall, ns: int, reason: str | None, trailers: bytes = b"") -> None:
        self.counts.calls += 1
        self._ask_whole(open_call)
        if tunnel := open_call.tunnel:
            for direction in (tunnel.client, tunnel.server):
                for message in direction.finish():
                    self._message(open_call, tunnel, message, ns, from_client=direction is tunnel.client)
            self._end_message(open_call, tunnel, ns, reason or "no_stream_end")
        open_call.pair.call.end(ns, reason, trailers)
        self.counts.damaged_calls += open_call.pair.call.holes
        self._write_response(open_call, open_call.pair)
        del self.open[open_call.relay.relay, open_call.number]

    def _write_request(self, open_call: OpenCall, pair: RecordedCall) -> None:
        open_call.request_written, open_call.last = True, pair
        if self._is_written(open_call, pair, "request"):
            if pair.log:
                open_call.unanswered[pair.id] = pair.log, pair.seq
            pair.skip_request()
            return
        request = _tracked_request(pair, self._ts(open_call.relay, pair.call.began_ns))
        pair.decision, pair.log, pair.seq = self.filing.file(request)
        for record in pair.decision.before(request):
            if not (isinstance(record, Rewrite) and (pair.log, record.seq) in self._recovered.rewrites):
                self._logs.append(pair.log, record)
        frame = _entry_id(open_call.relay, open_call.last_entry)
        self._append(pair.log, self._request_record(pair, pair.log, pair.decision, request.ts, frame))
        open_call.unanswered[pair.id] = pair.log, pair.seq

    def _request_record(
        self, pair: RecordedCall, log: LogName, decision: Decision, ts: str, frame: str
    ) -> Written:
        long = pair.call.request.size >= SMALLEST_KNOWN
        known_body = self._known_bodies.of((*log, decision.thread)) if long else None
        before = len(known_body.data) if known_body else 0
        written = pair.request_record(
            ts=ts, seq=pair.seq, frame=frame, upstream=self.filing.upstream(decision), known_body=known_body
        )
        if known_body:
            self._known_bodies.shrink(known_body, before)
        return written

    def _write_response(self, open_call: OpenCall, pair: RecordedCall) -> None:
        if self._is_written(open_call, pair, "response"):
            pair.skip_response()
            open_call.unanswered.pop(pair.id, None)
            return
        assert pair.log
        ts, frame = (
            self._ts(open_call.relay, pair.call.ended_ns),
            _entry_id(open_call.relay, open_call.last_entry),
        )
        decision = pair.decision or self.filing.logged_decision(
            pair.log, pair.seq, pair.request_start.frame, message=pair.message
        )
        pair.rejoin()
        fingerprint = self.filing.answered(
            decision,
            TrackedAnswer(
                ts=ts,
                status=pair.status,
                complete=pair.complete,
                message=pair.answer.message if pair.answer else None,
                message_id=pair.answer.message_id if pair.answer else None,
                stop_reason=pair.answer.stop_reason if pair.answer else None,
            ),
        )
        written = pair.response_record(ts=ts, seq=pair.seq, frame=frame, fingerprint=fingerprint)
        self._append(pair.log, written)
        if self._show and isinstance(written.record, Response):
            self._show(_line(pair, decision, written.record))
        open_call.unanswered.pop(pair.id, None)

    def _append(self, log: LogName, written: Written) -> None:
        record, size = written.record, written.record.bytes or 0
        if written.file:
            size = 0
            name = self._logs.adopt(log, written.file, written.file_name)
            record = msgspec.structs.replace(record, body_file=name)
        self._logs.append(log, record, size)

    def _is_written(self, open_call: OpenCall, pair: RecordedCall, kind: str) -> bool:
        """Whether this record, the next one of its call, is in the log already. Then its place is taken from there."""
        open_call.records += 1
        if open_call.was and open_call.records <= open_call.was.records:
            first = pair is open_call.pair
            pair.seq = (open_call.was.seq if first else open_call.was.last_seq) or 0
            log = open_call.was.log if first else open_call.was.last_log
            pair.log = LogName(*log) if log else None
            return True
        name = self._recovered.calls.pop((pair.id, kind), None)
        if name is None:
            return False
        pair.log, pair.seq = name
        return True

    # ------------------------------------------------------------ small things

    def _call(self, read: SpoolRead) -> OpenCall | None:
        """The open call of an entry; `None` if its beginning was dropped."""
        open_call = self.open.get((read.relay.relay, read.frames[0].call))
        if open_call and open_call.last_entry < read.number:
            open_call.last_entry = read.number
            open_call.retained.bytes += read.size
        return open_call

    def _ts(self, relay: SpoolFollower, ns: int) -> str:
        second, rest = divmod(relay.wall_ns + ns, 1_000_000_000)
        if second != self._second:  # most calls fall into the same one as the last
            self._second, self._second_text = second, timestamp(second)[:-4]
        return f"{self._second_text}{rest // 1_000_000:03d}Z"


def _tracked_request(pair: RecordedCall, ts: str) -> TrackedRequest:
    frame = pair.request_start.frame
    method, path = method_and_path(frame)
    return TrackedRequest(
        provider=frame.provider,
        upstream=frame.upstream,
        method=method,
        path=path,
        headers=headers_of(pair.request_start.lines),
        body=pair.question(),
        ts=ts,
        message=pair.message,
        redact=pair.redact,
    )


def _dropped_response(call: str, seq: int, ts: str, frame: str) -> Response:
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
        frame=frame,
    )


def _line(pair: RecordedCall, decision: Decision, record: Response) -> CallLine:
    method, _ = method_and_path(pair.request_start.frame)
    usage = pair.answer.usage if pair.answer else None
    return CallLine(
        method=pair.secrets.text(method),
        path=pair.shown_path[:LONGEST_PATH],
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
    )


def _entry_id(relay: SpoolFollower, number: int) -> str:
    return f"{relay.relay}:{number}"
