"""What sends an agent through the proxy: the variables it reads its base URL from, and what undoes their effects."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from agent_logger.config import Origin

LOOPBACK = "127.0.0.1,localhost"  # for NO_PROXY: what is on this machine is asked without a proxy

# By variable: provider, host and path behind it.
BASE_URLS: Mapping[str, str] = {
    "ANTHROPIC_BASE_URL": "anthropic/api.anthropic.com",
    "OPENAI_BASE_URL": "openai/api.openai.com/v1",
    "GOOGLE_GEMINI_BASE_URL": "gemini/generativelanguage.googleapis.com",
}
# Claude Code turns tool search off for a base URL that is not Anthropic's, unless it is told to keep it.
BESIDE: Mapping[str, str] = {"ENABLE_TOOL_SEARCH": "true"}


def base_urls(port: int) -> dict[str, str]:
    """By variable. opencode wants its path with the version, and reads this before the others' variable."""
    urls = {name: f"http://127.0.0.1:{port}/{path}" for name, path in BASE_URLS.items()}
    provider = {"anthropic": {"options": {"baseURL": f"{urls['ANTHROPIC_BASE_URL']}/v1"}}}
    return {**urls, "OPENCODE_CONFIG_CONTENT": json.dumps({"provider": provider}, separators=(",", ":"))}


@dataclass(frozen=True, slots=True)
class Chosen:
    """A base URL that somebody set already: what it leads to."""

    variable: str
    origin: Origin
    path: str

    def through(self, port: int) -> str:
        """The same place, by way of the proxy."""
        provider = BASE_URLS[self.variable].partition("/")[0]
        return f"http://127.0.0.1:{port}/{provider}/{str(self.origin).partition('://')[2]}{self.path}"


def chosen(environment: Mapping[str, str]) -> list[Chosen]:
    """What cannot be understood is left out, and stays as it is."""
    found = []
    for variable in BASE_URLS:
        scheme, separator, rest = environment.get(variable, "").partition("://")
        host, slash, path = rest.partition("/")
        try:
            origin = Origin.parse(f"{scheme}{separator}{host}")
        except ValueError:
            continue
        found.append(Chosen(variable, origin, f"{slash}{path}".rstrip("/")))
    return found


def proxied_environment(environment: Mapping[str, str], port: int) -> dict[str, str]:
    """What of an agent's environment is to be changed, so that it asks the proxy."""
    changes = {name: url for name, url in base_urls(port).items() if not environment.get(name)}
    changes |= {it.variable: it.through(port) for it in chosen(environment)}
    changes |= {name: value for name, value in BESIDE.items() if name not in environment}
    for name in ("NO_PROXY", "no_proxy"):
        if name == "NO_PROXY" or name in environment:
            hosts = [it for it in environment.get(name, "").split(",") if it]
            changes[name] = ",".join(dict.fromkeys([*hosts, *LOOPBACK.split(",")]))
    return changes
