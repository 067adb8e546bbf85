"""A client's connection, and what happens to its requests.

Bytes are forwarded first; then frames are made. There is no task and no `await` per call: bytes are parsed, joined and
forwarded in the callback in which they arrive.
"""

import asyncio
from typing import TYPE_CHECKING, cast

from agent_logger.protocols.http1 import RequestHead, head_end
from agent_logger.protocols.http_bodies import MalformedError
from agent_logger.proxy.relay.admission import ForbiddenError, TokenNeededError, error_response, token_request
from agent_logger.proxy.relay.call import RelayedCall, UnrecordedCall
from agent_logger.proxy.relay.peer import is_gone, reset
from agent_logger.proxy.relay.route import NotAllowedError
from agent_logger.proxy.relay.upstream import Upstream
from agent_logger.proxy.relay.write_batch import LARGE_BYTES, Outgoing

if TYPE_CHECKING:
    from agent_logger.proxy.relay.doors import Door
    from agent_logger.proxy.relay.relay import Relay

# Bytes of later requests, or of a request while we connect. With more than this, we stop reading from the client.
_HELD_BYTES = 64 << 10
_LINGER_SECONDS = 2.0  # time for a client to read our answer: a reset would discard it
_PEER_SECONDS = (0.002, 0.01, 0.05, 0.25)  # time between checks of a client that may be gone
_FORBIDDEN = 403
_REFUSALS = (MalformedError, ForbiddenError, NotAllowedError)


class Client(asyncio.Protocol):
    """A client's connection: one call at a time, and the upstream connection that serves them."""

    transport: Outgoing

    def __init__(self, relay: "Relay", door: "Door") -> None:
        self._relay, self._door = relay, door
        relay.clients.add(self)
        self._number = relay.count()
        self._call: RelayedCall | None = None
        self._upstream: Upstream | None = None
        self._buffer = b""  # an incomplete head, or later requests
        self._head_since = 0.0  # when the incomplete head began; 0: there is none
        self._outgoing: list[bytes] | None = None  # bytes for the upstream while we connect to it
        self._half_closed = self._draining = self._lost = False
        self._client_full = self._upstream_full = self._paused = False

    # ---- the client's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = Outgoing(cast("asyncio.Transport", transport), self._relay.batch)

    def data_received(self, data: bytes) -> None:
        call = self._call
        if self._draining:
            return
        if call is None:
            self._next(self._buffer + data if self._buffer else data)
        elif call.response.tunnel:
            self._write_upstream(data)
            call.report_tunnel(data, from_client=True)
        elif not call.body.done:
            self._request_body(call, data)
        else:
            self._buffer += data
        self._balance()

    def eof_received(self) -> bool:
        call = self._call
        if call is None or self._draining or call.response.tunnel or not call.body.done:
            self._report_unfinished_head()
            return False
        self._half_closed = True
        self._watch(0)
        return True

    def connection_lost(self, _exc: Exception | None) -> None:
        self._lost = True
        self._report_unfinished_head()  # of a client that reset the connection
        self._relay.clients.discard(self)
        upstream, self._upstream = self._upstream, None
        if self._call is not None:
            self._end_call("client_gone")
            if upstream is not None:
                upstream.abort()
        elif upstream is not None:
            self._relay.pool.give(upstream)

    def _report_unfinished_head(self) -> None:
        """Report a head that the client left unfinished, once."""
        if self._call is None and self._buffer and not self._draining:
            self._relay.reporter.refusals.add(self._number, 400, "the client left within a head", self._buffer)
            self._buffer = b""

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
        if gone or (gone is None and self._half_closed):  # most servers decide the same
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
            if head.method == b"CONNECT":
                self._connect(head, data[end:])
                return
            route = self._door.route(head)
            call = (RelayedCall if route.is_recorded else UnrecordedCall)(self._relay.reporter, head, route)
            body, rest = call.body.feed(data[end:])
            if call.body.error:
                raise MalformedError(call.body.error)
            request = call.forwarded()
        except _REFUSALS as error:
            self._refuse(error.status, str(error))
            return
        except TokenNeededError:
            self._ask_for_token(head, data[end:])
            return
        self._buffer, self._call = rest, call
        self._start(call, request, body)
        call.report_start(self._number)

    def _connect(self, head: RequestHead, rest: bytes) -> None:
        """Leave the connection to the forward door."""
        tunnel = self._door.tunnel(head)
        self._buffer = b""
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            self._relay.pool.give(upstream)
        self._relay.clients.discard(self)
        self._draining = True
        self.transport.resume_reading()
        tunnel(self.transport.release(), rest)

    def _ask_for_token(self, head: RequestHead, rest: bytes) -> None:
        """Answer a request without a token. It is no attack: some clients send none before they are asked."""
        stays = not rest and not head.closes and (head.framing is None or head.framing.done)
        self._buffer = b""
        self.transport.write(token_request(bodiless=head.method == b"HEAD", stays=stays))
        if not stays:
            self._linger()

    def hurry(self, before: float) -> None:
        """Refuse a head that began before this time and is incomplete."""
        if 0 < self._head_since < before and not self._draining and not self.transport.is_closing():
            self._refuse(408, "a request's head took too long")

    def _refuse(self, status: int, reason: str) -> None:
        self._relay.reporter.refusals.add(self._number, status, reason, self._buffer)
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
        call.report_request()
        if call.body.done and call.response.done:
            self._finish(reuse=False)

    def _bad_body(self, call: RelayedCall) -> None:
        call.report_request()
        self._end_call("bad_framing")
        self._drop_upstream()
        if call.sent:
            self.transport.close()
        else:
            self._answer(400, call.body.error, bodiless=call.head.method == b"HEAD")

    # ---- the upstream's side

    def _start(self, call: RelayedCall, head: bytes, body: bytes) -> None:
        route, upstream = call.route, self._upstream
        key = route.key
        if upstream is None or upstream.key != key or upstream.transport.is_closing():
            self._drop_upstream()
            upstream = self._relay.pool.take(key)
        if upstream is None:
            self._outgoing = [head, body]
            self._relay.connect(self, route)
            return
        self._use(upstream)
        if len(body) > LARGE_BYTES:
            upstream.transport.write(head)
            upstream.transport.write(body)
        else:
            upstream.transport.write(head + body)

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
        if upstream.ended:  # it ended before we got it
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
        if self._door.answer_unreachable() or status == _FORBIDDEN:
            self._answer(status, detail, bodiless=call.head.method == b"HEAD")
        else:  # the client believes that it is connected to the upstream
            self._draining = True
            self.transport.cut()

    def _write_upstream(self, data: bytes) -> None:
        if self._outgoing is not None:
            self._outgoing.append(data)
        elif self._upstream is not None:
            self._upstream.transport.write(data)

    def response_received(self, data: bytes) -> None:
        call = self._call
        if call is None:
            self._drop_upstream(abort=True)  # a response without a request
            return
        if call.response.tunnel:
            self.transport.write(data)
            call.report_tunnel(data, from_client=False)
            return
        response = call.response
        out = response.feed(data)
        if response.tunnel and not response.error:
            self._open_tunnel(call, out)
            return
        if out:
            call.sent = True
            self.transport.write(out)
        call.report_response(data)
        done = response.done
        if response.error or (done and response.rest):
            self._cut("bad_framing")
        elif done and call.body.done:
            self._finish(reuse=response.keeps)

    def _open_tunnel(self, call: RelayedCall, out: bytes) -> None:
        early, first = self._buffer, call.response.rest
        self._buffer = b""
        self.transport.write(out + first)
        if early:
            self._write_upstream(early)
        call.report_response(b"")
        call.flush()
        for data, from_client in ((first, False), (early, True)):
            if data:
                call.report_tunnel(data, from_client=from_client)

    def upstream_ended(self, *, reset: bool) -> None:
        call = self._call
        if call is None:
            self._upstream = None
            if not self._buffer and not self._draining:
                self.transport.close()  # the client would see the same without us
        elif call.response.done:
            self._end_call("upstream_reset" if reset else "upstream_closed")
            self._linger()  # the response is complete, and the request never will be
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
            self._call.report_end(reason)
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
            reset(self.transport)
        else:
            self.transport.cut()

    def _drop_upstream(self, *, abort: bool = False) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.abort() if abort else upstream.close()

    def _balance(self) -> None:
        """Pause reading from the client while the upstream does not take what was read."""
        if not (self._buffer or self._outgoing or self._upstream_full or self._paused):
            return  # nearly every call ends here
        held = len(self._buffer) if self._call is not None else 0
        if self._outgoing is not None:
            held += sum(map(len, self._outgoing[2:]))
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
