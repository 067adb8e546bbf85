"""Where a request goes: `/{provider}/{upstream host}/{path}`, if that host is allowed.

The decision is made on the raw bytes of the target. Nothing is decoded, so there is nothing to disagree about: the host
is looked up as written, in a table of spellings. The addresses of a name are checked again when connecting
(`check_addresses`), because names are controlled by others.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from agent_logger.config import Origin

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

_TARGET = re.compile(rb"/([a-z]+)/([^/?]*)(.*)")
_HOST = re.compile(r"([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d+)?", re.ASCII)
# Tokens are in the bodies here, in both directions.
_TOKEN_ENDPOINT = re.compile(
    rb"(?i)(?:.*/(?:oauth2?|auth|login|openid-connect)(?:/+v\d[\d.]*)?/*)?/token/*(?:[?].*)?", re.DOTALL
)


class NotAllowedError(Exception):
    """A request for a place that is not allowed."""

    def __init__(self, reason: str, status: int = 403) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Route:
    """The destination of a request. `name` is the host as the client wrote it and the upstream's `Host`: with the port
    where it is not 443."""

    provider: str
    host: str
    port: int
    tls: bool
    path: bytes  # with the query, as the upstream gets it
    name: str
    any_address: bool = False  # this exact origin was allowed by name: it may be on this machine
    has_tokens: bool = False  # an OAuth token endpoint: its bodies are never kept

    @property
    def tls_host(self) -> str | None:
        """The host whose certificate is verified; `None` without TLS."""
        return self.host if self.tls else None

    @property
    def key(self) -> tuple[str, int, bool]:
        return self.host, self.port, self.tls


_ROUTES_KEPT = 256  # agents ask for the same few paths all the time


class Routes:
    """The table of what is allowed, by the spelling in the URL."""

    def __init__(self, allow: Iterable[Origin] = ()) -> None:
        routes = {host: (host, 443, True, False) for host in KNOWN_HOSTS}
        allowed = {_spelling(origin): _destination(origin) for origin in allow}
        self._upstreams = routes | allowed
        self._routes: dict[bytes, Route] = {}

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
        if match is None or (provider := match[1].decode()) not in PROVIDERS:
            raise NotAllowedError(f"the path must be /{{{'|'.join(PROVIDERS)}}}/{{host}}/...", 404)
        name = match[2].decode("ascii", "replace").lower()
        upstream = self._upstreams.get(name) if _HOST.fullmatch(name) else None
        if upstream is None:
            raise NotAllowedError("this upstream is not allowed; --allow-upstream ORIGIN allows one")
        rest = match[3]
        host, port, tls, any_address = upstream
        path = rest if rest.startswith(b"/") else b"/" + rest
        has_tokens = _TOKEN_ENDPOINT.fullmatch(path) is not None
        return Route(provider, host, port, tls, path, name, any_address, has_tokens)


def _spelling(origin: Origin) -> str:
    host = bracketed(origin.host)
    return host if (origin.scheme, origin.port) == ("https", 443) else f"{host}:{origin.port}"


def bracketed(host: str) -> str:
    """The host as it is written before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _destination(origin: Origin) -> tuple[str, int, bool, bool]:
    return origin.host, origin.port, origin.scheme == "https", True


_NOT_GLOBAL = tuple(
    map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24"))
)  # of these, Python's versions differ
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
    good = [address for address in addresses if route.any_address or is_public(address)]
    if not good:
        raise NotAllowedError(f"{route.name} resolves to an address that is not on the internet")
    return good
