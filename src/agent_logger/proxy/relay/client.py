"""A client's connection, and what happens to its requests.

Bytes are forwarded first; then come frames. There is no task and no `await` per call: what arrives is read, joined, and
written in one go, in the callback it arrived in.
"""

import asyncio
import fcntl
import socket
import struct
import termios
from typing import Protocol, cast

from agent_logger.protocols.http1 import RequestHead, head_end
from agent_logger.protocols.http_bodies import MalformedError
from agent_logger.proxy.relay.admission import Admission, ForbiddenError, error_response
from agent_logger.proxy.relay.call import RelayedCall, Reporter
from agent_logger.proxy.relay.peer import is_gone
from agent_logger.proxy.relay.route import NotAllowedError, Route, Routes
from agent_logger.proxy.relay.upstream import Pool, Upstream
from agent_logger.proxy.relay.write_batch import Outgoing, WriteBatch

_HELD_BYTES = 64 << 10  # of later requests, or while connecting; then the client has to wait
_LINGER_SECONDS = 2.0  # to let a client read our answer before a reset would take it away
_FLUSH_SECONDS = 30.0  # to let a slow client read what came before a reset
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 seconds
_PEER_SECONDS = (0.002, 0.01, 0.05, 0.25)  # between looks at a client that may be gone
_REFUSALS = (MalformedError, ForbiddenError, NotAllowedError)


class RelayContext(Protocol):
    """What the connections of one relay share."""

    reporter: Reporter
    routes: Routes
    guard: Admission
    pool: Pool
    turn: WriteBatch

    def arrived(self, client: "Client") -> int:
        """Register a new client. Returns its number."""

    def left(self, client: "Client") -> None: ...

    def connect(self, client: "Client", route: Route) -> None:
        """Calls `connected` or `unreachable` later."""


class Client(asyncio.Protocol):
    """A client's connection: one call at a time, and the upstream connection that serves them."""

    transport: Outgoing

    def __init__(self, relay: RelayContext) -> None:
        self._relay = relay
        self._number = relay.arrived(self)
        self._call: RelayedCall | None = None
        self._upstream: Upstream | None = None
        self._buffer = b""  # of a head that is not whole, or of requests to come
        self._head_since = 0.0  # since when a head is not whole; 0: there is none
        self._outgoing: list[bytes] | None = None  # while connecting
        self._half_closed = self._draining = self._lost = False
        self._client_full = self._upstream_full = self._paused = False

    # ---- the client's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = Outgoing(cast("asyncio.Transport", transport), self._relay.turn)

    def data_received(self, data: bytes) -> None:
        call = self._call
        if self._draining:
            return
        if call is None:
            self._next(self._buffer + data if self._buffer else data)
        elif call.response.tunnel:
            self._write_upstream(data)
            call.tunnelled(data, from_client=True)
        elif not call.body.done:
            self._request_body(call, data)
        else:
            self._buffer += data
        self._balance()

    def eof_received(self) -> bool:
        call = self._call
        if call is None or self._draining or call.response.tunnel or not call.body.done:
            if call is None and self._buffer and not self._draining:
                self._relay.reporter.refuse(self._number, 400, "the client left within a head", self._buffer)
            return False
        self._half_closed = True
        self._watch(0)
        return True

    def connection_lost(self, _exc: Exception | None) -> None:
        self._lost = True
        self._relay.left(self)
        upstream, self._upstream = self._upstream, None
        if self._call is not None:
            self._end_call("client_gone")
            if upstream is not None:
                upstream.abort()
        elif upstream is not None:
            self._relay.pool.give(upstream)

    def pause_writing(self) -> None:
        self._client_full = True
        if self._upstream is not None:
            self._upstream.transport.pause_reading()

    def resume_writing(self) -> None:
        self._client_full = False
        if self._upstream is not None and not self._upstream.ended:
            self._upstream.transport.resume_reading()

    def _watch(self, look: int) -> None:
        """Check whether the client is gone: one that sends no more, or that we do not read from, may leave without our
        noticing."""
        if self._call is None or self._lost or not (self._half_closed or self._paused):
            return
        gone = is_gone(self.transport)
        if gone or (gone is None and self._half_closed):  # as most servers take it
            self.transport.abort()
            return
        seconds = _PEER_SECONDS[min(look, len(_PEER_SECONDS) - 1)]
        asyncio.get_running_loop().call_later(seconds, self._watch, look + 1)

    # ---- requests

    def _next(self, data: bytes) -> None:
        self._buffer = data
        try:
            end = head_end(data)
            if end < 0:
                self._head_since = self._head_since or asyncio.get_running_loop().time()
                return
            self._head_since = 0.0
            head = RequestHead(data[:end])
            self._relay.guard.check(head)
            call = RelayedCall(self._relay.reporter, head, self._relay.routes.find(head.target))
            body, rest = call.body.feed(data[end:])
            if call.body.error:
                raise MalformedError(call.body.error)
            request = call.forwarded() + body
        except _REFUSALS as error:
            self._refuse(error.status, str(error))
            return
        self._buffer, self._call = rest, call
        self._start(call, request)
        call.begun(self._number)

    def hurry(self, before: float) -> None:
        """Refuse a head that was begun before then and is not whole yet."""
        if 0 < self._head_since < before and not self._draining and not self.transport.is_closing():
            self._refuse(408, "a request's head took too long")

    def _refuse(self, status: int, reason: str) -> None:
        self._relay.reporter.refuse(self._number, status, reason, self._buffer)
        self._answer(status, reason, bodiless=self._buffer.startswith(b"HEAD "))

    def _answer(self, status: int, reason: str, *, bodiless: bool) -> None:
        self.transport.write(error_response(status, reason, bodiless=bodiless))
        self._linger()

    def _linger(self) -> None:
        """Close, but read further for a while: a client that is still sending must not be reset before it reads."""
        self._draining, self._buffer = True, b""
        self._drop_upstream()
        if self.transport.is_closing():
            return
        self.transport.write_eof()
        self._balance()
        asyncio.get_running_loop().call_later(_LINGER_SECONDS, self.transport.close)

    def _request_body(self, call: RelayedCall, data: bytes) -> None:
        body, self._buffer = call.body.feed(data)
        if call.body.error:
            self._bad_body(call)
            return
        if body:
            self._write_upstream(body)
        call.request_read()
        if call.body.done and call.response.done:
            self._finish(reuse=False)

    def _bad_body(self, call: RelayedCall) -> None:
        call.request_read()
        self._end_call("bad_framing")
        self._drop_upstream()
        if call.sent:
            self.transport.close()
        else:
            self._answer(400, call.body.error, bodiless=call.head.method == b"HEAD")

    # ---- the upstream's side

    def _start(self, call: RelayedCall, request: bytes) -> None:
        route, upstream = call.route, self._upstream
        key = route.key
        if upstream is None or upstream.key != key or upstream.transport.is_closing():
            self._drop_upstream()
            upstream = self._relay.pool.take(key)
        if upstream is None:
            self._outgoing = [request]
            self._relay.connect(self, route)
            return
        self._use(upstream)
        upstream.transport.write(request)

    def _use(self, upstream: Upstream) -> None:
        self._upstream, upstream.downstream = upstream, self
        if self._client_full:
            upstream.transport.pause_reading()

    def connected(self, upstream: Upstream) -> None:
        """Take the connection we waited for, if we still want it."""
        outgoing, self._outgoing = self._outgoing, None
        if outgoing is None or self._lost:
            upstream.close()
            return
        self._use(upstream)
        if upstream.ended:  # before it was ours
            self.upstream_ended(reset=False)
            return
        upstream.transport.write(b"".join(outgoing))
        self._balance()

    def unreachable(self, status: int, reason: str, detail: str) -> None:
        call = self._call
        if self._outgoing is None or self._lost or call is None:
            return
        self._outgoing = None
        self._end_call(reason)
        self._answer(status, detail, bodiless=call.head.method == b"HEAD")

    def _write_upstream(self, data: bytes) -> None:
        if self._outgoing is not None:
            self._outgoing.append(data)
        elif self._upstream is not None:
            self._upstream.transport.write(data)

    def response_received(self, data: bytes) -> None:
        call = self._call
        if call is None:
            self._drop_upstream(abort=True)  # an answer without a question
            return
        if call.response.tunnel:
            self.transport.write(data)
            call.tunnelled(data, from_client=False)
            return
        response = call.response
        out = response.feed(data)
        if response.tunnel and not response.error:
            self._open_tunnel(call, out)
            return
        if out:
            call.sent = True
            self.transport.write(out)
        call.response_read()
        done = response.done
        if response.error or (done and response.rest):
            self._cut("bad_framing")
        elif done and call.body.done:
            self._finish(reuse=response.keeps)
        else:
            call.tell()

    def _open_tunnel(self, call: RelayedCall, out: bytes) -> None:
        early, first = self._buffer, call.response.rest
        self._buffer = b""
        self.transport.write(out + first)
        if early:
            self._write_upstream(early)
        call.response_read()
        call.tell()
        for data, from_client in ((first, False), (early, True)):
            if data:
                call.tunnelled(data, from_client=from_client)

    def upstream_ended(self, *, reset: bool) -> None:
        call = self._call
        if call is None:
            self._upstream = None
            if not self._buffer and not self._draining:
                self.transport.close()  # as the client would see it without us
        elif call.response.done:
            self._end_call("upstream_reset" if reset else "upstream_closed")
            self._linger()  # the answer is whole, the question never will be
        elif reason := "upstream_reset" if reset else call.response.eof():
            self._cut(reason)
        else:
            self._finish(reuse=False)

    def upstream_full(self, *, full: bool) -> None:
        self._upstream_full = full
        self._balance()

    # ---- the end of a call

    def _end_call(self, reason: str | None) -> None:
        if self._call is not None:
            self._call.ended(reason)
            self._call, self._outgoing, self._upstream_full = None, None, False

    def _finish(self, *, reuse: bool) -> None:
        call = cast("RelayedCall", self._call)
        closes = call.response.tunnel or call.head.closes or not call.response.delimited
        self._end_call(None)
        if not reuse:
            self._drop_upstream()
        if closes or (self._half_closed and not self._buffer):
            self.transport.close()
        elif self._buffer:
            self._next(self._buffer)
        self._balance()

    def _cut(self, reason: str) -> None:
        """End the call so that the client sees what the upstream did: a reset, or an end too early."""
        self._end_call(reason)
        self._drop_upstream(abort=True)
        self._draining = True
        if reason == "upstream_reset":
            self._reset(asyncio.get_running_loop().time() + _FLUSH_SECONDS)
        else:
            self.transport.close()

    def _reset(self, deadline: float) -> None:
        """Reset the connection once the client's kernel has all we sent: a reset discards what is still on its way."""
        loop = asyncio.get_running_loop()
        if self._lost or self.transport.is_closing():
            return
        if self._unsent() and loop.time() < deadline:
            loop.call_later(0.01, self._reset, deadline)
            return
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.transport.abort()

    def _unsent(self) -> int:
        unsent = self.transport.unsent_bytes()
        count = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        return unsent + int(struct.unpack("i", count)[0])

    def _drop_upstream(self, *, abort: bool = False) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.abort() if abort else upstream.close()

    def _balance(self) -> None:
        """Read from the client only as much as can be passed on."""
        if not (self._buffer or self._outgoing or self._upstream_full or self._paused):
            return  # so it is nearly always
        held = len(self._buffer) if self._call is not None else 0
        if self._outgoing is not None:
            held += sum(map(len, self._outgoing[1:]))
        pause = not self._draining and (self._upstream_full or held > _HELD_BYTES)
        if pause != self._paused and not self.transport.is_closing():
            self._paused = pause
            self.transport.pause_reading() if pause else self.transport.resume_reading()
            if pause:
                self._watch(len(_PEER_SECONDS))

    def stop(self, *, now: bool) -> None:
        """End the connection: if `now` at once, else only if it is idle."""
        if self._call is None:
            self.transport.close()
        elif now:
            self._end_call("relay_died")
            self._drop_upstream(abort=True)
            self.transport.abort()
