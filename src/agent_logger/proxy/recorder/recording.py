"""The recording of calls: frames, in the order in which they were made, become records in the logs.

A request is written as soon as it is complete, a response when it ends. After a crash the same frames are read again,
and records that are in the logs already are skipped: the position of the checkpoint has the number of records of each
open call, and the tails of the logs have the records that were written since.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from agent_logger.proxy.call_lines import Show
from agent_logger.proxy.head import ParsedHead
from agent_logger.proxy.recorder.call_writer import CallWriter
from agent_logger.proxy.recorder.calls.open_call import OpenCall
from agent_logger.proxy.recorder.calls.payload import restored
from agent_logger.proxy.recorder.calls.recorded_body import RecorderContext
from agent_logger.proxy.recorder.calls.recorded_call import RecordedCall
from agent_logger.proxy.recorder.calls.secrets import Secrets
from agent_logger.proxy.recorder.calls.unmask import TakeLasting, Unmask, Values
from agent_logger.proxy.recorder.checkpoint import CheckpointPosition, EndedCalls, OpenCallPosition, Retained
from agent_logger.proxy.recorder.filing import Filing
from agent_logger.proxy.recorder.logs import LogName, Logs, RecoveredCalls
from agent_logger.proxy.recorder.tunnels import TunnelRecording
from agent_logger.proxy.spool import frames
from agent_logger.proxy.spool.segments import SpoolFollower, SpoolRead

log = logging.getLogger("agent_logger.proxy")


@dataclass(slots=True)
class RecordedCounts:
    calls: int = 0
    failed: int = 0  # calls that we could not make records of
    dropped_frames: int = 0


class CallRecording:
    def __init__(
        self,
        logs: Logs,
        filing: Filing,
        context: RecorderContext,
        values: Values,
        take_lasting: TakeLasting,
        *,
        patterns: bool = True,
        show: Show | None = None,
    ) -> None:
        self.counts = RecordedCounts()
        self.open: dict[tuple[str, int], OpenCall] = {}
        self.ended = EndedCalls()  # ended calls of which the spool may still have frames
        self._filing, self._context = filing, context
        self._writer = CallWriter(logs, filing, show, self.open)
        self._tunnels = TunnelRecording(context, self._writer)
        self._unmask = Unmask(context.key, values, take_lasting, patterns=patterns)
        self._resumed: dict[tuple[str, int], OpenCallPosition] = {}
        self._handlers: Mapping[type, Callable[[SpoolRead, Any], None]] = {
            frames.RequestHeadFrame: self._request_head,
            frames.Refusal: self._refusal,
            frames.RefusalsFrame: self._writer.write_refusals,
            frames.Dropped: self._dropped,
        }
        self._call_handlers: Mapping[type, Callable[[OpenCall, Any], None]] = {
            frames.RequestData: self._request_data,
            frames.RequestEnd: self._request_end,
            frames.ResponseHead: self._response_head,
            frames.TunnelData: self._tunnel_data,
            frames.CallEnd: self._call_end,
        }

    def resume(self, position: CheckpointPosition, recovered: RecoveredCalls) -> None:
        """Continue from a checkpoint. Call this before the first frame."""
        self._writer.recovered = recovered
        self._resumed = {(call.relay, call.call): call for call in position.open}
        for folder, name, number in position.numbers:
            self._filing.numbers[LogName(folder, name)] = number
        for log, number in recovered.last.items():
            self._filing.numbers[log] = max(number, self._filing.numbers.get(log, 0))

    def take(self, read: SpoolRead) -> None:
        """Record the frames of one entry of the spool. A record is written as soon as its last frame is there."""
        open_call: OpenCall | None = None
        for kind, alike in groupby(read.frames, type):
            if kind in self._handlers:
                for frame in alike:
                    self._handlers[kind](read, frame)
            elif open_call := open_call or self._call(read):
                self._call_frames(open_call, kind, alike)
        if (read.relay.relay, read.frames[0].call) not in self.open:
            self.ended.add(
                read.relay.relay,
                open_call.retained.first_segment if open_call else read.segment,
                read.segment,
            )

    @property
    def not_understood(self) -> int:
        """How many calls to models are kept as bytes alone."""
        return self._writer.not_understood

    def is_replaying(self, relays: Mapping[str, SpoolFollower]) -> bool:
        """Whether something that was in the logs when we began is still to come: frames, or the death of their
        relay."""
        ahead = ((relays[relay], number) for relay, number in self._writer.recovered.entries.items() if relay in relays)
        return any(
            follower.number <= number or (follower.gone and not follower.exhausted) for follower, number in ahead
        )

    def position(self) -> CheckpointPosition:
        """Return the position that a checkpoint is to have, without the places of the relays."""
        return CheckpointPosition(
            open=[open_call.for_position() for open_call in self.open.values()],
            numbers=[(*log, number) for log, number in self._filing.numbers.items()],
        )

    def give_up(self, relay: SpoolFollower, call: int, number: int) -> None:
        """Give up a call: its records cannot be made or written, at the entry of the spool with that number. The log
        says that the call is missing."""
        self.counts.failed += 1
        open_call = self.open.pop((relay.relay, call), None)
        self.ended.add(relay.relay, open_call.retained.first_segment if open_call else relay.segment, relay.segment)
        self._writer.write_lost(relay, call, open_call, number)

    def relay_died(self, relay: SpoolFollower) -> None:
        """End the open calls of a relay that is gone: all of its frames were read."""
        for (name, number), open_call in list(self.open.items()):
            if name == relay.relay:
                try:
                    self._end(open_call, relay.latest_ns, "relay_died")
                except Exception:  # the other calls must be recorded nevertheless
                    log.exception("call %s of relay %s could not be recorded", number, name)
                    self.give_up(relay, number, open_call.last_entry)

    def forget(self, relay: str) -> None:
        self._unmask.forget(relay)

    # ------------------------------------------------------------ frames

    def _call_frames(self, open_call: OpenCall, kind: type, alike: Iterable[Any]) -> None:
        """Take frames of one kind, which came one after the other."""
        if kind is frames.ResponseData:
            self._response_data(open_call, list(alike))
            return
        for frame in alike:
            self._call_handlers[kind](open_call, frame)

    def _request_head(self, read: SpoolRead, frame: frames.RequestHeadFrame) -> None:
        key = read.relay.relay, frame.call
        request = self._unmask.request_start(read.relay, frame)
        secrets = self._unmask.secrets(read.relay, request.credentials, request.head, path=request.path)
        open_call = OpenCall(
            read.relay,
            frame.call,
            RecordedCall(request, frame.id, frame.ns, secrets, self._context),
            Retained(read.segment, read.size),
            self._resumed.pop(key, None),
            last_entry=read.number,
            credentials=request.credentials,
            blind=request.unknown > 0,
        )
        self.open[key] = open_call

    def _request_data(self, open_call: OpenCall, frame: frames.RequestData) -> None:
        data, unknown = self._restored(open_call, frame)
        open_call.call.request_data(data, frame.ns, unknown)

    def _request_end(self, open_call: OpenCall, frame: frames.RequestEnd) -> None:
        open_call.call.state.request_end(self._trailers(open_call, frame))
        self._writer.write_request(open_call, open_call.call)

    def _response_head(self, open_call: OpenCall, frame: frames.ResponseHead) -> None:
        data, unknown = self._unmask.restored(open_call.relay, frame.head, frame.masked)
        head = ParsedHead(data)
        open_call.blind = open_call.blind or unknown > 0
        if frame.masked:
            open_call.credentials |= {mask.credential for mask in frame.masked}
            secrets = self._unmask.secrets(
                open_call.relay,
                open_call.credentials,
                open_call.call.request_start.head,
                head,
                path=open_call.call.request_start.path,
            )
        else:
            secrets = open_call.call.secrets
        open_call.call.response_head(head, frame.ns, secrets)

    def _response_data(self, open_call: OpenCall, pieces: Sequence[frames.ResponseData]) -> None:
        """Take pieces of an answer. A stream has hundreds of short ones, so nothing is done for each that can be done
        for all."""
        data, unknown = [piece.data for piece in pieces], 0
        for at, piece in enumerate(pieces):
            if piece.masked:
                data[at], missing = self._restored(open_call, piece)
                unknown += missing
        moments, ends_chunk = [piece.ns for piece in pieces], [piece.ends_chunk for piece in pieces]
        open_call.call.response_data(data, moments, ends_chunk, unknown)

    def _tunnel_data(self, open_call: OpenCall, frame: frames.TunnelData) -> None:
        if open_call.passed_over:
            return
        self._write_request_once(open_call)
        data, _ = self._restored(open_call, frame)
        self._tunnels.feed(open_call, data, frame.ns, from_client=frame.from_client)

    def _restored(
        self, open_call: OpenCall, frame: frames.RequestData | frames.ResponseData | frames.TunnelData
    ) -> tuple[bytes, int]:
        """Put credentials back that the call's redaction knows too; it does not know one that came too late for a
        head."""
        if not frame.masked:
            return frame.data, 0
        return self._put_back(open_call, frame.data, frame.masked, open_call.call.secrets)

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
        if frame.call:
            if open_call := self._call(read):
                open_call.call.state.dropped()
                if open_call.tunnel and open_call.tunnel.call:
                    open_call.tunnel.call.state.dropped()
                if frame.let_go and open_call.call.request_start.frame.websocket:
                    open_call.passed_over = True
                    open_call.records = max(open_call.records, open_call.was.records if open_call.was else 0)
            else:
                self._writer.write_dropped(read, frame)
            return
        # It is unknown which calls these frames belonged to, and which of these calls continue.
        for (relay, _), open_call in list(self.open.items()):
            if relay == read.relay.relay:
                open_call.last_entry = read.number
                open_call.call.state.dropped()
                self._end(open_call, frame.ns, "dropped")
                self.ended.add(relay, open_call.retained.first_segment, read.segment)
        self._writer.write_dropped(read, frame)

    def _refusal(self, read: SpoolRead, frame: frames.Refusal) -> None:
        head, _ = self._unmask.restored(read.relay, frame.head, frame.masked)
        indexes = frozenset(mask.credential for mask in frame.masked)
        self._writer.write_refusal(read, frame, head, self._unmask.secrets(read.relay, indexes, ParsedHead(head)))

    # ------------------------------------------------------------ both records

    def _write_request_once(self, open_call: OpenCall) -> None:
        if not open_call.request_written:
            self._writer.write_request(open_call, open_call.call)

    def _end(self, open_call: OpenCall, ns: int, reason: str | None, trailers: bytes = b"") -> None:
        self.counts.calls += 1
        self._write_request_once(open_call)
        self._tunnels.finish(open_call, ns, reason)
        open_call.call.state.end(ns, reason, trailers)
        self._writer.write_response(open_call, open_call.call)
        del self.open[open_call.relay.relay, open_call.number]

    def _call(self, read: SpoolRead) -> OpenCall | None:
        """The open call of an entry; `None` if its beginning was dropped."""
        open_call = self.open.get((read.relay.relay, read.frames[0].call))
        if open_call and open_call.last_entry < read.number:
            open_call.last_entry = read.number
            open_call.retained.bytes += read.size
        return open_call
