"""Two doors: what the requests of a connection mean depends on how the client came to us.

A client with a base URL of ours names the upstream in the path of each request. A client that takes us for its proxy
asks for tunnels, and is believed to talk to the upstream itself once it has one (`proxy/forward/`).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from agent_logger.protocols.http1 import RequestHead
from agent_logger.proxy.relay.route import Route

if TYPE_CHECKING:
    from agent_logger.proxy.relay.relay import Relay

# Takes over a client's connection, and the bytes that follow the request.
TakeConnection = Callable[[asyncio.Transport, bytes], None]


class Door(Protocol):
    """What the requests on a connection mean. The methods raise `MalformedError`, `ForbiddenError`, `NotAllowedError`
    or `TokenNeededError`."""

    def answer_unreachable(self) -> bool:
        """Note that the upstream of a request cannot be reached. Returns whether we answer for it; otherwise the
        connection is cut, because the client believes that it has reached the upstream."""
        ...

    def route(self, head: RequestHead) -> Route: ...

    def tunnel(self, head: RequestHead) -> TakeConnection:
        """What takes over the connection of a client that asks for a tunnel."""
        ...


class FrontDoor:
    """The door of the port that the relay listens on."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay

    def answer_unreachable(self) -> bool:
        return True

    def route(self, head: RequestHead) -> Route:
        if head.is_for_proxy:
            return self._relay.forward.route(head)
        self._relay.guard.check(head)
        return self._relay.routes.find(head.target)

    def tunnel(self, head: RequestHead) -> TakeConnection:
        return self._relay.forward.tunnel(head)
