"""A client that has asked for a tunnel, until somebody takes its connection.

A tunnel to a host that is recorded is opened if the client speaks TLS in it, or plain HTTP to an origin of its run: the
first bytes tell. Any other one is passed on unread.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from agent_logger.errors import StoreError
from agent_logger.protocols.client_hello import NotTlsError, begins_tls, read_client_hello
from agent_logger.proxy.forward.opened import HostPort, OpenedHost, begins_http
from agent_logger.proxy.forward.tls import Outcome, TlsConnection
from agent_logger.proxy.forward.tunnel import ESTABLISHED, UnreadTunnel
from agent_logger.proxy.relay.admission import error_response
from agent_logger.proxy.relay.client import Client
from agent_logger.proxy.relay.route import NotAllowedError
from agent_logger.proxy.relay.upstream import UnreachableError

if TYPE_CHECKING:
    from agent_logger.proxy.forward.door import ForwardDoor, ForwardRun

_HELD_BYTES = 256 << 10
_LINGER_SECONDS = 2.0


class Connecting(asyncio.Protocol):
    """A client's connection until its tunnel is open."""

    def __init__(
        self, door: "ForwardDoor", run: "ForwardRun", target: HostPort, transport: asyncio.Transport, data: bytes
    ) -> None:
        self._door, self._run, self._target, self._transport = door, run, target, transport
        self._loop = asyncio.get_running_loop()
        self._data = data
        self._is_established = self._is_looking = self._is_refused = self._has_ended = False
        self._looking_since = 0.0  # since the client began to say what it speaks
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        transport.set_protocol(self)
        door.connections.add(self)
        run.connections += 1
        wait = run.pace.wait_seconds(self._loop.time())
        if wait is None:
            self._refuse(429, "this run opens too many tunnels; at most 64 a second are opened")
        elif wait:
            self._timer = self._loop.call_later(wait, self._begin)
        else:
            self._begin()

    # ---- the client's connection

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._data += data
        if self._is_looking:
            self._look()
        elif len(self._data) > _HELD_BYTES:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._has_ended = True
        if self._is_refused:
            return False
        if self._is_looking:
            if not self._data:
                return False
            self._pass_on()  # whatever it is, there will be no more of it
        return True

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._leave()

    def _leave(self) -> None:
        """Stop being responsible for the connection: it has ended."""
        if self in self._door.connections:
            self._door.connections.discard(self)
            self._run.connections -= 1

    # ---- opening

    def _begin(self) -> None:
        if self._transport.is_closing():
            return
        if not self._run.may_open(self._target):
            self._dial()
            return
        self._is_established = self._is_looking = True
        self._transport.write(ESTABLISHED)
        if self._data:
            self._look()

    def _look(self) -> None:
        """Find out what the client speaks, once there are enough bytes."""
        self._looking_since = self._looking_since or self._loop.time()
        is_tls = begins_tls(self._data)
        if is_tls:
            self._look_at_hello()
        elif is_tls is False:
            is_http = begins_http(self._data)
            if is_http and self._run.may_open_plain(self._target):
                self._open_plain()
            elif is_http is not None:
                self._pass_on()

    def _look_at_hello(self) -> None:
        try:
            hello = read_client_hello(self._data)
        except NotTlsError:
            self._pass_on()
            return
        if hello is None:
            return
        client = (self._target.host, hello.fingerprint)
        if not hello.may_speak_http1 or self._run.trust.is_missing(client) or not self._run.may_open_tls(self._target):
            self._pass_on()
            return
        self._is_looking = False
        self._transport.pause_reading()
        self._start(self._open_tls(client))

    async def _open_tls(self, client: tuple[str, bytes]) -> None:
        try:
            context = await self._door.context(self._target.host)
        except StoreError:
            self._pass_on()
            return
        counts, run, door = self._door.counts(self._run, self._target), self._run, self._door
        any_address = self._target in run.origins
        opened = OpenedHost(run.registered, self._target, counts, tls=True, any_address=any_address)

        def decided(outcome: Outcome) -> None:
            name = "not_trusted" if outcome == "left" else outcome
            setattr(counts, name, getattr(counts, name) + 1)
            run.trust.note(client, outcome)

        def make_client() -> Client:
            door.connections.discard(connection)  # the relay has the client among its own
            return Client(door.relay, opened)

        def closed() -> None:
            door.connections.discard(connection)
            run.connections -= 1

        self._door.connections.discard(self)
        connection = TlsConnection(self._transport, context, make_client, decided, closed)
        door.connections.add(connection)
        self._transport.resume_reading()
        connection.data_received(self._data)
        if self._has_ended and not connection.eof_received():
            self._transport.close()

    def _open_plain(self) -> None:
        counts = self._door.counts(self._run, self._target)
        counts.opened += 1
        self._leave()
        opened = OpenedHost(self._run.registered, self._target, counts, tls=False, any_address=True)
        client = Client(self._door.relay, opened)
        self._transport.set_protocol(client)
        client.connection_made(self._transport)
        client.data_received(self._data)
        if self._has_ended and not client.eof_received():
            self._transport.close()

    # ---- passing on

    def _pass_on(self) -> None:
        """Make this a tunnel that is not read, although the host is recorded."""
        self._is_looking = False
        self._door.counts(self._run, self._target).tunnels_unopened += 1
        self._dial()

    def _dial(self) -> None:
        if len(self._data) > _HELD_BYTES:
            self._transport.pause_reading()
        self._start(self._connect())

    async def _connect(self) -> None:
        door, run, target = self._door, self._run, self._target
        counts = door.counts(run, target)
        tunnel = UnreadTunnel(self._transport, counts, self._release, self._end)
        try:
            await door.relay.connector.tunnel(target.host, target.port, run.registered.network, tunnel.host_end)
        except (UnreachableError, NotAllowedError) as error:
            counts.unreachable += 1
            self._refuse(error.status, str(error))

    def _release(self, tunnel: UnreadTunnel) -> tuple[bytes, bool]:
        """Leave the client to a tunnel that has reached the host."""
        if not self._is_established:
            self._transport.write(ESTABLISHED)
        self._door.counts(self._run, self._target).tunnels += 1
        self._door.connections.discard(self)
        self._door.connections.add(tunnel)
        return self._data, self._has_ended

    def _end(self, tunnel: UnreadTunnel) -> None:
        self._door.connections.discard(tunnel)
        self._run.connections -= 1

    def hurry(self, before: float) -> None:
        """Give up on a client that began to say what it speaks, and did not end."""
        if self._is_looking and 0 < self._looking_since < before:
            self._pass_on()

    def stop(self, *, now: bool) -> None:
        if now or self._is_looking:
            self._transport.abort()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._task = self._loop.create_task(work)
        self._door.tasks.add(self._task)
        self._task.add_done_callback(self._door.tasks.discard)

    def _refuse(self, status: int, reason: str) -> None:
        """Answer that there will be no tunnel; if the client believes already that there is one, break off."""
        self._is_refused = True
        if self._transport.is_closing():
            return
        if not self._is_established:
            self._transport.write(error_response(status, reason))
        if self._is_established or self._has_ended:
            self._transport.close()
            return
        self._transport.write_eof()
        self._data = b""
        self._loop.call_later(_LINGER_SECONDS, self._transport.close)
