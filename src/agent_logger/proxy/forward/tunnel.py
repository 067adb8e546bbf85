"""A tunnel: bytes pass in both directions, unread. Only their number is known."""

import asyncio
from collections.abc import Callable
from typing import cast

from agent_logger.proxy.forward.traffic import HostTraffic
from agent_logger.proxy.relay.peer import is_gone, reset

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_IDLE_SECONDS = 1.0  # when we stop: a tunnel that was silent for so long is closed at once
_PEER_SECONDS = (0.05, 0.25, 1.0, 5.0)  # time between checks of a client that has closed its side


class End(asyncio.Protocol):
    """One end of a tunnel. What arrives here is written at the other end."""

    transport: asyncio.Transport
    other: "End"
    _write: Callable[[bytes], None]

    def __init__(self, tunnel: "UnreadTunnel") -> None:
        self._tunnel = tunnel
        self.bytes = 0
        self.has_ended = False  # nothing more comes from here

    def data_received(self, data: bytes) -> None:
        self.bytes += len(data)
        self._write(data)

    def eof_received(self) -> bool:
        self.has_ended = True
        other = self.other.transport
        if self.other.has_ended:
            other.close()
            return False
        if other.can_write_eof() and not other.is_closing():  # TLS to another proxy cannot
            other.write_eof()
        return True

    def pause_writing(self) -> None:
        if not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended = True
        if exc is not None:
            reset(self.other.transport)
        else:
            self.other.transport.close()
        self._tunnel.end_lost()

    def join(self, transport: asyncio.Transport, other: "End") -> None:
        self.transport, self.other = transport, other
        other._write = transport.write  # found once, not for each read


class _ClientEnd(End):
    def eof_received(self) -> bool:
        stays = super().eof_received()
        if stays:
            self._tunnel.watch()
        return stays


class _HostEnd(End):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tunnel.connected(cast("asyncio.Transport", transport))


class UnreadTunnel:
    """Both ends. `host_end` is the protocol for the connection to the host: once that is made, the tunnel takes the
    client's connection, too."""

    def __init__(
        self,
        client: asyncio.Transport,
        counts: HostTraffic,
        release: Callable[["UnreadTunnel"], tuple[bytes, bool]],
        on_end: Callable[["UnreadTunnel"], None],
    ) -> None:
        """Set up a tunnel. `release` is called when it takes the client's connection, and returns what is to be sent
        first, and whether the client has closed its side; `on_end`, when both connections are closed."""
        self.client_end, self.host_end = _ClientEnd(self), _HostEnd(self)
        self._client, self._counts, self._release, self._on_end = client, counts, release, on_end
        self._open_ends = 2
        self._counted = (0, 0)
        self._idle_since: tuple[int, float] = (-1, 0.0)

    def connected(self, host: asyncio.Transport) -> None:
        client, client_end, host_end = self._client, self.client_end, self.host_end
        client_end.join(client, host_end)
        host_end.join(host, client_end)
        held, has_ended = self._release(self)
        client.set_protocol(client_end)
        if held:
            client_end.data_received(held)
        if client.is_closing():  # it left meanwhile
            host.close()
            return
        client.resume_reading()
        if has_ended:
            client_end.eof_received()

    def end_lost(self) -> None:
        self._open_ends -= 1
        if not self._open_ends:
            self.count()
            self._on_end(self)

    def count(self) -> None:
        """Add to the counts what has passed since the last time."""
        sent, received = self.client_end.bytes, self.host_end.bytes
        self._counts.sent_bytes += sent - self._counted[0]
        self._counts.received_bytes += received - self._counted[1]
        self._counted = (sent, received)

    def watch(self, look: int = 0) -> None:
        """Close the tunnel of a client that is gone. One that has closed its side may only have sent everything."""
        if self._client.is_closing() or self.host_end.has_ended:
            return
        if is_gone(self._client):
            self._client.abort()
            self.host_end.transport.abort()
            return
        seconds = _PEER_SECONDS[min(look, len(_PEER_SECONDS) - 1)]
        asyncio.get_running_loop().call_later(seconds, self.watch, look + 1)

    def hurry(self, _before: float) -> None:
        """A tunnel may take any time."""
        self.count()

    def stop(self, *, now: bool) -> None:
        total, time = self.client_end.bytes + self.host_end.bytes, asyncio.get_running_loop().time()
        if total != self._idle_since[0]:
            self._idle_since = (total, time)
        if now:
            self._client.abort()
            self.host_end.transport.abort()
        elif time - self._idle_since[1] >= _IDLE_SECONDS:
            self._client.close()
            self.host_end.transport.close()
