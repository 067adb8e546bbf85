"""How much a relay accepts: how many connections, and how much time for a head.

An idle connection costs little and may stay as long as it likes, for agents hold some for hours. Nobody waits for a
head that never becomes whole.
"""

import asyncio
import contextlib
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from agent_logger.proxy.relay.admission import error_response

if TYPE_CHECKING:
    from agent_logger.proxy.relay.relay import Relay

HEAD_SECONDS = 30.0  # time from the first byte of a head to its last
SWEEP_SECONDS = 1.0
MOST_CLIENTS = 8192
_MOST_EXCESS = 64  # with more than these, a connection is closed without an answer
_EXCESS_SECONDS = 2.0  # time for such a client to send its request and to read the answer
_RESERVED = 192  # descriptors for these, the pool, the spool, the recorder
_FEWEST_CLIENTS = 16
_DESCRIPTORS = 2 * MOST_CLIENTS + _RESERVED  # a client has an upstream


def raise_descriptors() -> None:
    """Raise the limit of open files to as many as we can need, where the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def most_clients() -> int:
    """How many clients a relay accepts: as many as there are descriptors for, because a relay must never run out of
    them."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CLIENTS
    return max(_FEWEST_CLIENTS, min(MOST_CLIENTS, (soft - _RESERVED) // 2))


class Excess(asyncio.Protocol):
    """A connection beyond the limit: its request is refused."""

    transport: asyncio.Transport

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay
        self._number = relay.count()
        self._answered = False
        self._later: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if len(self._relay.excess) >= _MOST_EXCESS:
            self._refuse(b"")
            self.transport.abort()
            return
        self._relay.excess.add(self)
        self._after(lambda: self._answer(b""))

    def data_received(self, data: bytes) -> None:
        if not self._answered:
            self._answer(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._relay.excess.discard(self)
        if self._later is not None:
            self._later.cancel()
        if not self._answered:
            self._refuse(b"")

    def _answer(self, data: bytes) -> None:
        """Answer, and read further for a while: a client that is still sending must not be reset before it reads the
        answer."""
        reason = self._refuse(data)
        self.transport.write(error_response(503, reason, bodiless=data.startswith(b"HEAD ")))
        self.transport.write_eof()
        self._after(self.transport.close)

    def _refuse(self, data: bytes) -> str:
        self._answered = True
        reason = "too many connections; close some of the open ones"
        self._relay.reporter.refusals.add(self._number, 503, reason, data)
        return reason

    def _after(self, work: Callable[[], None]) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later = asyncio.get_running_loop().call_later(_EXCESS_SECONDS, work)
