"""Where a request goes: `/{provider}/{upstream host}/{path}`, if that host is allowed.

A run that is registered with the proxy puts its token in front: `/{token}/{provider}/{upstream host}/{path}`. The
origins and the network that it registered hold for such requests alone, and end with the run.

The decision is made on the raw bytes of the target. Nothing is decoded, so there is nothing to disagree about: the host
is looked up as written, in a table of spellings. The addresses of a name are checked again when connecting
(`check_addresses`), because names are controlled by others.
"""

import contextlib
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal

from agent_logger.config import Network, Origin

PROVIDERS = ("anthropic", "openai", "gemini")

# All https on 443. Printed in docs/SECURITY.md.
KNOWN_HOSTS: Mapping[str, str] = {
    "api.anthropic.com": "Anthropic",
    "api.openai.com": "OpenAI",
    "chatgpt.com": "OpenAI, with a ChatGPT login",
    "generativelanguage.googleapis.com": "Google Gemini",
    "openrouter.ai": "OpenRouter",
    "api.mistral.ai": "Mistral",
    "api.groq.com": "Groq",
    "api.deepseek.com": "DeepSeek",
    "api.x.ai": "xAI",
}

TOKEN_PREFIX = "alr_"
TOKEN_USER = "agent-logger"  # the user whose password is the token, where a client thinks of us as its proxy
TOKEN = re.compile(rf"{TOKEN_PREFIX}[A-Za-z0-9]{{32}}", re.ASCII)
_TARGET = re.compile(rb"(?:/(%b))?/([a-z]+)/([^/?]*)(.*)" % TOKEN.pattern.encode())
_HOST = re.compile(r"([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d+)?", re.ASCII)
# Tokens are in the bodies here, in both directions.
_TOKEN_ENDPOINT = re.compile(
    rb"(?i)(?:.*/(?:oauth2?|auth|login|openid-connect|copilot_internal)(?:/+v\d[\d.]*)?/*)?/(?:access_)?token/*(?:[?].*)?",
    re.DOTALL,
)


def is_token_endpoint(path: bytes) -> bool:
    return _TOKEN_ENDPOINT.fullmatch(path) is not None


class NotAllowedError(Exception):
    """A request for a place that is not allowed."""

    def __init__(self, reason: str, status: int = 403) -> None:
        super().__init__(reason)
        self.status = status


# Host, port, TLS, and whether the host may be on this machine, by spelling.
Upstreams = dict[str, tuple[str, int, bool, bool]]


@dataclass(slots=True, eq=False)
class RegisteredRun:
    """A run whose requests carry a token. `network` is its own way to upstreams, instead of the proxy's."""

    id: str
    token: str
    upstreams: Upstreams
    network: Network
    calls: int = field(default=0)  # calls that were relayed

    @property
    def prefix(self) -> bytes:
        """The beginning of its requests' targets."""
        return b"/" + self.token.encode()


@dataclass(frozen=True, slots=True)
class Route:
    """The destination of a request. `name` is the host as the client wrote it and the upstream's `Host`: with the port
    where it is not 443."""

    provider: str
    host: str
    port: int
    tls: bool
    path: bytes  # path and query as the upstream gets them
    name: str
    any_address: bool = False  # the user allowed this exact origin: it may be on this machine
    has_tokens: bool = False  # an OAuth token endpoint: its bodies are never kept
    run: RegisteredRun | None = None
    door: Literal["base-url", "forward"] = "base-url"
    is_recorded: bool = True

    @property
    def host_header(self) -> bytes:
        """What replaces the client's `Host`; nothing where the client names the upstream itself."""
        return b"" if self.door == "forward" and self.is_recorded else self.name.encode()

    @property
    def network(self) -> Network | None:
        """The way to the upstream; `None`: the proxy's own."""
        return self.run.network if self.run else None

    @property
    def key(self) -> "UpstreamKey":
        return self.host, self.port, self.tls, self.network


UpstreamKey = tuple[str, int, bool, Network | None]


_ROUTES_KEPT = 256  # agents ask for the same few paths all the time


class Routes:
    """The table of what is allowed, by the spelling in the URL."""

    def __init__(self, allow: Iterable[Origin] = ()) -> None:
        self._upstreams: Upstreams = {host: (host, 443, True, False) for host in KNOWN_HOSTS} | _spelled(allow)
        self._runs: dict[bytes, RegisteredRun] = {}
        self._routes: dict[bytes, Route] = {}

    def register(self, run_id: str, token: str, allow: Iterable[Origin], network: Network) -> RegisteredRun:
        """Register a run: requests with its token may go to these origins, too."""
        run = RegisteredRun(run_id, token, self._upstreams | _spelled(allow), network)
        self._runs[token.encode()] = run
        return run

    def run_of(self, token: str) -> RegisteredRun | None:
        return self._runs.get(token.encode())

    def withdraw(self, token: str) -> None:
        """End a registration. Calls that have begun continue."""
        self._runs.pop(token.encode(), None)
        self._routes.clear()

    def find(self, target: bytes) -> Route:
        route = self._routes.get(target)
        if route is None:
            route = self._find(target)
            if len(self._routes) >= _ROUTES_KEPT:
                self._routes.clear()
            self._routes[target] = route
        return route

    def _find(self, target: bytes) -> Route:
        match = _TARGET.fullmatch(target)
        if match is None or (provider := match[2].decode()) not in PROVIDERS:
            raise NotAllowedError(f"the path must be /{{{'|'.join(PROVIDERS)}}}/{{host}}/...", 404)
        run = self._runs.get(match[1]) if match[1] else None
        if match[1] and run is None:
            raise NotAllowedError("the run that this URL belongs to has ended")
        name = match[3].decode("ascii", "replace").lower()
        upstreams = run.upstreams if run else self._upstreams
        upstream = upstreams.get(name) if _HOST.fullmatch(name) else None
        if upstream is None:
            raise NotAllowedError(
                "this upstream is not allowed; start the proxy with --allow-upstream ORIGIN to allow it"
            )
        rest = match[4]
        host, port, tls, any_address = upstream
        path = rest if rest.startswith(b"/") else b"/" + rest
        return Route(provider, host, port, tls, path, name, any_address, is_token_endpoint(path), run)


def _spelled(origins: Iterable[Origin]) -> Upstreams:
    return {
        str(origin).partition("://")[2]: (origin.host, origin.port, origin.scheme == "https", True)
        for origin in origins
    }


# Python's versions differ in these.
_NOT_GLOBAL = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")))
# Ways to write an IPv4 address as an IPv6 one. Some gateways translate them back.
_EMBEDDING = tuple(map(IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))


def is_public(text: str) -> bool:
    """Whether an address is on the internet. For a v6 address that embeds a v4 address, the embedded one decides."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return False
        if any(address in network for network in _EMBEDDING):
            return all(map(_is_global, _embedded(address)))
        if address.is_site_local:
            return False
    return _is_global(address)


def _embedded(address: IPv6Address) -> list[IPv4Address]:
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    return [IPv4Address(int(address) & 0xFFFFFFFF)]


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address) and any(address in network for network in _NOT_GLOBAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_unspecified


def check_addresses(route: Route, addresses: Iterable[str]) -> list[str]:
    """The addresses that may be connected to. Raises `NotAllowedError` if there is none."""
    if not route.is_recorded:
        return check_tunnel_addresses(route.name, addresses)
    good = [address for address in addresses if route.any_address or is_public(address)]
    if not good:
        raise NotAllowedError(f"{route.name} resolves to an address that is not on the internet")
    return good


# Where clouds tell a machine its secrets. No program that the user started talks to these by way of a proxy.
_METADATA = tuple(
    map(ip_network, ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32", "168.63.129.16/32"))
)
_METADATA_NAMES = ("metadata.google.internal", "metadata.goog", "instance-data.ec2.internal")


def check_tunnel_addresses(host: str, addresses: Iterable[str]) -> list[str]:
    """The addresses that a tunnel may lead to: all but link-local ones, and those where clouds answer for a machine.
    Raises `NotAllowedError` if there is none."""
    good = [address for address in addresses if not _is_metadata(address)]
    if not good:
        raise NotAllowedError(f"{host} is a link-local or metadata address, which this proxy does not connect to")
    return good


def check_tunnel_name(host: str) -> None:
    """Check a host that another proxy will look up, as far as its name tells. Raises `NotAllowedError`."""
    name = host.lower().removesuffix(".")
    if name in _METADATA_NAMES:
        check_tunnel_addresses(host, ())
    with contextlib.suppress(OSError, ValueError):
        # Resolvers take 2852039166 and 0xa9.254.43518 for 169.254.169.254.
        address = name if ":" in name else socket.inet_ntoa(socket.inet_aton(name))
        check_tunnel_addresses(host, [address])


def _is_metadata(text: str) -> bool:
    address = ip_address(text.partition("%")[0])
    forms: list[IPv4Address | IPv6Address] = [address]
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            forms = [address.ipv4_mapped]
        elif any(address in network for network in _EMBEDDING):
            forms += _embedded(address)
    return any(form in network for form in forms for network in _METADATA)
