"""The forward door: clients that take the relay for their proxy, and say so with the token of a registered run."""

import asyncio
import base64
import binascii
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent_logger.config import Origin
from agent_logger.protocols.http1 import PROXY_AUTHORIZATION, RequestHead
from agent_logger.protocols.http_bodies import MalformedError
from agent_logger.proxy.forward.connect import Connecting
from agent_logger.proxy.forward.hosts import RecordedHosts, host_name
from agent_logger.proxy.forward.opened import HostPort, OpenedHost
from agent_logger.proxy.forward.pace import Pace
from agent_logger.proxy.forward.traffic import ForwardStatus, HostTraffic, Traffic
from agent_logger.proxy.forward.trust import ClientTrust
from agent_logger.proxy.forward.tunnel import UnreadTunnel
from agent_logger.proxy.relay.admission import TokenNeededError
from agent_logger.proxy.relay.doors import TakeConnection
from agent_logger.proxy.relay.route import TOKEN_USER, RegisteredRun, Route

if TYPE_CHECKING:
    from agent_logger.proxy.relay.relay import Relay

_STATUS_HOSTS = 50
_BASIC = re.compile(rb"(?i:basic) +([A-Za-z0-9+/]+={0,2})")
_AUTHORITY = re.compile(rb"([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?")
_URL = re.compile(rb"(?i:http)://([^/?]*)(.*)", re.DOTALL)


class Certificates(Protocol):
    """Makes us the server of any recorded host: `certificates.Authority`, or a fake of it in tests."""

    @property
    def problem(self) -> str | None:
        """Why no host can be opened, as one line for people."""
        ...

    def server_context(self, host: str) -> ssl.SSLContext:
        """Return the TLS settings for a host, from any thread. Raises `StoreError`."""
        ...


class Connection(Protocol):
    """A connection of the door that no `Client` has."""

    def hurry(self, before: float) -> None: ...
    def stop(self, *, now: bool) -> None: ...


@dataclass(eq=False)
class ForwardRun:
    """What a registered run may have of this door."""

    registered: RegisteredRun
    hosts: RecordedHosts  # that the certificate of its CA file permits
    tls_origins: frozenset[HostPort]
    plain_origins: frozenset[HostPort]
    pace: Pace
    traffic: Traffic = field(default_factory=Traffic)
    connections: int = 0  # that are open
    trust: ClientTrust = field(default_factory=ClientTrust)

    @property
    def origins(self) -> frozenset[HostPort]:
        return self.tls_origins | self.plain_origins

    def may_open(self, target: HostPort) -> bool:
        return self.may_open_tls(target) or self.may_open_plain(target)

    def may_open_tls(self, target: HostPort) -> bool:
        return (target.port == 443 or target in self.origins) and self.hosts.covers(target.host)

    def may_open_plain(self, target: HostPort) -> bool:
        return target in self.plain_origins


class ForwardDoor:
    """The door of one relay. `relays`: how many there are."""

    def __init__(self, relay: "Relay", certificates: Certificates | None, relays: int = 1) -> None:
        self.relay = relay
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.without_token = 0
        self._certificates, self._relays = certificates, relays
        self._runs: dict[str, ForwardRun] = {}
        self._ended = Traffic(_STATUS_HOSTS)  # of runs that are withdrawn
        self._ready: set[str] = set()  # hosts that have a certificate: the next one takes microseconds

    # ---- runs

    def register(self, run: RegisteredRun, origins: Iterable[Origin], record_hosts: Iterable[str]) -> None:
        """Take the requests of a run. Raises `ValueError` for a name of a host that is not valid."""
        by_scheme: dict[str, set[HostPort]] = {"https": set(), "http": set()}
        for origin in origins:
            by_scheme[origin.scheme].add(HostPort(origin.host, origin.port))
        self._runs[run.token] = ForwardRun(
            run,
            RecordedHosts.parse(record_hosts if self._certificates else ()),
            frozenset(by_scheme["https"]),
            frozenset(by_scheme["http"]),
            Pace(self._relays),
        )

    def withdraw(self, token: str) -> None:
        run = self._runs.pop(token, None)
        if run is not None:
            self._count()
            self._ended.add(run.traffic.hosts())

    def hosts_of(self, token: str) -> tuple[HostTraffic, ...]:
        """Return what a run has sent through this door so far."""
        self._count()
        run = self._runs.get(token)
        return run.traffic.hosts() if run else ()

    def connections_of(self, token: str) -> int:
        run = self._runs.get(token)
        return run.connections if run else 0

    def status(self) -> ForwardStatus:
        """Return the status, from any thread. Open tunnels are counted once a second."""
        total = Traffic(_STATUS_HOSTS)
        total.add(self._ended.hosts())
        for run in list(self._runs.values()):
            total.add(run.traffic.hosts())
        return ForwardStatus(
            open_tunnels=sum(isinstance(connection, UnreadTunnel) for connection in list(self.connections)),
            without_token=self.without_token,
            certificate_problem=self._certificates.problem if self._certificates else None,
            hosts=total.hosts(),
        )

    def _count(self) -> None:
        for connection in list(self.connections):
            if isinstance(connection, UnreadTunnel):
                connection.count()

    def counts(self, run: ForwardRun, target: HostPort) -> HostTraffic:
        return run.traffic.of(target.name(443))

    # ---- requests

    def route(self, head: RequestHead) -> Route:
        """The route of a request whose target is a URL. It is recorded only where the run has registered the origin."""
        run = self._run_of(head)
        match = _URL.fullmatch(head.target)
        target = _target(match[1], 80) if match else None
        if match is None or target is None:
            raise MalformedError("the target must be a URL http://host/path, without a user")
        path = match[2] if match[2].startswith(b"/") else b"/" + match[2]
        if target in run.plain_origins:
            counts = self.counts(run, target)
            opened = OpenedHost(run.registered, target, counts, tls=False, any_address=True)
            route = opened.route_to(head, path)
            counts.calls += 1
            return route
        self.counts(run, target).plain_requests += 1
        return Route(
            "",
            *target,
            tls=False,
            path=path,
            name=target.name(80),
            run=run.registered,
            door="forward",
            is_recorded=False,
        )

    def tunnel(self, head: RequestHead) -> TakeConnection:
        """What takes the connection of a client that asks for a tunnel."""
        run = self._run_of(head)
        target = _target(head.target, None)
        if target is None or (head.framing is not None and not head.framing.done):
            raise MalformedError("CONNECT needs host:port, and no body")

        def take(transport: asyncio.Transport, data: bytes) -> None:
            Connecting(self, run, target, transport, data)

        return take

    def _run_of(self, head: RequestHead) -> ForwardRun:
        for value in head.values(PROXY_AUTHORIZATION):
            match = _BASIC.fullmatch(value)
            user, _, token = _decoded(match[1]).partition(":") if match else ("", "", "")
            if user == TOKEN_USER and (run := self._runs.get(token)):
                return run
        self.without_token += 1
        raise TokenNeededError

    async def context(self, host: str) -> ssl.SSLContext:
        """The TLS settings of a server for this host. Raises `StoreError`."""
        assert self._certificates is not None
        if host in self._ready:
            return self._certificates.server_context(host)
        loop = asyncio.get_running_loop()
        context = await loop.run_in_executor(None, self._certificates.server_context, host)
        self._ready.add(host)
        return context

    # ---- the life of the relay

    def hurry(self, before: float) -> None:
        for connection in list(self.connections):
            connection.hurry(before)

    def stop(self, *, now: bool) -> None:
        for connection in list(self.connections):
            connection.stop(now=now)

    async def stopped(self) -> None:
        """End what was begun and is not done."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def _decoded(text: bytes) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeError):
        return ""


def _target(authority: bytes, usual_port: int | None) -> HostPort | None:
    match = _AUTHORITY.fullmatch(authority)
    port = int(match[2]) if match and match[2] else usual_port
    if match is None or port is None or not 1 <= port <= 65535:
        return None
    return HostPort(host_name(match[1].decode()).strip("[]"), port)
