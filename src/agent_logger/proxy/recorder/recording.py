"""From frames, in the order they happened, to records in the logs.

A request is written as soon as it is whole, a response when it ends. After a crash the same frames come again, and
what is in the logs already is not written twice: the position says how many records of an open call are, the
tails of the logs which were written since.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from agent_logger.clock import timestamp
from agent_logger.model.records import Gap, Refusals, Response, Rewrite, Timing
from agent_logger.protocols.websocket import Kind, Message, Messages
from agent_logger.proxy.call_lines import LONGEST_PATH, CallLine, Show
from agent_logger.proxy.call_state import ends_answer
from agent_logger.proxy.recorder.checkpoint import Ended, Open, Position, Retained
from agent_logger.proxy.recorder.filing import REFUSED, Filing, method_and_path
from agent_logger.proxy.recorder.heads import Secrets
from agent_logger.proxy.recorder.large import SecretSearch
from agent_logger.proxy.recorder.logs import Found, LogName, Logs
from agent_logger.proxy.recorder.open_call import OpenCall, Tunnel, message_id
from agent_logger.proxy.recorder.payload import REDACTED, SMALLEST_KNOWN, KnownBodies, restored
from agent_logger.proxy.recorder.recorded_call import Bench, Pair, Written
from agent_logger.proxy.recorder.refusals import refused
from agent_logger.proxy.recorder.unmask import TakeLasting, Unmask, Values
from agent_logger.proxy.spool import frames
from agent_logger.proxy.spool.segments import Follower, Read
from agent_logger.proxy.tracking.identity import headers_of
from agent_logger.proxy.tracking.tracker import Answered, Asked, Decision

UNATTRIBUTED = LogName("", "unattributed")

log = logging.getLogger("agent_logger.proxy")


@dataclass(slots=True)
class Counts:
    calls: int = 0
    failed: int = 0  # calls that we could not make records of
    dropped_frames: int = 0
    dropped_bytes: int = 0
    damaged_calls: int = 0  # that lack what was dropped
    open: dict[tuple[str, int], OpenCall] = field(default_factory=dict)


class Recording:
    def __init__(
        self,
        logs: Logs,
        filing: Filing,
        bench: Bench,
        values: Values,
        take_lasting: TakeLasting,
        *,
        patterns: bool = True,
        show: Show | None = None,
    ) -> None:
        self.counts = Counts()
        self.open = self.counts.open
        self.ended = Ended()  # what the spool may still have of calls that are not open any more
        self.filing, self._show = filing, show
        self._logs, self._bench = logs, bench
        self._unmask = Unmask(bench.key, values, take_lasting, patterns=patterns)
        self._found = Found()
        self._resumed: dict[tuple[str, int], Open] = {}
        self._known = KnownBodies()
        self._second, self._second_text = -1, ""
        self._takes: Mapping[type, Callable[[Read, Any], None]] = {
            frames.RequestHead: self._request_head,
            frames.Refusal: self._refusal,
            frames.Refusals: self._refusals,
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

    def resume(self, position: Position, found: Found) -> None:
        """Before the first frame."""
        self._found = found
        self._resumed = {(it.relay, it.call): it for it in position.open}
        for folder, name, number in position.numbers:
            self.filing.numbers[LogName(folder, name)] = number
        for log, number in found.last.items():
            self.filing.numbers[log] = max(number, self.filing.numbers.get(log, 0))

    def take(self, read: Read) -> None:
        it: OpenCall | None = None
        for frame in read.frames:
            goes_on = self._goes_on.get(type(frame))
            if goes_on is None:
                self._takes[type(frame)](read, frame)
            elif it := it or self._call(read):
                goes_on(it, frame)
        if (read.relay.relay, read.frames[0].call) not in self.open:
            self.ended.add(read.relay.relay, it.kept.first_segment if it else read.segment, read.segment)

    def is_replaying(self, relays: Mapping[str, Follower]) -> bool:
        """Whether what is still to come was in the logs when we began: frames, or that their relay died."""
        ahead = ((relays[relay], number) for relay, number in self._found.frames.items() if relay in relays)
        return any(it.number <= number or (it.gone and not it.exhausted) for it, number in ahead)

    def picture(self) -> Position:
        """All but where the relays are."""
        return Position(
            open=[it.for_position() for it in self.open.values()],
            numbers=[(*log, number) for log, number in self.filing.numbers.items()],
        )

    def give_up(self, relay: Follower, call: int, number: int) -> None:
        """Something is wrong with a call, or with us, at a frame of that number. The log says that it is missing."""
        self.counts.failed += 1
        it = self.open.pop((relay.relay, call), None)
        self.ended.add(relay.relay, it.kept.first_segment if it else relay.segment, relay.segment)
        ts, frame = self._ts(relay, relay.latest_ns), _entry_id(relay, number)
        if not it or not it.unanswered:
            reason = f"a call could not be recorded: {it.pair.id if it else call}, at {frame}"
            self._append_gap((it and it.pair.log) or UNATTRIBUTED, ts, 1, reason)
            return
        for id_, (log_name, seq) in it.unanswered.items():
            if not self._found.calls.pop((id_, "response"), None):
                self._logs.append(log_name, _dropped_response(id_, seq, ts, frame))

    def relay_died(self, relay: Follower) -> None:
        """All of it was read: what is open will not be ended by it."""
        for (name, number), it in list(self.open.items()):
            if name == relay.relay:
                try:
                    self._end(it, relay.latest_ns, "relay_died")
                except Exception:  # of one call: the others are to be recorded all the same
                    log.exception("call %s of relay %s is lost", number, name)
                    self.give_up(relay, number, it.last_entry)

    def forget(self, relay: str) -> None:
        self._unmask.forget(relay)

    # ------------------------------------------------------------ frames

    def _request_head(self, read: Read, frame: frames.RequestHead) -> None:
        key = read.relay.relay, frame.call
        asked = self._unmask.asked(read.relay, frame)
        secrets = self._unmask.secrets(read.relay, asked.credentials, asked.head, asked.path)
        it = OpenCall(
            read.relay,
            frame.call,
            Pair(asked, frame.id, frame.ns, secrets, self._bench),
            Retained(read.segment, read.size),
            self._resumed.pop(key, None),
            last_entry=read.number,
            credentials=asked.credentials,
            blind=asked.unknown > 0,
        )
        self.open[key] = it

    def _request_data(self, it: OpenCall, frame: frames.RequestData) -> None:
        data, unknown = self._restored(it, frame)
        it.pair.request_data(data, frame.ns, unknown)

    def _request_end(self, it: OpenCall, frame: frames.RequestEnd) -> None:
        it.pair.call.request_end(self._trailers(it, frame))
        self._write_request(it, it.pair)

    def _response_head(self, it: OpenCall, frame: frames.ResponseHead) -> None:
        head, unknown = self._unmask.restored(it.relay, frame.head, frame.masked)
        it.blind = it.blind or unknown > 0
        if frame.masked:
            it.credentials |= {mask.credential for mask in frame.masked}
            secrets = self._unmask.secrets(
                it.relay, it.credentials, it.pair.asked.head, it.pair.asked.path, head
            )
        else:
            secrets = it.pair.secrets
        it.pair.response_head(head, frame.ns, secrets)

    def _response_data(self, it: OpenCall, frame: frames.ResponseData) -> None:
        data, unknown = self._restored(it, frame)
        it.pair.response_data(data, frame.ns, ends_chunk=frame.ends_chunk, unknown=unknown)

    def _tunnel_data(self, it: OpenCall, frame: frames.TunnelData) -> None:
        if it.passed_over:
            return
        self._ask_whole(it)
        data, _ = self._restored(it, frame)
        tunnel = self._tunnel(it)
        for message in (tunnel.client if frame.from_client else tunnel.server).feed(data):
            self._message(it, tunnel, message, frame.ns, from_client=frame.from_client)

    def _restored(
        self, it: OpenCall, frame: frames.RequestData | frames.ResponseData | frames.TunnelData
    ) -> tuple[bytes, int]:
        """What is put back must be known to the call's redaction, too: it is not if it came too late for a head."""
        if not frame.masked:
            return frame.data, 0
        return self._put_back(it, frame.data, frame.masked, it.pair.secrets)

    def _trailers(self, it: OpenCall, frame: frames.RequestEnd | frames.CallEnd) -> bytes:
        return self._put_back(it, frame.trailers, frame.masked)[0] if frame.masked else frame.trailers

    def _put_back(
        self, it: OpenCall, data: bytes, masks: Sequence[frames.Mask], secrets: Secrets | None = None
    ) -> tuple[bytes, int]:
        if it.blind:
            return restored(data, masks, {})
        return self._unmask.restored(it.relay, data, masks, secrets)

    def _call_end(self, it: OpenCall, frame: frames.CallEnd) -> None:
        self._end(it, frame.ns, frame.reason, self._trailers(it, frame))

    def _dropped(self, read: Read, frame: frames.Dropped) -> None:
        self.counts.dropped_frames += frame.frames
        self.counts.dropped_bytes += frame.bytes
        if frame.call:
            if it := self._call(read):
                it.pair.call.dropped()
                if it.tunnel and it.tunnel.pair:
                    it.tunnel.pair.call.dropped()
                if frame.let_go and it.pair.asked.frame.websocket:
                    it.passed_over = True
                    it.records = max(it.records, it.was.records if it.was else 0)
            else:
                self._write_gap(read, frame)
            return
        for (relay, _), it in list(
            self.open.items()
        ):  # whose they were is not known, nor which of these go on
            if relay == read.relay.relay:
                it.last_entry = read.number
                it.pair.call.dropped()
                self._end(it, frame.ns, "dropped")
                self.ended.add(relay, it.kept.first_segment, read.segment)
        self._write_gap(read, frame)

    def _write_gap(self, read: Read, frame: frames.Dropped) -> None:
        """Of calls of which nothing is known but that they were dropped."""
        reason = f"dropped by the relay: {frame.frames} frames before {_entry_id(read.relay, read.number)}"
        self._append_gap(UNATTRIBUTED, self._ts(read.relay, frame.ns), frame.frames, reason)

    def _append_gap(self, log: LogName, ts: str, lost: int, reason: str) -> None:
        """`reason` names a frame: after a crash it is known again."""
        if reason not in self._found.gaps:
            self._logs.append(log, Gap(ts=ts, lost=lost, since=ts, seconds=0.0, reason=reason))

    def _refusal(self, read: Read, frame: frames.Refusal) -> None:
        relay, ts, name = read.relay, self._ts(read.relay, frame.ns), _entry_id(read.relay, read.number)
        head, _ = self._unmask.restored(relay, frame.head, frame.masked)
        secrets = self._unmask.secrets(relay, frozenset(mask.credential for mask in frame.masked), head)
        seq = self._found.calls.get((frame.id, "request"), (REFUSED, 0))[1] or self.filing.next_number(
            REFUSED
        )
        request, response = refused(frame, head, secrets, ts=ts, seq=seq, name=name)
        for kind, record in (("request", request), ("response", response)):
            if not self._found.calls.pop((frame.id, kind), None):
                self._logs.append(REFUSED, record)
        if self._show:
            self._show(
                CallLine(
                    method=request.method, path="(refused)", status=frame.status, reason=response.status_text
                )
            )

    def _refusals(self, read: Read, frame: frames.Refusals) -> None:
        """Those that were only counted."""
        name, count = _entry_id(read.relay, read.number), sum(count for _, count in frame.counts)
        if name not in self._found.refusals:
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

    def _tunnel(self, it: OpenCall) -> Tunnel:
        if it.tunnel is None:
            extensions = it.pair.header("sec-websocket-extensions")
            search = partial(SecretSearch, it.pair.secrets.redactor)
            it.tunnel = Tunnel(
                Messages(extensions=extensions, masked=True, search=search),
                Messages(extensions=extensions, masked=False, search=search),
            )
            it.pair.message = True
        return it.tunnel

    def _message(self, it: OpenCall, tunnel: Tunnel, message: Message, ns: int, *, from_client: bool) -> None:
        if message.kind in (Kind.PING, Kind.PONG, Kind.CLOSE):
            return
        data, unknown = message.data, 0
        if message.kind is Kind.UNDECODABLE and (tunnel.client if from_client else tunnel.server).hides:
            data, unknown = REDACTED, 1
        deflated = message.kind is Kind.DEFLATED
        if deflated and message.found:
            data, unknown, deflated = REDACTED, 1, False
        if from_client:
            self._end_message(it, tunnel, ns, "no_stream_end")
            tunnel.count += 1
            first = it.pair
            pair = Pair(
                first.asked,
                message_id(first.id, tunnel.count, ns - first.call.began_ns),
                ns,
                first.secrets,
                self._bench,
            )
            pair.message, pair.asked_deflated = True, deflated
            pair.request_data(data, ns, unknown)
            pair.call.request_end()
            tunnel.pair = pair
            self._write_request(it, pair)
            return
        pair = tunnel.pair or it.pair
        if pair is not it.pair:
            pair.begin_message_answer(ns)
        if deflated:
            pair.deflated_chunks.append(pair.call.response.chunks)
        pair.response_data(data, ns, unknown=unknown)
        if tunnel.pair and not deflated and (last := ends_answer(data)):
            self._end_message(it, tunnel, ns, "no_stream_end" if last == "error" else None)

    def _end_message(self, it: OpenCall, tunnel: Tunnel, ns: int, reason: str | None) -> None:
        pair, tunnel.pair = tunnel.pair, None
        if pair:
            pair.call.end(ns, reason)
            self._write_response(it, pair)

    # ------------------------------------------------------------ records

    def _ask_whole(self, it: OpenCall) -> None:
        if not it.request_written:
            self._write_request(it, it.pair)

    def _end(self, it: OpenCall, ns: int, reason: str | None, trailers: bytes = b"") -> None:
        self.counts.calls += 1
        self._ask_whole(it)
        if tunnel := it.tunnel:
            for direction in (tunnel.client, tunnel.server):
                for message in direction.finish():
                    self._message(it, tunnel, message, ns, from_client=direction is tunnel.client)
            self._end_message(it, tunnel, ns, reason or "no_stream_end")
        it.pair.call.end(ns, reason, trailers)
        self.counts.damaged_calls += it.pair.call.holes
        self._write_response(it, it.pair)
        del self.open[it.relay.relay, it.number]

    def _write_request(self, it: OpenCall, pair: Pair) -> None:
        it.request_written, it.last = True, pair
        if self._is_written(it, pair, "request"):
            if pair.log:
                it.unanswered[pair.id] = pair.log, pair.seq
            pair.skip_request()
            return
        asked = _asked(pair, self._ts(it.relay, pair.call.began_ns))
        pair.decision, pair.log, pair.seq = self.filing.file(asked)
        for record in pair.decision.before(asked):
            if not (isinstance(record, Rewrite) and (pair.log, record.seq) in self._found.rewrites):
                self._logs.append(pair.log, record)
        frame = _entry_id(it.relay, it.last_entry)
        self._append(pair.log, self._request_record(pair, pair.log, pair.decision, asked.ts, frame))
        it.unanswered[pair.id] = pair.log, pair.seq

    def _request_record(self, pair: Pair, log: LogName, decision: Decision, ts: str, frame: str) -> Written:
        long = pair.call.request.size >= SMALLEST_KNOWN
        known = self._known.of((*log, decision.thread)) if long else None
        before = len(known.data) if known else 0
        written = pair.request_record(
            ts=ts, seq=pair.seq, frame=frame, upstream=self.filing.upstream(decision), known=known
        )
        if known:
            self._known.shrink(known, before)
        return written

    def _write_response(self, it: OpenCall, pair: Pair) -> None:
        if self._is_written(it, pair, "response"):
            pair.skip_response()
            it.unanswered.pop(pair.id, None)
            return
        assert pair.log
        ts, frame = self._ts(it.relay, pair.call.ended_ns), _entry_id(it.relay, it.last_entry)
        decision = pair.decision or self.filing.found(
            pair.log, pair.seq, pair.asked.frame, message=pair.message
        )
        pair.rejoin()
        fingerprint = self.filing.answered(
            decision,
            Answered(
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
        it.unanswered.pop(pair.id, None)

    def _append(self, log: LogName, written: Written) -> None:
        record, size = written.record, written.record.bytes or 0
        if written.file:
            size = 0
            name = self._logs.adopt(log, written.file, written.file_name)
            record = msgspec.structs.replace(record, body_file=name)
        self._logs.append(log, record, size)

    def _is_written(self, it: OpenCall, pair: Pair, kind: str) -> bool:
        """Whether this record, the next one of its call, is in the log already. Then its place is taken from there."""
        it.records += 1
        if it.was and it.records <= it.was.records:
            first = pair is it.pair
            pair.seq = (it.was.seq if first else it.was.last_seq) or 0
            log = it.was.log if first else it.was.last_log
            pair.log = LogName(*log) if log else None
            return True
        found = self._found.calls.pop((pair.id, kind), None)
        if found is None:
            return False
        pair.log, pair.seq = found
        return True

    # ------------------------------------------------------------ small things

    def _call(self, read: Read) -> OpenCall | None:
        """None if its beginning was dropped."""
        it = self.open.get((read.relay.relay, read.frames[0].call))
        if it and it.last_entry < read.number:
            it.last_entry = read.number
            it.kept.bytes += read.size
        return it

    def _ts(self, relay: Follower, ns: int) -> str:
        second, rest = divmod(relay.wall_ns + ns, 1_000_000_000)
        if second != self._second:  # most calls fall into the same one as the last
            self._second, self._second_text = second, timestamp(second)[:-4]
        return f"{self._second_text}{rest // 1_000_000:03d}Z"


def _asked(pair: Pair, ts: str) -> Asked:
    frame = pair.asked.frame
    method, path = method_and_path(frame)
    return Asked(
        provider=frame.provider,
        upstream=frame.upstream,
        method=method,
        path=path,
        headers=headers_of(pair.asked.lines),
        body=pair.question(),
        ts=ts,
        message=pair.message,
        redact=pair.redact,
    )


def _dropped_response(call: str, seq: int, ts: str, frame: str) -> Response:
    """Of one that we could not make a record of."""
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


def _line(pair: Pair, decision: Decision, record: Response) -> CallLine:
    method, _ = method_and_path(pair.asked.frame)
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


def _entry_id(relay: Follower, number: int) -> str:
    return f"{relay.relay}:{number}"
