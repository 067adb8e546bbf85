"""The base URLs that send one run through the proxy, and where each of them leads.

A base URL that somebody chose is never replaced by another place: it is reached by way of the proxy, which the run asks
for the permission to call it. A base URL that leads through a proxy of ours already, because the run was started in the
shell of `env` or by the agent of another run, leads to the same place through this run.
"""

from collections.abc import Collection, Mapping

from agent_logger.proxy.base_urls import BASE_URLS, BESIDE, ProxyAddress, chosen, without_upstream_proxy
from agent_logger.proxy.relay.route import KNOWN_HOSTS


class RunUrls:
    """The URLs of one run. `allowed`: the origins that the proxies of this home may call, by port."""

    def __init__(self, port: int, token: str, allowed: Mapping[int, Collection[str]]) -> None:
        self._base = f"http://127.0.0.1:{port}/{token}"
        self._allowed = allowed
        self.origins: dict[str, None] = {}  # origins that the run must be allowed to call
        self.within: str | None = None  # the token of the run that this one was started in

    def through(self, provider: str, url: str) -> str | None:
        """Return the URL that reaches a base URL by way of the proxy; `None` if it cannot."""
        ours = ProxyAddress.parse(url)
        if ours and ours.token and ours.port in self._allowed:
            self.within = ours.token
            return f"{self._base}/{provider}/{ours.host}{ours.path}"
        if ours and ours.port in self._allowed:
            url = ours.direct(self._allowed[ours.port])
        place = chosen(provider, url)
        if place is None:
            return None
        if place.origin.host not in KNOWN_HOSTS or str(place.origin) != f"https://{place.origin.host}":
            self.origins[str(place.origin)] = None
        return f"{self._base}/{provider}/{place.place}"


def base_url_changes(environment: Mapping[str, str], urls: RunUrls) -> dict[str, str]:
    """Return the changes to an agent's environment that send it through the proxy."""
    changes: dict[str, str] = {}
    for variable, place in BASE_URLS.items():
        provider, _, rest = place.partition("/")
        if url := urls.through(provider, environment.get(variable) or f"https://{rest}"):
            changes[variable] = url
    if not environment.get("ANTHROPIC_BASE_URL") or "/anthropic/api.anthropic.com" in environment["ANTHROPIC_BASE_URL"]:
        changes |= {name: value for name, value in BESIDE.items() if name not in environment}
    return changes | without_upstream_proxy(environment)
