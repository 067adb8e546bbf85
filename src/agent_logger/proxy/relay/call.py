"""A call on its way through the relay, and the frames that the tap gets of it."""

import os
import time
from typing import Protocol

from agent_logger.protocols import http1
from agent_logger.protocols.http_bodies import LengthBody, MessageBody
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


class CallIds:
    """A source of UUIDv7s, one per call, in a fraction of the time `Clock.uuid7` takes: random once, then counted."""

    def __init__(self) -> None:
        self._ms = 0
        self._prefix = ""
        self._count = int.from_bytes(os.urandom(8)) >> 4  # with room to count on

    def new(self) -> str:
        ms = time.time_ns() // 1_000_000
        if ms != self._ms:
            self._ms = ms
            self._prefix = f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7{int.from_bytes(os.urandom(2)) >> 4:03x}-"
        self._count += 1
        tail = f"{self._count | 1 << 63:016x}"
        return f"{self._prefix}{tail[:4]}-{tail[4:]}"


class Tap(SpareTap, Protocol):
    """Where frames go. It never blocks and never raises: recording must not harm a call."""

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

    def number(self) -> int:
        self.calls += 1
        return self.calls

    def refuse(self, connection: int, status: int, reason: str, data: bytes) -> None:
        self.refusals.add(connection, status, reason, data)


class RelayedCall:
    """A request that is allowed, and the reading of its answer.

    The frames of one read wait until its end, for `tell` or `ended`: then they are one entry of the spool.
    """

    __slots__ = (
        "_framed", "_id", "_masker", "_number", "_tap", "_untold", "body", "head", "response", "route", "sent",
    )  # fmt: skip

    def __init__(self, reporter: Reporter, head: http1.RequestHead, route: Route) -> None:
        self.head, self.route = head, route
        self.body: MessageBody = head.framing or LengthBody(0)
        self.response = http1.ResponseReader(head.method, websocket=head.websocket)
        self.sent = False  # something was sent to the client
        self._tap = reporter.tap
        self._masker = Masker(reporter.credentials)
        self._number, self._id = reporter.number(), reporter.ids.new()
        self._framed = not route.has_tokens
        self._untold: list[AnyFrame] = []

    def forwarded(self) -> bytes:
        head, route = self.head, self.route
        first = b"%b %b HTTP/1.%d" % (head.method, route.path, head.minor)
        return head.forwarded(first, host=route.name.encode(), upgrade=head.websocket)

    def begun(self, connection: int) -> None:
        head, route = self.head, self.route
        raw, masks = self._masker.head(head.raw, head.target)
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
        )
        self._untold.append(frame)
        self.request_read()

    def request_read(self) -> None:
        """Report what was read of the request's body since the last time."""
        ns, body, untold = time.monotonic_ns(), self.body, self._untold
        if body.pieces:
            pieces, body.pieces = body.pieces, []
            data = pieces[0][0] if len(pieces) == 1 else b"".join(piece for piece, _ in pieces)
            if self._framed:
                untold.append(RequestData(self._number, ns, *self._masker.data(data)))
        if body.done:
            trailers = self._masker.trailers(body.trailers) if body.trailers else NO_TRAILERS
            untold.append(RequestEnd(self._number, ns, *trailers))
        self.tell()

    def response_read(self) -> None:
        ns, response, untold = time.monotonic_ns(), self.response, self._untold
        if response.heads:
            for head in response.heads:
                untold.append(ResponseHead(self._number, ns, *self._masker.head(head.raw)))
            response.heads = []
        body = response.body
        if body is not None and body.pieces:
            if self._framed:
                for piece, ends in body.pieces:
                    data, masks = self._masker.data(piece)
                    untold.append(ResponseData(self._number, ns, data, ends, masks))
            body.pieces = []

    def tunnelled(self, data: bytes, *, from_client: bool) -> None:
        masked, masks = self._masker.data(data)
        self._untold.append(TunnelData(self._number, time.monotonic_ns(), masked, from_client, masks))
        self.tell()

    def ended(self, reason: str | None = None) -> None:
        trailing = self.response.body.trailers if self.response.body is not None else b""
        trailers = self._masker.trailers(trailing) if trailing else NO_TRAILERS
        self._untold.append(CallEnd(self._number, time.monotonic_ns(), reason, *trailers))
        self.tell()

    def tell(self) -> None:
        if self._untold:
            self._tap.put(*self._untold)
            self._untold = []
