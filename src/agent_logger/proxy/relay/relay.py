"""The relay: listens on loopback and moves bytes between clients and their upstreams."""

import asyncio
from typing import Self

from agent_logger.config import Network, Origin
from agent_logger.proxy.forward.door import Certificates, ForwardDoor
from agent_logger.proxy.relay.admission import Admission
from agent_logger.proxy.relay.call import Reporter, Tap
from agent_logger.proxy.relay.client import Client
from agent_logger.proxy.relay.doors import FrontDoor
from agent_logger.proxy.relay.limits import HEAD_SECONDS, SWEEP_SECONDS, Excess, most_clients
from agent_logger.proxy.relay.route import NotAllowedError, Route, Routes
from agent_logger.proxy.relay.upstream import Connector, Pool, UnreachableError
from agent_logger.proxy.relay.write_batch import WriteBatch

__all__ = ["Relay", "Tap"]

_CLOSING_SECONDS = 1.0


class Relay:
    """A relay that listens on 127.0.0.1: `async with Relay(0, allow, tap) as relay: ... relay.port`.

    `workers`: how many relays share the port.
    `certificates`: what the forward door opens TLS connections with; without them it opens none.
    `network`: the way to upstreams, for requests of no registered run.
    `ValueError`: a proxy in it that we cannot use. `OSError` on entering: the port is taken.
    """

    def __init__(
        self,
        port: int,
        allow: tuple[Origin, ...],
        tap: Tap,
        *,
        network: Network = Network(),  # noqa: B008 (a named tuple)
        workers: int = 1,
        certificates: Certificates | None = None,
    ) -> None:
        self.port = port  # the one we listen on, once we do
        self.reporter = Reporter(tap, workers)
        self.routes = Routes(allow)
        self.pool = Pool()
        self.guard = Admission(port)
        self.batch = WriteBatch()
        self.connector = Connector(self.batch, network)
        self.forward = ForwardDoor(self, certificates, workers)
        self._front = FrontDoor(self)
        self.clients: set[Client] = set()
        self.excess: set[Excess] = set()  # connections that are being refused
        self.most_clients = most_clients()
        self.head_seconds = HEAD_SECONDS
        self._connections = 0
        self._share_port = workers > 1
        self._server: asyncio.Server | None = None
        self._connecting: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Client(self, self._front) if self._has_room() else Excess(self),
            "127.0.0.1",
            self.port,
            backlog=1024,
            reuse_port=self._share_port or None,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self.guard = Admission(self.port)
        self._sweep()

    def _has_room(self) -> bool:
        return len(self.clients) + len(self.forward.connections) < self.most_clients

    def _sweep(self) -> None:
        """Check all clients at once, every so often: a timer for each head would cost every call time."""
        loop = asyncio.get_running_loop()
        before = loop.time() - self.head_seconds
        for client in list(self.clients):
            client.hurry(before)
        self.forward.hurry(before)
        self.reporter.refusals.sweep()
        self._sweeping = loop.call_later(SWEEP_SECONDS, self._sweep)

    async def stop(self, grace_seconds: float = 0.0) -> None:
        """Stop listening, give open calls so much time to end, then cut them."""
        if self._server is not None:
            self._server.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_seconds
        self._stop_clients(now=False)
        while (self.clients or self.forward.connections) and loop.time() < deadline:
            await asyncio.sleep(0.02)
            self._stop_clients(now=False)
        self._stop_clients(now=True)
        for task in self._connecting:
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        await self.forward.stopped()
        self.pool.close()
        self.reporter.refusals.sweep(now=True)
        await self._closed(loop.time() + _CLOSING_SECONDS)

    async def _closed(self, deadline: float) -> None:
        """Wait until all transports are closed: a loop that ends with open ones complains, and TLS takes its time to
        close."""
        for upstream in self.connector.opened:
            upstream.abort()
        for excess in self.excess:
            excess.transport.abort()
        while (
            self.clients or self.excess or self.connector.opened or self.forward.connections
        ) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.001)

    def _stop_clients(self, *, now: bool) -> None:
        for client in list(self.clients):
            client.stop(now=now)
        self.forward.stop(now=now)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def count(self) -> int:
        """The number of a new connection."""
        self._connections += 1
        return self._connections

    def connect(self, client: Client, route: Route) -> None:
        """Connect to the upstream. Later, `connected` or `unreachable` of the client is called."""
        task = asyncio.get_running_loop().create_task(self._connect(client, route))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, client: Client, route: Route) -> None:
        try:
            upstream = await self.connector.connect(route)
        except UnreachableError as error:
            client.unreachable(error.status, error.reason, str(error))
        except NotAllowedError as error:
            client.unreachable(error.status, "refused", str(error))
        else:
            client.connected(upstream)
