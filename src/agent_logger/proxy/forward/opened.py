"""A tunnel that was opened: the requests in it go to the host that the client asked for."""

import re
from typing import NamedTuple

from agent_logger.protocols.http1 import HOST, RequestHead
from agent_logger.protocols.http_bodies import MalformedError
from agent_logger.providers.registry import ANTHROPIC, GEMINI, dialect_of
from agent_logger.proxy.forward.traffic import HostTraffic
from agent_logger.proxy.relay.admission import ForbiddenError
from agent_logger.proxy.relay.doors import TakeConnection
from agent_logger.proxy.relay.route import RegisteredRun, Route, is_token_endpoint

_ROUTES_KEPT = 64  # a client asks for the same few paths all the time
# The longest first line of a request that is waited for.
_LONGEST_LINE = 16 << 10
_REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} [\x21-\x7e]+ HTTP/1\.[01]\r\n")
_REQUEST_START = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}(?:(?<! ) [\x20-\x7e]*\r?)?")


def begins_http(data: bytes) -> bool | None:
    """Whether data is the beginning of an HTTP/1 request; `None` if that cannot be said yet."""
    end = data.find(b"\n")
    if end >= 0:
        return _REQUEST_LINE.fullmatch(data, 0, end + 1) is not None
    return None if len(data) <= _LONGEST_LINE and _REQUEST_START.fullmatch(data) else False


class HostPort(NamedTuple):
    """A host, in lower case and without brackets, and a port."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def name(self, usual_port: int) -> str:
        """The host as a URL has it: with the port unless that is the usual one."""
        return self.authority.rpartition(":")[0] if self.port == usual_port else self.authority


class OpenedHost:
    """The door of the requests to one host, which are recorded."""

    def __init__(
        self, run: RegisteredRun, target: HostPort, counts: HostTraffic, *, tls: bool, any_address: bool
    ) -> None:
        self._run, self._target, self._counts = run, target, counts
        self._tls, self._any_address = tls, any_address
        self._names = {target.authority.encode(), target.name(443 if tls else 80).encode()}
        self._routes: dict[bytes, Route] = {}

    def answer_unreachable(self) -> bool:
        self._counts.unreachable += 1
        return False

    def route(self, head: RequestHead) -> Route:
        if head.is_for_proxy:
            raise MalformedError("the target must be a path")
        route = self.route_to(head, head.target)
        self._counts.calls += 1
        return route

    def route_to(self, head: RequestHead, path: bytes) -> Route:
        """The route of a request that names this host in its `Host`."""
        hosts = head.values(HOST)
        if len(hosts) != 1:
            raise ForbiddenError("a request needs exactly one Host header", 400)
        if hosts[0].lower() not in self._names:
            raise ForbiddenError("the Host header must name the host that the tunnel leads to", 421)
        route = self._routes.get(path)
        if route is None:
            if len(self._routes) >= _ROUTES_KEPT:
                self._routes.clear()
            route = self._routes[path] = self._route(path)
        return route

    def _route(self, path: bytes) -> Route:
        target = self._target
        return Route(
            provider_of(target.host, path.decode("latin-1")),
            target.host,
            target.port,
            self._tls,
            path,
            target.name(443),
            self._any_address,
            is_token_endpoint(path),
            self._run,
            "forward",
        )

    def tunnel(self, _head: RequestHead) -> TakeConnection:
        raise MalformedError("CONNECT is not offered in a tunnel", 405)


_PROVIDERS = {"anthropic.com": "anthropic", "claude.ai": "anthropic", "googleapis.com": "gemini"}


def provider_of(host: str, path: str) -> str:
    """The provider of a request whose URL does not name one: by its path where that tells, else by its host."""
    dialect = dialect_of("", path)
    if dialect is ANTHROPIC:
        return "anthropic"
    if dialect is GEMINI:
        return "gemini"
    vendor = next((name for end, name in _PROVIDERS.items() if host == end or host.endswith("." + end)), None)
    return vendor or "openai"
