"""Upgraded connections: each message of the client and its answer is recorded as a call."""

from functools import partial

from agent_logger.protocols.websocket import MessageKind, WebSocketMessage, WebSocketMessages
from agent_logger.providers.ending import ends_answer
from agent_logger.proxy.recorder.call_writer import CallWriter
from agent_logger.proxy.recorder.calls.large import SecretSearch
from agent_logger.proxy.recorder.calls.open_call import OpenCall, Tunnel, message_id
from agent_logger.proxy.recorder.calls.payload import REDACTED
from agent_logger.proxy.recorder.calls.recorded_body import RecorderContext
from agent_logger.proxy.recorder.calls.recorded_call import RecordedCall


class TunnelRecording:
    def __init__(self, context: RecorderContext, writer: CallWriter) -> None:
        self._context, self._writer = context, writer

    def feed(self, open_call: OpenCall, data: bytes, ns: int, *, from_client: bool) -> None:
        tunnel = open_call.tunnel or self._begin(open_call)
        for message in (tunnel.client if from_client else tunnel.server).feed(data):
            self._message(open_call, tunnel, message, ns, from_client=from_client)

    def finish(self, open_call: OpenCall, ns: int, reason: str | None) -> None:
        """End a tunnel, if the call has one. `reason`: why the call ended otherwise than it should."""
        tunnel = open_call.tunnel
        if tunnel is None:
            return
        for direction in (tunnel.client, tunnel.server):
            for message in direction.finish():
                self._message(open_call, tunnel, message, ns, from_client=direction is tunnel.client)
        self._end_message(open_call, tunnel, ns, reason or "no_stream_end")

    def _begin(self, open_call: OpenCall) -> Tunnel:
        extensions = open_call.call.header("sec-websocket-extensions")
        search = partial(SecretSearch, open_call.call.secrets.redactor)
        open_call.tunnel = Tunnel(
            WebSocketMessages(extensions=extensions, masked=True, search=search),
            WebSocketMessages(extensions=extensions, masked=False, search=search),
        )
        open_call.call.message = True
        return open_call.tunnel

    def _message(
        self, open_call: OpenCall, tunnel: Tunnel, message: WebSocketMessage, ns: int, *, from_client: bool
    ) -> None:
        if message.kind in (MessageKind.PING, MessageKind.PONG, MessageKind.CLOSE):
            return
        data, unknown = message.data, 0
        direction = tunnel.client if from_client else tunnel.server
        deflated = message.kind is MessageKind.DEFLATED
        if (message.kind is MessageKind.UNDECODABLE and direction.hides) or (deflated and message.matched):
            data, unknown, deflated = REDACTED, 1, False
        if from_client:
            self._end_message(open_call, tunnel, ns, "no_stream_end")
            self._begin_message(open_call, tunnel, data, ns, unknown=unknown, deflated=deflated)
            return
        call = tunnel.call or open_call.call
        if call is not open_call.call:
            call.begin_message_answer(ns)
        if deflated:
            call.deflated_chunks.append(call.state.response.chunks)
        call.response_data([data], [ns], [True], unknown)
        if tunnel.call and not deflated and (last := ends_answer(data)):
            self._end_message(open_call, tunnel, ns, "no_stream_end" if last == "error" else None)

    def _begin_message(
        self, open_call: OpenCall, tunnel: Tunnel, data: bytes, ns: int, *, unknown: int, deflated: bool
    ) -> None:
        tunnel.count += 1
        first = open_call.call
        call_id = message_id(first.id, tunnel.count, ns - first.state.began_ns)
        call = RecordedCall(first.request_start, call_id, ns, first.secrets, self._context)
        call.message, call.request_is_deflated = True, deflated
        call.request_data(data, ns, unknown)
        call.state.request_end()
        tunnel.call = call
        self._writer.write_request(open_call, call)

    def _end_message(self, open_call: OpenCall, tunnel: Tunnel, ns: int, reason: str | None) -> None:
        call, tunnel.call = tunnel.call, None
        if call:
            call.state.end(ns, reason)
            self._writer.write_response(open_call, call)
