"""A call on its way through the relay, and the frames that report it to the tap."""

import asyncio
import os
import time
from typing import Protocol

from agent_logger.protocols import http1
from agent_logger.protocols.http_bodies import LengthBody, MessageBody, Piece
from agent_logger.proxy.relay.masks import NO_TRAILERS, Credentials, Masker
from agent_logger.proxy.relay.refusals import RefusalReports, SpareTap
from agent_logger.proxy.relay.route import Route
from agent_logger.proxy.spool.frames import (
    AnyFrame,
    CallEnd,
    RequestData,
    RequestEnd,
    RequestHeadFrame,
    ResponseData,
    ResponseHead,
    TunnelData,
)

FRAMING_SECONDS = 0.01  # what was read of answers waits so long at most, to become frames together
_MOST_UNFRAMED_BYTES = 32 << 10  # of one call

Read = tuple[int, bytes, list[Piece]]  # when it was, its bytes, and the payload in them


class CallIds:
    """A source of UUIDv7s, one per call, in a fraction of the time `Clock.uuid7` takes: random once, then counted."""

    def __init__(self) -> None:
        self._ms = 0
        self._prefix = ""
        self._count = int.from_bytes(os.urandom(8)) >> 4  # random, with room to count up

    def new(self) -> str:
        ms = time.time_ns() // 1_000_000
        if ms != self._ms:
            self._ms = ms
            self._prefix = f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7{int.from_bytes(os.urandom(2)) >> 4:03x}-"
        self._count += 1
        tail = f"{self._count | 1 << 63:016x}"
        return f"{self._prefix}{tail[:4]}-{tail[4:]}"


class Tap(SpareTap, Protocol):
    """Where frames go: the `Spool`, or a fake of it in tests. It never blocks and never raises, because recording must
    not harm a call."""

    def put(self, *frames: AnyFrame) -> None:
        """Record frames, all of one call."""

    def credential(self, value: bytes, *, lasting: bool = False) -> int:
        """The number that stands for the value in `Mask.credential`; the same one for the same value. `lasting`: the
        calls of other relays may quote it."""


class Reporter:
    """Numbers the calls of a relay."""

    def __init__(self, tap: Tap, relays: int = 1) -> None:
        """Make a reporter. `relays`: how many the proxy has."""
        self.tap = tap
        self.credentials = Credentials(tap.credential)
        self.calls = 0
        self.ids = CallIds()
        self.refusals = RefusalReports(tap, self.credentials, lambda: (self.number(), self.ids.new()), relays)
        self._unreported: list[RelayedCall] = []

    def number(self) -> int:
        self.calls += 1
        return self.calls

    def report_soon(self, call: "RelayedCall") -> None:
        """Flush the call before long."""
        if not self._unreported:
            asyncio.get_running_loop().call_later(FRAMING_SECONDS, self.report_now)
        self._unreported.append(call)

    def report_now(self) -> None:
        """Flush the calls that wait for it."""
        calls, self._unreported = self._unreported, []
        for call in calls:
            call.is_waiting = False
            call.flush()


class RelayedCall:
    """A request that is allowed, and the reading of its answer.

    What is read of the answer waits for a moment, for `flush` or `report_end`: an event of a stream is some hundred
    bytes, and the frames of several take little more time than those of one. They are one entry of the spool.
    """

    __slots__ = (
        "_framed",
        "_frames",
        "_id",
        "_masker",
        "_number",
        "_reads",
        "_reporter",
        "_tap",
        "_unframed_bytes",
        "body",
        "head",
        "is_waiting",
        "response",
        "route",
        "sent",
    )  # fmt: skip

    def __init__(self, reporter: Reporter, head: http1.RequestHead, route: Route) -> None:
        self.head, self.route = head, route
        self.body: MessageBody = head.framing or LengthBody(0)
        self.response = http1.ResponseReader(head.method, websocket=head.websocket)
        self.sent = False  # something was sent to the client
        self._reporter, self._tap = reporter, reporter.tap
        self._masker = Masker(reporter.credentials)
        self._number, self._id = reporter.number(), reporter.ids.new()
        self._framed = not route.has_tokens
        if route.run and route.is_recorded:
            route.run.calls += 1
        self._frames: list[AnyFrame] = []
        self._reads: list[Read] = []  # of the answer's body, without frames so far
        self._unframed_bytes = 0
        self.is_waiting = False  # for the reporter to flush it

    def forwarded(self) -> bytes:
        head, route = self.head, self.route
        first = b"%b %b HTTP/1.%d" % (head.method, route.path, head.minor)
        return head.forwarded(first, host=route.host_header, upgrade=head.websocket)

    def report_start(self, connection: int) -> None:
        head, route = self.head, self.route
        # The token of a run is not a part of what the client asks for.
        sent = head.raw.replace(route.run.prefix, b"", 1) if route.run and route.door == "base-url" else head.raw
        raw, masks = self._masker.head(sent, head.target)
        path = self._masker.target(route.path)
        frame = RequestHeadFrame(
            self._number,
            time.monotonic_ns(),
            self._id,
            connection,
            route.provider,
            route.name,
            path,
            raw,
            masks,
            head.websocket,
            self._masker.sought,
            route.run.id if route.run else "",
            route.door,
        )
        self._frames.append(frame)
        self.report_request()

    def report_request(self) -> None:
        """Report the bytes of the request's body that were read since the last report."""
        self._frame_reads()
        ns, body, frames = time.monotonic_ns(), self.body, self._frames
        if body.pieces:
            pieces, body.pieces = body.pieces, []
            data = pieces[0][0] if len(pieces) == 1 else b"".join(piece for piece, _ in pieces)
            if self._framed:
                frames.append(RequestData(self._number, ns, *self._masker.data(data)))
        if body.done:
            trailers = self._masker.trailers(body.trailers) if body.trailers else NO_TRAILERS
            frames.append(RequestEnd(self._number, ns, *trailers))
            self._reporter.report_now()  # the client may have been waiting for one of these answers
        self.flush()

    def report_response(self, data: bytes) -> None:
        """Report what was read of the response. `data`: the bytes of that read, which hold all of the payload."""
        ns, response = time.monotonic_ns(), self.response
        if response.heads:
            for head in response.heads:
                self._frames.append(ResponseHead(self._number, ns, *self._masker.head(head.raw)))
            response.heads = []
        body = response.body
        if body is not None and body.pieces:
            pieces, body.pieces = body.pieces, []
            if self._framed:
                self._reads.append((ns, data, pieces))
                self._unframed_bytes += len(data)
        if self._unframed_bytes > _MOST_UNFRAMED_BYTES:
            self.flush()
        elif not (self.is_waiting or (response.done and self.body.done)):
            self.is_waiting = True
            self._reporter.report_soon(self)

    def _frame_reads(self) -> None:
        if not self._reads:
            return
        reads, self._reads, self._unframed_bytes = self._reads, [], 0
        number = self._number
        if self._masker.has_credential(reads[0][1] if len(reads) == 1 else b"".join([data for _, data, _ in reads])):
            for ns, _, pieces in reads:
                for piece, ends in pieces:
                    data, masks = self._masker.data(piece)
                    self._frames.append(ResponseData(number, ns, data, ends, masks))
        else:
            self._frames += [ResponseData(number, ns, piece, ends) for ns, _, pieces in reads for piece, ends in pieces]

    def report_tunnel(self, data: bytes, *, from_client: bool) -> None:
        self._frame_reads()
        masked, masks = self._masker.data(data)
        self._frames.append(TunnelData(self._number, time.monotonic_ns(), masked, from_client, masks))
        self.flush()

    def report_end(self, reason: str | None = None) -> None:
        self._frame_reads()
        trailing = self.response.body.trailers if self.response.body is not None else b""
        trailers = self._masker.trailers(trailing) if trailing else NO_TRAILERS
        self._frames.append(CallEnd(self._number, time.monotonic_ns(), reason, *trailers))
        self.flush()

    def flush(self) -> None:
        self._frame_reads()
        if self._frames:
            self._tap.put(*self._frames)
            self._frames = []


class UnrecordedCall(RelayedCall):
    """A call that is relayed by the same rules, and of which nothing is reported."""

    __slots__ = ()

    def report_start(self, _connection: int) -> None:
        self.report_request()

    def report_request(self) -> None:
        self.body.pieces = []

    def report_response(self, _data: bytes) -> None:
        self.response.heads = []
        if self.response.body is not None:
            self.response.body.pieces = []

    def report_tunnel(self, data: bytes, *, from_client: bool) -> None:
        """Report nothing."""

    def report_end(self, reason: str | None = None) -> None:
        """Report nothing."""
